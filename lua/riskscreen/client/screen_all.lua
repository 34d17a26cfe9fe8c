-- client:screen_all makes a decision for every item of a source. map.lua runs over the source, screen.lua decides about
-- each address.

local build = require "riskscreen.options.build"
local addresses = require "riskscreen.address"
local decisions = require "riskscreen.policy.decision"
local calls = require "riskscreen.call"
local check = require "riskscreen.options.check"
local errors = require "riskscreen.errors"
local generations = require "riskscreen.util.generations"
local maps = require "riskscreen.client.map"
local options = require "riskscreen.options"
local row_options = require "riskscreen.options.rows"
local rows = require "riskscreen.rows"
local sources = require "riskscreen.rows.source"
local screen = require "riskscreen.client.screen"
local tables = require "riskscreen.util.tables"
local validate = require "riskscreen.interface.validate"

local MAX_REMEMBERED = 10000000

---@class riskscreen.ScreenAllRequest
---@field source any[]|(fun(): any)|file* addresses, or tables of `address`, `network` and `id`; a file has rows, as
---riskscreen.rows reads them
---@field network? any the network of items that name none
---@field policy? riskscreen.Policy
---@field include? riskscreen.LookupName[]
---@field timeout? number seconds for each decision
---@field concurrency? integer decisions at a time, 32 by default
---@field ordered? boolean in the source's order (the default), or as they finish
---@field on_progress? fun(done: integer, failed: integer, rate: number, eta: number|nil)
---@field total? integer number of items, for the eta; the length of a list is known
---@field stop_after_failures? integer failures in a row after which the run raises an error object
---@field remember? integer different addresses and networks, at least, that are not asked for again, 4096 by default
---@field address_check? "checksum"|"format"|false as for a client
---@field meta? table<string, string> facts for the journal, such as the case and the analyst

local all_options = tables.concat({
  build.required(
    { name = "source", type = "any", doc = "The addresses to screen." },
    " (got nil; if it comes from io.open, can the file be read?)"
  ),
  build.count(
    "remember",
    "pairs",
    4096,
    0,
    MAX_REMEMBERED,
    "Number of different addresses and networks, at least, that are not asked for again."
  ),
}, screen.options, options.map, row_options)

-- A misspelt field must not lead to a decision about another network, or about no address.
local function check_fields(item, index)
  local _, problem = validate.fields(screen.subject, item, "", "field", check.value)
  if problem then
    local message = ("item %d: %s"):format(index, problem.message)
    error(
      errors.new("invalid_argument", message, { field = problem.field, allowed = problem.allowed, sent = false }),
      0
    )
  end
end

-- The rows of an open file as items, and their reader. A refusal of the file is the run's failure.
local function rows_of(handle, settings)
  local input, err = sources.of_handle(handle, function()
    return rows.open(handle, tables.merge(settings, { checked_first = true }))
  end)
  return function()
    local row = nil
    if input then
      row, err = input:next()
    end
    if row then
      return { address = row.address, network = row.network }
    end
    sources.finish(handle)
    return nil, err
  end,
    input
end

-- Ends the run where too many rows are invalid.
local function count_invalid(input, decision, index)
  if decision.error and decision.error.kind == "invalid_argument" then
    input:count_invalid(nil, ("row %d: %s"):format(index, decision.error.message))
  end
end

-- The address, the network and the id of an item.
local function subject_of(item, index, network)
  if type(item) ~= "table" then
    return item, network
  end
  check_fields(item, index)
  if item.network ~= nil then
    network = item.network
  end
  return item.address, network, item.id
end

-- A decision is kept as the text of its answer, where it follows from that alone. So no two decisions share a table.
-- Keeping the tables of 4,096 decisions costs a fifth of a long run on Lua 5.4.
local LONGEST_TEXT = 4096 -- bytes

---@class riskscreen.DecidedPair an address and a network that were decided, or are being decided
---@field index integer the item's position
---@field kept? string|riskscreen.Decision the text of the answer, or the decision; nil while it is being made
---@field elapsed? number seconds of the decision
---@field ready? table repeats wait for the decision

-- Keeps a decision. The caller may change its own table.
local function keep(pair, decision, answer)
  pair.kept = answer and #answer <= LONGEST_TEXT and answer or decisions.copy(decision)
  pair.elapsed = decision.elapsed
  if pair.ready then
    pair.ready:notify()
  end
end

-- The text or the decision of a pair. Waits while it is being made.
local function recall(pair, tasks)
  while not pair.kept do
    pair.ready = pair.ready or tasks.signal()
    pair.ready:wait()
  end
  return pair.kept
end

-- Whether a decision may be used again: the local lists have not changed their answer since it was made.
local function is_confirmed(lists, kept, canonical, network)
  local listed, notes = lists:decide(canonical, network)
  local noted = 0
  for _, reason in ipairs(type(kept) == "table" and kept.reasons or {}) do
    noted = noted + (reason.list and 1 or 0)
  end
  return not listed and kept.source ~= "list" and noted == #(notes or {})
end

-- Decides each pair of address and network once while it is among the last `capacity` pairs, or longer. Every spelling
-- of an address is the same address; a text that is no address is not remembered. A repeat waits for a decision that is
-- under way.
local function decide_once(state, screening, capacity, level)
  local tasks, lists = state.runtime.tasks, state.lists
  local decided = generations.new(capacity)

  return function(address, network, id, index)
    local key, canonical
    if capacity > 0 then
      key, canonical = addresses.key(address, network, level)
    end
    if not key then
      return (screening:decide(address, network, id))
    end
    local pair = decided:get(key)
    local kept = pair and recall(pair, tasks)
    if kept and (not lists or is_confirmed(lists, kept, canonical, network)) then
      local decision = type(kept) == "string" and screening:decide_again(kept) or decisions.copy(kept)
      decision.address, decision.network = address, network
      decision.id, decision.repeats, decision.elapsed = id, pair.index, pair.elapsed
      return decision
    end
    pair = { index = index, kept = nil, elapsed = nil }
    decided:set(key, pair)
    local decision, answer = screening:decide(address, network, id, canonical)
    keep(pair, decision, answer)
    return decision
  end
end

-- The decision of a result, whether or not it counts as a failure.
local function decision_of(_, _, _, _, decision)
  return decision
end

local M = { options = all_options }

---Adds `screen_all` to the client's methods.
---@param Client table
function M.install(Client)
  ---Screens every item of a source: an iterator of one decision for each item. A decision also has `index`, the
  ---item's position, `input`, the item, and its `id`. If an earlier item had the same address and network, `repeats`
  ---is its position. An item with an unknown field raises an error object.
  ---@param request riskscreen.ScreenAllRequest
  ---@return riskscreen.Run
  function Client:screen_all(request)
    local state, checked = calls.open(self, "client", nil, all_options, request, "screen_all")
    local source, input = checked.source, nil
    if io.type(source) == "file" then
      source, input = rows_of(source, checked)
    end
    local level = calls.address_check(state, checked.address_check, "checksum")
    local screening = screen.new(state, self.policy, checked)
    local decide = decide_once(state, screening, checked.remember, level)
    local copies = {} -- by index: a function may give the same table again, with the next address
    local run, message = maps.new(state.runtime, source, function(item, index)
      local copy = copies[index]
      if copy then
        copies[index] = nil
      end
      local address, network, id = subject_of(copy or item, index, checked.network)
      local decision = decide(address, network, id, index)
      decision.index, decision.input = index, item
      if input then
        count_invalid(input, decision, index)
      end
      if decision.repeats and state.settings.journal then
        screening:record_again(decision)
      end
      return not decision.error and decision or nil, decision.error, decision
    end, checked, decision_of, type(checked.source) == "function" and function(item, index)
      copies[index] = not tables.inherits(item) and tables.copy(item) or nil
    end or nil)
    if not run then
      error("screen_all: " .. message, 2)
    end
    return run
  end
end

return M
