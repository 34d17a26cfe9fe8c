-- Injection into requests, from a plain Lua program.
local attack = require "spec.injection.attack"
local client = require "riskscreen.client"
local native_driver = require "spec.support.native_driver"
local peer = require "spec.support.peer"
local suite = require "spec.injection.suite"

local ANSWER =
  peer.response('{"success":true,"code":1,"msg":"SUCCESS","data":{}}', "Content-Type: application/json\r\n")

local function server()
  return peer.tcp(native_driver, function(connection)
    connection:send(ANSWER)
  end)
end

suite(function()
  local target = server()
  local attacks = attack(target.url)
  target:close()
  return attacks, target.requests
end)

describe("a proxy's URL", function()
  local HEAD = "^CONNECT 127%.0%.0%.1:1 HTTP/1%.1\r\n(.*\r\n)\r\n$"

  -- The heads that a proxy is sent when this stands before its host.
  local function heads(user)
    local proxy = peer.tcp(native_driver, function(connection)
      connection:send(peer.response("", nil, "403 Forbidden"))
    end)
    local mine = client.new {
      base_url = "http://127.0.0.1:1",
      access_key = "test-key",
      retry = false,
      proxy = (proxy.url:gsub("//", function()
        return "//" .. user .. "@"
      end)),
    }
    local value, err = mine:request("GET", "/x")
    proxy:close()
    assert.is_nil(value)
    assert.is_false(err.sent)
    return proxy.requests
  end

  local function assert_credentials_alone(head)
    local names = {}
    for name in assert(head:match(HEAD), head):gmatch "([^\r\n:]+):[^\r\n]*\r\n" do
      names[#names + 1] = name:lower()
    end
    table.sort(names)
    assert.same({ "host", "proxy-authorization", "proxy-connection" }, names)
    assert.is_nil(head:find("test-key", 1, true))
  end

  it("gives the proxy its credentials and nothing else", function()
    local list = heads "user:pass"
    assert.equal(1, #list)
    assert_credentials_alone(list[1])
  end)

  it("with an encoded line end in its credentials gives the proxy credentials at most", function()
    for _, user in ipairs { "us%0d%0aX-Injected%3a%201:pa%0d%0aX-Injected%3a%201", "us%0aer:pa%0ass" } do
      -- libcurl refuses them by itself; in Base64 they would do no harm.
      for _, head in ipairs(heads(user)) do
        assert_credentials_alone(head)
      end
    end
  end)

  it("with a line end or a space in it is refused", function()
    for _, text in ipairs { "a\r\nX-Injected: 1", "a b", "a\n", "a\0" } do
      assert.is_false(
        (pcall(client.new, { base_url = "https://a", access_key = "other-key", proxy = "http://" .. text }))
      )
    end
  end)
end)
