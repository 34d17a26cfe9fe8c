-- docs/architecture.md against the code: its layers, both diagrams and its list of files.
local layers = require "tools.layers"
local pages = require "spec.support.pages"
local riskscreen = require "riskscreen"

local PAGE = "docs/architecture.md"

local modules = layers.modules(layers.read())

-- The diagram whose first line is `kind`, as lines.
local function diagram(kind)
  for _, block in ipairs(pages.blocks(PAGE)) do
    if block.language == "mermaid" and block.text:find("^%s*" .. kind) then
      return block.text
    end
  end
  error(PAGE .. " has no diagram of the kind " .. kind)
end

-- The imports between components: { [from] = { [to] = true } }.
local function imports_of_components()
  local imports = {}
  for name, module in pairs(modules) do
    local from = layers.component_of(name)
    imports[from] = imports[from] or {}
    for _, import in ipairs(module.imports) do
      local to = modules[import.name] and layers.component_of(import.name)
      if to and to ~= from then
        imports[from][to] = true
      end
    end
  end
  return imports
end

local function drawn_arrows()
  local arrows = {}
  for from, targets in diagram("flowchart"):gmatch "(%w+) %-%-> ([%w &]+)" do
    arrows[from] = arrows[from] or {}
    for to in targets:gmatch "%w+" do
      arrows[from][to] = true
    end
  end
  return arrows
end

local function reaches(arrows, from, to)
  for next_component in pairs(arrows[from] or {}) do
    if next_component == to or reaches(arrows, next_component, to) then
      return true
    end
  end
  return false
end

-- Each pair of components in `one` that `holds` refuses, as "from --> to".
local function refused(one, holds)
  local list = {}
  for from, targets in pairs(one) do
    for to in pairs(targets) do
      if not holds(from, to) then
        list[#list + 1] = from .. " --> " .. to
      end
    end
  end
  table.sort(list)
  return list
end

describe("the diagram of the layers", function()
  local imports, arrows = imports_of_components(), drawn_arrows()

  it("draws no arrow that is no import", function()
    assert.same(
      {},
      refused(arrows, function(from, to)
        return imports[from] and imports[from][to]
      end)
    )
  end)

  it("draws each import, or reaches it over other arrows", function()
    assert.same(
      {},
      refused(imports, function(from, to)
        return reaches(arrows, from, to)
      end)
    )
  end)

  it("draws no arrow that others imply", function()
    assert.same(
      {},
      refused(arrows, function(from, to)
        for other in pairs(arrows[from]) do
          if other ~= to and reaches(arrows, other, to) then
            return false
          end
        end
        return true
      end)
    )
  end)
end)

describe("the table of the layers", function()
  it("has every component in its layer", function()
    local exists, expected = {}, {}
    for name in pairs(modules) do
      exists[layers.component_of(name)] = true
    end
    for _, components in ipairs(layers.rules.layers) do
      local row = {}
      for _, component in ipairs(components) do
        row[#row + 1] = exists[component] and "`" .. component .. "`" or nil
      end
      expected[#expected + 1] = row[1] and table.concat(row, ", ") or nil
    end
    local rows = {}
    for number, components in pages.read(PAGE):gmatch "\n| (%d+) | ([^|]+) |" do
      assert.equal(#rows + 1, tonumber(number))
      rows[#rows + 1] = components
    end
    assert.same(expected, rows)
  end)
end)

describe("the diagram of one call", function()
  local participants, by_path, messages = {}, {}, {}
  for name, path in diagram("sequenceDiagram"):gmatch "participant (%w+) as (%S+)" do
    participants[name] = path
    by_path[path] = name
  end
  for from, arrow, to, label in diagram("sequenceDiagram"):gmatch "(%w+)(%-[>)]+)(%w+): (%w+)" do
    messages[#messages + 1] = { from = participants[from], arrow = arrow, to = participants[to], label = label }
  end

  local function module_of(path)
    return modules[layers.module_of("lua/riskscreen/" .. path)]
  end

  local function imports(from, to)
    for _, import in ipairs(module_of(from).imports) do
      if import.name == module_of(to).name then
        return true
      end
    end
    return false
  end

  it("names files that exist, and has an import where an arrow is closed", function()
    for _, path in pairs(participants) do
      assert.is_table(module_of(path), path)
    end
    assert.is_true(#messages > 0)
    for _, message in ipairs(messages) do
      local arrow = message.from .. " -> " .. message.to
      assert.equal(message.arrow == "->>", imports(message.from, message.to), arrow)
    end
  end)

  -- The name of the function of a file that holds a line, however deep: functions at the margin have one.
  local function function_at(path, line)
    local name, number = nil, 0
    for text in io.lines("lua/riskscreen/" .. path) do
      number = number + 1
      name = text:match "^function [%w_.:]-([%w_]+)%(" or text:match "^local function ([%w_]+)%(" or name
      if number == line then
        return name
      end
    end
  end

  -- The functions of the participants that a call enters from another one, as "path: function". A tail call has no
  -- caller left, and seems to come from the test.
  local function trace(run)
    local entered = {}
    debug.sethook(function()
      local callee, caller = debug.getinfo(2, "S"), debug.getinfo(3, "S")
      local path = callee.source:match "lua/riskscreen/(.*)$"
      local from = caller and caller.source:match "lua/riskscreen/(.*)$"
      if path and by_path[path] and path ~= from and (not from or by_path[from]) then
        entered[#entered + 1] = path .. ": " .. function_at(path, callee.linedefined)
      end
    end, "c")
    run()
    debug.sethook()
    return entered
  end

  it("shows the calls that are made, in their order", function()
    if rawget(_G, "jit") then
      pending "LuaJIT's compiled code calls no hook"
      return
    end
    local server = assert(riskscreen.sandbox.serve())
    local client = riskscreen.new {
      base_url = server.url,
      access_key = server.access_key,
      rate_limit = { rate = 100 },
      breaker = true,
    }
    local address = riskscreen.sandbox.scenario("clean-eth").address
    local record
    local entered = trace(function()
      record = client.kya:risk { address = address, network = "eth" }
    end)
    client:close()
    server:close()
    assert.is_table(record)

    local drawn, expected, made = {}, {}, {}
    for index, message in ipairs(messages) do
      expected[index] = message.to .. ": " .. message.label
      drawn[expected[index]] = true
    end
    for _, call in ipairs(entered) do
      made[#made + 1] = drawn[call] and call or nil
    end
    assert.same(expected, made)
  end)
end)

describe("the list of behaviours", function()
  it("names files that exist", function()
    local count = 0
    for path in pages.read(PAGE):gmatch "%[([%w_/]+%.[luac]+)%]%(%.%./" do
      local file = assert(io.open(path), path .. " does not exist")
      file:close()
      count = count + 1
    end
    assert.is_true(count >= 20)
  end)
end)
