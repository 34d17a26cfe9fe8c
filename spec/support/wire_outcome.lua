-- A client's result for an answer, as one value that JSON can hold: inside nginx and outside.
local json = require "riskscreen.json"

local decoder = json.decoder { duplicates = "refuse" }

local function hexadecimal(text)
  return (text:gsub("[^ -~]", function(byte)
    return ("\\x%02x"):format(byte:byte())
  end))
end

-- The headers as one text.
local function lines_of(headers)
  local lines = {}
  for name, value in pairs(headers) do
    lines[#lines + 1] = hexadecimal(name .. ": " .. value)
  end
  table.sort(lines)
  return table.concat(lines, "\n")
end

-- A number that JSON with 14 digits cannot hold as a text: lua-cjson writes no more.
local function exact(value)
  if type(value) == "table" then
    local copy = {}
    for name, member in pairs(value) do
      copy[name] = exact(member)
    end
    return setmetatable(copy, getmetatable(value))
  elseif type(value) == "number" and tonumber(("%.14g"):format(value)) ~= value then
    return ("%.17g"):format(value)
  end
  return value
end

---@param reply riskscreen.Reply|nil
---@param failure table|nil
---@return table
return function(reply, failure)
  if not reply then
    return { kind = failure.kind, message = failure.message }
  end
  local value
  if reply.body ~= "" then
    value = decoder:decode(reply.body)
  end
  return {
    status = reply.status,
    value = exact(value),
    invalid = value == nil and reply.body ~= "",
    size = #reply.body,
    headers = lines_of(reply.headers),
  }
end
