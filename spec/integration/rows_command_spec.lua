-- Files of rows in the command: what is refused, and what several lists and an update do.
local cjson = require "cjson"
local cli = require "spec.support.cli"
local command_line = require "spec.support.command_line"
local serve = require "riskscreen.sandbox.http"
local list_files = require "spec.support.list_files"
local lists = require "riskscreen.lists"
local run = cli.run
local runtime = require "riskscreen.runtime"
local temporary = require "spec.support.temporary"

local address = list_files.address
local unpack = table.unpack or unpack -- luacheck: ignore 113 143

describe("a file of rows in the command", function()
  after_each(temporary.clean)

  local function file(content, name)
    local path = temporary.path(name or "in.csv")
    temporary.write(path, content)
    return path
  end

  it("stops after --max-invalid rows, and with a sensible number of its own", function()
    local lines = { "address" }
    for number = 1, 1200 do
      lines[number + 1] = "garbage " .. number
    end
    local path = file(table.concat(lines, "\n"))
    for _, verb in ipairs {
      { "screen", "--file", path, "-o", "-", "-n", "eth" },
      { "screen", "--file", path, "--dry-run", "-n", "eth" },
      { "blacklist", "import", path, "-n", "eth" },
      { "list", "build", path, "-o", path .. ".rsl" },
    } do
      local arguments = { "--sandbox" }
      for _, argument in ipairs(verb) do
        arguments[#arguments + 1] = argument
      end
      local status, _, err = run(arguments)
      assert.equal(4, status, verb[1])
      assert.matches("more invalid rows than 1000", err, 1, true)
      arguments[#arguments + 1] = "--max-invalid"
      arguments[#arguments + 1] = "3"
      status, _, err = run(arguments)
      assert.equal(4, status, verb[1])
      assert.matches("more invalid rows than 3", err, 1, true)
    end
    -- Nothing is begun with such a file.
    for _, most in ipairs { "1000", "3" } do
      local status, out = run { "watch", "--sandbox", "--once", "--file", path, "-n", "eth", "--max-invalid", most }
      assert.same({ 4, "" }, { status, out })
    end
    assert.equal(4, (run { "screen", "--sandbox", "--file", path, "-n", "eth" }))
    assert.same({ "in.csv" }, temporary.names())
  end)

  it("may be empty only with --allow-empty", function()
    local path = file "address\n"
    for _, verb in ipairs {
      { "screen", "--file", path, "-o", "-", "-n", "eth" },
      { "blacklist", "import", path, "-n", "eth" },
      { "list", "build", path, "-o", path .. ".rsl" },
      { "watch", "--file", path, "--once", "-n", "eth" },
      { "report", path, "-o", path .. ".html" },
    } do
      if verb[1] == "report" then
        temporary.write(path, "action\n")
      end
      local status, _, err = run { "--sandbox", unpack(verb) }
      assert.equal(4, status, verb[1])
      assert.matches("it has no rows: --allow-empty", err, 1, true)
      verb[#verb + 1] = "--allow-empty"
      status, _, err = run { "--sandbox", unpack(verb) }
      assert.equal(0, status, err)
    end
  end)

  it("is not its own output, by no name of it, also with --force", function()
    local content = "address,action\n" .. address(1) .. ",allow\n"
    local path = file(content)
    local link = temporary.path "link"
    assert(os.execute(("ln %s %s"):format(path, link)))
    for _, output in ipairs { path, link } do
      for _, verb in ipairs {
        { "screen", "--file", path, "-o", output, "-n", "eth", "--force" },
        { "list", "build", path, "-o", output },
        { "watch", "--file", path, "--state", output, "--once", "-n", "eth" },
        { "report", path, "-o", output },
      } do
        local status, _, err = run { "--sandbox", unpack(verb) }
        assert.equal(4, status, verb[1] .. err)
        local now = assert(io.open(path, "rb"))
        assert.equal(content, now:read "*a")
        now:close()
      end
    end
  end)

  it("is not the state, the unfinished output or the standard output of its verb", function()
    local content = "address\n" .. address(1) .. "\n"
    local path = temporary.path "out"
    for ending, verb in pairs {
      [".riskscreen-part"] = "screen --file %s.riskscreen-part -o %s -n eth --force",
      [".state"] = "screen --file %s.state -o %s -n eth --force",
      [".rsl.riskscreen-part"] = "list build %s.rsl.riskscreen-part -o %s.rsl",
      [".1"] = "screen --file %s.1 -o - -n eth >> %s.1",
      [".2"] = "watch --file %s.2 -n eth --once >> %s.2",
      [".3"] = "blacklist import %s.3 -n eth >> %s.3",
      [".4"] = "screen --file - -o - -n eth < %s.4 >> %s.4",
    } do
      temporary.write(path .. ending, content)
      local line = ("XDG_CONFIG_HOME=/none %s --sandbox %s"):format(cli.command, verb:gsub("%%s", path))
      local _, status = command_line.run(("sh -c '%s'"):format(line))
      assert.equal(4, status, verb)
      assert.equal(content, temporary.read(path .. ending), verb)
    end
  end)

  it("has the columns, the separator and the encoding that the options name, in every verb", function()
    local path = file("konto|netz|wallet|action|x\n" .. address(1) .. "|ETH|caf\233|allow|caf\233\n")
    local options = { "--address-column", "konto", "--network-column", "netz", "--delimiter", "|" }
    options[7], options[8] = "--encoding", "latin1"
    for _, verb in ipairs {
      { "screen", "--file", path, "-o", "-", "--jsonl", "--keep", "X" },
      { "blacklist", "import", path, "--risk", "high/scam", "--jsonl" },
      { "watch", "--file", path, "--once" },
      { "list", "build", path, "-o", path .. ".rsl", "--json", "--ignore-columns", "X" },
      { "report", path, "-o", path .. ".html" },
    } do
      local arguments = { "--sandbox", unpack(verb) }
      for _, option in ipairs(options) do
        arguments[#arguments + 1] = option
      end
      local status, out, err = run(arguments)
      assert.equal(0, status, verb[1] .. err)
      if verb[1] == "screen" then
        local record = cjson.decode(out)
        assert.same({ address(1), "eth", "café" }, { record.address, record.network, record.X })
      end
    end
  end)

  it("keeps columns under any name of theirs, but none that the results have", function()
    local path = file('{"wallet":"' .. address(1) .. '","Note":"x","meta":"y"}\n', "in.jsonl")
    local line = { "screen", "--sandbox", "-n", "eth", "--file", path, "-o", "-", "--jsonl", "--keep" }
    local function keep(...)
      local arguments = { unpack(line) }
      for _, argument in ipairs { ... } do
        arguments[#arguments + 1] = argument
      end
      return run(arguments)
    end
    local status, out, err = keep "wallet,note,meta"
    assert.equal(0, status, err)
    local record = cjson.decode(out)
    assert.same({ address(1), "x", "y" }, { record.wallet, record.note, record.meta })
    for _, arguments in ipairs { { "Action" }, { "note,Note" }, { "meta", "--meta", "case=17" } } do
      status, _, err = keep(unpack(arguments))
      assert.equal(4, status, arguments[1])
      assert.matches(arguments[1] == "note,Note" and "is given twice" or "the results have a column", err, 1, true)
    end
  end)

  it("is not screened by options that contradict each other", function()
    local path = file("address\n" .. address(1) .. "\n")
    local line = { "screen", "--sandbox", "-n", "eth", "--file", path, "-q" }
    assert.equal(0, (run(line)))
    line[#line + 1] = "--force"
    for message, arguments in pairs {
      ["give one of them"] = { "--resume" },
      ["give a --timeout above 12.5"] = { "--rate", "0.08" },
    } do
      line[9], line[10] = arguments[1], arguments[2]
      local status, _, err = run(line)
      assert.equal(4, status)
      assert.matches(message, err, 1, true)
    end
    line[9], line[10] = "--rate=0.08", "--timeout=13"
    assert.equal(0, (run(line)))
  end)

  it("adds up the lists of a profile, of the environment and of flags", function()
    local paths = {}
    for number = 1, 5 do
      paths[number] = file(address(number) .. "\n", "list" .. number)
    end
    local profile = file(("sandbox = true\nlists.deny = %s\nlists.deny = %s\n"):format(paths[1], paths[2]), "p.conf")
    local arguments = { "screen", "-n", "eth", "--profile", profile, "--deny", paths[3], "--deny", paths[4], "--jsonl" }
    for number = 1, 6 do
      arguments[#arguments + 1] = address(number)
    end
    local status, out = run(arguments, { env = { RISKSCREEN_LISTS_DENY = paths[5] } })
    assert.equal(2, status)
    local actions = {}
    for line in out:gmatch "[^\n]+" do
      local record = cjson.decode(line)
      actions[#actions + 1] = record.action .. " " .. record.source
    end
    local listed = "block list"
    assert.same({ listed, listed, listed, listed, listed, "allow sandbox" }, actions)
  end)

  it("tells on stderr that a list was not loaded again, or holds rows that are no entries", function()
    local path = file("address\nwhat\n" .. address(1) .. "\n", "deny.csv")
    local _, _, err = run { "screen", "--sandbox", "-n", "eth", "--deny", path, address(1) }
    assert.matches("has 1 row without an entry", err, 1, true)
  end)
end)

describe("riskscreen list update", function()
  local server, requests, answer

  before_each(function()
    requests, answer = {}, {}
    local service = {}
    function service.handle(_, request)
      requests[#requests + 1] = request
      local reply = answer[request.target] or answer.default
      local tag = reply.headers and reply.headers.ETag
      if tag and request.headers["if-none-match"] == tag then
        return { status = 304, headers = {}, body = "" }
      end
      return { status = reply.status or 200, headers = reply.headers or {}, body = reply.body or "" }
    end
    server = assert(serve(service, { host = "127.0.0.1", port = 0 }))
  end)

  after_each(function()
    server:close()
    temporary.clean()
  end)

  local function ofac(count)
    local ids = {}
    for number = 1, count do
      ids[number] = "<id><idType>Digital Currency Address - ETH</idType><idNumber>%s</idNumber></id>"
      ids[number] = ids[number]:format(address(number))
    end
    return "<sdnList><sdnEntry><uid>1</uid><idList>" .. table.concat(ids) .. "</idList></sdnEntry></sdnList>"
  end

  local function update_from(url, output, ...)
    return run { "list", "update", "-o", output, "--url", url, "--json", ... }
  end

  local function update(output, ...)
    return update_from(server.url .. "/sdn.xml", output, ...)
  end

  it("fetches, asks only for changes, and takes no list that has lost its entries", function()
    local output = temporary.path "ofac.rsl"
    answer["/sdn.xml"] = { status = 302, headers = { Location = "/file?sig=a%20b" } }
    local file = { headers = { ETag = '"1"' }, body = ofac(10) }
    answer["/file?sig=a%20b"] = file
    local status, out, err = update(output)
    assert.equal(0, status, err)
    assert.equal(10, cjson.decode(out).entries)
    status, out, err = update(output)
    assert.same({ 0, 10 }, { status, cjson.decode(out).entries })
    assert.matches("has not changed", err, 1, true)
    assert.equal('"1"', requests[#requests].headers["if-none-match"])
    for _, body in ipairs { ofac(4), "<html>maintenance</html>", "", "<sdnList>" } do
      file.body, file.headers.ETag = body, '"2"'
      assert.equal(3, (update(output)), body)
      assert.equal(10, lists.load(output).facts.entries)
    end
    file.body = ofac(4)
    assert.equal(0, (update(output, "--max-shrink", "1")))
    assert.equal(4, lists.load(output).facts.entries)
  end)

  it("follows each kind of redirect", function()
    answer.default = { body = ofac(3) }
    for location, target in pairs {
      ["sdn.xml"] = "/lists/a/sdn.xml",
      ["?x=/y"] = "/lists/a/sdn?x=/y",
      ["/sdn.xml"] = "/sdn.xml",
      [server.url:match "//.*" .. "/z/sdn.xml"] = "/z/sdn.xml",
      [server.url .. "/z"] = "/z",
    } do
      answer["/lists/a/sdn?q=/1"] = { status = 302, headers = { Location = location } }
      local status, _, err = update_from(server.url .. "/lists/a/sdn?q=/1", temporary.path "ofac.rsl")
      assert.equal(0, status, err)
      assert.equal(target, requests[#requests].target)
    end
    answer["/lists/a/sdn?q=/1"] = { status = 302, headers = { Location = "mailto:x" } }
    local status, _, err = update_from(server.url .. "/lists/a/sdn?q=/1", temporary.path "ofac.rsl")
    assert.equal(3, status)
    assert.matches("the service redirects to a URL that must be", err, 1, true)
  end)

  it("asks for the whole file where another one was fetched before, or what was fetched is damaged", function()
    local output = temporary.path "ofac.rsl"
    answer["/sdn.xml"] = { headers = { ETag = '"1"' }, body = ofac(10) }
    answer["/other.xml"] = { headers = { ETag = '"1"' }, body = ofac(12) }
    assert.equal(0, (update(output)))
    assert.equal(0, (update_from(server.url .. "/other.xml", output)))
    assert.equal(12, lists.load(output).facts.entries)
    temporary.write(output .. ".source", ofac(11))
    assert.equal(0, (update_from(server.url .. "/other.xml", output)))
    assert.is_nil(requests[#requests].headers["if-none-match"])
    assert.equal(12, lists.load(output).facts.entries)
  end)

  it("takes the options of every reader of rows, which its refusals name", function()
    local output = temporary.path "ours.rsl"
    answer.default = { body = "konto,action\n" .. address(1) .. ",x\n" }
    local status, _, err = update(output)
    assert.equal(3, status)
    assert.matches("--address-column NAME names it", err, 1, true)
    status, _, err = update(output, "--address-column", "konto", "--delimiter", ",")
    assert.equal(0, status, err)
    assert.equal(1, lists.load(output).facts.entries)
  end)

  it("keeps no token of its URL", function()
    local output = temporary.path "ofac.rsl"
    answer.default = { headers = { ETag = '"1"' }, body = ofac(3) }
    for _ = 1, 2 do
      local status, _, err = update_from(server.url .. "/sdn.xml?token=s3cret", output)
      assert.equal(0, status, err)
    end
    assert.equal('"1"', requests[2].headers["if-none-match"])
    for _, name in ipairs(temporary.names()) do
      assert.is_nil(temporary.read(temporary.path(name)):find("s3cret", 1, true), name)
    end
  end)

  it("follows no redirect from https to http", function()
    local output, kept = temporary.path "ofac.rsl", runtime.transport
    finally(function()
      runtime.transport = kept -- luacheck: ignore 122
    end)
    for _, first in ipairs { "https://risk.example/sdn.xml", "HTTPS://Risk.example/sdn.xml", server.url .. "/first" } do
      local asked = {}
      function runtime.transport(settings) -- luacheck: ignore 122
        local origin = settings.base_url.origin
        asked[#asked + 1] = origin
        local location = origin:find "^https:" and server.url .. "/sdn.xml" or "https://risk.example/sdn.xml"
        return function()
          return { status = asked[3] and 200 or 302, headers = { location = location }, body = ofac(10) }
        end
      end
      local status, _, err = update_from(first, output)
      assert.equal(3, status)
      assert.matches("redirects from https to http", err, 1, true)
      assert.equal("https://risk.example", asked[#asked])
    end
  end)

  it("leaves the old list where the service fails, sends too much, or leads elsewhere", function()
    local output = temporary.path "ofac.rsl"
    answer.default = { body = ofac(10) }
    assert.equal(0, (update(output)))
    for _, reply in ipairs {
      { status = 500 },
      { status = 304 },
      { body = ofac(100) },
      { status = 302, headers = { Location = "/sdn.xml" } },
      { status = 302, headers = { Location = "http://risk.example/" } },
    } do
      answer.default = reply
      local status = update(output, "--max-size", "1024")
      assert.is_true(status == 3 or status == 4)
      assert.equal(10, lists.load(output).facts.entries)
    end
  end)
end)
