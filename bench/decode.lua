-- Decoding speed beside lua-cjson's, on the Lua that runs it: ratios of CPU time, medians of interleaved rounds.
-- Usage: lua bench/decode.lua [rounds] [payload names...], with riskscreen.core and cjson on the path.

package.path = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/?.lua;" .. package.path

local core = require("riskscreen.core")
local cjson = require("cjson")
local payloads = require("payloads")

local ROUND_SECONDS = 0.03
local rounds = tonumber(arg[1]) or 15
local wanted = {}
for i = 2, #arg do
  wanted[arg[i]] = true
end

local function seconds_of(decode, text, times)
  collectgarbage()
  local before = os.clock()
  for _ = 1, times do
    decode(text)
  end
  return os.clock() - before
end

-- How many calls fill a round.
local function calibrate(decode, text)
  local times = 1
  while true do
    local took = seconds_of(decode, text, times)
    if took >= ROUND_SECONDS then
      return times
    end
    times = took < ROUND_SECONDS / 10 and times * 10 or times * 2
  end
end

local function median(list)
  table.sort(list)
  return list[math.floor(#list / 2) + 1]
end

local version = rawget(_G, "jit") and rawget(_G, "jit").version or _VERSION
io.write(("%s, times faster than lua-cjson %s, median of %d rounds\n"):format(version, cjson._VERSION, rounds))
for _, payload in ipairs(payloads.all()) do
  if next(wanted) == nil or wanted[payload.name] then
    local text = payload.text
    local times = calibrate(cjson.decode, text)
    calibrate(core.decode, text)
    local ratios, ours = {}, {}
    for i = 1, rounds do
      local theirs = seconds_of(cjson.decode, text, times)
      ours[i] = seconds_of(core.decode, text, times)
      ratios[i] = theirs / ours[i]
    end
    local rate = #text * times / median(ours) / 1e6
    io.write(("%s  %5.2f  %6.0f MB/s  %8d bytes  %s\n"):format(payload.name, median(ratios), rate, #text, payload.what))
  end
end
