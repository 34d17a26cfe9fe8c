-- A short `./dev soak`, in a process of its own: memory and descriptors there are the library's alone.

local interpreter = os.getenv "RISKSCREEN_LUA" or "lua5.4"
local COUNT = 3000

describe("three thousand screenings, of which one request in twenty fails,", function()
  local found, status = {}, nil

  setup(function()
    local command = ("%s tools/soak.lua %d %s 2>&1; echo status $?"):format(interpreter, COUNT, interpreter)
    local pipe = assert(io.popen(command))
    for line in pipe:lines() do
      local name, value = line:match "^(%S+)%s+(%S+)"
      found[name or line] = tonumber(value)
    end
    pipe:close()
    status = found.status
  end)

  it("did meet failures", function()
    assert.is_true(found.failed_requests >= COUNT / 20)
  end)

  it("report every input exactly once", function()
    assert.same({ COUNT, 0, 0 }, { found.reported, found.reported_twice, found.not_reported })
  end)

  it("say no wrong yes", function()
    assert.equal(0, found.wrong_yes)
  end)

  it("leave no descriptor open", function()
    assert.equal(0, found.descriptors_left)
  end)

  it("need no more memory late than early", function()
    assert.is_true(found.lua_kib_late <= found.lua_kib_early * 1.1)
    assert.is_true(found.resident_kib_late <= found.resident_kib_early * 1.1)
  end)

  it("hold in every respect that ./dev soak checks", function()
    assert.equal(0, status)
  end)
end)

describe("a deny list of twenty thousand addresses", function()
  it("blocks all of them, and no other, while the network is down", function()
    local pipe = assert(io.popen(("%s tools/soak_lists.lua 20000 2>&1; echo status $?"):format(interpreter)))
    local output = pipe:read "*a"
    pipe:close()
    assert.matches("blocked 21 addresses", output, 1, true)
    assert.matches("status 0\n$", output)
  end)
end)
