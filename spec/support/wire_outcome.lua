-- What a client made of an answer, as one value that JSON can hold: inside nginx and outside.

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

---@param reply riskscreen.Reply|nil
---@param failure table|nil
---@return table
return function(reply, failure)
  if not reply then
    return { kind = failure.kind, message = failure.message }
  end
  return {
    status = reply.status,
    value = reply.value,
    invalid = reply.invalid ~= nil,
    size = reply.size,
    headers = lines_of(reply.headers),
  }
end
