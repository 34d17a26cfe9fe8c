-- client:screen_all: a decision for every item of a source of any length, several under way at a time. The lookups and
-- the deciding are screen.lua's, the running map.lua's.

local enums = require "riskscreen.interface.enums"
local maps = require "riskscreen.client.map"
local options = require "riskscreen.options"
local screen = require "riskscreen.client.screen"
local canonical_address = require("riskscreen.address").canonical

---@class riskscreen.ScreenAllRequest
---@field source any[]|(fun(): any)|file* addresses, or tables of `address` and `network`; a function gives one at a
---call; of a file each line is an address, or an address and a network with a comma or a space between them
---@field network? any of the items that name none
---@field policy? riskscreen.Policy
---@field include? riskscreen.LookupName[]
---@field timeout? number seconds for each decision
---@field concurrency? integer decisions under way, 32 by default
---@field ordered? boolean in the source's order (the default), or as they finish
---@field on_progress? fun(done: integer, failed: integer, rate: number, eta: number|nil)
---@field total? integer how many there are, for the eta; of a list it is known
---@field remember? integer how many different addresses and networks are not asked for again, 4096 by default

local MOST_REMEMBERED = 10000000

local all_options = {
  { name = "source", type = "any", required = true, doc = "What to screen." },
  {
    name = "remember",
    type = "integer",
    default = 4096,
    minimum = 0,
    maximum = MOST_REMEMBERED,
    unit = "pairs",
    doc = "How many different addresses and networks are not asked for again.",
  },
}
for _, list in ipairs { screen.options, options.map } do
  for _, option in ipairs(list) do
    all_options[#all_options + 1] = option
  end
end

-- The address and the network of an item.
local function parts_of(item, is_line, network)
  if is_line then
    local address, own = item:match "^%s*([^,%s]+)%s*,?%s*(%S*)%s*$"
    return address or item, own and own ~= "" and own or network
  elseif type(item) ~= "table" then
    return item, network
  elseif item.network ~= nil then
    network = item.network
  end
  return item.address, network
end

local function key_of(address, network)
  if type(address) == "string" and type(network) == "string" then
    return canonical_address(address) .. "\0" .. enums.canonical_network(network)
  end
end

-- The last `capacity` different pairs, each with its decision or whoever waits for it. The oldest makes room.
local function memory(capacity)
  local entries, ring, position = {}, {}, 0
  return {
    find = function(key)
      return entries[key]
    end,
    add = function(key, entry)
      if capacity == 0 then
        return
      end
      position = position % capacity + 1
      if ring[position] then
        entries[ring[position]] = nil
      end
      ring[position], entries[key] = key, entry
    end,
  }
end

local function copy(decision)
  local other = {}
  for name, value in pairs(decision) do
    other[name] = value
  end
  return other
end

-- Decides a pair once: those who come while it is under way wait for it.
local function once(tasks, decide, remembered)
  return function(address, network, index)
    local key = key_of(address, network)
    local entry = key and remembered.find(key)
    if not entry then
      entry = { index = index }
      if key then
        remembered.add(key, entry)
      end
      entry.decision = decide(address, network)
      if entry.ready then
        entry.ready:notify()
        entry.ready = nil
      end
      return copy(entry.decision)
    end
    while not entry.decision do
      entry.ready = entry.ready or tasks.signal()
      entry.ready:wait()
    end
    local decision = copy(entry.decision)
    decision.address, decision.network, decision.repeats = address, network, entry.index
    return decision
  end
end

-- To the run a decision that rests on a failure has failed; to the caller it is a decision like the others.
local function as_result(decision)
  if decision.error then
    return nil, decision
  end
  return decision
end

local function present(_, decision, failed_decision)
  return decision or failed_decision
end

local M = { options = all_options }

---Adds `screen_all` to the client's methods.
---@param Client table
---@param access riskscreen.Access
function M.install(Client, access)
  ---Screens every item of a source: an iterator of one decision for each, with `index` (its position), `input` (the
  ---item) and, where the same address and network came before, `repeats` (the position of the one that was asked).
  ---@param request riskscreen.ScreenAllRequest
  ---@return riskscreen.Run
  function Client:screen_all(request)
    local checked, problem = screen.check("screen_all", request, all_options)
    local state, misuse = access.open(self, "client")
    if not state or problem then
      error(state and problem or misuse, 2)
    end
    local runtime = state.runtime
    local is_line = io.type(checked.source) == "file"
    local decide_new = screen.decider(state, self.policy, checked, access.perform)
    local decide = once(runtime.tasks, decide_new, memory(checked.remember))
    local run, message = maps.new(runtime, checked.source, function(item, index)
      local address, network = parts_of(item, is_line, checked.network)
      local decision = decide(address, network, index)
      decision.index, decision.input = index, item
      return as_result(decision)
    end, checked, present)
    if not run then
      error("screen_all: " .. message, 2)
    end
    return run
  end
end

return M
