-- The example gateway as it stands, started as a person starts it: examples/nginx by ./dev gateway.
local command_line = require "spec.support.command_line"
local free_port = require "spec.support.free_port"
local http = require "spec.support.http"
local json = require "riskscreen.json"
local nginx = require "spec.support.nginx"
local program = require "spec.support.nginx_program"
local riskscreen = require "riskscreen"
local socket = require "socket"

local scenario = riskscreen.sandbox.scenario
local HASH = "0x5f16ca1b3b1b6b3d6c9b4b0a4c1bb9e1ae77e42a4f6a6bd9f8b6a4a5b2f5d3c1"

local function output_of(command)
  local pipe = assert(io.popen(command))
  local output = pipe:read "*a"
  pipe:close()
  return output
end

local function read(path)
  local file = assert(io.open(path))
  local content = file:read "*a"
  file:close()
  return content
end

describe("./dev gateway", function()
  local port, get, log, pid, said

  setup(function()
    port, log = free_port(), os.tmpname()
    get = http.origin("http://127.0.0.1:" .. port)
    pid = tonumber(output_of(("env -u LUA_INIT sh dev gateway %d >>%s 2>&1 & echo $!"):format(port, log)))
    nginx.wait_for("the gateway to say what to try", function()
      said = read(log)
      return said:find("curl '[^\n]*/metrics'\n")
    end)
  end)

  teardown(function()
    os.execute("kill " .. pid)
    nginx.wait_for("the gateway to end", function()
      return output_of(("kill -0 %d 2>&1"):format(pid)) ~= ""
    end)
    local everything = read(log)
    os.remove(log)
    assert.is_nil(socket.connect("127.0.0.1", port))
    assert.is_nil(everything:match "%[error%][^\n]*", everything)
    assert.is_nil(everything:find("secret-of-the-example", 1, true))
  end)

  local function try(line)
    return output_of(line:gsub("^curl", "curl -s") .. " 2>&1")
  end

  it("prints three lines to try: an allowed address, a blocked one, metrics", function()
    local lines = {}
    for line in said:gmatch "curl [^\n]+" do
      lines[#lines + 1] = line
    end
    assert.equal(3, #lines)
    local allowed, blocked = try(lines[1]), try(lines[2])
    assert.matches("^HTTP/1.1 200 OK", allowed)
    assert.matches('{"withdrawal":"accepted"}', allowed, 1, true)
    assert.matches("^HTTP/1.1 403 Forbidden", blocked)
    assert.is_nil(blocked:lower():find "sanction")
    nginx.wait_for("both decisions to be counted", function()
      local metrics = try(lines[3])
      return metrics:find 'riskscreen_decisions_total{action="allow",gate="[%w_]+",source="upstream"} 1\n'
        and metrics:find 'riskscreen_decisions_total{action="block",gate="[%w_]+",source="upstream"} 1\n'
    end)
  end)

  it("ends with nginx's own notices alone when it is interrupted", function()
    local rest, status = command_line.interrupt("sh dev gateway " .. free_port(), "^curl '[^\n]*/metrics'$")
    for line in rest:gmatch "[^\n]+" do
      assert.matches("^[%d/]+ [%d:]+ %[notice%] ", line)
    end
    assert.equal(0, status)
  end)

  it("says so where the port is taken", function()
    assert.matches(
      "answers on port " .. port,
      output_of(("env -u LUA_INIT sh dev gateway %d 2>&1"):format(port)),
      1,
      true
    )
  end)

  it("lets no request pass that names no address, or two", function()
    local clean = scenario("clean-eth").address
    local post = { body = "" }
    assert.equal(403, get("/withdraw?network=eth", post).status)
    assert.equal(403, get("/withdraw?network=eth&address=0x12", post).status)
    local twice = ("/withdraw?network=eth&address=%s&address=%s"):format(clean, scenario("high-eth").address)
    assert.equal(403, get(twice, post).status)
  end)

  it("takes a withdrawal by POST alone", function()
    local target = "/withdraw?network=eth&address=" .. scenario("clean-eth").address
    assert.equal(200, get(target, { body = "" }).status)
    assert.equal(403, get(target).status)
  end)

  it("looks at both ends of a transfer", function()
    local function transfer(from, to)
      local body = json.encode { network = "eth", from = scenario(from).address, to = scenario(to).address }
      return get("/transfer", { body = body, headers = { "Content-Type: application/json" } }).status
    end
    assert.same({ 200, 403, 403 }, {
      transfer("clean-eth", "low-eth"),
      transfer("clean-eth", "type-sanction"),
      transfer("type-sanction", "clean-eth"),
    })
  end)

  it("answers deposits when the webhook has come", function()
    local answers = riskscreen.gather {
      function()
        return get(("/deposit?network=eth&hash=%s&address=%s"):format(HASH, scenario("clean-eth").address))
      end,
      function()
        return get(("/deposit?network=eth&hash=%s&address=%s"):format(HASH, scenario("type-sanction").address))
      end,
    }
    assert.same({ 200, '{"deposit":"allow"}\n' }, { answers[1].status, answers[1].body })
    assert.same({ 403, '{"deposit":"block"}\n' }, { answers[2].status, answers[2].body })
    nginx.wait_for("both webhooks to be counted", function()
      return get("/metrics").body:find 'riskscreen_webhooks_total{gate="[%w_]+",status="200"} 2\n'
    end)
  end)

  it("takes no webhook without the secret", function()
    assert.equal(401, get("/webhooks/secret-of-the-example", { body = "{}" }).status)
  end)

  it("shows how it is to those who run it", function()
    local answer = get("/status", { headers = { "Accept: application/json" } })
    assert.equal(200, answer.status)
    assert.is_table(json.decode(answer.body))
    assert.equal(200, get("/status", { headers = { "Accept: text/html" } }).status)
  end)

  it("forgets an address when it is told to", function()
    local address = scenario("low-eth").address
    assert.equal(400, get("/purge?address=" .. address).status)
    local answer = get("/purge?address=" .. address, { method = "POST" })
    assert.same({ 200, '{"purged":true}\n' }, { answer.status, answer.body })
  end)
end)

describe("examples/nginx/nginx.conf", function()
  it("is one that nginx accepts as it stands", function()
    local output = output_of(program.command .. " -e stderr -t -p examples/nginx -c nginx.conf 2>&1")
    if program.modules() == "" and output:find("load_module", 1, true) then
      pending "beside this nginx another one's modules are installed"
    end
    assert.matches("test is successful", output, 1, true)
  end)
end)
