-- The units in examples/systemd, as systemd reads them.
local command_line = require "spec.support.command_line"
local temporary = require "spec.support.temporary"

describe("the units for systemd", function()
  after_each(temporary.clean)

  it("are units that systemd starts", function()
    local _, missing = command_line.run "systemd-analyze --version"
    if missing ~= 0 then
      return pending "systemd-analyze is not installed; it is in the package systemd"
    end
    local paths = {}
    for name in command_line.run("sh -c 'ls examples/systemd'"):gmatch "[^\n]+%.[st][ei][rm][^\n]*" do
      -- The command need not be installed here.
      local text, count = temporary.read("examples/systemd/" .. name):gsub("/usr/local/bin/riskscreen", "/bin/true")
      assert.equal(name:find "service$" and 1 or 0, count)
      paths[#paths + 1] = temporary.path(name)
      temporary.write(paths[#paths], text)
    end
    assert.equal(7, #paths)
    local output, status = command_line.run("systemd-analyze verify --man=no " .. table.concat(paths, " "))
    assert.equal("", output)
    assert.equal(0, status)
    -- How much of the system a service can reach: 0 to 100, and less is better.
    for _, path in ipairs(paths) do
      if path:find "service$" then
        local rating
        rating, status = command_line.run("systemd-analyze security --offline=yes --threshold=20 --no-pager " .. path)
        assert.equal(0, status, rating)
      end
    end
  end)
end)
