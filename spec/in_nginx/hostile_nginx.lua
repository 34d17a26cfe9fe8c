-- Requests of an attacker. The gate checks each of them, and it checks the address that the application gets.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local gates = require "spec.support.gate"
local socket = require "socket"

local CLEAN, HIGH = addresses["clean-eth"], addresses["high-eth"]
local LONGEST_WAIT = 20 -- seconds

describe("the gate checks", function()
  local running

  before_each(function()
    running = gates.start {
      init = [[gate = new_gate { network = "eth", on_unknown = "allow", address = { argument = "to" } }
        json_gate = gate:location { address = { json = "to" } }
        form_gate = gate:location { address = { form = "to" } }
        cookie_gate = gate:location { address = { variable = "cookie_to" } }
        local function both(make)
          return gate:location { address = function() return make(ngx.var.arg_first, ngx.var.arg_second) end }
        end
        list_gate = both(function(first, second) return { first, second } end)
        hole_gate = both(function(first, second) return { first, nil, second } end)
        named_gate = both(function(first, second) return { first, to = second } end)]],
      locations = {
        ["/withdraw"] = "gate:enforce()",
        ["/json"] = "json_gate:enforce()",
        ["/form"] = "form_gate:enforce()",
        ["/cookie"] = "cookie_gate:enforce()",
        ["/list"] = "list_gate:enforce()",
        ["/hole"] = "hole_gate:enforce()",
        ["/named"] = "named_gate:enforce()",
      },
      server = "client_body_buffer_size 1k;",
    }
    -- From here on the decisions are cached, so that nothing has to step the sandbox.
    assert.equal(200, running.status("/withdraw?to=" .. CLEAN))
    assert.equal(403, running.status("/withdraw?to=" .. HIGH))
  end)

  after_each(function()
    running.close { "is buffered to a temporary file", "client sent .* while reading client request headers" }
  end)

  -- Sends pieces over one connection. Returns the statuses and the texts of all answers.
  local function send(...)
    local connection = assert(socket.connect("127.0.0.1", running.nginx.port))
    connection:settimeout(LONGEST_WAIT)
    connection:setoption("tcp-nodelay", true)
    for _, piece in ipairs { ... } do
      assert(connection:send(piece))
    end
    local text = assert(connection:receive "*a")
    connection:close()
    local statuses = {}
    for status in text:gmatch "HTTP/1%.%d (%d+)" do
      statuses[#statuses + 1] = tonumber(status)
    end
    return statuses, text
  end

  local function head(method, target, ...)
    local lines = { method .. " " .. target .. " HTTP/1.1", "Host: gateway", ... }
    return table.concat(lines, "\r\n") .. "\r\n\r\n"
  end

  local function body_of(address, more)
    return ('{"note": "%s", "to": "%s"}'):format(more or "", address)
  end

  it("a request of any method", function()
    for _, method in ipairs { "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND", "PAY" } do
      assert.same({ 200 }, (send(head(method, "/withdraw?to=" .. CLEAN, "Connection: close"))), method)
      assert.same({ 403 }, (send(head(method, "/withdraw?to=" .. HIGH, "Connection: close"))), method)
    end
  end)

  it("a request of HTTP/1.0 and HTTP/0.9", function()
    for _, version in ipairs { " HTTP/1.0\r\n\r\n", "\r\n" } do
      local _, passed = send("GET /withdraw?to=" .. CLEAN .. version)
      local _, refused = send("GET /withdraw?to=" .. HIGH .. version)
      assert.same({ true, false }, { passed:find "passed" ~= nil, refused:find "passed" ~= nil })
    end
  end)

  it("a request whose target names the host", function()
    local target = "http://elsewhere/withdraw?to="
    assert.same({ 200 }, (send(head("GET", target .. CLEAN, "Connection: close"))))
    assert.same({ 403 }, (send(head("GET", target .. HIGH, "Connection: close"))))
    assert.same({ 403 }, (send(head("GET", target .. CLEAN .. "#&to=" .. HIGH, "Connection: close"))))
  end)

  it("each of several pipelined requests", function()
    local all = {}
    for index, address in ipairs { CLEAN, HIGH, CLEAN, HIGH } do
      local body = body_of(address)
      all[index] = head("GET", "/withdraw?to=" .. address)
        .. head("POST", "/json", "Content-Type: application/json", "Content-Length: " .. #body)
        .. body
    end
    all[#all + 1] = head("GET", "/withdraw?to=" .. HIGH, "Connection: close")
    assert.same({ 200, 200, 403, 403, 200, 200, 403, 403, 403 }, (send(table.concat(all))))
  end)

  it("a body in whatever pieces it comes", function()
    for _, more in ipairs { "", ("x"):rep(5000) } do
      for address, status in pairs { [CLEAN] = 200, [HIGH] = 403 } do
        local body, chunks = body_of(address, more), {}
        for at = 1, #body, 13 do
          local piece = body:sub(at, at + 12)
          chunks[#chunks + 1] = ("%x\r\n%s\r\n"):format(#piece, piece)
        end
        local json = { "Content-Type: application/json", "Connection: close" }
        local chunked = head("POST", "/json", "Transfer-Encoding: chunked", json[1], json[2])
        assert.same({ status }, (send(chunked, table.concat(chunks), "0\r\n\r\n")))
        local length = "Content-Length: " .. #body
        local patient = head("POST", "/json", "Expect: 100-continue", length, json[1], json[2])
        assert.same({ 100, status }, (send(patient, body)))
      end
    end
  end)

  it("no body with two lengths, or in another encoding", function()
    local body = body_of(CLEAN)
    local rest = { "Content-Type: application/json", "Connection: close" }
    local chunks = ("%x\r\n%s\r\n0\r\n\r\n"):format(#body, body)
    for _, lines in ipairs {
      { "Transfer-Encoding: chunked", "Content-Length: 5", chunks },
      { "Transfer-Encoding: gzip, chunked", "X: x", chunks },
      { "Content-Length: " .. #body, "Content-Length: 5", body },
      { "Content-Length: " .. #body, "Content-Encoding: gzip", body },
      { "Content-Length: " .. #body, "Content-Type: application/json; charset=utf-7", body },
    } do
      local _, text = send(head("POST", "/json", lines[1], lines[2], rest[1], rest[2]) .. lines[3])
      assert.is_nil(text:find("passed", 1, true), lines[1] .. " " .. lines[2])
    end
  end)

  it("no query or form with a second name that an application may take for the first", function()
    local form = { method = "POST", headers = { ["Content-Type"] = "application/x-www-form-urlencoded" } }
    local names = { "to]", "]to", "[to", "[to]", "to%5D", "%5Bto", "a.to", "to.", "to[0]", "+to", "to%00", "TO" }
    for _, name in ipairs(names) do
      for _, query in ipairs { ("to=%s&%s=%s"):format(CLEAN, name, HIGH), ("%s=%s&to=%s"):format(name, HIGH, CLEAN) } do
        form.body = query
        assert.equal(403, running.status("/withdraw?" .. query), query)
        assert.equal(403, running.status("/form", form), query)
      end
    end
    assert.equal(403, running.status("/withdraw??to=" .. CLEAN))
    assert.equal(403, running.status(("/withdraw?to=%s&x=?to=%s"):format(CLEAN, HIGH)))
  end)

  it("no cookie that is there twice", function()
    local function status(...)
      return (send(head("GET", "/cookie", "Connection: close", ...)))[1]
    end
    assert.equal(200, status("Cookie: a=b; to=" .. CLEAN))
    assert.equal(403, status("Cookie: a=b; to=" .. HIGH))
    for _, second in ipairs { "to", "TO", "to[]", "%74o" } do
      local first = "to=" .. CLEAN
      local other = second .. "=" .. HIGH
      assert.equal(403, status(("Cookie: %s; %s"):format(first, other)), second)
      assert.equal(403, status(("Cookie: %s; %s"):format(other, first)), second)
      assert.equal(403, status("Cookie: " .. first, "Cookie: " .. other), second)
    end
  end)

  it("no list of addresses with a hole", function()
    assert.equal(200, running.status("/list?first=" .. CLEAN .. "&second=" .. CLEAN))
    assert.equal(403, running.status("/list?first=" .. CLEAN .. "&second=" .. HIGH))
    assert.equal(403, running.status("/hole?first=" .. CLEAN .. "&second=" .. HIGH))
    assert.equal(403, running.status("/hole?first=" .. CLEAN .. "&second=" .. CLEAN))
    assert.equal(403, running.status("/named?first=" .. CLEAN .. "&second=" .. HIGH))
  end)
end)
