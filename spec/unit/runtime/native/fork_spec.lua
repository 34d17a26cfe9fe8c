-- Parent and child after a fork: each has connections of its own, and the child's end changes nothing for the parent.
local driver = require "spec.support.native_driver"
local native = require "riskscreen.runtime.native"
local peer = require "spec.support.peer"
local redis = require "spec.support.redis"
local socket = require "socket"

local DEADLINE = 60 -- seconds

local interpreter = os.getenv "RISKSCREEN_LUA" or "lua5.4"

local function read(path)
  local file = assert(io.open(path))
  local text = file:read "*a"
  file:close()
  return text
end

describe("after a fork", function()
  local service, held, askers, output

  before_each(function()
    askers, output = {}, os.tmpname()
    service = peer.tcp(driver, function(connection, request)
      local target = request:match "^GET (%S+)"
      local function reply_to(asked)
        return peer.response(('{"target":"%s"}'):format(asked))
      end
      local who = target:match "^/(%a+)/" or "parent"
      askers[connection] = askers[connection] or who
      assert(askers[connection] == who, "a connection is shared")
      if target == "/held" then
        held = connection
        return
      elseif target == "/release" then
        held:send(reply_to "/held")
      end
      connection:send(reply_to(target))
    end)
  end)

  after_each(function()
    service:close()
    os.remove(output)
  end)

  local function run(way, ending, redis_url)
    local command = "%s spec/support/fork_program.lua '%s' %s %s %s > %s 2>&1; echo ended >> %s"
    os.execute(
      ("(%s) &"):format(command:format(interpreter, way, service.url, ending, redis_url or "", output, output))
    )
    local deadline = socket.gettime() + DEADLINE
    repeat
      native.sleep(0.005)
    until read(output):find "ended\n$" or socket.gettime() > deadline
    assert.equal("done\nended\n", read(output))
  end

  local function connections_of(name)
    local count = 0
    for _, who in pairs(askers) do
      count = count + (who == name and 1 or 0)
    end
    return count
  end

  for _, ending in ipairs { "plain", "closing" } do
    for way, expected in pairs {
      blocking = { 1, 1 },
      idle = { 1, 0 },
      ["in tasks"] = { 2, 2 },
      ["with timers"] = { 1, 1 },
      ["with a server"] = { 0, 1 },
      ["with a queue"] = { 1, 1 },
      ["with a connection to come"] = { 0, 0 },
      ["with a request"] = { 0, 0 },
      ["with a journal"] = { 0, 0 },
      ["with a poll"] = { 0, 0 },
      ["with jitter"] = { 0, 0 },
    } do
      it(("parent and child have their own connections, %s, with a %s end of the child"):format(way, ending), function()
        run(way, ending)
        local parent, child = connections_of "parent", connections_of "child"
        -- On a busy machine the first of two requests may end before the second one begins.
        assert.same(expected, { parent, way == "in tasks" and child == 1 and 2 or child })
      end)
    end

    it(("parent and child have their own connections to Redis, with a %s end of the child"):format(ending), function()
      local server = redis.start()
      for _, way in ipairs {
        "with Redis",
        "with a lock in Redis",
        "with a shared rate limit",
        "with an inbox in Redis",
      } do
        run(way, ending, server.url)
      end
      server:stop()
    end)
  end
end)
