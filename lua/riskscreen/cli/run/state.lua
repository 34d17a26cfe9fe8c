-- The state of a run over a file, in SQLite beside the output. An answer is in the state before anything else is done
-- with it. The output is written from there in the order of the input. Whenever the output is on the disk, the state
-- gets its length. After a crash the output is cut to that length. The answers behind it are still in the state.
-- Nothing is kept of a run that writes to stdout.

local encode = require("riskscreen.cli.output").json
local json = require "riskscreen.json"
local status = require "riskscreen.cli.status"
local store = require "riskscreen.store"

---@class riskscreen.cli.Answer
---@field text string the row of the output
---@field action riskscreen.Action
---@field failed? boolean the call failed
---@field invalid? string|boolean the row of the input has no address to screen
---@field chain? string of the digests of a pipe's rows up to this one

---@class riskscreen.cli.Progress
---@field position integer rows of the input whose answer is in the output
---@field offset integer bytes of the output
---@field digest? string of these bytes; 0.9.0 kept none
---@field counts table<riskscreen.Action, integer>
---@field invalid integer
---@field failed integer
---@field finished boolean
---@field earlier? integer bytes of the results of the complete run whose failed rows are asked for again
---@field earlier_digest? string of these bytes
---@field rows? integer rows of that run
---@field last_chain? string of that run's last row
---@field chain? string of the digests of a pipe's rows up to the position

---@class riskscreen.cli.State
---@field progress? riskscreen.cli.Progress none before the first run
---@field answers table<integer, riskscreen.cli.Answer> by the row's number: answers that are not in the output
---@field private quick? riskscreen.Store its changes outlast the process
---@field private durable? riskscreen.Store its changes outlast a power cut; they include those made by `quick`
---@field private unsaved integer[] numbers of answers that are in memory only
---@field private written integer the last row whose answer is in the output
local State = {}
State.__index = State

local KEY = "%015d" -- of an answer, by the row's number

-- Makes changes in one of the stores. A run that writes to stdout has none.
local function commit(self, kept, changes)
  local made, err = not kept, nil
  if kept then
    made, err = kept:batch(changes)
  end
  if not made then
    local advice = "The run stops. Mend the cause and go on with --resume: no recorded answer is lost."
    status.fail(status.unknown, "the state %s cannot be written: %s. %s", self.path, tostring(err), advice)
  end
end

-- The result of the store. Its error ends the command.
local function expect(path, value, err)
  if err and err.kind == "unsupported" then
    error(err, 0)
  elseif err and err.reason == "locked" then
    status.misuse("another run is using %s: wait for its end, or end it (%s)", path, tostring(err))
  elseif err then
    local is_misuse = err.reason == "newer" or err.reason == "foreign"
    local code = is_misuse and status.usage or status.unknown
    status.fail(code, "the state %s cannot be opened: %s", path, tostring(err))
  end
  return value
end

local function open(path, synchronous)
  return expect(path, store.sqlite { path = path, synchronous = synchronous })
end

local M = {}

local function new_progress()
  return { position = 0, offset = 0, counts = {}, invalid = 0, failed = 0, finished = false }
end

---Opens or creates the state of a run, and locks it.
---@param path? string none: it is in memory, and the run cannot be resumed
---@return riskscreen.cli.State
function M.open(path)
  local self = setmetatable({ path = path, answers = {}, unsaved = {}, written = 0 }, State)
  if not path then
    self.progress = new_progress()
    return self
  end
  self.quick = open(path, "normal")
  local locked, err = self.quick:lock "run"
  if not locked then
    self.quick:close()
  end
  expect(path, locked, err)
  self.durable = open(path, "full")
  local written = self.quick:space("run"):get "progress"
  self.progress = written and json.decode(written)
  self.written = self.progress and self.progress.position or 0
  for key, value in self.quick:space("answers"):each() do
    self.answers[tonumber(key)] = json.decode(value)
  end
  return self
end

---Begins a run, and forgets an earlier one.
---@param identity table<string, string> what must be the same when it is resumed
function State:begin(identity)
  self.progress, self.answers, self.written = new_progress(), {}, 0
  local changes = {
    { kind = "put", space = "run", key = "identity", value = encode(identity) },
    { kind = "put", space = "run", key = "progress", value = encode(self.progress) },
  }
  for key in self.quick:space("answers"):each() do
    changes[#changes + 1] = { kind = "delete", space = "answers", key = key }
  end
  commit(self, self.durable, changes)
end

---The facts that must be the same when the run is resumed.
---@return table<string, string>
function State:identity()
  return json.decode(self.quick:space("run"):get "identity")
end

---Takes an answer. Until `save` it is in memory only. One that failed stays there: the call is made again when the run
---is resumed.
---@param number integer of the row
---@param answer riskscreen.cli.Answer
function State:take(number, answer)
  self.answers[number] = answer
  if self.quick and not answer.failed then
    self.unsaved[#self.unsaved + 1] = number
  end
end

---Makes the answers that were taken outlast the process.
function State:save()
  local changes = {}
  for index, number in ipairs(self.unsaved) do
    local value = encode(self.answers[number])
    changes[index] = { kind = "put", space = "answers", key = KEY:format(number), value = value }
  end
  self.unsaved = {}
  if changes[1] then
    commit(self, self.quick, changes)
  end
end

---Records that the output is on the disk up to a row, and removes the answers up to it.
---@param progress riskscreen.cli.Progress
function State:record(progress)
  local changes = { { kind = "put", space = "run", key = "progress", value = encode(progress) } }
  for number = self.written + 1, progress.position do
    local answer = self.answers[number]
    if answer and not answer.failed then
      changes[#changes + 1] = { kind = "delete", space = "answers", key = KEY:format(number) }
    end
    self.answers[number] = nil
  end
  self.progress, self.written = progress, progress.position
  commit(self, self.durable, changes)
end

---Begins again after the end of a run, for the rows that failed.
function State:begin_again()
  local progress = new_progress()
  progress.earlier, progress.earlier_digest = self.progress.offset, self.progress.digest
  progress.rows, progress.last_chain = self.progress.position, self.progress.chain
  self:record(progress)
end

---Closes the state and its lock.
function State:close()
  if self.quick then
    self.durable:close()
    self.quick:close()
  end
end

return M
