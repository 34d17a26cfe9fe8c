-- Every example of a verb's help, as a shell runs it, against a sandbox in a process of its own.
local cli = require "spec.support.cli"
local commands = require "riskscreen.cli.commands"
local parsers = require "riskscreen.cli.parser"
local redis_server = require "spec.support.redis"
local temporary = require "spec.support.temporary"

local SECONDS = 1.5 -- until a verb that does not end by itself is ended
local PATIENCE = 30 -- seconds
local ENDED = 124 -- the status of timeout(1)
local MISUSE = 4

local root = assert(io.popen "pwd"):read "*l"
local A, B = "0x16e998a4a64a384aa74dd757e5a6858ab909262e", "0x0000000000000000000000000000000000000001"

local is_endless = { sandbox = true, watch = true, ["queue work"] = true, ["queue results"] = true }
is_endless["webhook listen"] = true

-- The files that the examples name.
local files = {
  ["addresses.csv"] = ("address,network\n%s,eth\n%s,eth\n"):format(A, B),
  ["customers.csv"] = ("address,customer\n%s,1\n%s,2\n"):format(A, B),
  ["ours.csv"] = ("address,note\n%s,ours\n"):format(A),
  ["payouts.lua"] = 'return dofile "' .. root .. '/examples/payouts.lua"\n',
  ["policy.lua"] = 'return { rules = { { level = "low", action = "allow" } } }\n',
  ["old.lua"] = 'return { rules = { { any = true, action = "allow" } } }\n',
  ["new.lua"] = 'return { rules = { { any = true, action = "review" } } }\n',
  ["sdn.xml"] = "<sdnList><sdnEntry><uid>1</uid><idList><id><idType>Digital Currency Address - ETH</idType><idNumber>"
    .. B
    .. "</idNumber></id></idList></sdnEntry></sdnList>",
  ["config/riskscreen/staging.conf"] = "timeout = 5\n",
  ["config/riskscreen/production.conf"] = "timeout = 5\n",
}

-- Steps that a user has taken before.
local before = [[
  riskscreen screen --file addresses.csv -o results.csv -q
  riskscreen screen %s -n eth -q --journal decisions.jsonl --journal-record
  cp decisions.jsonl journal.jsonl; cp decisions.jsonl cases.jsonl
  gzip -k addresses.csv
  riskscreen list build ours.csv -o deny.rsl -q
  riskscreen kyt submit 0x%s -n eth --direction received --csv -q
  riskscreen kyt submit 0x%s -n eth --direction received --csv | sed -n '2s/,.*//p' >request_id]]

local before_verb = {
  ["whitelist remove"] = ('riskscreen whitelist add \'list=[{"address":"%s","network":"eth"}]\''):format(A),
  ["screen --file addresses.csv --resume"] = "riskscreen screen --file addresses.csv -q",
  ["queue results"] = "rm results.csv",
}

local describe_if = redis_server.is_installed() and describe or pending

describe_if("an example in the help", function()
  local directory, environment, process, redis, request_id

  -- Runs lines of a shell in a directory, and ends the processes that they leave behind.
  local function shell(place, lines, seconds)
    temporary.write(
      place .. "/lines.sh",
      lines .. "\nstatus=$?\njobs -p >jobs\nkill $(cat jobs) 2>/dev/null\nexit $status\n"
    )
    local pipe = assert(
      io.popen(
        ("cd %s && set -a && . %s && timeout %s sh lines.sh 2>&1 </dev/null; echo exit $?"):format(
          place,
          environment,
          seconds
        )
      )
    )
    -- A verb that has been told to end may write after timeout(1) has ended.
    local output, status = pipe:read("*a"):match "^(.*)exit (%d+)\n"
    pipe:close()
    return tonumber(status), output
  end

  local function fill(place)
    for name, content in pairs(files) do
      temporary.write(place .. "/" .. name, content)
    end
  end

  setup(function()
    directory = temporary.directory()
    redis = redis_server.start()
    os.execute(("mkdir -p %s/bin %s/config/riskscreen %s/.zfunc"):format(directory, directory, directory))
    os.execute(
      ("mkdir -p %s/.config/fish/completions %s/.local/share/bash-completion/completions"):format(directory, directory)
    )
    local program = cli.command:gsub(" bin/", " " .. root .. "/bin/")
    temporary.write(directory .. "/bin/riskscreen", ('#!/bin/sh\nexec %s "$@"\n'):format(program))
    temporary.write(directory .. "/bin/mail", "#!/bin/sh\nexec cat >/dev/null\n")
    os.execute(("chmod +x %s/bin/*"):format(directory))
    environment = directory .. "/environment"
    temporary.write(environment, "")
    local serve = ("%s/bin/riskscreen sandbox > %s 2>/dev/null & echo $!"):format(directory, environment)
    process = assert(io.popen(serve)):read "*l"
    os.execute(("until grep -qs WHITELIST_REMOVE_PATH %s; do sleep 0.02; done"):format(environment))
    local settings = {
      temporary.read(environment),
      "HOME=" .. directory,
      "XDG_CONFIG_HOME=" .. directory .. "/config",
      "PATH=" .. directory .. "/bin:$PATH",
      "RISKSCREEN_REDIS_URL=" .. redis.url,
      "RISKSCREEN_WEBHOOK_SECRET=0123456789abcdef",
      "RISKSCREEN_WATCH_SECRET=0123456789abcdef",
      "RISKSCREEN_POLLING_FIRST=0.05",
      "",
    }
    temporary.write(environment, table.concat(settings, "\n"))
    fill(directory)
    local status, output = shell(directory, before:format(A, ("5e"):rep(32), ("5f"):rep(32)), PATIENCE)
    assert.equal(0, status, output)
    request_id = temporary.read(directory .. "/request_id"):match "%S+"
  end)

  teardown(function()
    os.execute("kill " .. process)
    redis:stop()
    temporary.clean()
  end)

  for _, command in ipairs(commands.list()) do
    for index, example in ipairs(command.examples) do
      it(("runs: %s (%d)"):format(command.name, index), function()
        local place = ("%s/%s-%d"):format(directory, command.name:gsub(" ", "-"), index)
        assert(os.execute(("mkdir %s && cp %s/*.* %s"):format(place, directory, place)))
        local line = "riskscreen " .. example.line
        line = line:gsub("REQUEST_ID", request_id):gsub("%-%-port %d+", "--port 0"):gsub("/var/lib/riskscreen/", "")
        line = line:gsub("https://example.com", "$RISKSCREEN_BASE_URL")
        if command.name == "list update" then
          line = line .. " --url $RISKSCREEN_BASE_URL/sdn.xml" -- which the sandbox does not have
        end
        local prepared = before_verb[example.line] or before_verb[command.name]
        if prepared then
          shell(place, prepared, PATIENCE)
        end
        local endless = is_endless[command.name] and not line:find "%-%-once"
        local status, output = shell(place, line, endless and SECONDS or PATIENCE)
        local expected = { [0] = true, [ENDED] = endless }
        for _, entry in ipairs(parsers.statuses(command)) do
          expected[entry.status] = entry.status < MISUSE or expected[entry.status]
        end
        assert.is_true(expected[status], ("%s\n%d: %s"):format(line, status, output))
        assert.is_nil(output:find("Usage:", 1, true) and command.name ~= "help" or nil)
      end)
    end
  end
end)
