-- The decoder where there is no compiled core: the core's results, refusals and options. What nginx's regular
-- expressions can vouch for is lua-cjson's to read; the reader, in Lua, does the rest and finds each fault.
local cjson = require "cjson"
local reader = require "riskscreen.json.reader"
local vouched = require "riskscreen.json.vouched"

local ngx = rawget(_G, "ngx")

-- What an option may be: least, most, default.
local LIMITS = {
  max_depth = { 1, 2048, 512 },
  max_size = { 1, 2 ^ 30, 2 ^ 26 },
  max_values = { 1, 2 ^ 30, 2 ^ 22 },
}

---@class riskscreen.json.Decoder
---@field max_depth integer
---@field max_size integer
---@field max_values integer
---@field keep_null boolean
---@field read_quickly? fun(text: string): boolean, any
local Decoder = {}
Decoder.__index = Decoder

local M = {
  null = cjson.null,
  empty_array_mt = {},
}

local function set_limit(decoder, name, value)
  local least, most = LIMITS[name][1], LIMITS[name][2]
  if type(value) ~= "number" or value % 1 ~= 0 or value < least or value > most then
    local shown = type(value) == "number" and tostring(value) or type(value)
    error(("%s must be an integer from %d to %d (got %s)"):format(name, least, most, shown), 3)
  end
  decoder[name] = value
end

local function set_option(decoder, name, value)
  if LIMITS[name] then
    set_limit(decoder, name, value)
  elseif name ~= "null" then
    local shown = type(name) == "string" and name or type(name)
    error(("unknown decoder option '%s' (known: null, max_depth, max_size, max_values)"):format(shown), 3)
  elseif value ~= "drop" and value ~= "keep" then
    local shown = type(value) == "string" and ("'%s'"):format(value) or type(value) == "number" and value or type(value)
    error(("null must be one of 'drop', 'keep' (got %s)"):format(shown), 3)
  else
    decoder.keep_null = value == "keep"
  end
end

---@class riskscreen.json.DecoderOptions
---@field null? "drop"|"keep" what becomes of a null member of an object
---@field max_depth? integer arrays and objects within each other
---@field max_size? integer bytes of text
---@field max_values? integer values in a text, arrays and objects included

---A decoder with limits of its own.
---@param options? riskscreen.json.DecoderOptions
---@return riskscreen.json.Decoder
function M.decoder(options)
  local decoder = { keep_null = false }
  for name, limit in pairs(LIMITS) do
    decoder[name] = limit[3]
  end
  if options ~= nil and type(options) ~= "table" then
    error("a decoder's options must be a table (got " .. type(options) .. ")", 2)
  end
  for name, value in pairs(options or {}) do
    set_option(decoder, name, value)
  end
  if ngx and ngx.re and not decoder.keep_null then
    local max_depth, empty_array_mt = decoder.max_depth, M.empty_array_mt
    decoder.read_quickly = vouched.new { max_depth = max_depth, empty_array_mt = empty_array_mt, find = ngx.re.find }
  end
  return setmetatable(decoder, Decoder)
end

---The value of a JSON text.
---@param text string
---@return any value
---@return string|nil message
---@return integer|nil position the first byte that cannot continue a valid text
function Decoder:decode(text)
  if getmetatable(self) ~= Decoder then
    error("decode is a method of a decoder: call it as decoder:decode(text)", 2)
  elseif type(text) ~= "string" then
    error("the text to decode must be a string (got " .. type(text) .. ")", 2)
  elseif #text > self.max_size then
    return nil, ("the text is longer than %d bytes"):format(self.max_size), self.max_size + 1
  end
  -- No text has more values than bytes.
  if self.read_quickly and #text <= self.max_values then
    local ok, value = self.read_quickly(text)
    if ok then
      return value
    end
  end
  return reader.read {
    text = text,
    depth = 0,
    max_depth = self.max_depth,
    values_left = self.max_values,
    keep_null = self.keep_null,
    null = M.null,
    empty_array_mt = M.empty_array_mt,
  }
end

local default = M.decoder()

---The value of a JSON text, within the limits that a decoder has by default.
---@param text string
---@return any value
---@return string|nil message
---@return integer|nil position
function M.decode(text)
  if type(text) ~= "string" then
    error("the text to decode must be a string (got " .. type(text) .. ")", 2)
  end
  return default:decode(text)
end

return M
