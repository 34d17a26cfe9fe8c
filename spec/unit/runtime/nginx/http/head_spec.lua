-- The headers of an answer. spec/support/wire.lua has the heads that are refused.
local heads = require "riskscreen.runtime.nginx.http.head"

local function parse(text)
  return heads.parser()(text, #text)
end

local function head_of(lines)
  return assert(parse("HTTP/1.1 200 OK\r\n" .. lines .. "\r\n"))
end

describe("the head of an answer", function()
  it("has the status and the version of its first line", function()
    for line, expected in pairs {
      ["HTTP/1.1 200 OK"] = { 200, "1.1" },
      ["HTTP/1.1 404 "] = { 404, "1.1" },
      ["HTTP/1.1 503"] = { 503, "1.1" },
      ["HTTP/1.0 299 What Ever (1)"] = { 299, "1.0" },
    } do
      local head = assert(parse(line .. "\r\n\r\n"))
      assert.same(expected, { head.status, head.http_version })
    end
  end)

  it("has its headers by lower-case name, without the space around their values", function()
    local head = head_of "Content-Type: a/b; c=d \r\nX-EMPTY:\r\nx-tab:\t1:2\t\r\n"
    assert.same({ ["content-type"] = "a/b; c=d", ["x-empty"] = "", ["x-tab"] = "1:2" }, head.headers)
  end)

  it("is read at once, however much space a line has", function()
    local space = (" "):rep(1000000)
    local head = head_of(("X-A: 1%s2%s\r\nContent-Length: 5,%s5\r\n"):format(space, space, space))
    assert.equal("1" .. space .. "2", head.headers["x-a"])
    assert.equal(5, head.length)
    assert.is_nil((parse(("HTTP/1.1 200 OK\r\nContent-Length: 5,%sx5\r\n\r\n"):format(space))))
  end)

  it("joins headers that are repeated in whatever case", function()
    assert.same({ ["x-a"] = "1, 2, 3" }, head_of("X-A: 1\r\nx-a: 2\r\nX-a: 3\r\n").headers)
  end)

  it("is the same when the same text is parsed again", function()
    local parser = heads.parser()
    local text = "HTTP/1.1 200 OK\r\nX-A: 1\r\nx-a: 2\r\n\r\n"
    local first = parser(text, #text)
    assert.same(first, parser(text, #text))
    assert.same({ ["x-a"] = "1, 2" }, first.headers)
  end)

  it("stays right over more different lines than are remembered", function()
    local parser = heads.parser()
    for number = 1, 2000 do
      local text = ("HTTP/1.1 200 OK\r\nX-N: %d\r\nX-Same: yes\r\n\r\n"):format(number)
      assert.same({ ["x-n"] = tostring(number), ["x-same"] = "yes" }, parser(text, #text).headers)
    end
  end)
end)

describe("the extent of a body", function()
  it("is the announced length", function()
    assert.equal(42, head_of("Content-Length: 42\r\n").length)
    assert.equal(0, head_of("Content-Length: 0\r\n").length)
    assert.equal(42, head_of("Content-Length: 42, 42\r\n").length)
    assert.equal(42, head_of("Content-Length: 42\r\nContent-Length: 42\r\n").length)
    assert.equal(math.huge, head_of("Content-Length: " .. ("9"):rep(40) .. "\r\n").length)
  end)

  it("is open where nothing is announced", function()
    local head = head_of ""
    assert.is_nil(head.length)
    assert.is_false(head.chunked)
  end)

  it("is in chunks where they are announced", function()
    assert.is_true(head_of("Transfer-Encoding: Chunked\r\n").chunked)
  end)
end)

describe("a connection may be used again", function()
  for lines, expected in pairs {
    ["HTTP/1.1 200 OK\r\n"] = true,
    ["HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n"] = true,
    ["HTTP/1.1 200 OK\r\nConnection: close\r\n"] = false,
    ["HTTP/1.1 200 OK\r\nConnection: Close\r\n"] = false,
    ["HTTP/1.1 200 OK\r\nConnection: x, close\r\n"] = false,
    ["HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: close\r\n"] = false,
    ["HTTP/1.1 200 OK\r\nConnection: closed\r\n"] = true,
    ["HTTP/1.0 200 OK\r\n"] = false,
    ["HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n"] = true,
    ["HTTP/1.0 200 OK\r\nConnection: keep-alive, close\r\n"] = false,
  } do
    it(("%s after %s"):format(expected and "" or "not", lines:gsub("\r\n", "; ")), function()
      assert.equal(expected, parse(lines .. "Content-Length: 0\r\n\r\n").persistent)
    end)
  end
end)

describe("how long a connection may be idle", function()
  it("is what the server says, if it does", function()
    assert.equal(5, head_of("Keep-Alive: timeout=5, max=100\r\n").idle)
    assert.equal(7, head_of("Keep-Alive: max=100, Timeout=7\r\n").idle)
    assert.is_nil(head_of("Keep-Alive: max=100\r\n").idle)
    assert.is_nil(head_of("Keep-Alive: timeout=soon\r\n").idle)
    assert.is_nil(head_of("").idle)
  end)
end)
