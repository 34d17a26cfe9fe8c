-- The scripts of a queue. Redis runs each as one step. So an input is always in one place. It is a job, a follower of a
-- job for the same subject, a result, or a dead letter. An input whose subject has an outcome becomes a job with that
-- outcome. Its worker asks the local lists. It uses the outcome only if the outcome's identity is its own.
--
-- Keys of a queue, all with its prefix:
--   jobs, results, dead   streams
--   sources               hash: the last row of each source that was added
--   counts                hash
--   seen:SUBJECT          "*" while a job is under way, then its outcome for some time
--   followers:SUBJECT     list: ids and items of the inputs that wait for that job
--   rate:MINUTE           inputs finished in that minute

local redis = require "riskscreen.redis"

-- The beginning of the scripts. The first commands only read: a key of another type ends a script before it writes.
local common = [=[
local base = ARGV[1]
local jobs, results, dead = base .. 'jobs', base .. 'results', base .. 'dead'
local sources, counts = base .. 'sources', base .. 'counts'
redis.call('XLEN', jobs)
redis.call('XLEN', results)
redis.call('XLEN', dead)
local following = tonumber(redis.call('HGET', counts, 'following') or '0')
local function count(name, number)
  if number ~= 0 then redis.call('HINCRBY', counts, name, number) end
end
local function enqueue(id, key, item, outcome)
  local state = outcome or key ~= '' and redis.call('GET', base .. 'seen:' .. key)
  if state == '*' then
    redis.call('RPUSH', base .. 'followers:' .. key, id, item)
    count('following', 1)
    return
  elseif not state and key ~= '' then
    redis.call('SET', base .. 'seen:' .. key, '*')
  end
  redis.call('XADD', jobs, '*', 'id', id, 'key', key, 'item', item, 'kept', state or '')
end
-- Calls finish(id, item) for the inputs that wait for the same subject.
local function release(key, finish)
  if key == '' then return 0 end
  local list = redis.call('LRANGE', base .. 'followers:' .. key, 0, -1)
  if #list == 0 then return 0 end
  redis.call('DEL', base .. 'followers:' .. key)
  count('following', -#list / 2)
  for index = 1, #list, 2 do finish(list[index], list[index + 1]) end
  return #list / 2
end
]=]

-- Arguments: prefix, source, number of the first row, capacity; then key, item and outcome of each row. A row with an
-- outcome needs no job. Returns the last row that the queue has, and how many were added, and were invalid.
local add = [=[
local source, first, capacity = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local position = tonumber(redis.call('HGET', sources, source) or '0')
local room = capacity - redis.call('XLEN', jobs) - following
local added, invalid, row = 0, 0, first
for index = 5, #ARGV, 3 do
  if row > position then
    if room <= 0 then break end
    local id = source .. '/' .. string.format('%.0f', row)
    local key, item, outcome = ARGV[index], ARGV[index + 1], ARGV[index + 2]
    if outcome ~= '' then
      redis.call('XADD', results, '*', 'id', id, 'item', item, 'outcome', outcome)
      invalid = invalid + 1
    else
      enqueue(id, key, item)
      room = room - 1
    end
    added, position = added + 1, row
  end
  row = row + 1
end
if added > 0 then
  redis.call('HSET', sources, source, string.format('%.0f', position))
  count('added', added)
  count('done', invalid)
end
return { position, added, invalid }
]=]

-- Arguments: prefix, group, seconds that outcomes are remembered; then entry, key, id, item, outcome and use of each
-- job. The use of an outcome: 'shared', it came with the job; 'remember', other inputs may use it; 'own', they may not.
-- A job that another worker has finished is passed over. Returns how many inputs were finished, and how many results
-- wait.
local done = [=[
local group, remember = ARGV[2], tonumber(ARGV[3])
local finished, entries = 0, {}
for index = 4, #ARGV, 6 do
  local entry, key, id, item, outcome, use = unpack(ARGV, index, index + 5)
  if redis.call('XACK', jobs, group, entry) == 1 then
    redis.call('XADD', results, '*', 'id', id, 'item', item, 'outcome', outcome)
    entries[#entries + 1] = entry
    finished = finished + 1
    local is_kept = use == 'remember' and remember > 0
    if use == 'shared' then
      count('shared', 1)
    elseif is_kept and key ~= '' then
      redis.call('SET', base .. 'seen:' .. key, outcome, 'PX', math.ceil(remember * 1000))
    elseif key ~= '' then
      redis.call('DEL', base .. 'seen:' .. key)
    end
    release(use == 'shared' and '' or key, function(its_id, its_item)
      enqueue(its_id, key, its_item, is_kept and outcome or nil)
    end)
  end
end
if finished > 0 then
  redis.call('XDEL', jobs, unpack(entries))
  count('done', finished)
  local minute = base .. 'rate:' .. math.floor(tonumber(redis.call('TIME')[1]) / 60)
  redis.call('INCRBY', minute, finished)
  redis.call('EXPIRE', minute, 600)
end
return { finished, redis.call('XLEN', results) }
]=]

-- Arguments: prefix, group, entry, key, id, item, reason. The job and its followers become dead letters.
local bury = [=[
local group, entry, key, reason = ARGV[2], ARGV[3], ARGV[4], ARGV[7]
if redis.call('XACK', jobs, group, entry) == 0 then return 0 end
local function finish(id, item)
  redis.call('XADD', dead, '*', 'id', id, 'key', key, 'item', item, 'reason', reason)
end
finish(ARGV[5], ARGV[6])
redis.call('XDEL', jobs, entry)
if key ~= '' then redis.call('DEL', base .. 'seen:' .. key) end
local buried = 1 + release(key, finish)
count('dead', buried)
return buried
]=]

-- Arguments: prefix, the most dead letters to take. They become jobs again. Returns how many.
local requeue = [=[
local letters = redis.call('XRANGE', dead, '-', '+', 'COUNT', ARGV[2])
for _, letter in ipairs(letters) do
  local fields = {}
  for index = 1, #letter[2], 2 do fields[letter[2][index]] = letter[2][index + 1] end
  redis.call('XDEL', dead, letter[1])
  enqueue(fields.id, fields.key, fields.item)
end
count('dead', -#letters)
count('requeued', #letters)
return #letters
]=]

return {
  add = redis.script("queue.add", common .. add),
  done = redis.script("queue.done", common .. done),
  bury = redis.script("queue.bury", common .. bury),
  requeue = redis.script("queue.requeue", common .. requeue),
}
