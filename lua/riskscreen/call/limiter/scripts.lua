-- The scripts of a rate limit that several machines share. Redis runs each as one step, by its own clock. The rate is
-- kept as GCRA does: `tat` is the time at which the bucket was empty, or will be.
--
-- A machine that gets no tokens is told when to ask again: its turn. The turns are as far apart as the tokens. So a
-- thousand waiting machines ask no more often than there are tokens.

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
-- 10 the cap of a day, or 0. 11 the cap of a month, or 0.
-- 12 unspent: tokens given back to the caps; below 0: tokens used without Redis. 13 their day.
-- 14 born: the hash that the caller knows. If Redis has another one, the caller's use is counted in it:
-- 15 a day, 16 the tokens used on it, 17 the tokens used in its month.
-- Returns texts: tokens granted, seconds to wait, the cap that is used up or "", the turn, the day, the month, born,
-- left today, left this month, seconds until the next day.
local text = [[
local function number(index) return tonumber(ARGV[index]) end
local rate, capacity, reserve, lane = number(1), number(2), number(3), ARGV[4]
local least, wanted, batch, patience, turn = number(5), number(6), number(7), number(8), number(9)
local caps = { daily = number(10), monthly = number(11) }
local RECOVERY, ROUNDING = 60, 0.000001

local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local function month_of(day)
  local z = day + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local mp = math.floor((5 * (doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))) + 2) / 153)
  return (yoe + era * 400) * 12 + mp
end
local day = math.floor(now / 86400)
local month = month_of(day)

local names = {
  'tat', 'share', 'share_at', 'paused', 'born', 'day', 'day_taken', 'month', 'month_taken', 'turn:' .. lane
}
local values, state = redis.call('HMGET', KEYS[1], unpack(names)), {}
for index, name in ipairs(names) do state[name] = values[index] end
local function kept(name, other) return tonumber(state[name] or '') or other end

local born = state.born or ''
if born == '' then
  born = time[1] .. '.' .. time[2]
end
local tat = kept('tat', now)
local taken = {
  daily = kept('day', -1) == day and kept('day_taken', 0) or 0,
  monthly = kept('month', -1) == month and kept('month_taken', 0) or 0,
}
if ARGV[14] ~= '' and ARGV[14] ~= born then
  if number(15) == day then taken.daily = taken.daily + number(16) end
  if month_of(number(15)) == month then taken.monthly = taken.monthly + number(17) end
elseif number(12) ~= 0 then
  if number(13) == day then taken.daily = math.max(0, taken.daily - number(12)) end
  if month_of(number(13)) == month then taken.monthly = math.max(0, taken.monthly - number(12)) end
end
local share = math.min(1, kept('share', 1) + math.max(0, now - kept('share_at', now)) / RECOVERY)
local speed = rate * share

local function finish(granted, wait, cap, next_turn)
  local left = { daily = '', monthly = '' }
  for name, most in pairs(caps) do
    taken[name] = taken[name] + granted
    if most > 0 then left[name] = string.format('%.6f', math.max(0, most - taken[name])) end
  end
  redis.call('HSET', KEYS[1], 'tat', string.format('%.6f', tat), 'born', born,
    'day', day, 'day_taken', string.format('%.6f', taken.daily),
    'month', month, 'month_taken', string.format('%.6f', taken.monthly),
    'turn:' .. lane, string.format('%.6f', next_turn))
  redis.call('EXPIRE', KEYS[1], 40 * 86400)
  return { string.format('%.6f', granted), string.format('%.6f', wait), cap, string.format('%.6f', now + wait),
    tostring(day), tostring(month), born, left.daily, left.monthly, string.format('%.6f', (day + 1) * 86400 - now) }
end

local next_turn = kept('turn:' .. lane, 0)
for name, most in pairs(caps) do
  if most > 0 and most - taken[name] < least - ROUNDING then
    local next_day = day + 1
    while name == 'monthly' and month_of(next_day) == month do next_day = next_day + 1 end
    return finish(0, next_day * 86400 - now, name, next_turn)
  elseif most > 0 then
    wanted = math.min(wanted, most - taken[name])
  end
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
local refused = [[
local time = redis.call('TIME')
local now = tonumber(time[1]) + tonumber(time[2]) / 1000000
local state = redis.call('HMGET', KEYS[1], 'paused', 'share', 'share_at', 'tat')
local paused, share = tonumber(state[1] or '') or 0, tonumber(state[2] or '') or 1
share = math.min(1, share + math.max(0, now - (tonumber(state[3] or '') or now)) / 60)
local stop = now + tonumber(ARGV[1])
if now >= paused then share = math.max(1 / 64, share / 2) end
redis.call('HSET', KEYS[1], 'paused', string.format('%.6f', math.max(paused, stop)),
  'share', string.format('%.6f', share), 'share_at', string.format('%.6f', math.max(paused, stop)),
  'tat', string.format('%.6f', math.max(tonumber(state[4] or '') or 0, stop)))
redis.call('EXPIRE', KEYS[1], 40 * 86400)
return 'OK'
]]

return {
  grant = { name = "rate_limit.grant", text = text },
  refused = { name = "rate_limit.refused", text = refused },
}
