-- ./dev fleet: two gates, Redis, a sandbox and three workers of a queue, started by one command.
local commands = require "spec.support.page_commands"
local free_port = require "spec.support.free_port"
local redis_server = require "spec.support.redis"
local socket = require "socket"

local has_nginx = select(2, commands.run "PATH=$PATH:/usr/sbin command -v nginx") == 0
local describe_if = redis_server.is_installed() and has_nginx and describe or pending

describe_if("./dev fleet", function()
  it("shares verdicts among two gates, and screens what is added to its queue", function()
    local port, log = free_port(2), os.tmpname()
    local pipe = assert(io.popen(("exec ./dev fleet %d >%s 2>&1 & echo $!"):format(port, log)))
    local process = pipe:read "*l"
    pipe:close()
    finally(function()
      os.execute("kill " .. process .. " 2>/dev/null")
    end)
    local deadline = socket.gettime() + 300
    local text
    repeat
      socket.sleep(0.1)
      text = commands.run("cat " .. log)
    until text:find("queue status", 1, true) or socket.gettime() > deadline

    assert.matches("queue status", text, 1, true)
    local path = text:match "(/withdraw%?[^']*)'"
    local url, results = text:match "RISKSCREEN_REDIS_URL=(%S+)", text:match "come to (%S+):"
    local first = commands.run(("curl -s '127.0.0.1:%d%s'"):format(port, path))
    local second
    repeat
      second = commands.run(("curl -s '127.0.0.1:%d%s'"):format(port + 1, path))
    until second ~= "sent, upstream\n" or socket.gettime() > deadline
    local command = ("RISKSCREEN_REDIS_URL=%s ./dev riskscreen queue "):format(url)
    local added = commands.run(command .. "add examples/addresses.csv --source list")
    local rows
    repeat
      socket.sleep(0.2)
      local dead = select(2, commands.run(command .. "dead --csv"):gsub("\n", "")) - 1
      rows = dead + select(2, commands.run("cat " .. results):gsub("\r\n", "")) - 1
    until rows >= 274 or socket.gettime() > deadline
    local purge = ("curl -s -w '%%{http_code}' '127.0.0.1:%d/purge?%s'"):format(port, path:match "address=.*")
    local purged = commands.run(purge)
    commands.run(("redis-cli -s '%s' shutdown nosave 2>&1"):format(url:sub(#"unix:" + 1)))
    local not_purged = commands.run(purge)
    local directory = results:match "^(.*)/"
    os.execute("kill " .. process)
    repeat
      socket.sleep(0.1)
      local _, status = commands.run("test -e " .. directory)
    until status ~= 0 or socket.gettime() > deadline
    os.remove(log)

    assert.equal("sent, upstream\n", first)
    assert.is_true(second == "sent, redis\n" or second == "sent, lru\n")
    assert.matches("274 rows: 274 added", added)
    assert.equal(274, rows)
    assert.equal("true\n200", purged)
    assert.matches("^riskscreen: storage: .*\n500$", not_purged)
    for number = port, port + 1 do
      assert.is_nil(socket.connect("127.0.0.1", number))
    end
  end)
end)
