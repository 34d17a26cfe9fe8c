local missing = require "riskscreen.util.missing"

describe("what is missing", function()
  it("is named with the package of a Lua module", function()
    local _, message = pcall(function()
      local path, cpath = package.path, package.cpath
      package.path, package.cpath = "", ""
      local loaded, failure = pcall(require, "riskscreen.server.none")
      package.path, package.cpath = path, cpath
      assert(loaded, failure)
    end)
    assert.matches("^the Lua module riskscreen.server.none is not installed for Lua 5%.%d", missing.explain(message))
    local found = missing.explain "module 'argparse' not found:\n\tno field package.preload['argparse']"
    assert.equal(("the Lua module argparse is not installed for %s: apt install lua-argparse"):format(_VERSION), found)
  end)

  it("is named with the package of a shared library", function()
    local message = "error loading module 'riskscreen.core' from file '/usr/lib/lua/5.4/riskscreen/core.so':\n\t"
      .. "libcurl.so.4: cannot open shared object file: No such file or directory"
    local found = "riskscreen.core needs libcurl.so.4, which is not installed: apt install libcurl4"
    assert.equal(found, missing.explain(message))
  end)

  it("is named with the package of its room, as cmake/rooms.cmake divides them", function()
    local file = assert(io.open "cmake/rooms.cmake")
    local text, rooms = file:read "*a", {}
    file:close()
    for _, room in ipairs { "sandbox", "durable", "gate", "command" } do
      for folder in text:match("set%(room_" .. room .. "%s+([^)]*)%)"):gmatch "%S+" do
        rooms[folder] = room
      end
    end
    assert.same(rooms, missing.rooms)
    local found = missing.explain "module 'riskscreen.watch' not found:\n\tno field"
    assert.matches(": apt install lua-riskscreen-durable, or the rock riskscreen-durable", found, 1, true)
    found = missing.explain "module 'riskscreen.cli' not found:\n\tno field"
    assert.matches(": apt install riskscreen, or the rock riskscreen-command", found, 1, true)
  end)

  it("is nothing in another failure", function()
    assert.is_nil(missing.explain "attempt to index a nil value")
  end)
end)
