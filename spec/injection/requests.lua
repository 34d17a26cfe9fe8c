-- Judges the bytes of requests. Each is parsed strictly, and the hostile text is replaced by a harmless one wherever it
-- may stand. The rest must be the request of a harmless caller.

local json = require "riskscreen.json"
local places = require "spec.injection.places"

local M = {}

local function decoded(text)
  return (text:gsub("%%(%x%x)", function(digits)
    return string.char(tonumber(digits, 16))
  end))
end

-- The text with the first `hostile` in it, if any, made harmless.
local function harmless(text, hostile)
  local first, last = text:find(hostile, 1, true)
  if not first then
    return text
  end
  return text:sub(1, first - 1) .. places.HARMLESS .. text:sub(last + 1)
end

local function harmless_deep(value, hostile)
  if type(value) == "string" then
    return harmless(value, hostile)
  elseif type(value) ~= "table" then
    return value
  end
  local copy = {}
  for key, member in pairs(value) do
    copy[type(key) == "string" and harmless(key, hostile) or key] = harmless_deep(member, hostile)
  end
  return copy
end

local function parse_headers(lines, hostile)
  local headers = {}
  for line in lines:gmatch "(.-)\r\n" do
    local name, value = line:match "^([%w!#$%%&'*+.^_`|~-]+): ?(.*)$"
    assert(name and not value:find "[%z\1-\8\10-\31\127]", "a line that is no header: " .. line)
    name = harmless(name, hostile):lower()
    assert(not headers[name], "a header twice: " .. name)
    headers[name] = harmless(value, hostile)
  end
  return headers
end

local function parse_query(query, hostile)
  local parameters = {}
  for pair in query:gmatch "[^&]+" do
    local name, value = pair:match "^([^=]+)=([^=]*)$"
    assert(name, "not a name and a value: " .. pair)
    name = harmless(decoded(name), hostile)
    assert(not parameters[name], "a parameter twice: " .. name)
    parameters[name] = harmless(decoded(value), hostile)
  end
  return parameters
end

---A request as it is understood, with the text of an attack made harmless.
---@param raw string
---@param attack riskscreen.spec.Attack
---@return table
function M.read(raw, attack)
  local line, lines, body = raw:match "^([^\r\n]*)\r\n(.-\r\n)\r\n(.*)$"
  local method, target = line:match "^(%u+) ([!-~]+) HTTP/1%.1$"
  assert(method, "not a request line: " .. line)
  assert(not target:find '[#\\"<>]', "what no target may hold: " .. target)
  local path, query = target:match "^([^?]*)%??(.*)$"
  local headers = parse_headers(lines, attack.text)
  assert((headers["content-length"] or "0") == tostring(#body), "another length of the body")
  headers["x-case"], headers["content-length"] = nil, nil
  return {
    method = method,
    path = harmless(attack.is_encoded and path or decoded(path), attack.text),
    query = parse_query(query, attack.text),
    headers = headers,
    body = body ~= "" and harmless_deep(assert(json.decode(body)), attack.text) or nil,
  }
end

---The requests by the number of the attack that made them; those without one are under "none".
---@param list string[]
---@return table<string, string[]>
function M.by_attack(list)
  local result = { none = {} }
  for _, raw in ipairs(list) do
    local id = raw:match "\r\n[Xx]%-[Cc]ase: (%d+)\r\n" or "none"
    result[id] = result[id] or {}
    table.insert(result[id], raw)
  end
  return result
end

return M
