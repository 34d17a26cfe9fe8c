-- Kept connections that die when they are used again, over real sockets: how many requests arrive.

local libcurl = require "spec.support.libcurl"
local native_driver = require "spec.support.native_driver"
local peer = require "spec.support.peer"
local riskscreen = require "riskscreen"

local CONNECTIONS = 6
local ANSWER = peer.response '{"success":true,"code":1,"msg":"SUCCESS","data":{}}'

describe("a request on a kept connection that is dead", function()
  local server, client

  -- A client with idle connections. Each is reset when it is used again.
  local function open(options)
    local first = {}
    server = peer.tcp(native_driver, function(connection)
      if connection.count > 1 then
        connection:reset()
      elseif server.connections > CONNECTIONS then
        connection:send(ANSWER)
      else
        first[#first + 1] = connection
        for _, each in ipairs(#first == CONNECTIONS and first or {}) do
          each:send(ANSWER)
        end
      end
    end)
    options.base_url, options.access_key = server.url, "the-access-key"
    client = riskscreen.new(options)
    riskscreen.run(function()
      local calls = {}
      for number = 1, CONNECTIONS do
        calls[number] = function()
          return assert(client:request("GET", "/x"))
        end
      end
      riskscreen.gather(calls)
    end)
    assert.equal(CONNECTIONS, #server.requests)
  end

  -- The requests that arrived since the connections were opened.
  local function arrived()
    return #server.requests - CONNECTIONS
  end

  after_each(function()
    client:close()
    server:close()
  end)

  it("is sent again once, on a new connection, however many are dead", function()
    open { retry = false }
    if libcurl.resends then
      -- libcurl has tried all others first.
      assert.is_not_nil(client:request("GET", "/x"))
      assert.equal(CONNECTIONS + 1, arrived())
      return
    end
    local before = client:stats()
    local value, response = client:request("GET", "/x")
    assert.is_not_nil(value, tostring(response))
    local after = client:stats()
    assert.same({ 2, 2 }, { arrived(), response.attempts })
    assert.same({ 2, 1, 0 }, { after.requests - before.requests, after.resent, after.retries })
  end)

  it("is told to the hook each time", function()
    local told = {}
    open {
      retry = false,
      on = {
        request = function(request)
          told[#told + 1] = tostring(request.resent)
        end,
      },
    }
    client:request("GET", "/x")
    assert.same({ "nil", "true" }, { told[CONNECTIONS + 1], told[CONNECTIONS + 2] })
  end)

  it("is not sent again if it may have taken effect", function()
    open { retry = false }
    local value, err = client:request("POST", "/x", { body = {} })
    if libcurl.resends then
      assert.is_not_nil(value)
      assert.same({ 1, CONNECTIONS + 1 }, { arrived(), server.connections })
      return
    end
    assert.is_nil(value)
    assert.same({ "network", true, 1 }, { err.kind, err.sent, err.attempts })
    assert.equal(1, arrived())
  end)

  it("takes a token of the rate limit each time", function()
    open { retry = false, rate_limit = { rate = 0.001, burst = CONNECTIONS + 1 } }
    local value, err = client:request("GET", "/x")
    assert.is_nil(value)
    assert.same({ "network", true, 1 }, { err.kind, err.sent, err.attempts })
    assert.equal(libcurl.resends and CONNECTIONS or 1, arrived())
  end)
end)
