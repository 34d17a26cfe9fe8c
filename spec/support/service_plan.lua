-- A client in virtual time. Its transport follows a plan: each request takes its seconds and ends as planned, or times
-- out before. The last entry repeats.
local client = require "riskscreen.client"
local recorder = require "spec.support.recorder"
local samples = require "spec.support.samples"
local operations = require "riskscreen.interface.operations"
local virtual_time = require "riskscreen.runtime.virtual"

local M = { key = "plan-key-77c1" }

---An answer to a lookup of a risk, after so many seconds.
function M.answer(seconds)
  return { seconds or 0, recorder.reply(200, (select(2, samples.of(operations.by_name.getAddressRisk)))) }
end

---Another status.
function M.status(status, headers, seconds)
  return { seconds or 0, recorder.reply(status, nil, headers) }
end

---A failure of the transport.
function M.failure(kind, sent, seconds)
  return { seconds or 0, nil, { kind = kind, message = "planned", sent = sent } }
end

local function follow(time, plan)
  local requests = {}
  local function transport(request)
    requests[#requests + 1] = { at = time.now(), timeout = request.timeout, request = request }
    local entry = plan[math.min(#requests, #plan)]
    if entry[1] >= request.timeout then
      time.sleep(request.timeout)
      return nil, { kind = "timeout", message = "timed out", sent = true }
    end
    time.sleep(entry[1])
    return entry[2], entry[3]
  end
  return transport, requests
end

---@param plan table[] of the above
---@param options? table of the client
---@return table scene `client`, `time`, `requests` as they come, `risk(options, address)`, `add(options)`
function M.new(plan, options)
  local time = virtual_time.new()
  local transport, requests = follow(time, plan)
  local all = {
    access_key = M.key,
    transport = transport,
    runtime = time,
    breaker = false,
    random = function()
      return 0.5
    end,
  }
  for name, value in pairs(options or {}) do
    all[name] = value
  end
  local scene = { time = time, requests = requests, plan = plan, client = client.new(all) }

  ---A lookup, which may be repeated. The planned answer is about the address of the samples.
  function scene.risk(call_options, address)
    return scene.client.kya:risk({ address = address or samples.address, network = "eth" }, call_options)
  end

  ---A lookup of each of so many addresses.
  function scene.risks(count)
    for index = 1, count do
      scene.risk(nil, ("0x%040x"):format(index))
    end
  end

  ---A request that may take effect twice.
  function scene.add(call_options)
    return scene.client.blacklist:add({ list = { { address = samples.address } } }, call_options)
  end

  ---When each request was sent.
  function scene.times()
    local list = {}
    for index, sent in ipairs(requests) do
      list[index] = sent.at
    end
    return list
  end

  return scene
end

return M
