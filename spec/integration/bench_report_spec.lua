-- The report of a benchmark: bench/support/report.lua and the page that page.lua makes of it.
local LUA = os.getenv("RISKSCREEN_LUA") or "lua5.4"

local PROGRAM = [[
package.path = "bench/?.lua;" .. package.path
local report = require("support.report").new({
  name = "example", title = "Boiling an egg", runtime = "Pot 1.2.3",
  method = "median of 3 eggs", peers = { "a kettle 4" },
})
report:chart({
  title = "Time to boil", unit = "s", columns = { "eggs" },
  rows = {
    { what = "kettle", value = 200, others = { 6 } },
    { what = "pot", value = 150, others = { 7.25 }, ours = true },
  },
})
report:goal({ what = "pot / kettle", value = 0.75, at_most = 0.8 })
report:goal({ what = "pot / microwave", value = 1.1, at_most = 1 })
report:goal({ what = "eggs of the pot / kettle", value = 1.2, at_least = 1.25 })
report:finish()
]]

local function output_of(command)
  local pipe = assert(io.popen(command))
  local output = pipe:read("*a")
  pipe:close()
  return output
end

local function read(path)
  local file = assert(io.open(path))
  local content = file:read("*a")
  file:close()
  return content
end

describe("the report of a benchmark", function()
  local directory, printed, page

  setup(function()
    directory = output_of("mktemp -d"):match("%S+")
    local file = assert(io.open(directory .. "/example.lua", "w"))
    file:write(PROGRAM)
    file:close()
    printed = output_of(("RISKSCREEN_BENCH_RESULTS=%s %s %s/example.lua 2>&1"):format(directory, LUA, directory))
    output_of(("%s bench/support/page.lua %s %s"):format(LUA, directory, directory))
    page = read(directory .. "/performance.md")
  end)

  teardown(function()
    output_of("rm -rf " .. directory)
  end)

  it("prints each cost with its ratio to the first row", function()
    assert.matches("kettle +200 +1%.00 +6%.00\n", printed)
    assert.matches("pot +150 +0%.75 +7%.25\n", printed)
  end)

  it("says of each goal whether it is met, or by how much not", function()
    assert.matches("pot / kettle +0%.75  at most 0%.8 +met\n", printed)
    assert.matches("pot / microwave +1%.10  at most 1 +missed by 10 %%\n", printed)
    assert.matches("eggs of the pot / kettle +1%.20  at least 1%.25 +missed by 4 %%\n", printed)
  end)

  it("makes a page with the figures, the peers and the verdicts", function()
    assert.matches("1 of 3 goals are met", page, 1, true)
    assert.matches("### Boiling an egg on Pot 1.2.3\n\nmedian of 3 eggs.\nPeers: a kettle 4.\n", page, 1, true)
    assert.matches("| **pot** | 150 | 0.75 | 7.25 |", page, 1, true)
    assert.matches("| pot / microwave | 1.10 | at most 1 | **missed by 10 %** |", page, 1, true)
  end)

  it("draws bars as long as the ratios", function()
    local image = read(directory .. "/performance/example-pot-1.2-1.svg")
    local widths = {}
    for width in image:gmatch('<rect [^>]*width="([%d.]+)"') do
      widths[#widths + 1] = tonumber(width)
    end
    assert.equal(2, #widths)
    assert.near(0.75, widths[2] / widths[1], 0.001)
  end)
end)
