-- Any list file: the first byte is the kind, the second the size of the pieces in which it is read. Nothing raises. The
-- pieces do not change what is found. Every entry is about an address, in its canonical spelling.
local addresses = require "riskscreen.address"
local entries = require "riskscreen.lists.entry"
local ofac = require "riskscreen.lists.ofac"
local rows = require "riskscreen.rows"
local compiled = rawget(_G, "jit") and require "riskscreen.lists.compiled" -- only LuaJIT reads them without the core

local kinds = { "text", "csv", "json", "jsonl", "xml" }

-- The entries that a loader finds, as one text.
local function found_in(kind, content, size)
  local at, lines, sink = 1, {}, {}
  function sink.row(row)
    local entry, problem = entries.read(row)
    assert(entry or type(problem) == "string")
    for _, place in ipairs(entry and entry.places or {}) do
      if place.scope == "*" then
        assert(addresses.networks_of(place.address)[1], "an entry about no address")
      else
        assert(addresses.validate(place.address, place.scope) == place.address, "the spelling is not canonical")
      end
      assert(#entry.note <= 1000 and entry.expires >= 0)
      lines[#lines + 1] = ("%s %s %s %s"):format(place.scope, place.address, entry.note, tostring(entry.expires))
    end
    lines[#lines + 1] = problem
  end
  function sink.skipped(symbol)
    lines[#lines + 1] = symbol
  end
  local function read()
    local piece = content:sub(at, at + size - 1)
    at = at + #piece
    return piece ~= "" and piece or nil
  end
  local ok, problem
  if kind == "xml" then
    ok, problem = ofac.load(read, sink)
  else
    ok, problem = pcall(function()
      local input = assert(rows.open({ read = read }, { name = "F" }))
      for row in input:each() do
        row.note, row.expires = input:field(row, "note"), input:field(row, "expires")
        sink.row(row)
      end
    end)
    problem = tostring(problem)
  end
  assert(ok or type(problem) == "string", "a failure without a reason")
  -- Where a text is refused as a whole, rows before the fault depend on the pieces.
  return ok and table.concat(lines, "\n") or ""
end

return function(input)
  if #input < 2 then
    return
  end
  local kind, size, content = input:byte(1) % (#kinds + 1), input:byte(2) + 1, input:sub(3)
  if kind == #kinds then
    if not compiled then
      return
    end
    local index, problem = compiled.read(content)
    assert(index or type(problem) == "string")
    return
  end
  local name = kinds[kind + 1]
  assert(found_in(name, content, size) == found_in(name, content, #content + 1), "the pieces change what is found")
end
