-- Finds what no address contains: spaces, invisible characters, letters of other alphabets, signs. Copying and
-- formatting put them there.

local texts = require "riskscreen.util.text"

local byte = string.byte

local invisible = {
  [0x00A0] = "a no-break space",
  [0x00AD] = "a soft hyphen",
  [0x200B] = "a zero-width space",
  [0x200C] = "a zero-width non-joiner",
  [0x200D] = "a zero-width joiner",
  [0x2060] = "a word joiner",
  [0xFEFF] = "a byte order mark",
}

-- Besides the characters that no message shows: spaces of other widths.
local function is_invisible(code)
  return invisible[code] or (code >= 0x2000 and code <= 0x200A) or code == 0x202F or texts.is_hidden(code)
end

local function beyond_ascii(text, at)
  local length, code = texts.sequence_at(text, at)
  if not length then
    return ("it has the byte 0x%02X at position %d"):format(byte(text, at), at)
  elseif is_invisible(code) then
    local name = invisible[code] and " (" .. invisible[code] .. ")" or ""
    return ("it has the invisible character U+%04X%s at position %d"):format(code, name, at)
  end
  return ("it has the character U+%04X at position %d, which is not ASCII"):format(code, at)
end

local M = {}

---The message about a text that is no address of any network, or nil.
---@param text string
---@return string|nil
function M.explain(text)
  if text == "" then
    return "it is empty"
  end
  local strange = text:find "[\128-\255]"
  if strange then
    return beyond_ascii(text, strange)
  end
  local control = text:find "[%z\1-\31\127]"
  if control then
    return ("it has the control character U+%04X at position %d"):format(byte(text, control), control)
  elseif text:find "^ " then
    return "it has a space at its beginning"
  elseif text:find " $" then
    return "it has a space at its end"
  end
  local scheme = text:match "^%a[%w+.-]*:"
  if scheme then
    return ("it begins with '%s'"):format(scheme)
  end
  local sign = text:find "[^0-9A-Za-z]"
  if sign then
    return ("it has the character '%s' at position %d"):format(text:sub(sign, sign), sign)
  end
end

return M
