-- One list file in use, with the core and without it.
local build = require("riskscreen.lists.build").build
local list_files = require "spec.support.list_files"

local address = list_files.address

-- The module as it is where the core is compiled, or not.
local function load_module(core)
  local names, kept = { "riskscreen.util.core", "riskscreen.lists.file" }, {}
  for _, name in ipairs(names) do
    kept[name], package.loaded[name] = package.loaded[name], nil
  end
  -- `require` runs a loader again where the module is false.
  package.preload["riskscreen.util.core"] = core == false and function()
    return false
  end or nil
  local files = require "riskscreen.lists.file"
  package.preload["riskscreen.util.core"] = nil
  for _, name in ipairs(names) do
    package.loaded[name] = kept[name]
  end
  return files
end

local modules = { ["with the core"] = load_module() }
if rawget(_G, "jit") then -- without the core the library runs inside nginx only
  modules["without the core"] = load_module(false)
end

for place, files in pairs(modules) do
  describe("a list file " .. place, function()
    local directory

    before_each(function()
      directory = list_files.new()
    end)

    after_each(function()
      directory:remove()
    end)

    local function write(kind, number)
      local path = directory:write("list.csv", ("address,network\n%s,eth\n"):format(address(number)))
      if kind == "rsl" then
        assert(build { output = directory:path "list.rsl", inputs = path, time = 5 })
      end
      return directory:path("list." .. kind)
    end

    it("is tried again after a failure that has passed", function()
      local file = assert(files.open(write("csv", 1), { kind = "deny" }))
      write("csv", 2)
      local open = io.open
      io.open = function(path, ...) -- luacheck: ignore 122
        if path == file.path then
          return nil, path .. ": Too many open files", 24
        end
        return open(path, ...)
      end
      assert.is_false(file:refresh())
      io.open = open -- luacheck: ignore 122
      local looks = 0
      repeat
        looks = looks + 1
      until file:refresh() or looks > 20
      assert.equal("", file.list:find(address(2), "eth", 1))
    end)

    for _, kind in ipairs { "rsl", "csv" } do
      it("is loaded again when it has changed, and only then: " .. kind, function()
        local file = assert(files.open(write(kind, 1), { kind = "deny" }))
        assert.is_false(file:refresh())
        write(kind, 2)
        assert.is_true(file:refresh())
        assert.is_false(file:refresh())
        assert.is_false(file.list:find(address(1), "eth", 1))
        assert.equal("", file.list:find(address(2), "eth", 1))
        assert.same({ 1, 0 }, { file.facts.entries, file.facts.invalid })
      end)

      it("keeps its content while the file is gone: " .. kind, function()
        local file = assert(files.open(write(kind, 1), { kind = "deny" }))
        os.remove(file.path)
        assert.is_false(file:refresh())
        assert.matches("No such file", file.fault)
        assert.equal("", file.list:find(address(1), "eth", 1))
      end)

      it("is not opened while it is not there: " .. kind, function()
        local file, fault = files.open(directory:path("none." .. kind), { kind = "deny" })
        assert.is_nil(file)
        assert.matches("is not loaded: .*No such file", fault)
      end)
    end

    it("is not opened where it cannot be read to its end", function()
      assert(os.execute("mkdir " .. directory:path "list.csv"))
      local file, fault = files.open(directory:path "list.csv", { kind = "deny" })
      assert.is_nil(file)
      assert.matches("is not loaded", fault)
    end)

    it("is not opened as text beyond 16 MiB, with the remedy", function()
      local path = write("csv", 1)
      local text = assert(io.open(path, "ab"))
      text:write(("\n"):rep(16 * 1024 * 1024))
      text:close()
      local file, fault = files.open(path, { kind = "deny" })
      assert.is_nil(file)
      assert.matches("longer than 16777216 bytes; compile it", fault)
    end)

    it("is not taken where it was replaced while it was read, and is at the next look", function()
      local file, is_replaced = assert(files.open(write("csv", 1), { kind = "deny" })), false
      directory:write("list.csv", "address\n" .. (address(2) .. "\n"):rep(999))
      local loaded = file:refresh(function()
        if not is_replaced then
          is_replaced = true
          write("csv", 3)
        end
      end)
      assert.is_false(loaded)
      assert.matches("changed while it was read", file.fault)
      assert.equal("", file.list:find(address(1), "eth", 1))
      assert.is_true(file:refresh())
      assert.is_nil(file.fault)
      assert.equal("", file.list:find(address(3), "eth", 1))
    end)

    it("lets other work run while its rows are read", function()
      local file, pauses = assert(files.open(write("csv", 1), { kind = "deny" })), 0
      directory:write("list.csv", "address\n" .. (address(2) .. "\n"):rep(999))
      file:refresh(function()
        pauses = pauses + 1
      end)
      assert.is_true(pauses > 1 and pauses < 100)
    end)
  end)
end
