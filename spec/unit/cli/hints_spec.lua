-- The command's messages for input that is nearly right.
local cli = require "spec.support.cli"
local temporary = require "spec.support.temporary"

local ADDRESS = "0xf9410A55B94b72B3BE0e33912bE89D4F7dA143f3"

describe("the command", function()
  after_each(temporary.clean)

  local function refused(message, arguments)
    local status, _, err = cli.run(arguments)
    assert.equal(4, status, err)
    assert.matches(message, err, 1, true)
  end

  it("takes the name of a network in any case, as files do", function()
    local status, lower = cli.run { "screen", ADDRESS, "--sandbox", "--jsonl", "-n", "eth" }
    local same, upper = cli.run { "screen", ADDRESS, "--sandbox", "--jsonl", "-n", "ETH" }
    assert.equal(status, same)
    assert.matches('"network":"eth"', lower, 1, true)
    assert.matches('"network":"eth"', upper, 1, true)
  end)

  it("knows which network a token's standard is meant for", function()
    refused("did you mean 'tron'?", { "screen", ADDRESS, "--sandbox", "-n", "TRC20" })
    refused("did you mean 'eth'?", { "screen", ADDRESS, "--sandbox", "-n", "ERC20" })
  end)

  it("says that a policy is a file of Lua", function()
    local path = temporary.path "p.json"
    temporary.write(path, '{"rules":[]}')
    refused("a policy is a file of Lua", { "screen", ADDRESS, "--sandbox", "-n", "eth", "--policy", path })
  end)

  it("says of a directory that it is one, and not that it is a pipe", function()
    local directory = temporary.directory()
    refused("Is a directory", { "queue", "add", directory, "-n", "eth", "--redis", "redis://127.0.0.1:1" })
  end)

  it("writes no workbook", function()
    local path = temporary.path "rows.csv"
    temporary.write(path, "address\n" .. ADDRESS .. "\n")
    for _, name in ipairs { "out.xlsx", "out.XLS" } do
      local output = temporary.path(name)
      refused("no workbook", { "screen", "--sandbox", "-n", "eth", "--file", path, "-o", output })
      assert.is_nil(io.open(output))
    end
  end)
end)
