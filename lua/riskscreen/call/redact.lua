-- Takes the access key out of text that came from outside: a service, a proxy or a transport may repeat it.

local REPLACEMENT = "[redacted]"
local SHORTEST_PIECE = 4 -- bytes; a cut text may end with this much of the key or more

local function percent_encoded(key)
  return (key:gsub("[^A-Za-z0-9._~-]", function(byte)
    return ("%%%02X"):format(byte:byte())
  end))
end

local function replace(text, part)
  local pieces, from = {}, 1
  while true do
    local first, last = text:find(part, from, true)
    if not first then
      pieces[#pieces + 1] = text:sub(from)
      return table.concat(pieces, REPLACEMENT)
    end
    pieces[#pieces + 1] = text:sub(from, first - 1)
    from = last + 1
  end
end

-- A text that was cut may end in the middle of the key.
local function replace_cut_end(text, part)
  for length = math.min(#part - 1, #text), SHORTEST_PIECE, -1 do
    if text:sub(-length) == part:sub(1, length) then
      return text:sub(1, -length - 1) .. REPLACEMENT
    end
  end
  return text
end

local M = {}

---A function that takes a key out of a text, also as it looks in a URL or in JSON that escapes slashes.
---@param key string not empty
---@return fun(text: string): string
function M.new(key)
  local forms = { key }
  for _, form in ipairs { percent_encoded(key), (key:gsub("/", "\\/")) } do
    if form ~= key then
      forms[#forms + 1] = form
    end
  end
  return function(text)
    for _, form in ipairs(forms) do
      text = replace_cut_end(replace(text, form), form)
    end
    return text
  end
end

return M
