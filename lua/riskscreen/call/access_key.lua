-- The access key of the next request: the text a client was given, or what its function returns.
local errors = require "riskscreen.errors"
local text = require "riskscreen.util.text"

local M = {}

---The key, or an error that does not show it.
---@param given string|fun(): string
---@return string|nil key
---@return riskscreen.Error|nil err
function M.of(given)
  if type(given) == "string" then
    return given
  end
  local ok, key = pcall(given)
  local problem
  if not ok then
    -- Its message may hold the key.
    problem = "raised an error"
  elseif type(key) ~= "string" then
    problem = "must return a string (got " .. text.kind(key) .. ")"
  elseif key == "" then
    problem = "returned an empty string"
  elseif not text.is_header_value(key) then
    problem = "returned a text with control characters"
  else
    return key
  end
  return nil, errors.new("unauthorized", "the access_key function " .. problem, { sent = false })
end

return M
