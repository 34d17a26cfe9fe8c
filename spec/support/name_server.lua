-- A DNS server in this process. Names with the prefix "missing" do not exist, those with "silent" get no answer, all
-- others resolve to this machine.
local native_driver = require "spec.support.native_driver"
local socket = require "socket"

local HEADER = 12 -- bytes
local NO_SUCH_NAME = "\129\131"
local SOUND = "\129\128"
local COUNTS = "\0\1\0\1\0\0\0\0" -- one question, one answer
local ADDRESS = "\192\12\0\1\0\1\0\0\0\1\0\4\127\0\0\1" -- of the question's name, for a second

local M = {}

-- The answer to a query, or nil.
local function answer_to(query)
  local first = query:byte(HEADER + 1)
  local label = query:sub(HEADER + 2, HEADER + 1 + first)
  local id, rest = query:sub(1, 2), query:sub(5)
  if label:find "^silent" then
    return nil
  elseif label:find "^missing" then
    return id .. NO_SUCH_NAME .. rest
  end
  return id .. SOUND .. COUNTS .. query:sub(HEADER + 1) .. ADDRESS
end

---@return { directive: string, close: fun() }
function M.start()
  local udp = assert(socket.udp())
  assert(udp:setsockname("127.0.0.1", 0))
  udp:settimeout(0)
  local watch = native_driver:on_ready(udp:getfd(), "r", function()
    local query, host, port = udp:receivefrom()
    local answer = query and answer_to(query)
    if answer then
      udp:sendto(answer, host, port)
    end
  end)
  return {
    directive = ("resolver 127.0.0.1:%d ipv6=off;"):format(select(2, udp:getsockname())),
    close = function()
      native_driver:forget(watch)
      udp:close()
    end,
  }
end

return M
