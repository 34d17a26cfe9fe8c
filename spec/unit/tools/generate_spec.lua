-- The generated documentation and types.

local function output_of(command)
  local pipe = assert(io.popen(command))
  local output = pipe:read "*a"
  pipe:close()
  return output
end

local interpreter = os.getenv "RISKSCREEN_LUA" or "lua5.4"

describe("tools/generate.lua", function()
  it("finds everything that it has written up to date", function()
    assert.equal("", output_of(interpreter .. " tools/generate.lua --check 2>&1"))
  end)

  it("has written types that are Lua", function()
    for path in output_of("git ls-files types"):gmatch "[^\n]+" do
      assert(loadfile(path))
    end
  end)
end)

describe("the reference", function()
  local file = assert(io.open "docs/reference.md")
  local page = file:read "*a"
  file:close()

  it("says of which version the interface is, and what its abbreviations mean", function()
    assert.matches("published interface, version 1.0.0", page, 1, true)
    assert.matches("KYA is *Know Your Address*", page, 1, true)
    assert.matches("KYT is *Know Your Transaction*", page, 1, true)
  end)

  it("has the fields of the items of a list", function()
    assert.matches("`list[].address` | string | required", page, 1, true)
    assert.matches("`list[].risks[].riskType`", page, 1, true)
  end)

  it("calls what the interface leaves open assumed", function()
    for _, name in ipairs { "start_date", "customId", "outputAddress", "direction", "list[].network" } do
      assert.matches("assumed", page:match("| `" .. name:gsub("%p", "%%%0") .. "` |[^\n]+"), 1, true)
    end
    local whitelist = page:match "### `client.whitelist:list`.-\n### "
    assert.equal(2, select(2, whitelist:gsub("assumed", "")))
    assert.matches("`getCustomRiskScoreResult`[^\n]*the interface does not list", page)
  end)
end)

describe("annotations", function()
  local annotations = dofile "tools/generate/annotations.lua"

  local function index_of(text)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    local index = annotations.new()
    annotations.read(index, path)
    os.remove(path)
    return index
  end

  it("have a function's text, parameters and results", function()
    local index = index_of [[
---Adds.
---@param fn fun(a: integer, b?: string): any, any what is called,
---with a second line
---@param more? { name: string, list: integer[] }|nil
---@return integer|nil sum of both
function M.add(fn, more) end
]]
    local item = annotations.find(index, "M.add")
    assert.equal("Adds.", item.doc)
    assert.same({
      {
        name = "fn",
        optional = false,
        type = "fun(a: integer, b?: string): any, any",
        doc = "what is called, with a second line",
      },
      { name = "more", optional = true, type = "{ name: string, list: integer[] }|nil", doc = "" },
    }, item.params)
    assert.same({ { type = "integer|nil", doc = "sum of both" } }, item.returns)
  end)

  it("have the public fields of a class", function()
    local index = index_of [[
---@class a.B: a.C about it
---@field private secret string
---@field shown? "in"|"out" a side
local B = {}
]]
    local class = index.classes["a.B"]
    assert.equal("a.C", class.parent)
    assert.same({ { name = "shown", optional = true, type = '"in"|"out"', doc = "a side" } }, class.fields)
  end)
end)
