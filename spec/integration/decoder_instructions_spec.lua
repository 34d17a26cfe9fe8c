-- How many instructions the decoder needs for the texts of bench/decode.lua. Unlike times, they repeat on a busy
-- machine, so a change that makes decoding slower fails here. valgrind counts them. Most are Lua's own: it makes the
-- tables.

-- 5 % above a C decoder that was written for these texts, which checks and bounds less; for escapes and foreign texts,
-- 5 % above this decoder. Processors and compilers differ: these counts are for x86-64 and gcc 12. The hashes of Lua
-- 5.4 differ from run to run, by 2 % of a count.
local CEILINGS = {
  { name = "p1", times = 50, ["5.4"] = 824e3, luajit = 403e3 },
  { name = "p2", times = 1500, ["5.4"] = 18.7e3, luajit = 10.7e3 },
  { name = "p3", times = 50, ["5.4"] = 840e3, luajit = 397e3 },
  { name = "p4", times = 30, ["5.4"] = 1511e3, luajit = 788e3 },
  { name = "escapes", times = 5, ["5.4"] = 415e3, luajit = 413e3 },
  { name = "foreign", times = 20, ["5.4"] = 95.5e3, luajit = 92.3e3 },
  { name = "unique keys", times = 8, ["5.4"] = 9370e3, luajit = 6190e3 },
}

local PROGRAM = [[
local file = assert(io.open(arg[1]))
local text = file:read("*a")
file:close()
local decode = require("riskscreen.decoder").decode -- the decoder of riskscreen.core, without libcurl
collectgarbage("stop")
for _ = 1, tonumber(arg[2]) do assert(decode(text)) end
]]

local function output_of(command)
  local pipe = assert(io.popen(command))
  local output = pipe:read "*a"
  pipe:close()
  return output
end

local function write(path, content)
  local file = assert(io.open(path, "w"))
  file:write(content)
  file:close()
end

describe("the decoder", function()
  local directory
  local starting = {} -- the instructions before the first text

  setup(function()
    directory = output_of("mktemp -d"):match "%S+"
    write(directory .. "/count.lua", PROGRAM)
    package.path = "bench/?.lua;" .. package.path
    for _, payload in ipairs(require("support.payloads").all()) do
      write(("%s/%s.json"):format(directory, payload.name), payload.text)
    end
  end)

  teardown(function()
    output_of("rm -rf " .. directory)
  end)

  local function count(lua, name, times)
    local command = "LUA_CPATH='build/%s/?.so;;' valgrind --tool=callgrind --callgrind-out-file=/dev/null "
      .. "%s %s/count.lua '%s/%s.json' %d 2>&1"
    local interpreter = lua == "luajit" and lua or "lua" .. lua
    local output = output_of(command:format(lua, interpreter, directory, directory, name, times))
    return assert(tonumber(output:match "Collected : (%d+)"), output)
  end

  for _, lua in ipairs { "5.4", "luajit" } do
    for _, case in ipairs(CEILINGS) do
      it(("needs at most %d instructions for %s on %s"):format(case[lua], case.name, lua), function()
        local module = io.open(("build/%s/riskscreen/decoder.so"):format(lua))
        if output_of("uname -m"):match "%S+" ~= "x86_64" or not module then
          pending "counts are for x86-64, and need a build for this Lua"
        end
        module:close()
        starting[lua] = starting[lua] or count(lua, case.name, 0)
        local instructions = (count(lua, case.name, case.times) - starting[lua]) / case.times
        assert.is_true(instructions <= case[lua], ("%.0f instructions"):format(instructions))
        -- A decoder that needs much less deserves a lower ceiling.
        assert.is_true(instructions > case[lua] / 2, ("%.0f instructions"):format(instructions))
      end)
    end
  end
end)
