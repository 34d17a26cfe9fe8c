-- Tries every hostile text in every place, in this process or in nginx, and reports each outcome. The bytes that the
-- server received under the same number are judged by requests.lua.

local errors = require "riskscreen.errors"
local places = require "spec.injection.places"
local secrecy = require "spec.support.secrecy"
local texts = require "spec.injection.texts"

---@class riskscreen.spec.Attack
---@field id string the value of the header X-Case
---@field place string
---@field text string
---@field what string what kind of text
---@field is_encoded boolean
---@field refused boolean nothing was sent, says the client
---@field message? string
---@field tells_key boolean

local function attempt(place, what, text, id)
  local headers = { ["X-Case"] = id }
  local ok, value, other = pcall(place.attempt, text, headers)
  local attack = { id = id, place = place.name, text = text, what = what, is_encoded = place.is_encoded or false }
  if not ok then
    attack.refused, attack.message = true, tostring(value)
  elseif value == nil then
    assert(errors.is(other), tostring(other))
    attack.refused, attack.message = other.sent == false, tostring(other)
  else
    attack.refused = false
  end
  attack.tells_key = secrecy.holds({ value, other }, places.KEY)
  return attack
end

---@param base_url string
---@return riskscreen.spec.Attack[] the harmless one of each place comes first
return function(base_url)
  local attacks = {}
  local function try(place, what, text)
    attacks[#attacks + 1] = attempt(place, what, text, tostring(#attacks + 1))
  end
  for _, place in ipairs(places.list(base_url)) do
    try(place, "harmless", places.HARMLESS)
    for what, text in pairs(texts) do
      try(place, what, text)
    end
  end
  return attacks
end
