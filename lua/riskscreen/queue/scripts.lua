-- The scripts of a queue. Redis runs each as one step. So an input is always in one place. It is a job, a follower of a
-- job for the same subject, a result, or a dead letter. An input whose subject has an outcome becomes a job with that
-- outcome. Its worker asks the local lists. It uses the outcome only if the outcome's identity is its own.
--
-- Redis undoes nothing if a script fails in the middle. So each script first reads the keys on which a change could
-- fail, and asks whether the user may run every command. A key of another type or an ACL ends it before it writes.
-- Redis before 7.0 cannot tell the rights. There an input is added to its new place before it leaves the old one.
--
-- Keys of a queue, all with its prefix:
--   jobs, results, dead   streams
--   sources               hash: the last row of each run, and the digest of the run's rows up to it
--   counts                hash
--   seen:SUBJECT          "*" while a job is under way, then its outcome for some time
--   followers:SUBJECT     list: ids and items of the inputs that wait for that job
--   rate:MINUTE           inputs finished in that minute

local redis = require "riskscreen.redis"

local common = [=[
local base = ARGV[1]
local jobs, results, dead = base .. 'jobs', base .. 'results', base .. 'dead'
local sources, counts = base .. 'sources', base .. 'counts'
local writes = {
  { 'XACK', jobs, 'group', '0-0' }, { 'HSET', sources, 'a', 'b' }, { 'HINCRBY', counts, 'a', '1' },
  { 'SET', base .. 'seen:', '*' }, { 'DEL', base .. 'seen:' }, { 'RPUSH', base .. 'followers:', 'a' },
  { 'LTRIM', base .. 'followers:', '0', '0' }, { 'INCRBY', base .. 'rate:', '1' }, { 'EXPIRE', base .. 'rate:', '1' },
}
for _, stream in ipairs({ jobs, results, dead }) do
  redis.call('XLEN', stream)
  writes[#writes + 1] = { 'XADD', stream, '*', 'a', 'b' }
  writes[#writes + 1] = { 'XDEL', stream, '0-0' }
end
]=] .. redis.permitted "writes" .. [=[
local following = tonumber(redis.call('HGET', counts, 'following') or '0')
-- The states and the followers of subjects, as they are after the changes that the script makes.
local states, lists = {}, {}
local function state_of(key)
  if states[key] == nil then states[key] = redis.call('GET', base .. 'seen:' .. key) end
  return states[key]
end
local function followers_of(key, last)
  lists[key] = lists[key] or redis.call('LRANGE', base .. 'followers:' .. key, 0, last or -1)
  return lists[key]
end
local function count(name, number)
  if number ~= 0 then redis.call('HINCRBY', counts, name, number) end
end
local function enqueue(id, key, item, outcome)
  local state = outcome or key ~= '' and state_of(key)
  if state == '*' then
    redis.call('RPUSH', base .. 'followers:' .. key, id, item)
    count('following', 1)
    return
  end
  redis.call('XADD', jobs, '*', 'id', id, 'key', key, 'item', item, 'kept', state or '')
  if not state and key ~= '' then
    redis.call('SET', base .. 'seen:' .. key, '*')
    states[key] = '*'
  end
end
-- An entry of a stream, if it still has this id. A failover may give its position to another one.
local function entry_of(stream, position, id)
  local found = redis.call('XRANGE', stream, position, position)[1]
  local fields = { position = position, id = '', key = '', item = '' }
  for index = 1, found and #found[2] or 0, 2 do fields[found[2][index]] = found[2][index + 1] end
  return found and fields.id == id and fields or nil
end
]=]

-- Arguments: prefix, run, the last row that the producer knows with its digest, the number of that row, capacity; then
-- digest, key, item and outcome of each row. A row with an outcome needs no job. Returns the last row that the queue
-- has with its digest, and how many were added: none if the producer does not know the last row.
local add = [=[
local source, row, capacity = ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5])
local last = redis.call('HGET', sources, source) or ''
if last ~= ARGV[3] then return { last, 0 } end
for index = 7, #ARGV, 4 do
  local is_known = states[ARGV[index]] ~= nil
  if state_of(ARGV[index]) == '*' or is_known then followers_of(ARGV[index], 0) end
end
local room = capacity - redis.call('XLEN', jobs) - following
local added, invalid = 0, 0
for index = 6, #ARGV, 4 do
  if room <= 0 then break end
  local digest, key, item, outcome = unpack(ARGV, index, index + 3)
  added, row = added + 1, row + 1
  local id = source .. '/' .. string.format('%.0f', row)
  last = string.format('%.0f ', row) .. digest
  if outcome ~= '' then
    redis.call('XADD', results, '*', 'id', id, 'item', item, 'outcome', outcome)
    invalid = invalid + 1
  else
    enqueue(id, key, item)
    room = room - 1
  end
end
if added > 0 then redis.call('HSET', sources, source, last) end
count('added', added)
count('done', invalid)
return { last, added }
]=]

-- Arguments: prefix, group, seconds that outcomes are remembered; then position, id, outcome and use of each job. The
-- use of an outcome: 'shared', it came with the job; 'remember', other inputs may use it; 'own', they may not. With
-- 'dead' it is the reason why the job and its followers become dead letters. A job that another worker has finished is
-- passed over. Returns how many inputs got a result, and how many results wait.
local done = [=[
local group, remember = ARGV[2], tonumber(ARGV[3])
local ended = {}
for index = 4, #ARGV, 4 do
  local job = entry_of(jobs, ARGV[index], ARGV[index + 1])
  if job then
    job.outcome, job.use = ARGV[index + 2], ARGV[index + 3]
    followers_of(job.key)
    ended[#ended + 1] = job
  end
end
local minute = base .. 'rate:' .. string.format('%.0f', math.floor(tonumber(redis.call('TIME')[1]) / 60))
redis.call('GET', minute)
-- Where the memory is full, Redis refuses a script whose first change takes memory. This one takes none.
redis.call('DEL', base .. 'absent')
local finished, shared, buried, positions = 0, 0, 0, {}
for _, job in ipairs(ended) do
  local key, outcome = job.key, job.outcome
  local is_kept = job.use == 'remember' and remember > 0
  local function bury(id, item)
    redis.call('XADD', dead, '*', 'id', id, 'key', key, 'item', item, 'reason', outcome)
    buried = buried + 1
  end
  if job.use == 'dead' then
    bury(job.id, job.item)
  else
    redis.call('XADD', results, '*', 'id', job.id, 'item', job.item, 'outcome', outcome)
    finished = finished + 1
  end
  if job.use == 'shared' then
    shared = shared + 1
  elseif key ~= '' then
    if is_kept then
      redis.call('SET', base .. 'seen:' .. key, outcome, 'PX', math.ceil(remember * 1000))
    else
      redis.call('DEL', base .. 'seen:' .. key)
      states[key] = false
    end
    local list = followers_of(key)
    for index = 1, #list, 2 do
      if job.use == 'dead' then
        bury(list[index], list[index + 1])
      else
        enqueue(list[index], key, list[index + 1], is_kept and outcome or nil)
      end
    end
    if #list > 0 then redis.call('LTRIM', base .. 'followers:' .. key, #list, -1) end
    count('following', -#list / 2)
    lists[key] = nil
  end
  positions[#positions + 1] = job.position
end
if #positions > 0 then
  redis.call('XDEL', jobs, unpack(positions))
  redis.call('XACK', jobs, group, unpack(positions))
end
count('shared', shared)
count('dead', buried)
count('done', finished)
if finished > 0 then
  redis.call('INCRBY', minute, finished)
  redis.call('EXPIRE', minute, 600)
end
return { finished, redis.call('XLEN', results) }
]=]

-- Arguments: prefix, then positions and ids of dead letters. They become jobs again. Returns how many.
local requeue = [=[
local letters = {}
for index = 2, #ARGV, 2 do
  letters[#letters + 1] = entry_of(dead, ARGV[index], ARGV[index + 1])
  if letters[#letters] then
    state_of(letters[#letters].key)
    followers_of(letters[#letters].key, 0)
  end
end
for _, letter in ipairs(letters) do
  enqueue(letter.id, letter.key, letter.item)
  redis.call('XDEL', dead, letter.position)
end
count('dead', -#letters)
count('requeued', #letters)
return #letters
]=]

-- Arguments: prefix, stream, group, the count that grows by the removed entries, or ''; then positions and ids of
-- entries. Returns how many were removed.
local remove = [=[
local stream, removed = base .. ARGV[2], 0
for index = 5, #ARGV, 2 do
  if entry_of(stream, ARGV[index], ARGV[index + 1]) then
    removed = removed + redis.call('XDEL', stream, ARGV[index])
    redis.call('XACK', stream, ARGV[3], ARGV[index])
  end
end
if ARGV[4] ~= '' then count(ARGV[4], removed) end
return removed
]=]

return {
  add = redis.script("queue.add", common .. add),
  done = redis.script("queue.done", common .. done),
  requeue = redis.script("queue.requeue", common .. requeue),
  remove = redis.script("queue.remove", common .. remove),
}
