-- Inside nginx: sends requests by the transport over cosockets; see cosocket_nginx.lua. Its results are what JSON can
-- say.
local cosocket = require "riskscreen.runtime.nginx.http"
local outcome_of = require "spec.support.wire_outcome"

local OPTIONS = { "unix_socket", "client_cert", "client_key", "concurrency" }

local transports = {}

local M = {}

local function settings_of(given)
  local settings = { base_url = { origin = given.origin, prefix = "" }, max_response_size = given.limit }
  for _, option in ipairs(OPTIONS) do
    settings[option] = given[option]
  end
  return settings
end

-- One for each set of options, as a client would keep it.
local function transport_of(given)
  local parts = { given.origin, given.limit }
  for _, option in ipairs(OPTIONS) do
    parts[#parts + 1] = tostring(given[option])
  end
  local name = table.concat(parts, " ")
  transports[name] = transports[name] or cosocket.transport(settings_of(given))
  return transports[name]
end

---@param given table { origin, limit, request } and options of a client
---@return table result of the fields `reply` or `failure`
function M.send(given)
  local reply, failure = transport_of(given)(given.request)
  return { reply = reply, failure = failure }
end

---@param given table as of `send`, with a list of requests
---@return table[] outcomes
function M.outcomes(given)
  local outcomes = {}
  for index, request in ipairs(given.requests) do
    outcomes[index] = outcome_of(transport_of(given)(request))
  end
  return outcomes
end

---Why a client with these options cannot be.
---@param given table
---@return string|nil
function M.problem(given)
  return cosocket.problem(settings_of(given))
end

return M
