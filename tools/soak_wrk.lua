-- wrk's script for `./dev soak nginx`: sends the queries of a file in random order, and counts wrong answers. A line of
-- the file is "pass" or "stop" and a query. A query that passes the gate is returned as the body.

local wrk = _G.wrk

local threads = {}
local requests, may_pass = {}, {}

-- Each thread counts for itself; `done` adds up.
for _, name in ipairs { "passed", "stopped", "failed", "wrong" } do
  _G[name] = 0
end

function _G.setup(thread)
  thread:set("seed", #threads + 1)
  threads[#threads + 1] = thread
end

function _G.init(arguments)
  for line in io.lines(arguments[1]) do
    local kind, query = line:match "^(%S+) (.*)$"
    requests[#requests + 1] = wrk.format("GET", "/withdraw?" .. query)
    may_pass[query] = kind == "pass"
  end
  math.randomseed(_G.seed)
end

-- A few queries are sent often, most of them seldom.
function _G.request()
  return requests[math.floor(#requests * math.random() ^ 4) + 1]
end

function _G.response(status, _, body)
  if status == 200 then
    _G.passed = _G.passed + 1
    _G.wrong = _G.wrong + (may_pass[body] and 0 or 1)
  elseif status == 403 then
    _G.stopped = _G.stopped + 1
  else
    _G.failed = _G.failed + 1
  end
end

function _G.done(summary)
  local errors = summary.errors
  local totals = { unanswered = errors.connect + errors.read + errors.write + errors.timeout }
  for _, name in ipairs { "passed", "stopped", "failed", "wrong" } do
    totals[name] = 0
    for _, thread in ipairs(threads) do
      totals[name] = totals[name] + thread:get(name)
    end
  end
  for name, value in pairs(totals) do
    print("found " .. name .. " " .. value)
  end
end
