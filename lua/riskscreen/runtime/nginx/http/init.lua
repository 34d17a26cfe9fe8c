-- The HTTP/1.1 client of the nginx runtime: one request over a cosocket, from its fields to a reply. Only nginx
-- can load this module.
local connection = require "riskscreen.runtime.nginx.http.connection"
local head = require "riskscreen.runtime.nginx.http.head"
local peers = require "riskscreen.runtime.nginx.http.peer"
local request_text = require "riskscreen.runtime.nginx.http.request_text"
local response = require "riskscreen.runtime.nginx.http.response"
local version = require "riskscreen.version"

local now = require("riskscreen.runtime.nginx.clock").now

-- The peer and the certificate of a client, or nil and the problem of its settings.
local function prepare(settings)
  local peer, problem = peers.of(settings)
  if peer then
    peer.identity, problem = peers.identity(settings)
  end
  return not problem and peer or nil, problem
end

local M = {}

---Why a client with these settings cannot be inside nginx.
---@param settings table a client's checked options
---@return string|nil
function M.problem(settings)
  local _, problem = prepare(settings)
  return problem
end

---A transport over nginx's cosockets: a request yields to nginx until its answer is there. The arguments after the
---request are those that differ between the requests of a call: they need no table of their own.
---@param settings table a client's checked options without a `problem`
---@return fun(request: riskscreen.Request, key?: string, timeout?: number, connect_timeout?: number, fresh?: boolean,
---body_only?: boolean, target?: string): riskscreen.Reply|nil, table|nil
function M.transport(settings)
  local kept_peer, fresh_peer = assert(prepare(settings)), peers.of(settings, true)
  fresh_peer.identity = kept_peer.identity
  local write = request_text.writer(kept_peer, settings.user_agent or ("riskscreen/" .. version))
  local parse = head.parser()
  local limit = settings.max_response_size

  -- Sends once. The failure of a pooled connection that was dead before anything of an answer came says so.
  return function(request, key, timeout, connect_timeout, fresh, body_only, target)
    local started = now()
    local pieces, problem = write(request, key, target)
    if not pieces then
      return nil,
        { kind = "protocol", message = "the request was not sent: " .. problem, sent = false, phase = "queue" }
    end
    local open, failure = connection.open(
      (fresh or request.fresh) and fresh_peer or kept_peer,
      started,
      timeout or request.timeout,
      connect_timeout or request.connect_timeout,
      not body_only
    )
    if not open then
      return nil, failure
    end
    local sent, its_head, body
    sent, failure = open:send(pieces)
    if sent then
      its_head, body, failure = response.read(open, parse, limit, request.method)
    end
    if not its_head then
      failure.dead_connection = open.reused and failure.kind == "network" and failure.phase == "first_byte" or nil
      return nil, failure
    end
    return {
      status = its_head.status,
      headers = its_head.headers,
      body = body,
      http_version = open.times and its_head.http_version,
      times = open.times,
    }
  end
end

return M
