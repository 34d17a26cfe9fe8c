-- User-space instructions of lookups on Lua 5.4, counted by valgrind. Unlike times they repeat on a busy machine.

local FEW, MANY = 300, 3000 -- lookups of two runs, whose difference is without their start and their end
local COMMAND = "LUA_PATH='lua/?.lua;lua/?/init.lua;;' LUA_CPATH=\"$PWD/build/5.4/?.so;;\" "
  .. "valgrind --tool=callgrind --callgrind-out-file=/dev/null lua5.4 bench/support/ways.lua '%s' %d %d 2>&1"

local M = {
  -- The server's answer. nginx puts in the address.
  ANSWER = '{"success":true,"code":1,"msg":"SUCCESS","data":{"time":1767225600000,"address":"$arg_address",'
    .. '"network":"$arg_network","whitelist":false,"risks":[{"riskLevel":"low","riskType":"online-gambling",'
    .. '"riskSource":"Provider"}]}}',
  -- Ways of ways.lua, each beside the same work by hand.
  PAIRS = {
    { way = "client:call, no I/O", hand = "by hand, no I/O" },
    { way = "client:screen, no I/O", hand = "by hand, no I/O" },
    { way = "screen_all, no I/O", hand = "by hand, no I/O" },
    { way = "kya:risk, blocking", hand = "by hand, blocking" },
    { way = "client:screen, blocking", hand = "by hand, blocking" },
    { way = "screen_all, 64 in flight", hand = "by hand, 64 in flight" },
  },
}

local function count(way, lookups, port)
  local pipe = assert(io.popen(COMMAND:format(way, lookups, port)))
  local output = pipe:read("*a")
  pipe:close()
  return tonumber(output:match("Collected : (%d+)")) or error(output)
end

---The instructions of one lookup.
---@param way string of ways.lua
---@param port integer of a server that gives the answer; any number for a way without I/O
---@return number
function M.of(way, port)
  return (count(way, MANY, port) - count(way, FEW, port)) / (MANY - FEW)
end

return M
