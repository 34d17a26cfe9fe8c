-- A slow validator of RFC 8259, one byte at a time, to check the decoder against. It makes no values. It shares only
-- one definition with the decoder: a fault is at the first byte that cannot continue a valid text.

local M = {}

local Reader = {}
Reader.__index = Reader

local function fault(position)
  error({ position = position }, 0)
end

function Reader:byte()
  return self.text:byte(self.at)
end

function Reader:char()
  return self.text:sub(self.at, self.at)
end

-- Takes one character of the set, or faults.
function Reader:take(set)
  local char = self:char()
  if char == "" or not set:find(char, 1, true) then
    fault(self.at)
  end
  self.at = self.at + 1
  return char
end

function Reader:space()
  while self:char() ~= "" and (" \t\n\r"):find(self:char(), 1, true) do
    self.at = self.at + 1
  end
end

function Reader:word(word)
  for i = 1, #word do
    self:take(word:sub(i, i))
  end
end

local DIGITS = "0123456789"
local HEX = "0123456789abcdefABCDEF"

function Reader:digits()
  self:take(DIGITS)
  while self:char() ~= "" and DIGITS:find(self:char(), 1, true) do
    self.at = self.at + 1
  end
end

-- Whether a number rounds to infinity. As 0.digits * 10^power most are decided by the power; not every tonumber reads
-- exponents of any length.
local function overflows(number)
  local whole, fraction, exponent = number:match("^%-?(%d+)%.?(%d*)[eE]?(.*)$")
  local digits = whole .. fraction
  local zeros = #digits:match("^0*")
  if zeros == #digits then
    return false
  end
  local power = exponent == "" and 0 or tonumber(exponent:match("%d+") .. ".0")
  power = (exponent:sub(1, 1) == "-" and -power or power) + #whole - zeros
  if power < 308 or power > 310 then
    return power > 310
  end
  return tonumber("0." .. digits:sub(zeros + 1) .. "e" .. ("%d"):format(power)) == math.huge
end

function Reader:number()
  local start = self.at
  if self:char() == "-" then
    self.at = self.at + 1
  end
  if self:char() == "0" then
    self.at = self.at + 1
    if self:char():find("%d") then
      fault(self.at)
    end
  else
    self:digits()
  end
  if self:char() == "." then
    self.at = self.at + 1
    self:digits()
  end
  if self:char() == "e" or self:char() == "E" then
    self.at = self.at + 1
    if self:char() == "-" or self:char() == "+" then
      self.at = self.at + 1
    end
    self:digits()
  end
  if overflows(self.text:sub(start, self.at - 1)) then
    fault(start)
  end
end

function Reader:unicode_escape()
  if self:take(HEX):lower() ~= "d" then
    for _ = 1, 3 do
      self:take(HEX)
    end
    return
  end
  -- A surrogate must be a high one, with a low one after it.
  local is_high = self:take("0123456789abAB"):find("[89abAB]")
  self:take(HEX)
  self:take(HEX)
  if is_high then
    self:take("\\")
    self:take("u")
    self:take("dD")
    self:take("cdefCDEF")
    self:take(HEX)
    self:take(HEX)
  end
end

-- First byte, then the ranges of the bytes after it: the table of RFC 3629, section 4.
local UTF8 = {
  { 0xC2, 0xDF, { 0x80, 0xBF } },
  { 0xE0, 0xE0, { 0xA0, 0xBF }, { 0x80, 0xBF } },
  { 0xE1, 0xEC, { 0x80, 0xBF }, { 0x80, 0xBF } },
  { 0xED, 0xED, { 0x80, 0x9F }, { 0x80, 0xBF } },
  { 0xEE, 0xEF, { 0x80, 0xBF }, { 0x80, 0xBF } },
  { 0xF0, 0xF0, { 0x90, 0xBF }, { 0x80, 0xBF }, { 0x80, 0xBF } },
  { 0xF1, 0xF3, { 0x80, 0xBF }, { 0x80, 0xBF }, { 0x80, 0xBF } },
  { 0xF4, 0xF4, { 0x80, 0x8F }, { 0x80, 0xBF }, { 0x80, 0xBF } },
}

function Reader:utf8()
  local lead = self:byte()
  for _, row in ipairs(UTF8) do
    if lead >= row[1] and lead <= row[2] then
      for i = 3, #row do
        self.at = self.at + 1
        local byte = self:byte()
        if not byte or byte < row[i][1] or byte > row[i][2] then
          fault(self.at)
        end
      end
      self.at = self.at + 1
      return
    end
  end
  fault(self.at)
end

function Reader:string()
  self:take('"')
  while self:char() ~= '"' do
    local byte = self:byte()
    if not byte or byte < 0x20 then
      fault(self.at)
    elseif byte >= 0x80 then
      self:utf8()
    elseif self:char() == "\\" then
      self.at = self.at + 1
      if self:take('"\\/bfnrtu') == "u" then
        self:unicode_escape()
      end
    else
      self.at = self.at + 1
    end
  end
  self.at = self.at + 1
end

function Reader:array()
  self:take("[")
  self:space()
  if self:char() ~= "]" then
    repeat
      self:value()
      self:space()
    until self:take(",]") == "]"
    return
  end
  self.at = self.at + 1
end

function Reader:object()
  self:take("{")
  self:space()
  if self:char() ~= "}" then
    repeat
      self:space()
      self:string()
      self:space()
      self:take(":")
      self:value()
      self:space()
    until self:take(",}") == "}"
    return
  end
  self.at = self.at + 1
end

function Reader:value()
  self:space()
  local char = self:char()
  if char == "[" or char == "{" then
    self.depth = self.depth + 1
    if self.depth > self.max_depth then
      fault(self.at)
    end
    if char == "[" then
      self:array()
    else
      self:object()
    end
    self.depth = self.depth - 1
  elseif char == '"' then
    self:string()
  elseif char == "t" then
    self:word("true")
  elseif char == "f" then
    self:word("false")
  elseif char == "n" then
    self:word("null")
  elseif char:find("[%d-]") then
    self:number()
  else
    fault(self.at)
  end
end

--- Whether a text is valid JSON.
---@param text string
---@param max_depth integer|nil nesting allowed, 512 by default
---@return boolean valid
---@return integer|nil position the fault's, when it is not
function M.validate(text, max_depth)
  local reader = setmetatable({ text = text, at = 1, depth = 0, max_depth = max_depth or 512 }, Reader)
  local ok, problem = pcall(function()
    reader:value()
    reader:space()
    if reader.at <= #text then
      fault(reader.at)
    end
  end)
  if ok then
    return true
  elseif type(problem) == "table" then
    return false, problem.position
  end
  error(problem, 0)
end

return M
