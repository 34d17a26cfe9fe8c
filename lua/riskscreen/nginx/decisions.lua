-- Decisions for services in other languages: a request and its answer are JSON. docs/openapi.json is made from the
-- tables of this file.
local answer = require "riskscreen.nginx.answer"
local bodies = require "riskscreen.nginx.input.body"
local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local decisions = require "riskscreen.policy.decision"
local digest = require "riskscreen.address.digest"
local json = require "riskscreen.json"
local validate = require "riskscreen.interface.validate"

local ngx = _G.ngx

local LONGEST_BODY = 16 * 1024 -- bytes
local actions = { "allow", "review", "block", "unknown" }
local NOT_READ, WITHOUT_SECRET, WRONG_METHOD = 400, 401, 405

-- A secret that a header can carry, as a test of texts, so that no table holds it.
local function secret_test(value)
  if not value:find(build.forms.key.pattern) then
    return nil, build.forms.key.message
  elseif not value:find "^[%w%-._~+/]+=*$" then
    return nil, "must be of letters, digits and '-._~+/', with '=' at its end alone"
  end
  return function(given)
    return type(given) == "string" and digest.equal(given, value)
  end
end

local M = {
  LONGEST_BODY = LONGEST_BODY,
  ---@type riskscreen.Option[]
  options = {
    build.required(
      build.checked("secret", "string", secret_test, "The bearer token that a service sends: 16 bytes or more."),
      build.NO_VARIABLE
    ),
  },
  ---@type riskscreen.Option[] the fields of a request
  request = {
    build.required { name = "address", type = "string", doc = "The address, in any of its spellings." },
    build.required { name = "network", type = "string", doc = "The name of the network, such as eth." },
  },
  ---The fields of a decision.
  decision = {
    build.required(build.choice("action", actions, nil, "Only allow is a yes.")),
    build.required { name = "reasons", type = "string[]", doc = "The reasons for people, the worst first." },
    {
      name = "risks",
      type = "string[]",
      doc = "Level and type of each risk, such as high / hack. Only a decision of the source upstream may have it.",
    },
    build.required { name = "address", type = "string", doc = "The address of the request." },
    build.required { name = "network", type = "string", doc = "The network of the request." },
    build.required { name = "source", type = "string", doc = "lru, dict, redis, upstream, stale, list or invalid." },
    build.required { name = "degraded", type = "boolean", doc = "The action of a failure, or of an allow list." },
    build.required { name = "stale", type = "boolean", doc = "The service could not be asked again." },
    { name = "error", type = "string", doc = "The kind of the failure, where one decided." },
    build.required { name = "request_id", type = "string", doc = "The id of the request, also in the journal." },
  },
  ---The fields of an answer without a decision.
  refusal = {
    build.required { name = "error", type = "string", doc = "The reason why the request is refused." },
    build.required { name = "request_id", type = "string", doc = "The id of the request." },
  },
  ---@type { status: integer, schema: "decision"|"refusal", doc: string }[]
  statuses = {
    { status = 200, schema = "decision", doc = "The decision is allow." },
    { status = NOT_READ, schema = "refusal", doc = "The request is not what this interface takes." },
    { status = WITHOUT_SECRET, schema = "refusal", doc = "The bearer token is missing or wrong." },
    { status = 403, schema = "decision", doc = "The decision is review or block, or the address is invalid." },
    { status = WRONG_METHOD, schema = "refusal", doc = "The method is not POST." },
    { status = 503, schema = "decision", doc = "The decision is unknown. Asking again may help." },
  },
}

local decoder = json.decoder { duplicates = "refuse", null = "keep" }

---@class riskscreen.nginx.Decisions
---@field private is_secret fun(given: any): boolean
---@field private hide_key fun(text: string): string removes the access key
local Decisions = {}
Decisions.__index = Decisions

local function is_json(media_type)
  return media_type == "application/json"
end

local function is_authorised(self)
  local given = ngx.req.get_headers(0)["authorization"]
  local token = type(given) == "string" and given:match "^[Bb][Ee][Aa][Rr][Ee][Rr] +(%S+)$"
  if not self.is_secret(token) then
    return false
  elseif self.hide_key(token) ~= token then
    ngx.log(ngx.ERR, "riskscreen: decisions.secret holds the access key: take another secret")
    return false
  end
  return true
end

-- The checked request; or nil, a status and a message.
local function read(self)
  if not is_authorised(self) then
    ngx.header["WWW-Authenticate"] = "Bearer"
    return nil, WITHOUT_SECRET, "a bearer token is required"
  elseif ngx.req.get_method() ~= "POST" then
    ngx.header["Allow"] = "POST"
    return nil, WRONG_METHOD, "the method must be POST"
  end
  local body, problem = bodies.text(is_json, LONGEST_BODY)
  if not body then
    return nil, NOT_READ, "the request " .. problem
  end
  local given = decoder:decode(body)
  if type(given) ~= "table" then
    return nil, NOT_READ, "the request must be a JSON object that repeats no name"
  end
  local request, wrong = validate.fields(M.request, given, "", "field", check.value)
  return request, NOT_READ, wrong and wrong.message
end

---Answers a service that asks for a decision.
---@param request_id string
---@param decide fun(address: string, network: string): riskscreen.Decision, string decision and source
function Decisions:serve(request_id, decide)
  local request, status, message = read(self)
  if not request then
    return answer.send(status, nil, request_id, json.encode { error = message, request_id = request_id })
  end
  local decision, source = decide(request.address, request.network)
  local body = json.encode {
    action = decision.action,
    reasons = decisions.reasons(decision),
    risks = decision.record and decisions.risks(decision, self.hide_key), -- a cache keeps no record
    address = request.address,
    network = request.network,
    source = source,
    degraded = decision.degraded,
    stale = decision.stale,
    error = decision.error and decision.error.kind,
    request_id = request_id,
  }
  -- A decision that cannot be written is not a yes.
  local is_allowed = body ~= nil and decision.action == "allow"
  return answer.send(answer.status(is_allowed, decision, source), decision, request_id, body)
end

---@param is_secret fun(given: any): boolean
---@param hide_key? fun(text: string): string
---@return riskscreen.nginx.Decisions
function M.new(is_secret, hide_key)
  return setmetatable({ is_secret = is_secret, hide_key = hide_key or tostring }, Decisions)
end

return M
