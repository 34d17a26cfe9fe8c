-- Only LuaJIT reads compiled lists without the core: inside nginx.
if not rawget(_G, "jit") then
  return
end

local build = require("riskscreen.lists.build").build
local compiled = require "riskscreen.lists.compiled"
local crc32c = require "spec.support.crc32c"
local list_files = require "spec.support.list_files"

describe("a compiled list that is read without the core", function()
  local directory, content
  local note = ("n"):rep(300)

  setup(function()
    directory = list_files.new()
    local rows = {
      "address,note,expires",
      list_files.address(1) .. "," .. note .. ",",
      list_files.address(2) .. ",two,2999-01-01",
    }
    directory:write("a.csv", table.concat(rows, "\n"))
    assert(build { output = directory:path "a.rsl", inputs = directory:path "a.csv", time = 5, title = "ours" })
    content = directory:read "a.rsl"
  end)

  teardown(function()
    directory:remove()
  end)

  it("has its entries and facts", function()
    local index, facts = compiled.read(content)
    assert.equal(2, index.count)
    assert.same({ 2, 5, #content, "ours" }, { facts.entries, facts.built_at, facts.size, facts.title })
    assert.same({ note, true, 0 }, { index:find(list_files.address(1), "eth", 5) })
    assert.same({ "two", true, 32472144000 }, { index:find(list_files.address(2), "eth", 5) })
  end)

  it("is refused for any byte that is changed, and at any length", function()
    for at = 1, #content do
      local changed = content:sub(1, at - 1) .. string.char((content:byte(at) + 1) % 256) .. content:sub(at + 1)
      assert.is_nil((compiled.read(changed)), "byte " .. at)
      assert.is_nil((compiled.read(content:sub(1, at - 1))), "length " .. at - 1)
    end
    assert.is_nil((compiled.read(content .. "\0")))
  end)

  -- The text with another byte, and checksums that fit.
  local function resealed(at, byte)
    local text = content:sub(1, at - 1) .. string.char(byte) .. content:sub(at + 1)
    text = text:sub(1, 48) .. crc32c(text:sub(257)) .. text:sub(53)
    return text:sub(1, 12) .. crc32c(text:sub(17, 256)) .. text:sub(17)
  end

  it("is refused for wrong sizes, also with checksums that fit", function()
    assert.is_table((compiled.read(resealed(1, content:byte(1)))))
    local sizes = { 17, 25, 33 } -- of the file, the count of entries, and the size of the records
    for offset = 0, 3 do -- of the first record: scope, address and note
      sizes[#sizes + 1] = 257 + offset
    end
    for _, at in ipairs(sizes) do
      for _, byte in ipairs { (content:byte(at) + 1) % 256, (content:byte(at) - 1) % 256, 255 } do
        local index, fault = compiled.read(resealed(at, byte))
        assert.is_nil(index, "byte " .. at)
        assert.matches("the list is damaged", fault)
      end
    end
  end)
end)
