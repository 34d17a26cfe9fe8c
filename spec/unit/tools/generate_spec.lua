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
