-- Inside nginx: what programs do with the library; see spec/in_nginx/library_nginx.lua.
local riskscreen = require "riskscreen"

local M = {}

local function address(number)
  return ("0x%040x"):format(number)
end

local function addresses(count)
  local list = {}
  for number = 1, count do
    list[number] = address(number)
  end
  return list
end

function M.walk_a_list(client)
  local list = {}
  for number = 1, 120 do
    list[number] = { address = address(number), network = "eth" }
  end
  local added, err = client.blacklist:add { list = list }
  assert(added, tostring(err))
  local pages, each = 0, 0
  for page in client.blacklist:pages { pageSize = 50 } do
    pages = pages + (#page > 0 and 1 or 0)
  end
  for _ in client.blacklist:each { prefetch = 2 } do
    each = each + 1
  end
  return { pages, each, #client.blacklist:all() }
end

function M.screen_many(client)
  local in_order, actions = true, {}
  local index = 0
  for decision in client:screen_all { source = addresses(100), network = "eth", concurrency = 16 } do
    index = index + 1
    in_order = in_order and decision.index == index and decision.address == address(index)
    actions[decision.action] = (actions[decision.action] or 0) + 1
  end
  return { index, in_order, actions.unknown or 0 }
end

function M.map_calls(client)
  local sum = 0
  for _, record, err in
    riskscreen.map(addresses(30), function(one)
      return client.kya:basic { address = one, network = "eth" }
    end, { concurrency = 8, ordered = false })
  do
    sum = sum + (record and 1 or error(tostring(err)))
  end
  return sum
end

function M.look_up_many(client)
  local records, response = client.kya:entities { addresses = addresses(250), network = "eth" }
  return { #records, response.attempts, records[250].address == address(250) }
end

---Submits a transaction and polls for its result.
function M.screen_transaction(client)
  local result, how = client.kyt:screen({
    network = "eth",
    hash = "0x" .. ("ab"):rep(32),
    outputAddress = riskscreen.sandbox.scenario("type-sanction").address,
    direction = "in",
  }, { timeout = 15 })
  return { result and result.requestId ~= nil, how.source, tostring(how.kind) }
end

---Calls in a light thread, in a coroutine, and in a coroutine of a light thread.
function M.call_from_elsewhere(client)
  local function call()
    return client.kya:basic { address = address(1), network = "eth" }
  end
  local function call_in_coroutine()
    return coroutine.wrap(call)()
  end
  local threads = { _G.ngx.thread.spawn(call), _G.ngx.thread.spawn(call_in_coroutine) }
  local records = call_in_coroutine() and 1 or 0
  for _, thread in ipairs(threads) do
    local _, record = _G.ngx.thread.wait(thread)
    records = records + (record and 1 or 0)
  end
  local stats = client:stats()
  return { records, stats.succeeded, stats.in_flight }
end

-- One inbox and one client for all requests of the worker.
local inbox = riskscreen.webhook.inbox { accept_unauthenticated = true }
local watcher

---Waits for a result that only a webhook brings.
function M.await_event(options, request_id)
  options.inbox = inbox
  options.endpoints = nil
  watcher = watcher or riskscreen.new(options)
  local result, how = watcher.kyt:await(request_id, { timeout = 15 })
  return result and result.maxScore, how.source
end

---Takes a delivery, once somebody waits for it.
function M.take_event(body)
  repeat
    _G.ngx.sleep(0.002)
  until watcher
  return (inbox:deliver("POST", {}, body))
end

return M
