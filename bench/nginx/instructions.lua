-- User-space instructions of requests at the gate beside a gate written by hand, counted by valgrind in one nginx that
-- has one process. LuaJIT compiles nothing and collects nothing there, and the clock stands still: what it compiles,
-- the time of a collection and the ticks of the clock differ from run to run. So these are no times, but they repeat
-- within half a per cent.

local servers = require("nginx.servers")
local socket = require("socket")

local REQUESTS = 200 -- of a count
local WARM = 20 -- before the first that counts
local LRU = 8 -- addresses: few, so that the addresses of a count come from the dict
local OFTEN = 2 -- addresses, few enough for the worker's memory

-- callgrind writes its counts before each call of this function. nginx itself never calls it.
local MARK = "getpgrp"

local HTTP = [[
  lua_shared_dict hand_written 8m;
  lua_shared_dict riskscreen 8m;
  init_by_lua_block {
    jit.off()
    local ffi = require "ffi"
    ffi.cdef "int getpgrp(void);"
    mark = ffi.C.getpgrp
    hand_written = require("nginx.hand_written")
    gate = require("riskscreen.nginx.gate").new {
      client = { base_url = "http://127.0.0.1:BEHIND", access_key = "0123456789abcdef0123456789abcdef" },
      dict = "riskscreen", lru = LRU, on_unknown = "block",
      address = { argument = "address" }, network = { argument = "network" },
    }
  }
]]

local SERVER = [[
    # nginx collects after init_by_lua, which starts the collector again.
    location = /begin { content_by_lua_block { collectgarbage() collectgarbage "stop" mark() ngx.exit(204) } }
    location = /end { content_by_lua_block { mark() ngx.exit(204) } }
    location = /by-hand {
      access_by_lua_block { hand_written.enforce(ngx.shared.hand_written, BEHIND) }
      empty_gif;
    }
    location = /gate { access_by_lua_block { gate:enforce() } empty_gif; }
]]

local M = {
  WAYS = { "a new address", "an address in the shared dict", "an address in the worker's memory" },
}

local function get(connection, target)
  assert(connection:send(("GET %s HTTP/1.1\r\nHost: bench\r\n\r\n"):format(target)))
  local status, length = connection:receive("*l"), 0
  repeat
    local line = assert(connection:receive("*l"))
    length = tonumber(line:match("^Content%-Length: (%d+)")) or length
  until line == ""
  assert(length == 0 or connection:receive(length))
  assert(status:find(" 20[04] "), status)
end

-- An address whose first and last bytes differ, because LuaJIT's hash of a long text reads little else.
local function address_of(number)
  return ("0x%08x%032x"):format(number * 2654435761 % 2 ^ 32, number)
end

local function ask(connection, path, first, count, different)
  for index = 0, count - 1 do
    local address = address_of(first + index % different)
    get(connection, ("%s?address=%s&network=eth"):format(path, address))
  end
end

---The instructions of a request for each of WAYS, at the gate and by hand.
---@return { gate: number, hand: number }[]
function M.count()
  local http = HTTP:gsub("LRU", tostring(LRU))
  local running = servers.start({ http = http, server = SERVER }, 0, false, MARK)
  local counts = { {}, {}, {} }
  local ok, message = pcall(function()
    local connection = assert(socket.connect("127.0.0.1", running.url:match("%d+$")))
    local function count(path, first, different)
      get(connection, "/begin")
      running:instructions()
      ask(connection, path, first, REQUESTS, different)
      get(connection, "/end")
      return running:instructions() / REQUESTS
    end
    for _, who in ipairs({ { "hand", "/by-hand" }, { "gate", "/gate" } }) do
      local name, path = who[1], who[2]
      ask(connection, path, 1, WARM, WARM)
      counts[1][name] = count(path, 1001, REQUESTS)
      ask(connection, path, 1, WARM, WARM)
      counts[2][name] = count(path, 1001, REQUESTS)
      ask(connection, path, 1, WARM, OFTEN)
      counts[3][name] = count(path, 1, OFTEN)
    end
    connection:close()
  end)
  running:stop()
  assert(ok, message)
  return counts
end

return M
