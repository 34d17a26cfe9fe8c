-- A queue with three workers, whose processes are killed at random: workers, the reader of the results, the producer,
-- the sandbox and Redis. Redis is also emptied, fails over to a replica that lacks the last changes, and denies single
-- commands for a moment. Every input must have exactly one result, and that of the sandbox.

local cli = require "spec.support.cli"
local commands = require "spec.support.page_commands"
local free_port = require "spec.support.free_port"
local redis_server = require "spec.support.redis"
local riskscreen = require "riskscreen"
local row_reader = require "riskscreen.rows"
local socket = require "socket"
local tables = require "riskscreen.util.tables"

local WORKERS = 3
local PATIENCE = 0.5 -- seconds of each look at the progress
local LOST = 0.3 -- seconds of changes that a failover loses
local BETWEEN_FAILOVERS = 15 -- seconds in which the Sentinel learns that the old master is a replica
local JOBS = "{riskscreen}:queue:default:jobs"

-- The commands that Redis denies.
local DENIED = {}
for name in redis_server.documented_rights("a queue"):gmatch "%+(%S+)" do
  DENIED[#DENIED + 1] = name
end

local M = {}

---@class riskscreen.spec.Process a command that is started again after each kill
local Process = {}
Process.__index = Process

function Process:start()
  local pipe = assert(io.popen(("{ %s; } >>%s 2>&1 & echo $!"):format("exec " .. self.command, self.log)))
  self.pid = pipe:read "*l"
  pipe:close()
end

function Process:is_running()
  local status = io.open(("/proc/%s/stat"):format(self.pid))
  local line = status and status:read "*l"
  if status then
    status:close()
  end
  return line ~= nil and not line:find "%) Z "
end

function Process:kill(signal)
  os.execute(("kill -CONT %s 2>/dev/null; kill -%s %s 2>/dev/null"):format(self.pid, signal or "KILL", self.pid))
  local deadline = socket.gettime() + 20
  while self:is_running() and socket.gettime() < deadline do
    socket.sleep(0.01)
  end
end

---Stops the process for so long that others take its jobs.
function Process:freeze()
  os.execute(("{ kill -STOP %s; sleep 1.5; kill -CONT %s; } >/dev/null 2>&1 &"):format(self.pid, self.pid))
end

local function address_of(number, distinct)
  return ("0x%040x"):format(number % distinct + 1)
end

local function write_input(path, rows, distinct)
  local file = assert(io.open(path, "wb"))
  file:write "address,network\n"
  for number = 1, rows do
    file:write(address_of(number, distinct), ",eth\n")
  end
  file:close()
end

local function status_of(command)
  local output = commands.run(command)
  return {
    added = tonumber(output:match '"added":(%d+)'),
    done = tonumber(output:match '"done":(%d+)'),
    results = tonumber(output:match '"results":(%d+)'),
    dead = tonumber(output:match '"dead":(%d+)'),
    text = output,
  }
end

local disturbances = {}

function disturbances.killed_redis(group)
  group.master:kill()
  group.master:start()
end

function disturbances.emptied(group)
  group.master:command "FLUSHALL"
end

function disturbances.denied(group)
  local command = DENIED[math.random(#DENIED)]
  group.master:command("ACL SETUSER default -" .. command)
  socket.sleep(LOST)
  group.master:command("ACL SETUSER default +" .. command)
end

-- The replica hears nothing for a while, and then takes the master's place.
function disturbances.failed_over(group)
  local replica = group.replicas[1]
  if socket.gettime() < (group.settled or 0) then
    return disturbances.killed_redis(group)
  end
  replica:signal "STOP"
  group.master:command "CLIENT KILL TYPE replica"
  socket.sleep(LOST)
  group.master:kill()
  replica:signal "CONT"
  group:begin_failover()
  group:wait_for_failover()
  group:bring_back(replica)
  group.master, group.replicas[1], group.settled = replica, group.master, socket.gettime() + BETWEEN_FAILOVERS
end

-- Disturbs at random, and counts what came while there was work.
local function disturb(options, group, processes, names, counts)
  local kinds = { "emptied", "failed_over", "denied", "killed_redis" }
  for round = 1, options.kills do
    socket.sleep(options.shortest + math.random() * (options.longest - options.shortest))
    local jobs = tonumber((group.master:command("XLEN " .. JOBS) or ""):match "%d+") or 0
    local name = names[math.random(#names)]
    local kind = round % 3 == 0 and kinds[(round / 3 - 1) % #kinds + 1] or "killed"
    local process = processes[name]
    if kind ~= "killed" then
      disturbances[kind](group)
    elseif name:find "^worker" and math.random(2) == 1 then
      process:freeze()
    else
      process:kill(math.random(4) == 1 and name ~= "sandbox" and "TERM" or "KILL")
    end
    counts[kind] = (counts[kind] or 0) + (jobs > 0 and 1 or 0)
    -- A command that Redis has refused may have ended as well.
    for _, each in pairs(processes) do
      if not each:is_running() then
        each:start()
      end
    end
  end
end

-- Starts what has ended, until every input has a result that was read.
local function await_end(options, command, processes, deadline)
  local status
  repeat
    socket.sleep(PATIENCE)
    status = status_of(command)
    for name, process in pairs(processes) do
      local has_finished = name == "producer" and status.added == options.rows
      if not has_finished and not process:is_running() then
        process:start()
      end
    end
    local is_done = status.done == options.rows and status.results == 0
  until is_done or socket.gettime() > deadline
  return status
end

---@param options { rows: integer, distinct: integer, kills: integer, shortest: number, longest: number, seed: integer,
---seconds: number } shortest and longest: seconds between two kills; seconds: limit of the whole
---@return table outcome `output`, `counts` (of disturbances while there was work), `status`
---@return fun() remove
function M.run(options)
  math.randomseed(options.seed)
  local directory, remove = cli.directory()
  -- With everysec Redis answers before it writes while its disk is busy, and a kill then loses the change.
  local group = redis_server.start_group(1, { "appendonly yes", "appendfsync always", "maxmemory-policy noeviction" })
  local input, output = directory .. "/input.csv", directory .. "/output.csv"
  write_input(input, options.rows, options.distinct)
  local port = free_port()
  local base = "env XDG_CONFIG_HOME=/nonexistent RISKSCREEN_ACCESS_KEY=sandbox-key "
  local environment = base .. "RISKSCREEN_BASE_URL=http://127.0.0.1:" .. port
  local redis = (" --sentinel %s --master %s"):format(group.sentinels.hosts[1], group.sentinels.name)
  local processes = {}
  local function add(name, verb)
    local command = ("%s %s %s"):format(environment, cli.command, verb)
    processes[name] = setmetatable({ command = command, log = directory .. "/log" }, Process)
    processes[name]:start()
  end
  add("sandbox", "sandbox --port " .. port)
  add("producer", ("queue add %s --capacity %d"):format(input, math.max(1000, math.floor(options.rows / 4))) .. redis)
  add("reader", ("queue results -o %s --follow"):format(output) .. redis)
  for number = 1, WORKERS do
    add("worker " .. number, "queue work --claim-after 1 --concurrency 16" .. redis)
  end
  local names, counts = tables.sorted_keys(processes), {}
  local deadline = socket.gettime() + options.seconds
  local status
  local ok, problem = pcall(function()
    disturb(options, group, processes, names, counts)
    local line = ("%s %s queue status --json%s"):format(environment, cli.command, redis)
    status = await_end(options, line, processes, deadline)
  end)
  for _, process in pairs(processes) do
    process:kill()
  end
  group:stop()
  if not ok then
    error(problem, 0)
  end
  return { output = output, counts = counts, status = status, log = directory .. "/log" }, remove
end

-- The action of each address by the sandbox.
local function expected_actions(distinct)
  local client, actions = riskscreen.sandbox.client {}, {}
  local numbers = {}
  for number = 1, distinct do
    numbers[number] = { address = address_of(number, distinct), network = "eth" }
  end
  for decision in client:screen_all { source = numbers } do
    actions[decision.address] = decision.action
  end
  return actions
end

---Inputs that have no result, several results, or a wrong one.
---@param outcome table
---@param options table those of the run
---@return string[]
function M.faults(outcome, options)
  local faults, seen, count = {}, {}, 0
  local expected = expected_actions(options.distinct)
  for row in assert(row_reader.open(outcome.output, { allow_empty = true })):each() do
    local number, address, action = tonumber(row.fields.row), row.address, row.fields.action
    count = count + 1
    if seen[number] then
      faults[#faults + 1] = ("row %d has two results"):format(number)
    elseif address ~= address_of(number, options.distinct) or action ~= expected[address] then
      faults[#faults + 1] = ("row %d has the result %s of %s"):format(number, action, address)
    end
    seen[number] = true
  end
  if (outcome.counts.killed or 0) == 0 then
    faults[#faults + 1] = "nothing was killed while there was work"
  end
  if count ~= options.rows then
    faults[#faults + 1] = ("%d results of %d inputs; %s"):format(count, options.rows, outcome.status.text)
  end
  return faults
end

return M
