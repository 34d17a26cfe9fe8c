-- Inside nginx: requests that end while their work is under way, and the objects they leave; see
-- spec/in_nginx/abort_nginx.lua. Everything here belongs to the worker, over many requests.
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"
local count_descriptors = require("spec.support.nginx_faults").count_descriptors
local tasks = require("riskscreen.runtime").tasks

local ngx = _G.ngx

local M = {
  shared = tasks.signal(), -- which requests wait for, each as it likes
  begun = 0, -- waits
  abandoned = 0, -- of what was held
  canaries = setmetatable({}, { __mode = "k" }),
}

-- An object that lives as long as its stack.
local function canary()
  local bird = {}
  M.canaries[bird] = true
  return bird
end

local function thing()
  return {
    abandon = function()
      M.abandoned = M.abandoned + 1
    end,
  }
end

local function wait_for_ever()
  local bird = canary()
  local hold = tasks.hold(thing())
  M.begun = M.begun + 1
  M.shared:wait()
  tasks.release(bird, hold)
end

-- Ends the request after so many waits have begun.
local function exit_after(waits)
  while M.begun < waits do
    ngx.sleep(0.001)
  end
  ngx.exit(204)
end

---Waits in nested tasks and in the request itself; the abort ends all of them.
function M.sweep()
  M.begun = 0
  M.last = riskscreen.spawn(function()
    riskscreen.spawn(wait_for_ever)
    wait_for_ever()
  end)
  ngx.thread.spawn(exit_after, 3)
  wait_for_ever()
end

---Waits for a task of the request that has ended.
function M.await_last()
  local value, err = M.last:await(10)
  return value, err and err.kind
end

---Collects garbage, and counts the objects that are left.
function M.left()
  for _ = 1, 3 do
    collectgarbage()
    ngx.sleep(0.001)
  end
  local canaries = 0
  for _ in pairs(M.canaries) do
    canaries = canaries + 1
  end
  return { canaries = canaries, abandoned = M.abandoned, in_flight = M.client and M.client:stats().in_flight }
end

---Makes a client with a service in this worker.
function M.connect(options)
  M.client, M.service = sandbox.client(options)
end

-- A call that waits for the service or in a queue.
local function call()
  M.begun = M.begun + 1
  return M.client.kya:risk { address = sandbox.scenario("clean-eth").address, network = "eth" }
end

---Ends a request while its calls wait, one in a task and one in the request.
function M.sweep_calls()
  M.begun = 0
  riskscreen.spawn(call)
  ngx.thread.spawn(exit_after, 2)
  call()
end

---@return string|nil kind of the error
function M.call()
  local record, err = call()
  return not record and err.kind or nil
end

---Calls a service that never answers, in a task and in the request itself.
function M.call_in_vain(options)
  M.client = M.client or riskscreen.new(options)
  riskscreen.spawn(call)
  call()
end

---Waits until no call is under way any more and every connection is closed.
function M.wait_for_silence()
  repeat
    ngx.sleep(0.005)
  until M.begun >= 2 and M.left().in_flight == 0 and count_descriptors() <= M.descriptors
end

function M.count()
  M.begun, M.descriptors = 0, count_descriptors()
end

function M.forget()
  M.client, M.service = nil, nil
end

return M
