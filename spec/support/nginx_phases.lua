-- Inside nginx: makes calls in every phase and keeps their results in the dict `seen`; see
-- spec/in_nginx/phases_nginx.lua.
local json = require "cjson.safe"
local riskscreen = require "riskscreen"

local ngx = _G.ngx

local M = {}

---Makes the client in a phase that cannot wait.
---@param options table
---@param address string
function M.begin(options, address)
  M.client = riskscreen.new(options)
  M.address = address
  M.look "init"
end

local function addresses()
  local list = {}
  for number = 1, 250 do
    list[number] = ("0x%040x"):format(number)
  end
  return list
end

local function one()
  return 1
end

-- The messages that the waits raise.
local function raised()
  local _, of_sleep = pcall(function()
    riskscreen.sleep(0.001)
  end)
  local _, of_gather = pcall(function()
    riskscreen.gather { one, one }
  end)
  return of_sleep, of_gather
end

---Makes calls of every kind.
---@param name string under which the result is kept
function M.look(name)
  local subject = { address = M.address, network = "eth" }
  local record, err = M.client.kya:risk(subject)
  local _, raw = M.client:request("GET", "/health")
  local entities, problem = M.client.kya:entities { addresses = addresses(), network = "eth" }
  local decision = M.client:screen { address = M.address, network = "eth", include = { "entity" } }
  local of_sleep, of_gather = raised()
  ngx.shared.seen:set(
    name,
    json.encode {
      phase = ngx.get_phase(),
      level = record and record.risks[1].riskLevel,
      kind = not record and err.kind or nil,
      message = not record and err.message or nil,
      sent = not record and err.sent,
      raw = raw.kind or raw.status,
      entities = entities and #entities,
      problem = problem.kind,
      action = decision.action,
      sleep = of_sleep,
      gather = of_gather,
    }
  )
end

---Waits for the result of a phase.
---@param name string
---@return table
function M.wait_for(name)
  local text
  repeat
    ngx.sleep(0.005)
    text = ngx.shared.seen:get(name)
  until text
  return json.decode(text)
end

return M
