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
    for _, line_end in ipairs { "\r", "\r\n" } do
      write("default.conf", (("# ours\ntimeout = 4\n"):gsub("\n", line_end)))
      from_profile = shown({}, { XDG_CONFIG_HOME = directory })
      assert.same({ "4", path .. ":2" }, { from_profile.timeout.value, from_profile.timeout.source })
    end
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
    add("--set", "account=default") -- that of no profile
    local default, live, test = identities[1], identities[2], identities[3]
    assert.same({ default, live, test, live, test, default }, identities)
    assert.is_true(default ~= live and live ~= test and test ~= default)
  end)

  it("has the account of a profile's name in any folder, so that workers of several users share outcomes", function()
    assert(os.execute(("mkdir -p %s/other/riskscreen"):format(home)))
    write("live.conf", "timeout = 5\n")
    write("other/riskscreen/live.conf", "timeout = 5\n")
    local path, identities = directory .. "/decisions.jsonl", {}
    for folder, name in pairs { [directory] = "live", [home .. "/other"] = "live", [home] = home .. "/live.conf" } do
      local env = { RISKSCREEN_BASE_URL = "http://127.0.0.1:1", RISKSCREEN_ACCESS_KEY = KEY, XDG_CONFIG_HOME = folder }
      run({ "screen", "0x1", "-n", "eth", "--journal", path, "--set", "retry=false", "--profile", name }, { env = env })
    end
    for entry in require("riskscreen.journal").entries(path) do
      identities[entry.seq] = entry.identity
    end
    assert.same({ identities[1], identities[1], identities[1] }, identities)
  end)

  it("refuses an empty variable: what it had may have been a deny list, or the profile", function()
    for _, name in ipairs { "LISTS_DENY", "PROFILE", "ACCESS_KEY", "POLICY", "REDIS_URL" } do
      local status, _, err = run({ "config", "show" }, { env = { ["RISKSCREEN_" .. name] = "" } })
      assert.equal(4, status)
      assert.matches(("the variable RISKSCREEN_%s is empty"):format(name), err, 1, true)
    end
    assert.equal(0, (run({ "config", "show" }, { env = { RISKSCREEN_SERVICE_HOST = "" } })))
  end)

  it("names the line and the nearest name of a wrong setting", function()
    local path = write("default.conf", "\ntimout = 4")
    local status, _, err = run({ "config", "show" }, { env = { XDG_CONFIG_HOME = directory } })
    assert.equal(4, status)
    assert.matches(path .. ":2: unknown setting 'timout'; did you mean 'timeout'?", err, 1, true)
    write("default.conf", "timeout 4")
    _, _, err = run({ "config", "show" }, { env = { XDG_CONFIG_HOME = directory } })
    assert.matches("must be 'name = value'", err, 1, true)
    write("default.conf", "timeout = 4\nlists.deny = a\nlists.deny = b\ntimeout = 5\n")
    status, _, err = run({ "config", "show" }, { env = { XDG_CONFIG_HOME = directory } })
    assert.equal(4, status)
    assert.matches(("timeout is given twice (%s:1, %s:4)"):format(path, path), err, 1, true)
  end)

  it("shows no line, pair or name of a setting that may be a key", function()
    local env = { XDG_CONFIG_HOME = directory }
    for _, line in ipairs {
      "access_key: " .. KEY,
      "access_key " .. KEY,
      "access-key = " .. KEY,
      KEY,
      "hunter2hunter2==",
      "access_key\t=" .. KEY,
    } do
      local path = write("default.conf", "timeout = 4\n" .. line .. "\n")
      local status, out, err = run({ "config", "show" }, { env = env })
      assert.equal(4, status)
      assert.matches(path .. ":2: ", err, 1, true)
      assert.is_nil((out .. err):find(KEY, 1, true), line)
      assert.is_nil((out .. err):find("hunter2", 1, true), line)
    end
    os.remove(home .. "/default.conf")
    for _, pair in ipairs { "access_key:" .. KEY, KEY, "access_key " .. KEY, "hunter2hunter2==" } do
      for _, arguments in ipairs {
        { "config", "show", "--set", pair },
        { "call", "getAddressRisk", "-n", "eth", (pair:gsub("=", ":")) },
        { "risk", "0x12", "-n", "eth", "--access-key-file", pair, "--base-url", "http://127.0.0.1:1" },
      } do
        local status, out, err = run(arguments, { env = env })
        assert.equal(4, status)
        assert.is_nil((out .. err):find(KEY, 1, true), pair)
        assert.is_nil((out .. err):find("hunter2", 1, true), pair)
      end
    end
  end)

  it("shows the program of access_key_command, and not its arguments", function()
    for command, expected in pairs {
      ["printf " .. KEY] = "printf …",
      ["/usr/bin/pass show riskscreen"] = "/usr/bin/pass …",
      ["TOKEN=" .. KEY .. " vault read key"] = "…",
      [KEY] = "…",
    } do
      local rows = shown({}, { RISKSCREEN_ACCESS_KEY_COMMAND = command })
      assert.equal(expected, rows.access_key_command.value)
    end
  end)

  it("shows the path of a key file only where there is one, because the text may be the key", function()
    local path = write("key", KEY)
    for _, name in ipairs { "access_key_file", "journal_key_file" } do
      local variable = "RISKSCREEN_" .. name:upper()
      assert.equal(path, shown({}, { [variable] = path })[name].value)
      assert.equal("… (no such file)", shown({}, { [variable] = KEY })[name].value)
      for _, verb in ipairs { { "config", "list" }, { "doctor" } } do
        local _, out, err = run(verb, { env = { [variable] = KEY, RISKSCREEN_BASE_URL = "http://127.0.0.1:1" } })
        assert.is_nil((out .. err):find(KEY, 1, true), verb[1])
      end
    end
  end)

  it("refuses a variable whose name is nearly one of ours", function()
    for name, nearest in pairs {
      RISKSCREEN_TIMOUT = "RISKSCREEN_TIMEOUT",
      RISKSCREEN_BASE_ULR = "RISKSCREEN_BASE_URL",
      RISKSCREEN_ACCES_KEY = "RISKSCREEN_ACCESS_KEY",
      RISKSCREEN_LIST_DENY = "RISKSCREEN_LISTS_DENY",
      RISKSCREEN_network = "RISKSCREEN_NETWORK",
      RISKSCREEN_REDIS_URI = "RISKSCREEN_REDIS_URL",
    } do
      local status, _, err = run({ "networks" }, { env = { [name] = KEY } })
      assert.equal(4, status, name)
      assert.matches(("the variable %s is unknown; did you mean '%s'?"):format(name, nearest), err, 1, true)
      assert.is_nil(err:find(KEY, 1, true))
    end
  end)

  it("refuses a variable with a word of a setting", function()
    local names = "DENY DENY_LIST DENYLIST LISTS BLOCKLIST POLICY_FILE POLICY_CASES NETWORKS ENDPOINTS_KYT"
    for name in names:gmatch "%S+" do
      local status, _, err = run({ "networks" }, { env = { ["RISKSCREEN_" .. name] = KEY } })
      assert.equal(4, status, name)
      assert.matches(("the variable RISKSCREEN_%s is unknown"):format(name), err, 1, true)
      assert.is_nil(err:find(KEY, 1, true))
    end
  end)

  it("refuses a default profile that is there and cannot be read", function()
    os.execute(("ln -s default.conf %s/default.conf"):format(home))
    local env = { XDG_CONFIG_HOME = directory }
    for _, verb in ipairs { { "config", "show" }, { "config", "set", "timeout", "5" } } do
      local status, _, err = run(verb, { env = env })
      assert.equal(4, status)
      assert.matches("the profile cannot be read: ", err, 1, true)
    end
    assert.is_nil(io.open(home .. "/default.conf"))
  end)

  it("refuses a profile and a key file of which it would read a part alone", function()
    local long = ("#"):rep(1024 * 1024) .. "\nlists.deny = nowhere.rsl\n"
    local status, _, err = run { "address", "check", KEY, "--profile", write("long.conf", long) }
    assert.equal(4, status)
    assert.matches("the profile cannot be read: .*longer than 1048576 bytes", err)
    local key = "access_key_file=" .. write("long.key", long)
    status, _, err = run { "usage", "--base-url", "http://127.0.0.1:1", "--set", key }
    assert.equal(4, status)
    assert.matches("the key file cannot be read: longer than 1048576 bytes", err, 1, true)
  end)

  it("passes over the variables of Kubernetes and of other programs", function()
    local env = {}
    for _, name in ipairs {
      "SERVICE_HOST",
      "SERVICE_PORT",
      "SERVICE_PORT_HTTP",
      "PORT",
      "PORT_8080_TCP",
      "PORT_8080_TCP_PROTO",
      "PORT_8080_TCP_PORT",
      "PORT_8080_TCP_ADDR",
      "PROXY_SERVICE_HOST",
      "PROXI_PORT",
      "FLEET_KEY",
      "SEED",
      "LUA",
      "COVERAGE",
      "TESTS",
      "REDIS_URL",
      "WATCH_SECRET",
      "WEBHOOK_SECRET",
    } do
      env["RISKSCREEN_" .. name] = "tcp://10.0.0.1:80"
    end
    env.RISKSREEN_TIMEOUT = "4"
    assert.equal(0, (run({ "networks" }, { env = env })))
  end)

  it("takes a flag before --set", function()
    local rows = shown({ "--timeout", "1", "--set", "timeout=2" }, {})
    assert.equal("1", rows.timeout.value)
  end)

  it("refuses a setting that --set gives twice, unless its values add up", function()
    local status, _, err = run { "config", "show", "--set", "policy=a", "--set", "policy=b" }
    assert.equal(4, status)
    assert.matches("policy is given twice (--set, --set)", err, 1, true)
    local rows = shown({ "--set", "lists.deny=a", "--set", "lists.deny=b", "--set", "timeout=1", "--timeout", "2" }, {})
    assert.same({ "a, b", "2" }, { rows["lists.deny"].value, rows.timeout.value })
  end)

  it("loses no setting where several are written at once", function()
    local path = write("default.conf", "")
    local names = { "timeout", "connect_timeout", "concurrency", "rate_limit.rate", "rate_limit.burst", "proxy" }
    local lines = {}
    for index, name in ipairs(names) do
      local value = name == "proxy" and "http://127.0.0.1:1" or index
      lines[index] = ("%s config set %s %s --profile %s >>%s.log 2>&1 || echo %s >>%s.refused"):format(
        cli.command,
        name,
        value,
        path,
        path,
        name,
        path
      )
    end
    os.execute(table.concat(lines, " & ") .. " & wait")
    local content, refused = io.open(path):read "*a", io.open(path .. ".refused")
    refused = refused and refused:read "*a" or ""
    for _, name in ipairs(names) do
      local is_kept = ("\n" .. content):find("\n" .. name .. " = ", 1, true) ~= nil
      local is_refused = ("\n" .. refused):find("\n" .. name .. "\n", 1, true) ~= nil
      assert.is_true(is_kept ~= is_refused, name)
    end
  end)

  it("writes a setting to a profile, which it makes, and removes it", function()
    local env = { XDG_CONFIG_HOME = directory .. "/it's new" }
    local path = env.XDG_CONFIG_HOME .. "/riskscreen/staging.conf"
    local function set(...)
      return run({ "config", "set", "--profile", "staging", ... }, { env = env })
    end
    assert.equal(0, (set("timeout", "4")))
    assert.equal(0, (set("lists.deny", "/a b", "/c")))
    local file = assert(io.open(path, "a"))
    file:write "# ours\n"
    file:close()
    assert.equal(0, (set("timeout", "5")))
    assert.equal(0, (set("network", "btc")))
    assert.equal(0, (set "lists.allow"))
    local rows = shown({ "--profile", "staging" }, env)
    assert.same({ "5", "btc", "/a b, /c" }, { rows.timeout.value, rows.network.value, rows["lists.deny"].value })
    assert.equal(0, (set "lists.deny"))
    local content = {}
    for line in io.lines(path) do
      content[#content + 1] = line
    end
    assert.same({ "# ours", "timeout = 5", "network = btc" }, content)
    -- It may hold the password of a proxy.
    assert.equal(tonumber("600", 8), select(2, require("riskscreen.system").stat(path)))
    for _, mode in ipairs { "640", "644" } do
      os.execute(('chmod %s "%s"'):format(mode, path))
      assert.equal(0, (set("timeout", "6")))
      assert.equal(tonumber(mode, 8), select(2, require("riskscreen.system").stat(path)))
    end
  end)

  it("writes nothing to a profile that a later run would refuse", function()
    local env = { XDG_CONFIG_HOME = directory }
    for _, arguments in ipairs {
      { "timout", "4" },
      { "timeout", "soon" },
      { "timeout", "1", "2" },
      { "network", "ethreum" },
      { "account", "a\nbase_url = https://risk.example" },
      { "account", " a" },
      { "sandbox", "maybe" },
      { "access_key", KEY },
      { "profile", "other" },
    } do
      local status, out, err = run({ "config", "set", arguments[1], arguments[2], arguments[3] }, { env = env })
      assert.equal(4, status, arguments[1])
      assert.is_nil((out .. err):find(KEY, 1, true))
      assert.is_nil(io.open(home .. "/default.conf"))
    end
  end)

  it("lists every setting with its meaning", function()
    local status, out = run(
      { "config", "list", "--json" },
      { env = { RISKSCREEN_PROXY = "http://u:" .. KEY .. "@h:1" } }
    )
    assert.equal(0, status)
    local meanings = {}
    for _, row in ipairs(cjson.decode(out)) do
      meanings[row.name] = row.meaning
    end
    assert.matches("Time limit of a whole call", meanings.timeout, 1, true)
    assert.is_string(meanings["lists.max_shrink"])
    assert.is_nil(out:find(KEY, 1, true))
  end)

  it("suggests the network that is meant, and names -n where there is none", function()
    local arguments = { "screen", "0x0000000000000000000000000000000000000001", "--sandbox" }
    local status, _, err = run(arguments, { env = {} })
    assert.equal(4, status)
    assert.matches("-n NETWORK is required; riskscreen networks lists them", err, 1, true)
    for name, nearest in pairs { ethreum = "ethereum", tronn = "tron", zksnc = "zksync" } do
      for _, env in ipairs { { RISKSCREEN_NETWORK = name }, {} } do
        local given = { arguments[1], arguments[2], arguments[3] }
        given[4], given[5] = not next(env) and "-n" or nil, not next(env) and name or nil
        status, _, err = run(given, { env = env })
        assert.equal(4, status)
        assert.matches(("did you mean '%s'?"):format(nearest), err, 1, true)
      end
    end
    for _, verb in ipairs {
      { "risk", "0x12" },
      { "entities", "0x12" },
      { "kyt", "submit", "0x12" },
      { "kyt", "screen", "0x12" },
      { "call", "getAddressRisk", "address=0x12" },
      { "blacklist", "add", "0x12" },
      { "screen", "--file", "examples/README.md", "--address-column", "x" },
    } do
      status, _, err = run(verb, { env = {} })
      assert.equal(4, status, verb[1])
      assert.is_truthy(err:find("-n NETWORK", 1, true) or verb[1] == "screen", err)
    end
  end)

  it("shows no password of a URL, not even of one that is refused", function()
    for _, url in ipairs {
      "https://risk.example/?key=hunter2",
      "https://user:hunter2@risk.example",
      "https://user:hunter2%40risk.example",
      "https:user:hunter2@risk.example/",
      "//user:hunter2@risk.example",
      "https://user:hunter2",
      "user:hunter2@risk.example?hunter2#hunter2",
      "https://user:hun?ter2hunter2@risk.example",
      "https://risk.example@x?hunter2",
    } do
      for _, name in ipairs { "RISKSCREEN_BASE_URL", "RISKSCREEN_PROXY" } do
        for _, verb in ipairs { "show", "list" } do
          local _, out, err = run({ "config", verb, "--json" }, { env = { [name] = url } })
          assert.is_nil((out .. err):find("hunter2", 1, true), name .. " " .. url)
        end
        local env = { RISKSCREEN_ACCESS_KEY = KEY, RISKSCREEN_BASE_URL = "http://127.0.0.1:1", [name] = url }
        local update = { "list", "update", "-o", directory .. "/x", "--url", url }
        for _, verb in ipairs { { "usage" }, { "doctor" }, update } do
          local _, out, err = run(verb, { env = env })
          assert.is_nil((out .. err):find("hunter2", 1, true), verb[1] .. " " .. name .. " " .. url .. err)
          assert.is_nil((out .. err):find(KEY, 1, true))
        end
      end
    end
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

  it("refuses the sandbox of a weaker source than that of base_url", function()
    local line = { "screen", "0x0000000000000000000000000000000000000001", "-n", "eth", "-q", "--base-url", "http://h" }
    local status, _, err = run(line, { env = { RISKSCREEN_SANDBOX = "true", RISKSCREEN_ACCESS_KEY = KEY } })
    assert.equal(4, status)
    local message = "sandbox (from RISKSCREEN_SANDBOX) and base_url (from --base-url) contradict each other"
    assert.matches(message, err, 1, true)
    line[6], line[7] = "--sandbox", nil
    assert.equal(0, (run(line, { env = { RISKSCREEN_BASE_URL = "http://h" } })))
  end)

  it("says where a value comes from that the client refuses", function()
    local status, _, err = run(call, with { RISKSCREEN_ACCESS_KEY = KEY, RISKSCREEN_TIMEOUT = "soon" })
    assert.equal(4, status)
    assert.matches("timeout (from RISKSCREEN_TIMEOUT) must be a number", err, 1, true)
  end)

  it("ends before a call where a list cannot be loaded, whoever answers", function()
    local line = { "screen", "0x0000000000000000000000000000000000000001", "-n", "eth", "--deny", "/no/none.csv" }
    for _, world in ipairs { with { RISKSCREEN_ACCESS_KEY = KEY }, { env = { RISKSCREEN_SANDBOX = "true" } } } do
      local status, out, err = run(line, world)
      assert.same({ 4, "" }, { status, out })
      assert.matches("riskscreen: the list '/no/none.csv' is not loaded: cannot read it: No such file", err)
    end
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
