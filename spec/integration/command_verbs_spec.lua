-- The verbs of the `riskscreen` command as processes, against a sandbox that the command itself serves.
local cjson = require "cjson"
local cli = require "spec.support.cli"
local commands = require "spec.support.page_commands"
local riskscreen = require "riskscreen"
local tables = require "riskscreen.util.tables"
local verbs = require "riskscreen.cli.commands"

local run = commands.run

local HACK = "0x16e998a4a64a384aa74dd757e5a6858ab909262e"
local HASH = "0x5f16ca1b3b1b6b3d6c9b4b0a4c1bb9e1ae77e42a4f6a6bd9f8b6a4a5b2f5d3c1"

local directory, remove, sandbox, environment

-- Runs a line whose "riskscreen" is the command of this checkout, with the sandbox's settings.
local function shell(line)
  line = line:gsub("%f[%w]riskscreen ", (cli.command:gsub("%%", "%%%%")) .. " ")
  return run(
    ("export XDG_CONFIG_HOME=/nonexistent TMP=%s; set -a; . %s; set +a; %s"):format(directory, environment, line)
  )
end

local function write(name, text)
  local file = assert(io.open(directory .. "/" .. name, "wb"))
  file:write(text)
  file:close()
  return directory .. "/" .. name
end

local function read(name)
  local file = assert(io.open(directory .. "/" .. name, "rb"))
  local text = file:read "*a"
  file:close()
  return text
end

setup(function()
  directory, remove = cli.directory()
  environment = directory .. "/sandbox.env"
  write("sandbox.env", "")
  sandbox = run(("%s sandbox > %s 2>/dev/null & echo $!"):format(cli.command, environment)):match "%d+"
  -- The last line of the settings is there when the sandbox answers.
  run(("until grep -qs WHITELIST_REMOVE_PATH %s; do sleep 0.02; done"):format(environment))
end)

teardown(function()
  os.execute("kill " .. sandbox)
  remove()
end)

describe("riskscreen sandbox", function()
  it("prints the settings with which the other verbs ask it", function()
    local output, status = shell "riskscreen risk --json -n eth 0x16e998a4a64a384aa74dd757e5a6858ab909262e"
    assert.equal(0, status)
    assert.equal("hack", cjson.decode(output).risks[1].riskType)
  end)

  it("sends results with the headers that their receiver needs", function()
    local secret = { value = "a secret: of the specs", header = "X-Webhook-Secret" }
    local inbox = riskscreen.webhook.inbox { secret = secret, allow = { "127.0.0.1" } }
    local listener = assert(inbox:listen {})
    local line =
      "%s sandbox --webhook-url %s --webhook-header 'X-Other: 1' --webhook-header '%s: %s' 2>&1 & echo $!; wait"
    local pipe = assert(io.popen(line:format(cli.command, listener.url, secret.header, secret.value)))
    local process, url = pipe:read "*l", pipe:read("*l"):match "=(.*)"
    finally(function()
      os.execute("kill " .. process)
      pipe:close()
      listener:close()
    end)
    local client = riskscreen.new { base_url = url, access_key = "sandbox-key", inbox = inbox }
    local result = assert(client.kyt:screen({ network = "eth", hash = HASH, direction = "in" }, { timeout = 15 }))
    assert.equal(1003, result.status)
  end)

  it("says which header it cannot send", function()
    local twice = "X-A: 1' --webhook-header 'X-A: 2"
    for _, header in ipairs { "X-Webhook-Secret", "X Webhook: secret", ": secret", twice } do
      local arguments = "sandbox --webhook-url http://127.0.0.1:1/ --webhook-header '%s'"
      local output, status = shell("timeout 5 riskscreen " .. arguments:format(header))
      assert.equal(4, status)
      assert.matches(
        "^riskscreen: %-%-webhook%-header must be such as 'X%-Webhook%-Secret: …', each name once",
        output
      )
      assert.is_nil(output:find("secret", 1, true))
    end
  end)
end)

describe("riskscreen blacklist", function()
  it("adds, imports and exports what import reads", function()
    local first = "0x00000000000000000000000000000000000b1ac1"
    local output, status = shell(("riskscreen blacklist add %s -n eth --risk high/scam --csv"):format(first))
    assert.equal(0, status)
    assert.matches(first .. ",eth,added", output, 1, true)

    write(
      "list.csv",
      "address;network;risks\r\n" .. "0x00000000000000000000000000000000000b1ac2;eth;high/hack\r\nnonsense;eth;\r\n"
    )
    output, status = shell "riskscreen blacklist import $TMP/list.csv --risk low/porn --csv"
    assert.equal(5, status)
    assert.matches("2,0x00000000000000000000000000000000000b1ac2,eth,added,", output, 1, true)
    assert.matches("3,nonsense,eth,invalid,", output, 1, true)

    output, status = shell "riskscreen blacklist export -o $TMP/export.csv"
    assert.equal(0, status, output)
    assert.matches(first .. ",eth,high/scam\r\n", read "export.csv", 1, true)
    output, status = shell "riskscreen blacklist import $TMP/export.csv --jsonl"
    assert.equal(0, status, output)
    assert.equal(2, select(2, output:gsub('"state":"added"', "")))
    output, status = shell "riskscreen blacklist export --jsonl -o $TMP/export.jsonl"
    assert.equal(0, status, output)
    output, status = shell "riskscreen blacklist import $TMP/export.jsonl --jsonl"
    assert.equal(0, status, output)
    assert.equal(2, select(2, output:gsub('"state":"added"', "")))
    write("objects.jsonl", ('{"address":"%s","network":"eth","risks":[{"riskLevel":"high"}]}\n'):format(first))
    output, status = shell "riskscreen blacklist import $TMP/objects.jsonl"
    assert.equal(5, status)
    assert.matches("risks must be such as high/scam (got 'riskLevel high')", output, 1, true)
  end)

  it("adds each risk that a file or a flag names, and refuses what it does not understand", function()
    local address = "0x00000000000000000000000000000000000b1ac3"
    for _, given in ipairs { "high/scam;low/porn", "high / scam / Me, Inc; low / porn", ";high/scam;;low/porn;" } do
      write("risks.csv", ('address,network,risks\n%s,eth,"%s"\n'):format(address, given))
      local output, status = shell "riskscreen blacklist import $TMP/risks.csv"
      assert.equal(0, status, output)
      assert.matches(address .. ",eth,high/scam; low/porn\r\n", (shell "riskscreen blacklist export"), 1, true)
    end
    local line = ("riskscreen blacklist add %s -n eth --risk low/gun,high/drug --risk low/drug"):format(address)
    assert.equal(0, select(2, shell(line)))
    assert.matches(address .. ",eth,low/gun; high/drug; low/drug\r\n", (shell "riskscreen blacklist export"), 1, true)
    for _, given in ipairs {
      "high/scam,low/porn",
      "high/scam low/porn",
      "high/scam|low/porn",
      "high/scam/Provider,low/porn",
      "high/scam_or_hack",
    } do
      write("risks.csv", ('address,network,risks\n%s,eth,"%s"\n'):format(address, given))
      local output, status = shell "riskscreen blacklist import $TMP/risks.csv --csv"
      assert.equal(5, status, given)
      assert.matches("invalid,", output, 1, true)
    end
    for name, row in pairs {
      ["risk.csv"] = "address,network,risk\n%s,eth,high/scam\n",
      ["risk.jsonl"] = '{"address":"%s","network":"eth","Risk":"high/scam"}\n',
      ["interface.csv"] = "address,network,riskLevel,riskType\n%s,eth,high,scam\n",
      ["pair.csv"] = "address,network,Level,Type\n%s,eth,high,scam\n",
      ["results.csv"] = "address,network,risk_types\n%s,eth,high / scam\n",
    } do
      write(name, row:format(address))
      local output, status = shell("riskscreen blacklist import $TMP/" .. name)
      assert.equal(4, status)
      assert.matches("did you mean 'risks'?", output, 1, true)
    end
    local _, status = shell "riskscreen blacklist import $TMP/risk.csv --ignore-columns risk"
    assert.equal(0, status)
  end)

  it("refuses a risk that is none", function()
    local output, status = shell(("riskscreen blacklist add %s -n eth --risk scam"):format(HACK))
    assert.equal(4, status)
    assert.matches("--risk must be such as high/scam (got 'scam')", output, 1, true)
  end)
end)

describe("riskscreen kyt", function()
  it("submits in one process and waits in another, by requestId or ticket", function()
    local line = ("riskscreen kyt submit %s -n eth --output-address %s --direction received --jsonl"):format(HASH, HACK)
    local output, status = shell(line)
    assert.equal(0, status, output)
    local submitted = cjson.decode(output)
    write(
      "score.lua",
      [[
      return require("riskscreen").score_policy { rules = {
        { score_at_least = "80", action = "block" }, { score_below = "80", action = "allow" } } }]]
    )
    for _, subject in ipairs { submitted.requestId, submitted.ticket } do
      output, status = shell(("riskscreen kyt wait '%s' --policy $TMP/score.lua --json"):format(subject))
      assert.equal(2, status, output)
      assert.equal(submitted.requestId, cjson.decode(output).requestId)
      assert.equal("block", cjson.decode(output).action)
    end
  end)

  it("shows and records no access key that the service shows in the result", function()
    local key = "Sandbox strategy"
    local server = assert(riskscreen.sandbox.serve { accounts = { [key] = {} }, kyt_delay = 0 })
    local rules = '{ { strategy_name = "x", action = "block" }, { any = true, action = "allow" } }'
    write("names.lua", ('return require("riskscreen").score_policy { rules = %s }'):format(rules))
    local env = { RISKSCREEN_BASE_URL = server.url, RISKSCREEN_ACCESS_KEY = key, RISKSCREEN_ACCOUNT = "a" }
    env.RISKSCREEN_ENDPOINTS_KYT_RESULT_PATH = server.endpoints.kyt_result.path
    env.RISKSCREEN_ENDPOINTS_KYT_RESULT_METHOD = server.endpoints.kyt_result.method
    local journal = directory .. "/names.jsonl"
    local status, out, err
    riskscreen.run(function()
      local line = { "kyt", "screen", HASH, "-n", "eth", "--direction", "received", "--journal", journal }
      status, out, err =
        cli.run(tables.concat(line, { "--journal-record", "--policy", directory .. "/names.lua" }), { env = env })
    end)
    server:close()
    assert.matches("[redacted]", out, 1, true)
    assert.is_truthy(status == 2 or status == 3, err)
    assert.is_nil((out .. err .. read "names.jsonl"):find(key, 1, true))
  end)

  -- Sends a signal when the sandbox has a target's request, and returns the output and the status.
  local function ended(line, signal, target, delay)
    local served = cli.sandbox(delay)
    local begun = ("env %s riskscreen %s 2>&1 > $TMP/ended.csv & "):format(served.environment, line)
    local wait = ("until grep -q %s %s; do sleep 0.01; done; "):format(target, served.log)
    local output, status = shell(begun .. wait .. ("kill -%s $!; wait $!"):format(signal))
    served.close()
    return output, status
  end

  it("says what it has submitted when it is ended, also while that is answered", function()
    local line = "kyt screen " .. HASH .. " -n eth --timeout 20 --set endpoints.kyt_result.method=GET "
    line = line .. "--set endpoints.kyt_result.path=/sandbox/v1/kyt/result --set polling.first=0.01"
    for _, signal in ipairs { "INT", "TERM" } do
      for target, delay in pairs { result = 0, kyt = 0.3 } do
        local output, status = ended(line, signal, target, delay)
        assert.equal(130, status)
        assert.matches("the transaction was submitted: kyt wait sandbox%-request%-%d+\n", output)
      end
    end
  end)

  it("takes a wrong parameter for misuse, with the values that there are", function()
    local allowed = "direction must be one of .*received.*got 'recieved'; did you mean 'received'"
    for _, verb in ipairs { "screen", "submit" } do
      local output, status = shell(("riskscreen kyt %s %s -n eth --direction recieved 2>&1"):format(verb, HASH))
      assert.equal(4, status, output)
      assert.matches(allowed, output)
    end
    assert.equal(4, select(2, shell "riskscreen kyt wait ''"))
  end)

  it("says what it has submitted where that cannot be written", function()
    local output, status = shell(("riskscreen kyt submit %s -n eth --direction received 2>&1 >/dev/full"):format(HASH))
    assert.equal(3, status)
    assert.matches("the transaction was submitted: kyt wait sandbox%-request%-%d+\n", output)
  end)

  it("tells what became of each change of the account when it is ended", function()
    local rows = { "address,network,risks" }
    for number = 1, 200 do
      rows[#rows + 1] = ("0x%040x,eth,high/scam"):format(number)
    end
    local file = write("added.csv", table.concat(rows, "\n"))
    for _, signal in ipairs { "INT", "TERM" } do
      local _, status = ended("blacklist import --csv " .. file, signal, "blacklist", 0.3)
      assert.equal(130, status)
      assert.equal(100, select(2, read("ended.csv"):gsub(",added,", "")))
      assert.equal(100, select(2, read("ended.csv"):gsub(",unsent,cancelled: ", "")))
    end
    local output, status = ended("kyt submit --csv -n eth --direction received " .. HASH, "TERM", "kyt", 0.3)
    assert.equal(130, status, output)
    assert.matches("^requestId,customId,ticket\r?\nsandbox%-request%-%d+,", read "ended.csv")
  end)

  it("says how a shell sets where results are asked for", function()
    for _, verb in ipairs { "screen " .. HASH .. " -n eth", "wait sandbox-request-000001" } do
      local without = "env -u RISKSCREEN_ENDPOINTS_KYT_RESULT_METHOD -u RISKSCREEN_ENDPOINTS_KYT_RESULT_PATH "
      local output, status = shell(without .. "riskscreen kyt " .. verb)
      assert.equal(3, status)
      assert.matches("riskscreen config set endpoints.kyt_result.method GET", output, 1, true)
    end
  end)

  it("says that the default policy has no rule about scores, and is unknown", function()
    local output, status = shell(("riskscreen kyt screen %s -n eth"):format(HASH))
    assert.equal(3, status)
    assert.matches("--policy FILE", output, 1, true)
  end)
end)

describe("riskscreen webhook listen", function()
  it("begins a line behind one that an earlier listener could not end", function()
    local script = [[
      export RISKSCREEN_WEBHOOK_SECRET=0123456789abcdef
      : > $TMP/listener.txt; printf '{"webhookId":"w' > $TMP/torn.jsonl
      riskscreen webhook listen >> $TMP/torn.jsonl 2> $TMP/listener.txt & listener=$!
      until grep -qs listening $TMP/listener.txt; do sleep 0.02; done
      url=$(sed -n 's/.*listening on \(.*\)\/SECRET.*/\1/p' $TMP/listener.txt)
      for id in 1 2; do
        event='{"webhookId":"w'$id'","eventType":"e","timestamp":"2026-01-01 00:00:00","data":{"requestId":"r"}}'
        curl -s -o /dev/null -H 'Content-Type: application/json' -d "$event" $url/$RISKSCREEN_WEBHOOK_SECRET
      done
      kill $listener; wait $listener 2>/dev/null
      cut -c1-18 $TMP/torn.jsonl]]
    assert.equal('{"webhookId":"w\n{"webhookId":"w1",\n{"webhookId":"w2",\n', (shell(script)))
  end)

  it("writes each delivery once, and refuses those without the secret", function()
    local script = [[
      export RISKSCREEN_WEBHOOK_SECRET=0123456789abcdef
      : > $TMP/listener.txt
      riskscreen webhook listen > $TMP/events.jsonl 2> $TMP/listener.txt & listener=$!
      until grep -qs listening $TMP/listener.txt; do sleep 0.02; done
      url=$(sed -n 's/.*listening on \(.*\)\/SECRET.*/\1/p' $TMP/listener.txt)
      event='{"webhookId":"w1","eventType":"e","timestamp":"2026-01-01 00:00:00","data":{"requestId":"r"}}'
      for path in /$RISKSCREEN_WEBHOOK_SECRET /$RISKSCREEN_WEBHOOK_SECRET /wrong; do
        curl -s -o /dev/null -w '%{http_code} ' -H 'Content-Type: application/json' -d "$event" $url$path
      done
      kill $listener; wait $listener 2>/dev/null
      cat $TMP/events.jsonl]]
    local output = shell(script)
    local codes, events = output:match "^([%d ]+)(.*)$"
    assert.equal("200 200 401 ", codes)
    assert.equal(
      '{"webhookId":"w1","eventType":"e","timestamp":"2026-01-01 00:00:00","data":{"requestId":"r"}}\n',
      events
    )
  end)
end)

describe("riskscreen webhook listen, with an output that cannot be written,", function()
  it("takes no event, however long it is, also not when it is repeated", function()
    local script = [[
      export RISKSCREEN_WEBHOOK_SECRET=0123456789abcdef
      : > $TMP/listener.txt
      riskscreen webhook listen > /dev/full 2> $TMP/listener.txt & listener=$!
      until grep -qs listening $TMP/listener.txt; do sleep 0.02; done
      url=$(sed -n 's/.*listening on \(.*\)\/SECRET.*/\1/p' $TMP/listener.txt)
      note=$(head -c 20000 /dev/zero | tr '\0' x)
      event='"eventType":"e","timestamp":"2026-01-01 00:00:00","data":{"requestId":"r","note":"'
      for line in "{\"webhookId\":\"1\",$event\"}}" "{\"webhookId\":\"2\",$event$note\"}}"; do
        for time in 1 2; do
          echo "$line" | curl -s -o /dev/null -w '%{http_code} ' -H 'Content-Type: application/json' -d @- \
            $url/$RISKSCREEN_WEBHOOK_SECRET
        done
      done
      kill $listener; wait $listener 2>/dev/null]]
    assert.matches("^500 500 500 500 ", (shell(script)))
  end)
end)

describe("riskscreen webhook listen, of deliveries that it refuses,", function()
  it("prints a line for each, with the reason and without the secret", function()
    local script = [[
      export RISKSCREEN_WEBHOOK_SECRET=0123456789abcdef
      : > $TMP/listener.txt
      riskscreen webhook listen > $TMP/events.jsonl 2> $TMP/listener.txt & listener=$!
      until grep -qs listening $TMP/listener.txt; do sleep 0.02; done
      url=$(sed -n 's/.*listening on \(.*\)\/SECRET.*/\1/p' $TMP/listener.txt)
      send() { curl -s -o /dev/null -H 'Content-Type: application/json' "$@"; }
      send -d '{}' $url/not-the-secret-0
      send -d '{}' ${url%/*}/elsewhere/0123456789abcdef
      send -X PUT -d '{}' $url/0123456789abcdef
      send -d 'no JSON' $url/0123456789abcdef
      head -c 70000 /dev/zero | tr '\0' ' ' | send --data-binary @- $url/0123456789abcdef
      head -c 300000 /dev/zero | tr '\0' ' ' | send --data-binary @- $url/0123456789abcdef
      send -d '{"webhookId":"w","eventType":"e","timestamp":"2026-01-01 00:00:00","data":{}}' $url/0123456789abcdef
      kill $listener; wait $listener 2>/dev/null
      grep -v listening $TMP/listener.txt]]
    local reasons = {}
    for line in shell(script):gmatch "[^\n]+" do
      assert.is_nil(line:find "secret%-0")
      assert.is_nil(line:find "0123456789abcdef")
      reasons[#reasons + 1] = line:match "^riskscreen: refused a delivery from 127%.0%.0%.1: (%d+, .+)$" or line
    end
    assert.same({ "401, the secret is missing or wrong", "404, there is nothing here" }, { reasons[1], reasons[2] })
    assert.equal("405, events are delivered by POST", reasons[3])
    assert.matches("^400, .*JSON", reasons[4])
    assert.equal("413, a delivery has at most 65536 bytes", reasons[5])
    assert.equal("413, the body is too large", reasons[6])
    assert.equal(6, #reasons)
  end)
end)

describe("riskscreen journal", function()
  setup(function()
    shell(
      (
        "riskscreen screen -q %s 0x0000000000000000000000000000000000000001 -n eth --journal $TMP/j.jsonl "
        .. "--journal-record"
      ):format(HACK)
    )
  end)

  it("verifies the chain, and finds a changed line", function()
    local output, status = shell "riskscreen journal verify $TMP/j.jsonl"
    assert.equal(0, status, output)
    assert.matches("2 lines in 1 file: the chain holds", output, 1, true)
    write("changed.jsonl", (read("j.jsonl"):gsub('"action":"block"', '"action":"allow"')))
    output, status = shell "riskscreen journal verify $TMP/changed.jsonl --csv"
    assert.equal(2, status)
    -- The block is the first or the second line: two addresses are screened side by side.
    assert.matches("changed%.jsonl,([12]),%1,changed,", output)
  end)

  it("shows decisions", function()
    local output, status = shell "riskscreen journal show $TMP/j.jsonl --action block --jsonl"
    assert.equal(0, status, output)
    local entry = cjson.decode(output)
    assert.same({ HACK, "block", "eth" }, { entry.input, entry.action, entry.network })
  end)

  it("replays by another policy, and the status says whether a decision would change", function()
    local output, status = shell "riskscreen journal replay $TMP/j.jsonl"
    assert.equal(0, status, output)
    assert.matches("2 decisions: 0 would change, 0 cannot be made again", output, 1, true)
    write("mild.lua", 'return { rules = { { any = true, action = "review" } } }')
    output, status = shell "riskscreen journal replay $TMP/j.jsonl --policy $TMP/mild.lua --csv"
    assert.equal(1, status, output)
    assert.matches(HACK .. ",eth,block,review,", output, 1, true)
  end)

  it("has the status of unknown where it cannot be read", function()
    local _, status = shell "riskscreen journal verify $TMP/none.jsonl"
    assert.equal(3, status)
  end)
end)

describe("an output that cannot be written", function()
  local lines = {
    risk = "riskscreen risk --json -n eth " .. HACK,
    screen = "riskscreen screen --csv -n eth 0x00000000000000000000000000000000c1ea0000",
    ["blacklist export"] = "riskscreen blacklist export",
    ["config show"] = "riskscreen config show --all",
    completion = "riskscreen completion bash",
  }
  for verb, line in pairs(lines) do
    it("is no success of " .. verb, function()
      local output, status = shell(line .. " > /dev/full")
      assert.equal(3, status)
      assert.matches("the output cannot be written", output, 1, true)
      output, status = shell(line .. " >&-")
      assert.equal(3, status)
      assert.matches("the output cannot be written", output, 1, true)
    end)
  end

  it("leaves a change to the next run of watch", function()
    write("watched.csv", "address\n" .. HACK .. "\n")
    local line = "riskscreen watch --file $TMP/watched.csv -n eth --once"
    local output, status = shell(line .. " > /dev/full")
    assert.equal(3, status)
    assert.matches("a change was not delivered and is kept", output, 1, true)
    output, status = shell(line .. " 2>/dev/null")
    assert.equal(0, status)
    assert.equal("block", cjson.decode(output).action)
  end)
end)

describe("riskscreen doctor", function()
  it("finds a service in order, and says what is wrong with another", function()
    local output, status = shell "riskscreen doctor --set rate_limit.rate=50 --csv"
    assert.equal(1, status, output) -- plain http
    assert.matches("key,ok,", output, 1, true)
    assert.matches("test call,ok,", output, 1, true)
    output, status = shell "RISKSCREEN_ACCESS_KEY=another-key riskscreen doctor --csv"
    assert.equal(2, status)
    assert.matches("key,failed,", output, 1, true)
    output, status = shell "RISKSCREEN_BASE_URL=http://127.0.0.1:1 riskscreen doctor --csv"
    assert.equal(2, status)
    assert.matches("connection,failed,", output, 1, true)
    assert.is_nil(output:find("sandbox-key", 1, true))
  end)

  it(
    "measures what the interface leaves open, within its budget, and writes a profile that the sandbox takes",
    function()
      local path = directory .. "/profile.json"
      local output, status = shell("riskscreen doctor --assumptions --budget 7 --csv --imitation " .. path .. " 2>&1")
      assert.equal(0, status, output)
      assert.matches("sent: 7 requests", output, 1, true)
      assert.matches("the spelling of an address in an answer,as asked,as asked,as assumed", output, 1, true)
      assert.matches("final,1003,,not known,", output, 1, true)
      assert.is_truthy(riskscreen.sandbox.client { profile = path })
      output, status = shell("riskscreen doctor --assumptions --imitation " .. directory .. "/none/profile.json 2>&1")
      assert.equal(3, status, output)
      assert.is_nil(output:find "sent: %d") -- each request costs
      assert.equal(4, select(2, shell "riskscreen doctor --write"))
      assert.equal(4, select(2, shell "riskscreen doctor --assumptions --budget 0"))
    end
  )
end)

describe("riskscreen call", function()
  it("calls an operation by its name in the interface", function()
    local output, status = shell(("riskscreen call getAddressRisk address=%s network=eth --json"):format(HACK))
    assert.equal(0, status, output)
    assert.equal("hack", cjson.decode(output).risks[1].riskType)
    assert.equal(4, select(2, shell(("riskscreen call getAddressRisk adress=%s network=eth"):format(HACK))))
    assert.equal(4, select(2, shell "riskscreen call getAddressRisks"))
  end)

  it("takes lists and objects as JSON", function()
    local list = [['list=[{"address":"0x00000000000000000000000000000000000b1ac9"}]']]
    local output, status = shell(("riskscreen call addBlacklistAddresses %s network=eth"):format(list))
    assert.equal(0, status, output)
  end)
end)

describe("riskscreen completion", function()
  for shell_name, check in pairs { bash = "bash -n", zsh = false, fish = false } do
    it("writes a script for " .. shell_name .. " that knows every verb", function()
      local output, status = shell("riskscreen completion " .. shell_name)
      assert.equal(0, status)
      for _, command in ipairs(verbs.list()) do
        assert.matches(command.name:match "%S+$", output, 1, true)
      end
      for _, value in ipairs { "zksync", "freeze_events", "getAddressEntity", "rate_limit.rate", "/riskscreen 2>" } do
        assert.matches(value, output, 1, true)
      end
      if check then
        write("completion", output)
        assert.equal(0, select(2, shell(check .. " $TMP/completion")))
      end
    end)
  end

  it("completes verbs and options in bash", function()
    local script = [[
      eval "$(riskscreen completion bash)"
      complete_line() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _riskscreen; echo "${COMPREPLY[@]}"; }
      complete_line riskscreen scr; complete_line riskscreen screen --res; complete_line riskscreen blacklist ex
      mkdir -p $TMP/riskscreen; touch $TMP/riskscreen/{staging,riskconf}.conf; export XDG_CONFIG_HOME=$TMP
      complete_line riskscreen screen -n zk; complete_line riskscreen screen --include freeze
      complete_line riskscreen --profile stag; complete_line riskscreen --profile ris
      complete_line riskscreen call getAddressEnt; complete_line riskscreen help screen
      complete_line riskscreen list build --encoding lat; complete_line riskscreen config set base_u
      complete_line riskscreen completion fi]]
    write("complete.sh", (script:gsub("%f[%w]riskscreen completion", cli.command .. " completion")))
    local expected = "screen --resume export zksync freeze_events staging riskconf getAddressEntity screen latin1 "
      .. "base_url fish"
    assert.equal(expected, (shell("bash $TMP/complete.sh"):gsub("\n$", ""):gsub("\n", " ")))
  end)
end)

describe("the manual page", function()
  it("has no warnings, every verb and every option", function()
    local warnings, status = run "MANROFFSEQ= man --warnings -l docs/riskscreen.1 2>&1 >/dev/null"
    assert.equal(0, status)
    assert.equal("", warnings)
    local page = run "MANWIDTH=200 man -l docs/riskscreen.1 | col -b"
    for _, command in ipairs(verbs.list()) do
      assert.matches("\n   riskscreen " .. command.name .. "\n", page, 1, true)
      for _, example in ipairs(command.examples) do
        assert.matches("riskscreen " .. example.line:sub(1, 60), page, 1, true)
      end
    end
  end)
end)

describe("an example in the help", function()
  for _, command in ipairs(verbs.list()) do
    it("is there for " .. command.name .. ", and names options that it has", function()
      assert.is_truthy(command.examples[1])
      local help = shell("riskscreen " .. command.name .. " --help")
      for _, example in ipairs(command.examples) do
        assert.equal(command.name, example.line:sub(1, #command.name))
        assert.matches("riskscreen " .. example.line, help, 1, true)
        for option in example.line:gmatch "%-%-[%w-]+" do
          assert.matches(option, help .. shell "riskscreen --help", 1, true)
        end
      end
    end)
  end
end)

describe("a command without what it needs", function()
  local command_line = require "spec.support.command_line"
  local temporary = require "spec.support.temporary"
  after_each(temporary.clean)

  local SCREEN = "screen 0xf9410A55B94b72B3BE0e33912bE89D4F7dA143f3 -n eth"
  local BUILT = "$PWD/build/5.4/?.so"

  local function without(path, cpath, arguments)
    local line = 'LUA_PATH="$PWD/lua/?.lua;$PWD/lua/?/init.lua;%s" LUA_CPATH="%s" lua5.4 bin/riskscreen.in %s'
    return command_line.run(line:format(path, cpath, arguments))
  end

  it("names lua-argparse", function()
    local output, status = without("", BUILT, SCREEN)
    assert.equal("riskscreen: the Lua module argparse is not installed for Lua 5.4: apt install lua-argparse\n", output)
    assert.equal(4, status)
  end)

  for _, case in ipairs {
    { "core", "libcurl", "libcurl4", SCREEN },
    { "server", "libmicrohttpd", "libmicrohttpd12", "sandbox --port 0" },
  } do
    local module, library, package_name, arguments = table.unpack(case) -- luacheck: ignore 143
    it("names the package of " .. library, function()
      -- A module that needs a library which is not there.
      local place = temporary.directory()
      local copy = "mkdir %s/riskscreen && cp build/5.4/riskscreen/system.so %s/riskscreen"
      assert(os.execute(copy:format(place, place)))
      local compile = "cd %s && echo 'int f(void){return 0;}' >f.c"
        .. " && cc -shared -fPIC -Wl,-soname,%s.so.99 f.c -o libf.so"
        .. " && echo 'int f(void); int luaopen_riskscreen_%s(void *L){return L != 0 && f();}' >module.c"
        .. " && cc -shared -fPIC module.c -o riskscreen/%s.so -L. -lf"
      assert(os.execute(compile:format(place, library, module, module)))
      local output, status = without("/usr/share/lua/5.4/?.lua", place .. "/?.so;" .. BUILT, arguments)
      local expected = "riskscreen.%s needs %s.so.99, which is not installed: apt install %s\n"
      assert.matches(expected:format(module, library, package_name), output, 1, true)
      assert.matches("^riskscreen: [^\n]+\n$", output)
      assert.equal(4, status)
    end)
  end

  it("names itself where the library is not there", function()
    local output, status = command_line.run "LUA_PATH=/none lua5.4 bin/riskscreen.in --version"
    assert.matches("^riskscreen: [^\n]*'riskscreen.cli'[^\n]*\n$", output)
    assert.equal(4, status)
  end)
end)
