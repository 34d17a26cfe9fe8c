-- A program that makes lookups in one way, for bench/support/instructions.lua: lua ways.lua WAY COUNT PORT. An nginx
-- answers on the port. Each way has the same work by hand beside it.

local way, count, port = arg[1], tonumber(arg[2]), arg[3]
local WARM = 300 -- lookups before the first that counts
local IN_FLIGHT = 64
local KEY = "0123456789abcdef0123456789abcdef"
local HEADERS = { "X-Access-Key: " .. KEY, "Accept: application/json" }

local riskscreen = require("riskscreen")
local decode = require("riskscreen.core").decode

local function address_of(number)
  return ("0x%040x"):format(number)
end

local function target_of(number)
  return "/api/v1/tracker/kya/risks?address=" .. address_of(number) .. "&network=eth"
end

-- Whether the answer allows, as a program by hand would look at it.
local function allows(answer, number)
  local data = answer.success and answer.data
  return data.address == address_of(number) and data.risks[1].riskLevel == "low"
end

-- The reply of a transport that answers at once.
local function reply(target)
  return {
    status = 200,
    headers = {},
    body = '{"success":true,"code":1,"msg":"SUCCESS","data":{"time":1767225600000,"address":"'
      .. target:match("0x%x+")
      .. '","network":"eth","whitelist":false,'
      .. '"risks":[{"riskLevel":"low","riskType":"online-gambling","riskSource":"Provider"}]}}',
  }
end

local function client(transport)
  local base_url = "http://127.0.0.1:" .. port
  return riskscreen.new({ base_url = base_url, access_key = KEY, concurrency = IN_FLIGHT, transport = transport })
end

local function quick_client()
  return client(function(request)
    return reply(request.target)
  end)
end

local function origin()
  local loop = require("riskscreen.core").loop({})
  return loop, loop:origin({ base_url = "http://127.0.0.1:" .. port, concurrency = IN_FLIGHT, http_version = "1.1" })
end

local function send(to, number)
  return to:send("GET", target_of(number), HEADERS, 10, nil, nil, false, true)
end

-- A way whose lookups come one after another.
local function each(looks_up)
  return function(first, last)
    for number = first, last do
      assert(looks_up(number))
    end
  end
end

local ways = {}

ways["by hand, no I/O"] = function()
  return each(function(number)
    return allows(decode(reply(target_of(number)).body), number)
  end)
end

ways["client:call, no I/O"] = function()
  local of = quick_client()
  return each(function(number)
    return of:call("getAddressRisk", { address = address_of(number), network = "eth" }).risks[1].riskLevel == "low"
  end)
end

local function looks_up_by(of)
  return each(function(number)
    return of.kya:risk({ address = address_of(number), network = "eth" }).risks[1].riskLevel == "low"
  end)
end

local function screens_by(of)
  return each(function(number)
    return of:screen({ address = address_of(number), network = "eth" }).action == "allow"
  end)
end

ways["kya:risk, no I/O"] = function()
  return looks_up_by(quick_client())
end

ways["client:screen, no I/O"] = function()
  return screens_by(quick_client())
end

-- Screens addresses in one run.
local function run_over(of)
  return function(first, last)
    local left = last - first + 1
    local function source()
      first = first + 1
      return first - 1 <= last and address_of(first - 1) or nil
    end
    for decision in of:screen_all({ source = source, network = "eth", concurrency = IN_FLIGHT }) do
      left = left - (decision.action == "allow" and 1 or 0)
    end
    assert(left == 0)
  end
end

ways["screen_all, no I/O"] = function()
  return run_over(quick_client())
end

ways["by hand, blocking"] = function()
  local loop, to = origin()
  return each(function(number)
    local transfer = send(to, number)
    while not loop:done(transfer) do
      loop:step()
    end
    loop:next()
    return allows(decode(select(2, loop:take(transfer))), number)
  end)
end

ways["kya:risk, blocking"] = function()
  return looks_up_by(client())
end

ways["client:screen, blocking"] = function()
  return screens_by(client())
end

ways["by hand, 64 in flight"] = function()
  local loop, to = origin()
  return function(first, last)
    local numbers, done = {}, first - 1
    local function start()
      if first <= last then
        numbers[send(to, first)] = first
        first = first + 1
      end
    end
    for _ = 1, IN_FLIGHT do
      start()
    end
    while done < last do
      loop:step()
      local transfer = loop:next()
      while transfer do
        assert(allows(decode(select(2, loop:take(transfer))), numbers[transfer]))
        numbers[transfer], done = nil, done + 1
        start()
        transfer = loop:next()
      end
    end
  end
end

ways["screen_all, 64 in flight"] = function()
  return run_over(client())
end

local run = ways[way]()
run(1, WARM)
run(WARM + 1, WARM + count)
