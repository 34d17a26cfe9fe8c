-- Authenticates deliveries by a shared secret or by the sender's address, before their body is read. The service
-- publishes no way to tell its deliveries from others, so the operator must choose one.

local build = require "riskscreen.options.build"
local digest = require "riskscreen.address.digest"
local ip = require "riskscreen.util.ip"
local text = require "riskscreen.util.text"

local SHORTEST_SECRET = 16 -- bytes
local LONGEST_SECRET = 1024 -- bytes; a longer text is not compared

---@class riskscreen.Delivery a request to an inbox
---@field method string
---@field headers table<string, string> names in lower case
---@field body string
---@field path string
---@field query string
---@field remote? string the sender's IP address

local SECRETS = ("texts of %d to %d bytes"):format(SHORTEST_SECRET, LONGEST_SECRET)

local function secret_values(value)
  return build.list_of(value, SECRETS, function(one)
    return type(one) == "string" and #one >= SHORTEST_SECRET and #one <= LONGEST_SECRET
  end, 1)
end

local function networks(value)
  return build.list_of(value, "addresses and networks such as 192.0.2.0/24", ip.network, 1)
end

local M = {}

local SECRET = "The secret, or several of which any will do, so that it can be changed."

local secret_fields = {
  build.required(build.checked("value", "string|table", secret_values, SECRET), build.NO_VARIABLE),
  { name = "header", type = "string", doc = "The header that carries it." },
  { name = "query", type = "string", doc = "The query parameter that carries it." },
  { name = "path", type = "boolean", doc = "true: it is the last segment of the path." },
}

---@type riskscreen.Option[]
M.options = {
  build.group("secret", secret_fields, "A shared secret: `value`, and one of `header`, `query` and `path`."),
  build.checked("allow", "table", networks, "The addresses and networks that may deliver."),
  build.callback("verify", "verify(body, headers, request) → whether the delivery is genuine; or nil and why not."),
  build.flag("accept_unauthenticated", false, "true: anyone who can reach the inbox may deliver."),
}

local function query_value(query, wanted)
  for pair in query:gmatch "[^&]+" do
    local name, value = pair:match "^([^=]*)=?(.*)$"
    if text.unescape(name) == wanted then
      return value
    end
  end
end

-- The text of a delivery in the place of the secret, in each way in which its sender may have escaped it: not at all,
-- as a URL, or as a form, where "+" is a space.
local function given_secrets(place, delivery)
  if place.header then
    return { delivery.headers[text.lower(place.header)] }
  end
  local given = place.query and query_value(delivery.query, place.query)
    or place.path and (delivery.path:match "^.*/(.*)$" or delivery.path)
    or ""
  return { given, text.unescape(given), text.unescape((given:gsub("+", "%%2B"))) }
end

local function knows_secret(secret, delivery)
  local known = false
  for _, given in ipairs(given_secrets(secret, delivery)) do
    for _, value in ipairs(secret.value) do
      known = (#given <= LONGEST_SECRET and digest.equal(given, value)) or known
    end
  end
  return known
end

---Checks that the options say who may deliver.
---@param settings table checked by `options`; with `fetch` only the requestId of a delivery is believed
---@return string|nil message
function M.misuse(settings)
  local secret = settings.secret
  if secret then
    local places = (secret.header and 1 or 0) + (secret.query and 1 or 0) + (secret.path and 1 or 0)
    if places ~= 1 then
      return "secret needs one of header, query and path"
    end
  end
  if not (secret or settings.allow or settings.verify or settings.fetch or settings.accept_unauthenticated) then
    return "nothing says who may deliver: set secret, allow, verify, fetch, or accept_unauthenticated = true"
  end
end

---Makes the check of every delivery.
---@param settings table
---@return fun(delivery: riskscreen.Delivery): integer|nil, string|nil a status to refuse with and the reason, or nil
function M.new(settings)
  local allowed, secret = settings.allow, settings.secret
  return function(delivery)
    if allowed and not ip.is_within(allowed, delivery.remote) then
      return 403, "the sender's address is not allowed"
    elseif secret and not knows_secret(secret, delivery) then
      return 401, "the secret is missing or wrong"
    end
  end
end

return M
