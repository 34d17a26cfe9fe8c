-- Finds what no address contains: spaces, invisible characters, letters of other alphabets, signs. Copying and
-- formatting put them there.

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

-- The code point at a position, or nil where the bytes are not UTF-8.
local function code_point(text, at)
  local first = byte(text, at)
  local size = first >= 240 and 4 or first >= 224 and 3 or first >= 194 and 2 or 0
  local code = size == 4 and first % 8 or size == 3 and first % 16 or first % 32
  if size == 0 or first > 244 then
    return nil
  end
  for index = at + 1, at + size - 1 do
    local continuation = byte(text, index)
    if not continuation or continuation < 128 or continuation > 191 then
      return nil
    end
    code = code * 64 + continuation % 64
  end
  return code
end

local function is_invisible(code)
  return invisible[code]
    or (code >= 0x2000 and code <= 0x200F)
    or (code >= 0x2028 and code <= 0x202F)
    or (code >= 0x2060 and code <= 0x206F)
    or (code >= 0x0080 and code <= 0x009F)
end

local function beyond_ascii(text, at)
  local code = code_point(text, at)
  if not code then
    return ("it has the byte 0x%02X at position %d"):format(byte(text, at), at)
  elseif is_invisible(code) then
    local name = invisible[code] and " (" .. invisible[code] .. ")" or ""
    return ("it has the invisible character U+%04X%s at position %d"):format(code, name, at)
  end
  return ("it has the character U+%04X at position %d, which is not ASCII"):format(code, at)
end

local M = {}

---The reason why a text is no address of any network, or nil.
---@param text string
---@return string|nil
function M.problem(text)
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
