local request_text = require "riskscreen.runtime.nginx.http.request_text"

local SECRET = "key-5fe1"

local function writer()
  local one = request_text.writer({ authority = "api.example" }, "riskscreen/1")
  return function(request)
    local pieces, problem = one(request)
    return pieces and table.concat(pieces), problem
  end
end

local function write(request)
  local all = { method = "GET", target = "/", headers = {} }
  for name, value in pairs(request) do
    all[name] = value
  end
  return writer()(all)
end

describe("the text of a request", function()
  it("follows HTTP/1.1", function()
    assert.equal(
      "GET /a?b=c HTTP/1.1\r\nHost: api.example\r\nUser-Agent: riskscreen/1\r\nAccept: x/y\r\n\r\n",
      write { target = "/a?b=c", headers = { Accept = "x/y" } }
    )
  end)

  it("announces the length of a body", function()
    local common = " / HTTP/1.1\r\nHost: api.example\r\nUser-Agent: riskscreen/1\r\n"
    assert.equal("POST" .. common .. "Content-Length: 3\r\n\r\na\0b", write { method = "POST", body = "a\0b" })
    assert.equal("PUT" .. common .. "Content-Length: 0\r\n\r\n", write { method = "PUT" })
    assert.equal("DELETE" .. common .. "Content-Length: 1\r\n\r\nx", write { method = "DELETE", body = "x" })
    assert.equal("DELETE" .. common .. "\r\n", write { method = "DELETE" })
  end)

  it("follows a header that changes from one request to the next", function()
    local written = writer()
    for _, value in ipairs { "one", "two", "one" } do
      local text = written { method = "GET", target = "/", headers = { ["X-A"] = value } }
      assert.truthy(text:find("\r\nX-A: " .. value .. "\r\n", 1, true))
    end
  end)

  it("has the headers of its own request, though another one is written before it is sent", function()
    local one = request_text.writer({ authority = "api.example" }, "riskscreen/1")
    local first = { method = "GET", target = "/1", headers = { ["X-A"] = "first" } }
    local second = { method = "GET", target = "/2", headers = { ["X-A"] = "second" } }
    local pieces = one(first)
    assert.is_table(one(second))
    local text = table.concat(pieces)
    assert.truthy(text:find("GET /1 ", 1, true) and text:find("\r\nX-A: first\r\n", 1, true))
    assert.falsy(text:find("second", 1, true))
  end)

  it("holds every header after many different ones", function()
    local written = writer()
    for round = 1, 200 do
      local text = written { method = "GET", target = "/", headers = { ["X-" .. round] = "a", ["X-Same"] = "b" } }
      assert.truthy(text:find("\r\nX-" .. round .. ": a\r\n", 1, true))
      assert.truthy(text:find("\r\nX-Same: b\r\n", 1, true))
    end
  end)

  for name, request in pairs {
    ["a line end in a header"] = { headers = { ["X-A"] = SECRET .. "\r\nX-B: c" } },
    ["a carriage return in a header"] = { headers = { ["X-A"] = SECRET .. "\rX-B: c" } },
    ["a line feed in a header"] = { headers = { ["X-A"] = SECRET .. "\n" } },
    ["a NUL in a header"] = { headers = { ["X-A"] = SECRET .. "\0" } },
    ["a line end in a header's name"] = { headers = { ["X-A: b\r\nX-C"] = SECRET } },
    ["a colon in a header's name"] = { headers = { ["X-A:"] = SECRET } },
    ["a space in a header's name"] = { headers = { ["X A"] = SECRET } },
    ["an empty header's name"] = { headers = { [""] = SECRET } },
    ["a space in the target"] = { target = "/a HTTP/1.1" },
    ["a line end in the target"] = { target = "/a\r\nX: y" },
    ["a NUL in the target"] = { target = "/a\0" },
    ["a target without a slash"] = { target = "http://elsewhere/" },
    ["an empty target"] = { target = "" },
    ["a space in the method"] = { method = "GET /x" },
    ["a line end in the method"] = { method = "GET\r\n" },
    ["no method"] = { method = "" },
  } do
    it("is not written with " .. name .. ", and no value is shown", function()
      local text, wrong = write(request)
      assert.is_nil(text)
      assert.is_nil(wrong:find(SECRET, 1, true))
    end)
  end
end)
