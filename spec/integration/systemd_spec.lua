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
    for _, name in ipairs {
      "riskscreen-watch.service",
      "riskscreen-watch-once.service",
      "riskscreen-watch-once.timer",
    } do
      -- The command need not be installed here.
      local text, count = temporary.read("examples/systemd/" .. name):gsub("/usr/local/bin/riskscreen", "/bin/true")
      assert.equal(name:find "service$" and 1 or 0, count)
      paths[#paths + 1] = temporary.path(name)
      temporary.write(paths[#paths], text)
    end
    local output, status = command_line.run("systemd-analyze verify --man=no " .. table.concat(paths, " "))
    assert.equal("", output)
    assert.equal(0, status)
  end)
end)
