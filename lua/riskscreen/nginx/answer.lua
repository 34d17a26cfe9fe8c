-- Answers another server that asks whether a request may pass: auth_request of nginx, forward_auth of Caddy. A client
-- can forge its headers, so the URL comes from this nginx or from a proxy that the operator has named.
local deny_response = require "riskscreen.nginx.deny_response"
local input = require "riskscreen.nginx.input"
local ip = require "riskscreen.util.ip"
local text = require "riskscreen.util.text"

local ngx = _G.ngx

local OK, FORBIDDEN, UNAVAILABLE = 200, 403, 503

local default_uri = input.compile { header = "X-Forwarded-Uri" }
local default_method = input.compile { header = "X-Forwarded-Method" }

local function own_uri()
  return ngx.var.request_uri
end

local function own_method()
  return ngx.var.request_method
end

-- A reader of the path and the query that another one finds.
local function path_reader(read)
  return function()
    local uri, problem = read()
    if uri and not uri:find "^/[^%s%c]*$" then
      uri, problem = nil, ("the URL %s does not begin with a path"):format(text.show(uri))
    end
    return uri, problem
  end
end

-- The request that a subrequest of this nginx, or a trusted proxy, asks about. Any other proxy gets nil. The realip
-- module may replace the address of a proxy by one that the client names.
local function asked_by(proxy)
  if ngx.is_subrequest then
    return { uri = path_reader(proxy.uri or own_uri), method = proxy.method or own_method }
  end
  local peer = ngx.var.realip_remote_addr or ngx.var.remote_addr
  if ip.is_within(proxy.trusted, peer) then
    return { uri = path_reader(proxy.uri or default_uri), method = proxy.method or default_method, peer = peer }
  end
  return nil, ("%s asks, and is not in proxy.trusted"):format(peer)
end

local M = {}

---The status for an outcome: 503 tells that it may be another one later.
---@param is_allowed boolean
---@param decision? riskscreen.Decision
---@param source? string
---@return integer
function M.status(is_allowed, decision, source)
  if is_allowed then
    return OK
  end
  return decision and decision.action == "unknown" and source ~= "invalid" and UNAVAILABLE or FORBIDDEN
end

---Sends an answer, and ends the request.
---@param status integer
---@param decision? riskscreen.Decision
---@param request_id string
---@param body? string JSON
function M.send(status, decision, request_id, body)
  local headers = { ["X-Riskscreen-Action"] = decision and decision.action }
  return deny_response.send(status, request_id, headers, body or "", body and "application/json")
end

---Answers the server that asks.
---@param location riskscreen.nginx.Location
---@param request_id string
---@param decide fun(): riskscreen.Decision|nil, string|nil, string|nil decision, source and effective action
function M.serve(location, request_id, decide)
  local asked, problem = asked_by(location.proxy)
  local decision, source, action
  if asked then
    ngx.ctx.riskscreen_asked = asked
    decision, source, action = decide()
  else
    ngx.log(location.log, "riskscreen: no answer: ", problem, "; request ", request_id)
  end
  local status = M.status(location.monitor or action == "allow", decision, source)
  return M.send(status, decision, request_id)
end

return M
