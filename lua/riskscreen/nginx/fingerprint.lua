-- A text that differs where tables differ in content, whatever the order in which they were filled: for what is
-- remembered under one policy and must not be found under another. Pure.

local M = {}

local function write(value, out)
  if type(value) ~= "table" then
    local text = tostring(value)
    out[#out + 1] = ("%s:%d:%s"):format(type(value), #text, text)
    return
  end
  local keys = {}
  for key in pairs(value) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    if type(a) ~= type(b) then
      return type(a) < type(b)
    end
    return a < b
  end)
  out[#out + 1] = "{"
  for _, key in ipairs(keys) do
    write(key, out)
    write(value[key], out)
  end
  out[#out + 1] = "}"
end

---@param value any texts, numbers, booleans, and tables of them
---@return string
function M.of(value)
  local out = {}
  write(value, out)
  return table.concat(out)
end

return M
