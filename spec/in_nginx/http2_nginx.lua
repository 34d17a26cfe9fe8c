-- The gate behind HTTP/2: requests share a connection, and bodies come in frames, also without a length.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local gates = require "spec.support.gate"
local http = require "spec.support.http"
local riskscreen = require "riskscreen"
local tls_server = require "spec.support.tls_server"

local CLEAN, HIGH = addresses["clean-eth"], addresses["high-eth"]
local STREAMS = 100 -- at once; nginx takes 128
local CANNOT_READ_WITHOUT_LENGTH = 10026 -- lua-nginx-module 0.10.26

local GATE = [[gate = new_gate { network = "eth", address = { argument = "to" },
  block = { status = 451 }, review = { status = 409 }, unknown = { status = 503 }, invalid = { status = 400 } }
  json_gate = gate:location { address = { json = "to", max_body = 1048576 } }]]

local SERVER = [[
  listen unix:DIR/h2 ssl http2;
  ssl_certificate %s;
  ssl_certificate_key %s;
  client_body_buffer_size 8k;
  add_header X-Connection "$server_protocol $connection" always;
]]

-- The application can read the body after the gate. Some versions raise an error if the body has no length.
local BEHIND = [[content_by_lua_block {
  ngx.print("passed ", ngx.var.http_content_length and (ngx.req.get_body_data() or "in a file") or "")
}]]

describe("behind HTTP/2", function()
  local running, get, certificates

  setup(function()
    certificates = tls_server.start()
  end)

  teardown(function()
    certificates.stop()
  end)

  before_each(function()
    running = gates.start {
      init = GATE,
      server = SERVER:format(certificates.path "good.pem", certificates.path "key.pem"),
      locations = { ["/withdraw"] = "gate:enforce()", ["/json"] = "json_gate:enforce()" },
      behind = BEHIND,
      workers = 2,
    }
    local ask = http.origin("https://localhost", {
      unix_socket = running.nginx.directory .. "/h2",
      http_version = "2",
      ca_file = certificates.path "ca.pem",
    })
    function get(target, request)
      local answer = assert(ask(target, request))
      assert.matches("^HTTP/2%.0 ", answer.headers["x-connection"])
      return answer
    end
  end)

  after_each(function()
    running.close { "is buffered to a temporary file", '"listen ... http2" directive is deprecated' }
  end)

  local function to(name)
    return "/withdraw?to=" .. addresses[name]
  end

  local function json(body)
    return { body = body, headers = { "Content-Type: application/json" } }
  end

  local function body_with(address, more)
    return ('{"note": "%s", "to": "%s"}'):format(more or "", address)
  end

  it("the gate acts on each decision", function()
    for target, status in pairs {
      [to "clean-eth"] = 200,
      [to "high-eth"] = 451,
      [to "generally-high-eth"] = 409,
      [to "fault-500"] = 503,
      ["/withdraw"] = 400,
      [to "clean-eth" .. "&TO=" .. HIGH] = 400,
      [to "clean-eth" .. "#&to=" .. HIGH] = 400,
    } do
      assert.equal(status, get(target).status, target)
      assert.equal(status, get(target, { method = "HEAD" }).status, target)
    end
  end)

  it("the address can be in a JSON body, in memory or in a file", function()
    local short = get("/json", json(body_with(CLEAN)))
    assert.same({ 200, "passed " .. body_with(CLEAN) }, { short.status, short.body })
    local long = get("/json", json(body_with(CLEAN, ("x"):rep(200000))))
    assert.same({ 200, "passed in a file" }, { long.status, long.body })
    for _, more in ipairs { "", ("x"):rep(200000) } do
      assert.equal(451, get("/json", json(body_with(HIGH, more))).status)
      assert.equal(400, get("/json", json(body_with(CLEAN, more):sub(1, -2) .. ', "TO": ""}')).status)
    end
  end)

  -- The status of the answer to a body in pieces and without a length.
  local function status_of_pieces(pieces)
    local said, commands = os.tmpname(), {}
    for index, piece in ipairs(pieces) do
      commands[index] = ("printf %%s '%s'"):format(piece)
    end
    local sender = "(%s) 2>/dev/null | curl -s -o /dev/null -w '%%{http_code}.' --http2 --cacert %s --unix-socket %s/h2"
      .. " -X POST -T - -H 'Content-Type: application/json' https://localhost/json >%s &"
    local ca, directory = certificates.path "ca.pem", running.nginx.directory
    os.execute(sender:format(table.concat(commands, "; sleep 0.05; "), ca, directory, said))
    local status
    repeat
      riskscreen.sleep(0.01)
      local file = assert(io.open(said))
      status = file:read("*a"):match "^(%d+)%."
      file:close()
    until status
    os.remove(said)
    return tonumber(status)
  end

  it("the body can come in pieces and without a length", function()
    local module = running.nginx:eval "return ngx.config.ngx_lua_version"
    local expected = module == CANNOT_READ_WITHOUT_LENGTH and { clean = false, high = false }
      or { clean = 200, high = 451 }
    for _, more in ipairs { "", ("x"):rep(20000) } do
      local clean = status_of_pieces { '{"note": "' .. more, '", "to": "', CLEAN, '"}' }
      local high = status_of_pieces { '{"note": "' .. more, '", "to": "', HIGH, '"}' }
      assert.same(expected, { clean = clean == 200 and 200, high = expected.high and high })
      assert.not_equal(200, high)
    end
  end)

  it("many streams of one connection cause one fetch", function()
    local connection = get(to "clean-eth").headers["x-connection"]
    running.service:fault { kind = "delay", delay = 0.5, match = { address = HIGH } }
    local calls, seen = {}, {}
    for index = 1, STREAMS do
      calls[index] = function()
        local answer = get(to(index % 10 == 0 and "clean-eth" or "high-eth"))
        local key = answer.status .. " " .. answer.headers["x-connection"]
        seen[key] = (seen[key] or 0) + 1
        return true
      end
    end
    riskscreen.gather(calls)
    assert.same({ ["451 " .. connection] = STREAMS * 9 / 10, ["200 " .. connection] = STREAMS / 10 }, seen)
    assert.equal(2, #running.service:requests())
  end)

  it("a denied request leaves the other streams alone", function()
    local connection = get(to "clean-eth").headers["x-connection"]
    for _ = 1, 3 do
      local refused = get(to "high-eth", { body = ("x"):rep(10000) })
      assert.same({ 451, connection }, { refused.status, refused.headers["x-connection"] })
      local passed = get(to "clean-eth")
      assert.same({ 200, connection }, { passed.status, passed.headers["x-connection"] })
    end
  end)
end)
