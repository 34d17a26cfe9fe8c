-- Replies of Redis over a cosocket: only the numbers that Redis writes are numbers. csrc/redis/reply.c reads the same.
local function connection_with(bytes)
  local socket = setmetatable({
    connect = function()
      return true
    end,
    send = function()
      return 1
    end,
    receiveany = function()
      local piece = bytes
      bytes = nil
      return piece, "closed"
    end,
  }, {
    __index = function()
      return function() end
    end,
  })
  local ngx = _G.ngx
  local loaded = package.loaded["riskscreen.runtime.nginx.redis"]
  _G.ngx = { socket = {
    tcp = function()
      return socket
    end,
  } }
  package.loaded["riskscreen.runtime.nginx.redis"] = nil
  local transport = require("riskscreen.runtime.nginx.redis").new {
    connect_timeout = 1,
    max_reply = 1000,
    pool_size = 1,
    keepalive = 1,
  }
  _G.ngx, package.loaded["riskscreen.runtime.nginx.redis"] = ngx, loaded
  return assert(transport:connect { host = "redis", port = 1 })
end

local function reply_of(bytes)
  local replies, failure = connection_with(bytes):pipeline({ { "GET", "a" } }, 1)
  return replies and replies[1], failure and failure.kind
end

describe("a reply of Redis to nginx", function()
  it("has numbers as Redis writes them", function()
    for text, number in pairs { ["0"] = 0, ["-2"] = -2, ["1700000000123"] = 1700000000123 } do
      assert.equal(number, reply_of(":" .. text .. "\r\n"))
    end
    assert.equal("ab", reply_of "$2\r\nab\r\n")
    assert.is_false(reply_of "$-1\r\n")
    assert.same({ 1, "b" }, reply_of "*2\r\n:1\r\n+b\r\n")
  end)

  it("has no number in another form", function()
    local long = ("0"):rep(20) .. "2"
    for _, text in ipairs { "0x2", "2e0", "2.0", " 2", "2 ", "+2", "", "-", "--2", long, "0b10", "2LL" } do
      for _, form in ipairs { ":%s\r\n", "$%s\r\nab\r\n", "*%s\r\n+a\r\n+b\r\n" } do
        assert.same({ nil, "protocol" }, { reply_of(form:format(text)) }, form .. text)
      end
    end
  end)
end)
