-- Load for bench/nginx.lua and bench/fleet.lua: wrk with one round of a row's requests.

local CONNECTIONS = 64
local ROUND = 1 -- seconds; wrk takes whole ones

local M = { CONNECTIONS = CONNECTIONS, ROUND = ROUND }

local first = 0 -- of the addresses that nobody has asked for yet
local asked = {} -- requests so far, by the number of different addresses: a round goes on where the last one ended

---@class riskscreen.bench.Load
---@field requests integer
---@field seconds number
---@field refused integer answers other than 2xx and 3xx
---@field failed integer
---@field p99 number microseconds

---Runs wrk for a round.
---@param url string
---@param path string
---@param different? integer addresses in turn; without it each request has a new one
---@param threads integer
---@param pinned boolean whether wrk leaves the first core to nginx
---@return riskscreen.bench.Load
function M.run(url, path, different, threads, pinned)
  local from = different and (asked[different] or 0) % different or first
  local command = ("%swrk -t%d -c%d -d%ds -s bench/nginx/requests.lua %s -- %s %d %s"):format(
    pinned and "taskset -c 1 " or "",
    threads,
    CONNECTIONS,
    ROUND,
    url,
    path,
    from,
    different or ""
  )
  first = first + 1e6
  local pipe = assert(io.popen(command))
  local output = pipe:read("*a")
  pipe:close()
  local figures = {}
  for figure in output:match("figures ([^\n]*)"):gmatch("%S+") do
    figures[#figures + 1] = tonumber(figure)
  end
  if different then
    asked[different] = from + figures[1]
  end
  return {
    requests = figures[1],
    seconds = figures[2] / 1e6,
    refused = figures[3],
    failed = figures[4],
    p99 = figures[6],
  }
end

return M
