-- Inside nginx: the calls of the fault matrix; see spec/in_nginx/faults_nginx.lua. Results are converted to JSON. The
-- search for secrets runs here, where the whole result is at hand.
local classes = require "spec.faults.classes"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local riskscreen = require "riskscreen"
local secrecy = require "spec.support.secrecy"

local FIELDS = { "kind", "message", "status", "retry_after", "sent", "operation", "elapsed" }

local clients = {}

local M = {}

local function pack(...)
  return { n = select("#", ...), ... }
end

local function told_error(err)
  if not errors.is(err) then
    return { strange = tostring(err) }
  end
  local told = {}
  for _, field in ipairs(FIELDS) do
    told[field] = err[field]
  end
  -- The quoted bytes need not be UTF-8.
  told.message = told.message:gsub("[^ -~]", "?")
  return told
end

local function told_decision(decision)
  local told = { action = decision.action, degraded = decision.degraded, errors = json.empty_array() }
  for _, err in pairs(decision.errors or {}) do
    table.insert(told.errors, told_error(err))
  end
  return told
end

---Makes the call of a class.
---@param given table { id, options, key, class, timeout, in_task }
---@return table
function M.call(given)
  clients[given.id] = clients[given.id] or riskscreen.new(given.options)
  local class = classes[given.class]
  local function call()
    return class.call(clients[given.id], given.timeout)
  end
  local results
  if given.in_task then
    results = pack(riskscreen.run(call))
  else
    results = pack(call())
  end
  local told = { n = results.n, leaked = secrecy.holds(results, given.key) }
  if class.screening then
    told.decision = told_decision(results[1])
  elseif results[1] == nil then
    told.err = told_error(results[2])
  end
  return told
end

---Forgets a client.
---@param id integer
function M.close(id)
  if clients[id] then
    clients[id]:close()
    clients[id] = nil
  end
end

---How many descriptors this worker has open.
---@return integer
function M.count_descriptors()
  local pipe = io.popen("ls /proc/" .. _G.ngx.worker.pid() .. "/fd | wc -l")
  local count = tonumber(pipe:read "*a")
  pipe:close()
  return count
end

return M
