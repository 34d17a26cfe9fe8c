-- The state of a queue: its figures, and the same in Prometheus' text format.
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local redis = require "riskscreen.redis"

---@class riskscreen.QueueStatus
---@field waiting integer inputs that no worker has yet
---@field working integer inputs that workers have
---@field following integer inputs that wait for the result of the same address
---@field results integer results that nobody has read
---@field dead integer
---@field added integer all inputs so far
---@field done integer all results so far
---@field shared integer results that needed no call of their own
---@field requeued integer
---@field foreign integer entries of other programs in the queue's streams, which were removed
---@field per_second number results of the last whole minute
---@field left? number seconds until all is done at that rate
---@field oldest? number seconds that the oldest job has waited
---@field workers { name: string, working: integer, idle: number }[] idle: seconds since it asked for work

local M = {}

---Reads the status. A failure is raised.
---@param queue riskscreen.Queue
---@return riskscreen.QueueStatus
function M.read(queue)
  local base, ensure = queue.base, errors.ensure
  ensure(queue.redis:call("XLEN", base .. "jobs")) -- finds the node of a Cluster
  local now = tonumber(ensure(queue.redis:call "TIME")[1])
  local replies = ensure(queue.redis:pipeline {
    { "XLEN", base .. "jobs" },
    { "XINFO", "CONSUMERS", base .. "jobs", queue.group },
    { "HGETALL", base .. "counts" },
    { "XLEN", base .. "results" },
    { "XRANGE", base .. "jobs", "-", "+", "COUNT", 1 },
    { "GET", ("%srate:%.0f"):format(base, math.floor(now / 60) - 1) },
  })
  for _, reply in ipairs(replies) do
    ensure(nil, errors.is(reply) and reply.code ~= "ERR" and reply.code ~= "NOGROUP" and reply or nil)
  end
  local counts = redis.fields(replies[3])
  local status = { workers = json.empty_array(), working = 0, results = replies[4] }
  for _, entry in ipairs(not errors.is(replies[2]) and replies[2] or {}) do
    local info = redis.fields(entry)
    status.workers[#status.workers + 1] = { name = info.name, working = info.pending, idle = info.idle / 1000 }
    status.working = status.working + info.pending
  end
  for _, name in ipairs { "following", "dead", "added", "done", "shared", "requeued", "foreign" } do
    status[name] = tonumber(counts[name]) or 0
  end
  status.waiting = math.max(0, replies[1] - status.working)
  local oldest = replies[5][1]
  status.oldest = oldest and math.max(0, now - tonumber(oldest[1]:match "^%d+") / 1000) or nil
  status.per_second = (tonumber(replies[6]) or 0) / 60
  local left = status.waiting + status.working + status.following
  status.left = status.per_second > 0 and left / status.per_second or nil
  return status
end

-- Name, type, text, fields of the status, and the label that tells them apart.
local families = {
  { "inputs", "gauge", "Inputs without a result.", { "waiting", "working", "following", "dead" }, "state" },
  { "results_waiting", "gauge", "Results that nobody has read.", { "results" } },
  { "workers", "gauge", "Workers.", { "workers" } },
  { "oldest_seconds", "gauge", "Seconds that the oldest job has waited.", { "oldest" } },
  { "inputs_total", "counter", "Inputs that were added.", { "added" } },
  { "results_total", "counter", "Results.", { "done" } },
  { "foreign_total", "counter", "Entries of other programs that were removed.", { "foreign" } },
}

---@param status riskscreen.QueueStatus
---@param queue string its name
---@return string
function M.prometheus(status, queue)
  local lines = {}
  for _, family in ipairs(families) do
    local name, label = "riskscreen_queue_" .. family[1], family[5]
    lines[#lines + 1] = ("# HELP %s %s\n# TYPE %s %s"):format(name, family[3], name, family[2])
    for _, field in ipairs(family[4]) do
      local value = field == "workers" and #status.workers or status[field] or 0
      local labels = label and (',%s="%s"'):format(label, field) or ""
      lines[#lines + 1] = ('%s{queue="%s"%s} %.14g'):format(name, queue, labels, value)
    end
  end
  return table.concat(lines, "\n") .. "\n"
end

return M
