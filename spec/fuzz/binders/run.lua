-- Compares the gate's readers of queries, forms and JSON with the parsers of other languages: run.lua SECONDS SEED
-- PARSER… . If the gate accepts a text, every parser that finds a value for "to" must find only the gate's.
local cjson = require "cjson"
local json_field = require "riskscreen.nginx.input.json_field"
local parameters = require "riskscreen.nginx.input.parameters"
local random = require "spec.support.random"

local BATCH = 2000
local CLEAN, HIGH = "0xc1ea9", "0xbad"
local SEEDS = "spec/fuzz/binders/found.txt"

local seconds, seed = tonumber(arg[1]), tonumber(arg[2])
local parsers = { (table.unpack or unpack)(arg, 3) } -- luacheck: ignore 113 143
local generator = random.new(seed)
local pick = generator.pick

local function random_integer(least, most)
  return least - 1 + generator.integer(most - least + 1)
end

local odd = { "[]", "[0]", "[x]", "\194\160", "\0", "\t", "\n" }
for character in ("[]. +_?#;,&=%"):gmatch "." do
  odd[#odd + 1] = character
end

local names = { "to", "to", "to", "To", "tO", "TO", "t", "o", "a", "a.to", "a[to]", "to_", "__proto__", "%74o" }

local function escaped(text)
  return (
    text:gsub(".", function(character)
      local way = random_integer(1, 6)
      if way == 1 or (way < 4 and character:find "[%z\1-\32\127-\255&=%%;]") then
        return (way == 1 and "%%%02x" or "%%%02X"):format(character:byte())
      end
    end)
  )
end

local function odd_name()
  local name = pick(names)
  for _ = 1, random_integer(0, 2) do
    local at = random_integer(0, #name)
    name = name:sub(1, at) .. pick(odd) .. name:sub(at + 1)
  end
  return name
end

local function query()
  local parts = {}
  for index = 1, random_integer(1, 4) do
    local name = random_integer(1, 2) == 1 and "to" or odd_name()
    local value = pick { CLEAN, CLEAN, HIGH, HIGH, "", "x", CLEAN .. pick(odd) .. "to=" .. HIGH }
    name = random_integer(1, 3) > 1 and name or escaped(name)
    parts[index] = name .. pick { "=", "=", "=", "==", "", "%3d" } .. value
  end
  return table.concat(parts, pick { "&", "&", "&", ";", "&&", "?", "&amp;", "\n", "," })
end

local member_names =
  { "to", "To", "t\\u006f", "\\u0074o", "to\\u0000", "t\\u{6f}", "to ", "to[]", "TO", "\197\165o", "a" }

local function json()
  local parts = {}
  for index = 1, random_integer(1, 3) do
    local name = pick(member_names)
    local value = pick { '"%s"', '"%s"', '["%s"]', '{"to":"%s"}', '"\\u0030' .. '%s"', '"%s\\u0000"', "'%s'" }
    parts[index] = ('"%s"%s%s'):format(name, pick { ":", " : ", "=", ":" }, (value:gsub("%%s", pick { CLEAN, HIGH })))
  end
  local text = "{" .. table.concat(parts, pick { ",", ",", ",,", ", ", "," }) .. "}"
  local way = random_integer(1, 12)
  if way == 1 then
    local at = random_integer(1, #text)
    local insertion = pick { "\0", "\239\187\191", "/**/", "//", "\255", "}", "{", "\\", '"' }
    return text:sub(1, at) .. insertion .. text:sub(at + 1)
  end
  return (way == 2 and "\239\187\191" or "") .. text .. (way == 3 and pick { "{}", "\0", " ", "x" } or "")
end

local function hex(text)
  return (text:gsub(".", function(character)
    return ("%02x"):format(character:byte())
  end))
end

local read = parameters.reader "to"

local function gate_value(case)
  local value
  if case.kind == "json" then
    local values = json_field.values(case.text, { "to" })
    value = values and values[1]
  else
    value = read(case.text)
  end
  return (value == CLEAN or value == HIGH) and value or nil
end

local function seeds()
  local cases = {}
  for line in io.lines(SEEDS) do
    local kind, text = line:match "^(%w+) (.*)$"
    cases[#cases + 1] = { kind = kind, text = text }
  end
  return cases
end

local directory = os.getenv "BINDERS_DIR"

local function compare(cases)
  local input = assert(io.open(directory .. "/input", "wb"))
  for _, case in ipairs(cases) do
    input:write(case.kind, " ", hex(case.text), "\n")
  end
  input:close()
  local found, accepted = 0, 0
  for _, parser in ipairs(parsers) do
    local output = assert(io.popen(("%s < %s/input"):format(parser, directory)))
    for _, case in ipairs(cases) do
      local line = output:read "*l" or error("the parser has died: " .. parser, 0)
      local value = gate_value(case)
      accepted = accepted + (value and 1 or 0)
      for name, values in pairs(value and cjson.decode(line) or {}) do
        for _, other in ipairs(values) do
          if other ~= hex(value) then
            found = found + 1
            print(("%s %q: the gate reads %s, %s reads %s (hex)"):format(case.kind, case.text, value, name, other))
            break
          end
        end
      end
    end
    output:close()
  end
  return found, accepted / #parsers
end

local deadline, count, found, accepted = os.time() + seconds, 0, 0, 0
local cases = seeds()
repeat
  local more, some = compare(cases)
  found, accepted, count = found + more, accepted + some, count + #cases
  cases = {}
  for index = 1, BATCH do
    local kind = index % 4 == 0 and "json" or "query"
    cases[index] = { kind = kind, text = kind == "json" and json() or query() }
  end
until os.time() >= deadline or found > 20
print(
  ("binders: %d texts, of which the gate accepted %d, beside %d parsers; %d differences"):format(
    count,
    accepted,
    #parsers,
    found
  )
)
os.exit(found == 0 and 0 or 1)
