-- The scripts of a rate limit that several machines share. Redis runs each as one step, by its own clock. The rate is
-- kept as GCRA does: `tat` is the time at which the bucket was empty, or will be.
--
-- A machine that gets no tokens is told when to ask again: its turn. The turns are as far apart as the tokens. So a
-- thousand waiting machines ask no more often than there are tokens.

-- Reads the hash of a limit by the clock of Redis. Where that was set back, all dates go back with it: no wait becomes
-- longer. A day that has begun goes on, so that its tokens are not given a second time.
local opening = [[
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local dates = { 'tat', 'share_at', 'paused', 'turn:high', 'turn:normal', 'turn:low' }
local names = { 'at', 'share', 'born', 'day', 'day_taken', unpack(dates) }
local values, state = redis.call('HMGET', KEYS[1], unpack(names)), {}
for index, name in ipairs(names) do state[name] = values[index] end
local function kept(name, other) return tonumber(state[name] or '') or other end

local behind = kept('at', now) - now
for _, name in ipairs(behind > 0 and dates or {}) do
  if state[name] then
    state[name] = string.format('%.6f', kept(name, 0) - behind)
    redis.call('HSET', KEYS[1], name, state[name])
  end
end
redis.call('HSET', KEYS[1], 'at', string.format('%.6f', now))
local day = math.floor(now / 86400)
if kept('day', 0) == day + 1 then day = day + 1 end
local share = math.min(1, kept('share', 1) + math.max(0, now - kept('share_at', now)) / 60)
]]

-- Key 1: the hash of the limit.
-- Arguments:
--  1 rate: tokens a second.
--  2 capacity: the most tokens in the bucket.
--  3 reserve: the share of the capacity that is left for higher priorities.
--  4 lane: the priority.
--  5 least: tokens of the first waiting request.
--  6 wanted: tokens of all waiting requests, and of those that will soon come.
--  7 batch: the most tokens for one turn.
--  8 patience: seconds that the caller can wait.
--  9 turn: the caller's turn, or 0.
-- 10 the cap of a day, or 0.
-- 11 unspent: tokens given back to the cap; below 0: tokens used without Redis. 12 their day.
-- 13 born: the hash that the caller knows. If Redis has another one, the caller's use is counted in it:
-- 14 a day, 15 the tokens used on it.
-- Returns texts: tokens granted, seconds to wait, the cap that is used up or "", the turn, the day, born, left today,
-- seconds until the next day.
local text = opening
  .. [[
local function number(index) return tonumber(ARGV[index]) end
local rate, capacity, reserve, lane = number(1), number(2), number(3), ARGV[4]
local least, wanted, batch, patience, turn = number(5), number(6), number(7), number(8), number(9)
local daily = number(10)
local ROUNDING = 0.000001

local born = state.born or ''
if born == '' then
  born = time[1] .. '.' .. time[2]
end
local tat = kept('tat', now)
local taken = kept('day', -1) == day and kept('day_taken', 0) or 0
if ARGV[13] ~= '' and ARGV[13] ~= born then
  if number(14) == day then taken = taken + number(15) end
elseif number(12) == day then
  taken = math.max(0, taken - number(11))
end
local speed = rate * share

local function finish(granted, wait, cap, next_turn)
  taken = taken + granted
  local left = daily > 0 and string.format('%.6f', math.max(0, daily - taken)) or ''
  redis.call('HSET', KEYS[1], 'tat', string.format('%.6f', tat), 'born', born,
    'day', day, 'day_taken', string.format('%.6f', taken),
    'turn:' .. lane, string.format('%.6f', next_turn))
  redis.call('EXPIRE', KEYS[1], 2 * 86400)
  return { string.format('%.6f', granted), string.format('%.6f', wait), cap, string.format('%.6f', now + wait),
    tostring(day), born, left, string.format('%.6f', (day + 1) * 86400 - now) }
end

local next_turn = kept('turn:' .. lane, 0)
if daily > 0 and daily - taken < least - ROUNDING then
  return finish(0, (day + 1) * 86400 - now, 'daily', next_turn)
elseif daily > 0 then
  wanted = math.min(wanted, daily - taken)
end
local pause = kept('paused', 0) - now
if pause > 0 then
  return finish(0, math.min(pause, 60), '', next_turn)
end

tat = math.max(tat, now - capacity / speed)
local usable = (now - tat) * speed - reserve * capacity
local most = (1 - reserve) * capacity
local need = math.min(least, most)
local ahead = (turn <= 0 or turn > now + 0.001) and next_turn > now and math.min(need, most - need) or 0
if usable >= need + ahead - ROUNDING then
  local granted = math.max(1, math.floor(math.min(wanted, usable) / least + ROUNDING)) * least
  tat = tat + granted / speed
  return finish(granted, 0, '', next_turn)
end
local ready = math.max(now + (need - usable) / speed, next_turn)
local wait = math.max(ready - now, 0.001)
if wait < patience then
  next_turn = math.max(next_turn, now) + math.max(least, math.min(wanted, batch)) / speed
end
return finish(0, wait, '', next_turn)
]]

-- KEYS[1] the hash · ARGV[1] seconds of the pause. A refusal by the service stops all machines, and halves the rate.
local refused = opening
  .. [[
local paused = kept('paused', 0)
local stop = now + tonumber(ARGV[1])
if now >= paused then share = math.max(1 / 64, share / 2) end
stop = math.max(paused, stop)
redis.call('HSET', KEYS[1], 'paused', string.format('%.6f', stop),
  'share', string.format('%.6f', share), 'share_at', string.format('%.6f', stop),
  'tat', string.format('%.6f', math.max(kept('tat', 0), stop)))
redis.call('EXPIRE', KEYS[1], 2 * 86400)
return 'OK'
]]

return {
  grant = { name = "rate_limit.grant", text = text },
  refused = { name = "rate_limit.refused", text = refused },
}
