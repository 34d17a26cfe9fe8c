-- The trace a call belongs to, as W3C Trace Context writes it in the header `traceparent`. It is passed on unchanged:
-- spans of its own the library does not make.

local PATTERN = "^([0-9a-f][0-9a-f])%-([0-9a-f]+)%-([0-9a-f]+)%-[0-9a-f][0-9a-f](.*)$"

local M = {}

---Whether a text is a valid `traceparent`, such as "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".
---@param value any
---@return boolean
function M.is_valid(value)
  if type(value) ~= "string" then
    return false
  end
  local version, trace, parent, rest = value:match(PATTERN)
  if not version or version == "ff" or #trace ~= 32 or #parent ~= 16 then
    return false
  elseif not trace:find "[^0]" or not parent:find "[^0]" then
    return false
  elseif version == "00" then
    return rest == ""
  end
  -- A later version may have more fields.
  return rest == "" or (rest:find "^%-" ~= nil and not rest:find "[^!-~]")
end

return M
