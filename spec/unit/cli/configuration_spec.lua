local cjson = require "cjson"
local cli = require "spec.support.cli"
local run = cli.run

local KEY = "a-key-that-nobody-may-see"

-- The rows of `config show` by name.
local function shown(arguments, env)
  local all = { "config", "show", "--json" }
  for _, argument in ipairs(arguments) do
    all[#all + 1] = argument
  end
  local status, out, err = run(all, { env = env })
  assert.equal(0, status, err)
  local rows = {}
  for _, row in ipairs(cjson.decode(out)) do
    rows[row.name] = row
  end
  assert.is_nil((out .. err):find(KEY, 1, true))
  return rows
end

describe("the configuration", function()
  local directory, remove, home

  before_each(function()
    directory, remove = cli.directory()
    home = directory .. "/riskscreen"
    os.execute("mkdir " .. home)
  end)

  after_each(function()
    remove()
  end)

  local function write(name, text, mode)
    local path = home .. "/" .. name
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    os.execute(("chmod %s %s"):format(mode or "600", path))
    return path
  end

  it("comes from a flag, then --set, the environment, the profile and the default", function()
    local path = write("default.conf", "# ours\ntimeout = 4\nconnect_timeout = 2\nrate_limit.rate = 5\n")
    local env = { XDG_CONFIG_HOME = directory, RISKSCREEN_TIMEOUT = "5", RISKSCREEN_RATE_LIMIT_BURST = "9" }
    local rows = shown({ "--connect-timeout", "1", "--set", "rate_limit.rate=7" }, env)
    assert.same({ "1", "--connect-timeout" }, { rows.connect_timeout.value, rows.connect_timeout.source })
    assert.same({ "7", "--set" }, { rows["rate_limit.rate"].value, rows["rate_limit.rate"].source })
    assert.same({ "5", "RISKSCREEN_TIMEOUT" }, { rows.timeout.value, rows.timeout.source })
    assert.equal("RISKSCREEN_RATE_LIMIT_BURST", rows["rate_limit.burst"].source)
    assert.same({ 32, "default" }, { rows.concurrency.value, rows.concurrency.source })
    local from_profile = shown({}, { XDG_CONFIG_HOME = directory })
    assert.same({ "4", path .. ":2" }, { from_profile.timeout.value, from_profile.timeout.source })
  end)

  it("reads the profile that is named, and says where it looked", function()
    write("staging.conf", "timeout = 3")
    assert.equal("3", shown({ "--profile", "staging" }, { XDG_CONFIG_HOME = directory }).timeout.value)
    local status, _, err = run({ "config", "show", "--profile", "stagin" }, { env = { XDG_CONFIG_HOME = directory } })
    assert.equal(4, status)
    assert.matches(home .. "/stagin.conf", err, 1, true)
    status, _, err = run({ "config", "show", "--profile", "../x y" }, { env = {} })
    assert.equal(4, status)
    assert.matches("cannot be read", err, 1, true)
  end)

  it("names the account after the profile, unless the profile names it", function()
    write("default.conf", "timeout = 5\n")
    write("live.conf", "account = payments\n")
    write("test.conf", "timeout = 5\n")
    local identities = {}
    local function add(...)
      local path = directory .. "/decisions.jsonl"
      local env =
        { RISKSCREEN_BASE_URL = "http://127.0.0.1:1", RISKSCREEN_ACCESS_KEY = KEY, XDG_CONFIG_HOME = directory }
      run({ "screen", "0x1", "-n", "eth", "--journal", path, "--set", "retry=false", ... }, { env = env })
      for entry in require("riskscreen.journal").entries(path) do
        identities[entry.seq] = entry.identity
      end
    end
    add()
    add "--profile=live"
    add "--profile=test"
    add "--set=account=payments"
    add("--profile", home .. "/test.conf")
    add("--set", "account=default")
    local default, live, test = identities[1], identities[2], identities[3]
    assert.same({ default, live, test, live, test, default }, identities)
    assert.is_true(default ~= live and live ~= test and test ~= default)
  end)

  it("names the line and the nearest name of a wrong setting", function()
    local path = write("default.conf", "\ntimout = 4")
    local status, _, err = run({ "config", "show" }, { env = { XDG_CONFIG_HOME = directory } })
    assert.equal(4, status)
    assert.matches(path .. ":2: unknown setting 'timout'; did you mean 'timeout'?", err, 1, true)
    write("default.conf", "timeout 4")
    _, _, err = run({ "config", "show" }, { env = { XDG_CONFIG_HOME = directory } })
    assert.matches("must be 'name = value'", err, 1, true)
  end)

  it("shows no password of a URL, not even of one that is refused", function()
    for proxy, expected in pairs {
      ["http://user:secret@proxy.example:1"] = "http://***@proxy.example:1",
      ["http://user:a@secret@proxy.example"] = "http://***@proxy.example",
      ["http://user/secret@proxy.example"] = "http://***@proxy.example",
      ["user:secret@proxy.example"] = "***@proxy.example",
    } do
      local rows = shown({}, { RISKSCREEN_PROXY = proxy })
      assert.equal(expected, rows.proxy.value)
    end
  end)

  it("refuses a key in a profile or in an argument, without showing it", function()
    write("default.conf", "access_key = " .. KEY)
    local status, out, err = run({ "config", "show" }, { env = { XDG_CONFIG_HOME = directory } })
    assert.equal(4, status)
    assert.matches("access_key_file", err, 1, true)
    assert.is_nil((out .. err):find(KEY, 1, true))
    status, out, err = run({ "config", "show", "--set", "access_key=" .. KEY }, { env = {} })
    assert.equal(4, status)
    assert.is_nil((out .. err):find(KEY, 1, true))
    assert.equal(4, (run({ "config", "show", "--access-key", KEY }, { env = {} })))
  end)

  local service = { RISKSCREEN_BASE_URL = "http://127.0.0.1:1", RISKSCREEN_CONNECT_TIMEOUT = "0.1" }

  local function with(env)
    local all = {}
    for _, list in ipairs { service, env } do
      for name, value in pairs(list) do
        all[name] = value
      end
    end
    return { env = all }
  end

  local call = { "risk", "0x0000000000000000000000000000000000000001", "-n", "eth", "--set", "retry=false" }

  it("warns of a key file that others may read", function()
    local path = write("key", KEY .. "\n", "644")
    local status, _, err = run(call, with { RISKSCREEN_ACCESS_KEY_FILE = path })
    assert.equal(6, status) -- nothing listens there
    assert.matches("others may read the key file", err, 1, true)
    assert.matches("chmod 600", err, 1, true)
    os.execute("chmod 600 " .. path)
    status, _, err = run(call, with { RISKSCREEN_ACCESS_KEY_FILE = path })
    assert.equal(6, status)
    assert.is_nil(err:find("others may read", 1, true))
    assert.is_nil(err:find(KEY, 1, true))
  end)

  it("takes the key from a command, and says when that fails", function()
    local status, _, err = run(call, with { RISKSCREEN_ACCESS_KEY_COMMAND = "printf " .. KEY })
    assert.equal(6, status)
    assert.is_nil(err:find(KEY, 1, true))
    status, _, err = run(call, with { RISKSCREEN_ACCESS_KEY_COMMAND = "exit 3" })
    assert.equal(4, status)
    assert.matches("access_key", err, 1, true)
  end)

  it("refuses two sources of the key, and half of a configuration", function()
    local two = with { RISKSCREEN_ACCESS_KEY = KEY, RISKSCREEN_ACCESS_KEY_COMMAND = "true" }
    local status, _, err = run(call, two)
    assert.equal(4, status)
    assert.matches("two sources", err, 1, true)
    status, _, err = run(call, { env = service })
    assert.equal(4, status)
    assert.matches("there is a base_url and no access key", err, 1, true)
    -- A key without a service must not lead to answers of the sandbox.
    status, _, err = run(call, { env = { RISKSCREEN_ACCESS_KEY = KEY } })
    assert.equal(4, status)
    assert.matches("there is an access key (RISKSCREEN_ACCESS_KEY) and no base_url", err, 1, true)
  end)

  it("says where a value comes from that the client refuses", function()
    local status, _, err = run(call, with { RISKSCREEN_ACCESS_KEY = KEY, RISKSCREEN_TIMEOUT = "soon" })
    assert.equal(4, status)
    assert.matches("timeout (from RISKSCREEN_TIMEOUT) must be a number", err, 1, true)
  end)

  it("decides by the policy of a file, and says what is wrong with one", function()
    local path = write("policy.lua", 'return { rules = { { any = true, action = "review" } } }')
    assert.equal(1, (run({ "screen", "0x16e998a4a64a384aa74dd757e5a6858ab909262e", "-n", "eth", "--policy", path })))
    path = write("policy.lua", 'return { rules = { { action = "allow" } } }')
    local status, _, err = run { "screen", "0x16e998a4a64a384aa74dd757e5a6858ab909262e", "-n", "eth", "--policy", path }
    assert.equal(4, status)
    assert.matches("policy.lua", err, 1, true)
  end)
end)
