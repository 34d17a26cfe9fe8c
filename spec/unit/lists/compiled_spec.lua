local bits = require "riskscreen.util.bits"
local build = require("riskscreen.lists.build").build
local list_files = require "spec.support.list_files"
local compiled = require "riskscreen.lists.compiled"

local kinds = { "of_sums" }
if rawget(_G, "jit") then
  kinds[2] = "of_luajit"
elseif bits.best == "of_operators" then
  kinds[2] = "of_operators"
end

describe("CRC-32C", function()
  for _, kind in ipairs(kinds) do
    it("has the value of RFC 3720, " .. kind, function()
      local crc32c = compiled.crc32c(kind)
      assert.equal(0xe3069283, crc32c("123456789", 1, 9))
      assert.equal(0x8a9136aa, crc32c(("\0"):rep(32), 1, 32))
      assert.equal(0x62a8ab43, crc32c("x" .. ("\255"):rep(32) .. "y", 2, 33))
      assert.equal(0, crc32c("", 1, 0))
    end)
  end
end)

describe("a compiled list that is read without the core", function()
  local directory, content

  setup(function()
    directory = list_files.new()
    directory:write("a.csv", ("address,note\n%s,one\n%s,two\n"):format(list_files.address(1), list_files.address(2)))
    assert(build { output = directory:path "a.rsl", inputs = directory:path "a.csv", time = 5 })
    content = directory:read "a.rsl"
  end)

  teardown(function()
    directory:remove()
  end)

  it("has its entries and facts", function()
    local index, facts = compiled.read(content)
    assert.equal(2, index.count)
    assert.same({ 2, 5, #content }, { facts.entries, facts.built_at, facts.size })
  end)

  it("is refused for any byte that is changed, and at any length", function()
    for at = 1, #content do
      local changed = content:sub(1, at - 1) .. string.char((content:byte(at) + 1) % 256) .. content:sub(at + 1)
      assert.is_nil((compiled.read(changed)), "byte " .. at)
      assert.is_nil((compiled.read(content:sub(1, at - 1))), "length " .. at - 1)
    end
    assert.is_nil((compiled.read(content .. "\0")))
  end)
end)
