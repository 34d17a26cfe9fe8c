-- The fast way without the core: lua-cjson reads a text once a regular expression of nginx's has vouched for its words.
-- lua-cjson is strict about brackets, commas and colons but not about words; a text that it might read otherwise than
-- the core does, or that is wrong, is left to the reader.
local cjson = require "cjson"

-- What a string may hold: RFC 8259 with UTF-8 by RFC 3629, and surrogates only in pairs.
local CHARACTERS = [=["(?:]=]
  .. [=[[^"\\\x00-\x1f\x80-\xff]++]=]
  .. [=[|\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})]=]
  .. [=[|[\xc2-\xdf][\x80-\xbf]]=]
  .. [=[|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|\xed[\x80-\x9f][\x80-\xbf]]=]
  .. [=[|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2}]=]
  .. [=[)*+"]=]
-- Numbers that cannot be out of range. What follows must end them, since lua-cjson reads on where the grammar does not.
-- -0 is not among them: OpenResty's lua-cjson, from 2.1.0.14 on, makes 0 of it.
local NUMBER = [=[(?:0|-0(?=\.)|-?[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?(?=[ \t\n\r,\]}]|\z)]=]
local WORDS = [=[\A(?:[\[\]{}:, \t\n\r]++|]=] .. CHARACTERS .. "|" .. NUMBER .. [=[|true|false|null)*+\z]=]

-- These may match within a string as well; then they cost time and change nothing.
local EMPTY_ARRAY = [=[\[[ \t\n\r]*+\]]=]
local EMPTY_OBJECT = [[\{[ \t\n\r]*+\}]]

local find = string.find

---@class riskscreen.json.VouchedOptions
---@field max_depth integer
---@field empty_array_mt table
---@field find fun(subject: string, pattern: string, options: string): integer|nil nginx's `ngx.re.find`

local M = {}

-- Leaves null members out and marks empty arrays; `mark` is nil when the text has none.
local function settle(value, mark)
  if next(value) == nil then
    return setmetatable(value, mark)
  end
  for key, member in pairs(value) do
    if type(member) == "table" then
      settle(member, mark)
    elseif member == cjson.null and type(key) == "string" then
      value[key] = nil
    end
  end
  return value
end

---A function that reads a text as the core does, or gives false and does not say why.
---@param options riskscreen.json.VouchedOptions
---@return fun(text: string): boolean, any
function M.new(options)
  local parser = cjson.new()
  parser.decode_max_depth(options.max_depth)
  local decode, re_find, empty_array_mt = parser.decode, options.find, options.empty_array_mt

  return function(text)
    if not re_find(text, WORDS, "jo") then
      return false
    end
    local has_empty_array = re_find(text, EMPTY_ARRAY, "jo")
    if has_empty_array and re_find(text, EMPTY_OBJECT, "jo") then
      return false -- lua-cjson makes the same of both
    end
    local ok, value = pcall(decode, text)
    if ok and type(value) == "table" and (has_empty_array or find(text, "null", 1, true)) then
      settle(value, has_empty_array and empty_array_mt or nil)
    end
    return ok, value
  end
end

return M
