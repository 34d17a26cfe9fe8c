-- The gate answers nginx's auth_request and Caddy's forward_auth, each in front of an application.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local caddy = require "spec.support.caddy"
local free_port = require "spec.support.free_port"
local gates = require "spec.support.gate"
local json = require "riskscreen.json"
local nginx = require "spec.support.nginx"
local pages = require "spec.support.pages"
local prometheus = require "spec.support.prometheus"

local GATE = [[
  gate = new_gate {
    network = "eth", address = { argument = "to" }, methods = { "POST" }, on_unknown = "block",
    proxy = { trusted = { "127.0.0.1" } },
  }
]]

local PASSED = 'content_by_lua_block { ngx.print("passed") }'

-- An application that asks within this nginx, one that asks over HTTP, and the gate for other proxies.
local SERVER = [[
  auth_request_set $gate_action $sent_http_x_riskscreen_action;
  location /withdraw { auth_request /ask; add_header X-Action $gate_action; PASSED }
  location = /ask { internal; content_by_lua_block { gate:answer() } }
  location /remote {
    auth_request /ask-remote;
    rewrite_by_lua_block { ngx.req.read_body() }
    PASSED
  }
  location = /ask-remote {
    internal;
    proxy_pass http://127.0.0.1:PORT/gate;
    proxy_pass_request_body off;
    proxy_set_header Content-Length "";
    proxy_set_header X-Forwarded-Uri $request_uri;
    proxy_set_header X-Forwarded-Method $request_method;
  }
  location = /gate { content_by_lua_block { gate:answer() } }
  location = /stranger { content_by_lua_block { stranger:answer() } }
]]
SERVER = SERVER:gsub("PASSED", PASSED)

describe("gate:answer()", function()
  local running

  local function start(options)
    options = options or {}
    options.init = (options.gate or GATE)
      .. "stranger = gate:location { proxy = { trusted = { '192.0.2.0/24' } } }\n"
      .. (options.init or "")
    options.server = SERVER .. (options.server or "")
    running = gates.start(options)
  end

  local function stop(allowed)
    local ending = running
    running = nil
    if ending then
      ending.close(allowed)
    end
  end

  after_each(function()
    stop()
  end)

  local function post(target, more)
    local request = { method = "POST" }
    for name, value in pairs(more or {}) do
      request[name] = value
    end
    return running.get(target, request)
  end

  local function to(name)
    return "?to=" .. addresses[name]
  end

  for _, path in ipairs { "/withdraw", "/remote" } do
    describe("asked by auth_request for " .. path, function()
      it("lets a clean address pass, and nothing else", function()
        start()
        assert.equal("passed", post(path .. to "clean-eth").body)
        assert.equal(403, post(path .. to "high-eth").status)
        assert.equal(403, post(path).status)
        assert.equal(403, running.status(path .. to "clean-eth"))
        stop()
      end)

      it("refuses an address that two programs could read in two ways", function()
        start()
        for _, target in ipairs {
          to "clean-eth" .. "&to=" .. addresses["high-eth"],
          to "high-eth" .. "&to=" .. addresses["clean-eth"],
          to "clean-eth" .. "&To=" .. addresses["high-eth"],
          to "clean-eth" .. "%23&to=" .. addresses["high-eth"],
        } do
          assert.equal(403, post(path .. target).status, target)
        end
      end)

      it("does not believe headers of the client", function()
        start()
        local forged = {
          "X-Forwarded-Uri: /withdraw" .. to "clean-eth",
          "X-Forwarded-Method: POST",
          "X-Original-URI: /withdraw" .. to "clean-eth",
        }
        assert.equal(403, post(path .. to "high-eth", { headers = forged }).status)
        assert.equal(403, running.status(path .. to "clean-eth", { headers = forged }))
      end)
    end)
  end

  it("gives nginx the action, for the access log and the application", function()
    start()
    assert.equal("allow", post("/withdraw" .. to "clean-eth").headers["x-action"])
  end)

  it("makes nginx refuse when the decision is unknown", function()
    start()
    assert.equal(500, post("/withdraw" .. to "fault-500").status)
    stop { "auth request unexpected status: 503" }
  end)

  local function ask(target, method, headers, path)
    headers = headers or {}
    headers[#headers + 1] = target and "X-Forwarded-Uri: " .. target
    headers[#headers + 1] = method and "X-Forwarded-Method: " .. method
    return running.get(path or "/gate", { headers = headers })
  end

  it("answers a trusted proxy with the status, the action and the request's id", function()
    start()
    local function answered(name)
      local answer = ask("/pay" .. to(name), "POST")
      assert.matches("^%x+$", answer.headers["x-request-id"])
      return { answer.status, answer.headers["x-riskscreen-action"], answer.body }
    end
    assert.same({ 200, "allow", "" }, answered "clean-eth")
    assert.same({ 403, "block", "" }, answered "high-eth")
    assert.same({ 403, "review", "" }, answered "generally-high-eth")
    assert.same({ 503, "unknown", "" }, answered "fault-500")
  end)

  it("says when to ask again where the decision is unknown", function()
    start()
    assert.equal("5", ask("/pay" .. to "fault-500", "POST").headers["retry-after"])
    assert.is_nil(ask("/pay" .. to "high-eth", "POST").headers["retry-after"])
  end)

  it("refuses a proxy that tells no method or no URL, two URLs, or a URL without a path", function()
    start()
    local clean = "/pay" .. to "clean-eth"
    assert.equal(200, ask(clean, "POST").status)
    assert.equal(403, ask(clean, nil).status)
    assert.equal(403, ask(nil, "POST").status)
    assert.equal(403, ask("http://127.0.0.1" .. clean, "POST").status)
    assert.equal(403, ask(clean, "POST", { "X-Forwarded-Uri: /pay" .. to "high-eth" }).status)
    assert.equal(403, ask(clean .. "#", "POST").status)
    assert.equal(403, ask(nil, "POST", nil, "/gate" .. to "clean-eth").status)
  end)

  it("refuses whoever is not trusted, whatever the headers say", function()
    start()
    local headers = { "X-Forwarded-For: 192.0.2.1", "X-Real-IP: 192.0.2.1" }
    local answer = ask("/pay" .. to "clean-eth", "POST", headers, "/stranger")
    assert.equal(403, answer.status)
    assert.is_nil(answer.headers["x-riskscreen-action"])
    assert.matches("127.0.0.1 asks, and is not in proxy.trusted", running.nginx:log(), 1, true)
  end)

  it("tests the address of the connection, also where the realip module replaces it", function()
    start { server = "set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;" }
    local clean = "/pay" .. to "clean-eth"
    assert.equal(403, ask(clean, "POST", { "X-Forwarded-For: 192.0.2.1" }, "/stranger").status)
    assert.equal(200, ask(clean, "POST", { "X-Forwarded-For: 192.0.2.1" }).status)
  end)

  it("does not take the proxy for an exempt caller", function()
    start {
      gate = GATE:gsub("methods", "exempt = { '127.0.0.0/8', '192.0.2.0/24' }, methods"),
      server = "set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For;",
    }
    local bad = "/pay" .. to "high-eth"
    assert.equal(403, ask(bad, "POST").status)
    assert.equal(200, ask(bad, "POST", { "X-Forwarded-For: 192.0.2.1" }).status)
  end)

  it("reads the path that the client asked for", function()
    start {
      gate = [[gate = new_gate {
        network = "eth", address = { path = 2 }, on_unknown = "block", proxy = { trusted = { "127.0.0.1" } },
      }]],
    }
    assert.equal(200, ask("/pay/" .. addresses["clean-eth"], "POST").status)
    assert.equal(403, ask("/pay/" .. addresses["high-eth"], "POST").status)
    assert.equal(403, ask("/pay/x/../" .. addresses["clean-eth"], "POST").status)
    assert.equal(403, ask("/pay//" .. addresses["clean-eth"], "POST").status)
    assert.equal(200, running.status("/withdraw/" .. addresses["clean-eth"]))
    assert.equal(403, running.status("/withdraw/" .. addresses["high-eth"]))
  end)

  it("sees the URL before a rewrite, unless the configuration names the one after it", function()
    start {
      gate = GATE:gsub('methods = { "POST" },', "")
        .. "after = gate:location { proxy = { uri = { variable = 'checked' } } }",
      server = [[
        rewrite ^/([a-z]+)/short/(.*)$ /$1?to=$2? last;
        location = /before { auth_request /ask; content_by_lua_block { ngx.print "passed" } }
        location = /later {
          set $checked $uri$is_args$args;
          auth_request /after;
          content_by_lua_block { ngx.print "passed" }
        }
        location = /after { internal; content_by_lua_block { after:answer() } }
      ]],
    }
    assert.equal(403, running.status("/before/short/" .. addresses["clean-eth"]))
    assert.equal(200, running.status("/later/short/" .. addresses["clean-eth"]))
    assert.equal(403, running.status("/later/short/" .. addresses["high-eth"]))
    assert.equal(403, running.status("/later/short/" .. addresses["high-eth"] .. to "clean-eth"))
  end)

  it("decides and lets everyone pass in monitor mode", function()
    start { init = "gate = gate:location { monitor = true }" }
    assert.equal("passed", post("/withdraw" .. to "high-eth").body)
    assert.equal("passed", post "/withdraw".body)
    assert.equal("block", ask("/pay" .. to "high-eth", "POST").headers["x-riskscreen-action"])
  end)

  it("counts what it decides", function()
    start { server = "location = /metrics { content_by_lua_block { gate:metrics() } }" }
    ask("/pay" .. to "high-eth", "POST")
    post("/withdraw" .. to "high-eth")
    local counted = prometheus.parse(running.get("/metrics").body)
    for _, source in ipairs { "upstream", "lru" } do
      local labels = { gate = "default", action = "block", source = source }
      assert.equal(1, counted:get("riskscreen_decisions_total", labels))
    end
  end)

  describe("in front of an application, when the gate fails", function()
    local failures = {
      { what = "is down", server = "", port = free_port },
      { what = "answers 500", server = 'location = /fails { content_by_lua_block { error "fails" } }' },
      { what = "is too slow", server = "location = /fails { content_by_lua_block { ngx.sleep(5) } }" },
    }
    local allowed = { "lua entry thread aborted", "auth request unexpected status", "refused", "timed out" }

    for _, failure in ipairs(failures) do
      local function place()
        return failure.port and tostring(failure.port()) or "PORT"
      end

      it("and " .. failure.what .. ", lets nothing through nginx", function()
        start {
          server = failure.server .. ([[
            location = /app { auth_request /asks; PASSED }
            location = /asks { internal; proxy_read_timeout 300ms; proxy_pass http://127.0.0.1:%s/fails; }
          ]]):gsub("PASSED", PASSED):format(place()),
        }
        assert.equal(500, post("/app" .. to "clean-eth").status)
        stop(allowed)
      end)

      it("and " .. failure.what .. ", lets nothing through Caddy", function()
        start { server = failure.server }
        local port = failure.port and failure.port() or running.nginx.port
        local proxy = caddy.start(([[
          forward_auth 127.0.0.1:%d {
            uri /fails
            transport http {
              response_header_timeout 300ms
            }
          }
          respond "passed"
        ]]):format(port))
        if not proxy then
          pending(caddy.MISSING)
          return
        end
        finally(proxy.stop)
        local answer = proxy.get("/app" .. to "clean-eth", { method = "POST" })
        assert.is_true(answer.status >= 500)
        assert.not_equal("passed", answer.body)
        stop { "fails" }
      end)
    end
  end)

  it("lets what may pass through Caddy's forward_auth, and nothing else", function()
    start()
    local site
    for _, block in ipairs(pages.blocks "docs/proxies.md") do
      site = block.language == "caddyfile" and block.text or site
    end
    local proxy = caddy.start((site:gsub("127%.0%.0%.1:8080", "127.0.0.1:" .. running.nginx.port)))
    if not proxy then
      pending(caddy.MISSING)
      return
    end
    finally(proxy.stop)
    local function status(target, request)
      return proxy.get(target, request or { method = "POST" }).status
    end
    local answer = proxy.get("/pay" .. to "clean-eth", { method = "POST", body = "{}" })
    assert.same({ 200, "sent" }, { answer.status, answer.body })
    assert.equal(403, status("/pay" .. to "high-eth"))
    assert.equal(503, status("/pay" .. to "fault-500"))
    assert.equal(403, status "/pay")
    assert.equal(403, status("/pay" .. to "clean-eth", {}))
    assert.equal(403, status("/pay" .. to "clean-eth" .. "&to=" .. addresses["high-eth"]))
    assert.equal(403, status("/pay" .. to "high-eth" .. "#" .. to "clean-eth"))
    local forged = {
      "X-Forwarded-Uri: /pay" .. to "clean-eth",
      "X-Forwarded-For: 127.0.0.1",
      "Connection: X-Forwarded-Uri",
    }
    assert.equal(403, status("/pay" .. to "high-eth", { method = "POST", headers = forged }))
  end)
end)

describe("gate:decisions()", function()
  local SECRET = "a-secret-of-the-services"
  local OPTIONS = "new_gate { network = 'eth', on_unknown = 'allow', decisions = { secret = '%s' }, journal = JOURNAL }"
  local SERVICE = "location = /decisions { content_by_lua_block { gate:decisions() } }"
  local running

  local function start(more)
    more = more or {}
    local journal = more.journal and ("{ path = '%s', interval = 0.05 }"):format(more.journal) or "nil"
    running = gates.start {
      init = "gate = " .. OPTIONS:format(more.secret or SECRET):gsub("JOURNAL", journal),
      server = SERVICE,
      sandbox = more.sandbox,
    }
  end

  after_each(function()
    local ending = running
    running = nil
    if ending then
      ending.close { "holds the access key", "is buffered to a temporary file" }
    end
  end)

  local function ask(body, request)
    request = request or {}
    local answer = running.get("/decisions", {
      method = request.method or "POST",
      headers = request.headers or { "Authorization: Bearer " .. SECRET, "Content-Type: application/json" },
      body = type(body) == "table" and json.encode(body) or body,
    })
    return answer.status, json.decode(answer.body), answer
  end

  local function about(name)
    return { address = addresses[name], network = "eth" }
  end

  it("answers 200 for allow alone, with the decision as JSON", function()
    start()
    local status, decision, answer = ask(about "clean-eth")
    assert.equal(200, status)
    assert.equal("allow", decision.action)
    assert.equal(addresses["clean-eth"], decision.address)
    assert.equal("upstream", decision.source)
    assert.equal(answer.headers["x-request-id"], decision.request_id)
    assert.equal("application/json", answer.headers["content-type"])
  end)

  it("answers 403 or 503 for any other, whatever the gate makes of unknown and review", function()
    start()
    local status, decision = ask(about "high-eth")
    assert.same({ 403, "block" }, { status, decision.action })
    assert.is_true(#decision.risks > 0)
    local _, kept = ask(about "high-eth")
    assert.same({ "block", "lru", nil }, { kept.action, kept.source, kept.risks }) -- not "no risks"
    status, decision = ask(about "generally-high-eth")
    assert.same({ 403, "review" }, { status, decision.action })
    local answer
    status, decision, answer = ask(about "fault-500")
    assert.same({ 503, "unknown", "server" }, { status, decision.action, decision.error })
    assert.equal("5", answer.headers["retry-after"])
    status, decision = ask { address = "0x12", network = "eth" }
    assert.same({ 403, "unknown", "invalid_argument" }, { status, decision.action, decision.error })
    status, decision = ask { address = addresses["clean-eth"], network = "etherum" }
    assert.same({ 403, "unknown", "invalid_argument" }, { status, decision.action, decision.error })
  end)

  it("answers as docs/openapi.json says", function()
    start()
    local file = assert(io.open "docs/openapi.json")
    local api = json.decode(file:read "*a")
    file:close()
    local types = { string = "string", boolean = "boolean", table = "array" }
    local seen = {}
    local function check(status, answer)
      local response = api.paths["/decisions"].post.responses[tostring(status)]
      local name = response.content["application/json"].schema["$ref"]:match "[^/]+$"
      local schema = api.components.schemas[name]
      for _, field in ipairs(schema.required) do
        assert.is_not_nil(answer[field], name .. "." .. field)
      end
      for field, value in pairs(answer) do
        assert.equal((schema.properties[field] or {}).type, types[type(value)], name .. "." .. field)
      end
      seen[status] = true
    end
    for _, name in ipairs { "clean-eth", "high-eth", "fault-500" } do
      check(ask(about(name)))
    end
    check(ask "{}")
    check(ask(about "clean-eth", { headers = {} }))
    check(ask(nil, { method = "GET" }))
    for status in pairs(api.paths["/decisions"].post.responses) do
      assert.is_true(seen[tonumber(status)], status)
    end
  end)

  it("refuses JSON that is not exactly a request", function()
    start()
    local address = addresses["clean-eth"]
    local refused = {
      ["must be a JSON object"] = {
        "",
        "7",
        "null",
        '"text"',
        "{",
        ('{"address":"%s","address":"%s","network":"eth"}'):format(address, address),
      },
      ["unknown field 'adress'; did you mean 'address'?"] = { ('{"adress":"%s","network":"eth"}'):format(address) },
      ["unknown field 'policy'"] = { ('{"address":"%s","network":"eth","policy":"none"}'):format(address) },
      ["address is required"] = { "{}", '{"network":"eth"}', "[]" },
      ["network must be a string (got null)"] = { ('{"address":"%s","network":null}'):format(address) },
      ["address must be a string"] = {
        ('{"address":["%s"],"network":"eth"}'):format(address),
        '{"address":1,"network":"eth"}',
      },
      ["more than 16384 bytes"] = { ('{"address":"%s","network":"eth"}'):format(("0"):rep(17000)) },
    }
    for message, bodies in pairs(refused) do
      for _, body in ipairs(bodies) do
        local status, answer = ask(body)
        assert.equal(400, status, body:sub(1, 100))
        if body ~= "" then
          assert.matches(message, answer.error, 1, true)
        end
      end
    end
  end)

  it("refuses another media type, charset, encoding and method", function()
    start()
    local bearer = "Authorization: Bearer " .. SECRET
    for _, header in ipairs {
      "Content-Type: text/plain",
      "Content-Type: application/json; charset=utf-16",
      "Content-Type: application/json\r\nContent-Encoding: gzip",
    } do
      local headers = { bearer }
      for line in header:gmatch "[^\r\n]+" do
        headers[#headers + 1] = line
      end
      assert.equal(400, (ask(about "clean-eth", { headers = headers })), header)
    end
    assert.equal(405, (ask(nil, { method = "GET" })))
  end)

  it("wants the secret, once", function()
    start()
    local json_type = "Content-Type: application/json"
    for _, headers in ipairs {
      {},
      { "Authorization: Bearer" },
      { "Authorization: Bearer " },
      { "Authorization: Bearer " .. SECRET:sub(1, -2) },
      { "Authorization: Bearer " .. SECRET .. "x" },
      { "Authorization: Basic " .. SECRET },
      { "Authorization: " .. SECRET },
      { "Authorization: Bearer " .. SECRET .. ", Bearer x" },
    } do
      headers[#headers + 1] = json_type
      local status, answer = ask(about "clean-eth", { headers = headers })
      assert.equal(401, status, headers[1])
      assert.is_nil(answer.action)
    end
    assert.equal(200, (ask(about "clean-eth", { headers = { "Authorization: bearer " .. SECRET, json_type } })))
  end)

  it("does not start without a good secret", function()
    local function refusal(decisions)
      local ok, problem = pcall(gates.start, { init = ("gate = new_gate { decisions = %s }"):format(decisions) })
      assert.is_false(ok)
      return problem
    end
    assert.matches("decisions.secret is required %(got nil", refusal "{ secret = os.getenv 'UNSET' }")
    assert.matches("decisions.secret must have at least 16 bytes", refusal "{ secret = '' }")
    assert.matches("decisions.secret must have at least 16 bytes", refusal "{ secret = 'fifteen-bytes-x' }")
    assert.matches("decisions.secret must be of letters", refusal "{ secret = 'with a space in it' }")
    local same = "{ secret = 'a-key-of-24-bytes-or-so' }, "
      .. "client = { base_url = 'http://127.0.0.1:1', access_key = 'a-key-of-24-bytes-or-so' }"
    assert.matches("decisions.secret must not be the access key", refusal(same))
  end)

  it("refuses to serve with the access key of a client that was given", function()
    running = gates.start {
      init = ([[
        local key = "%s"
        gate = new_gate { decisions = { secret = key }, client = require("riskscreen").new {
          base_url = "http://127.0.0.1:1", access_key = function() return key end, account = "test" } }
      ]]):format(SECRET),
      server = SERVICE,
    }
    assert.equal(401, (ask(about "clean-eth")))
    assert.matches("decisions.secret holds the access key", running.nginx:log(), 1, true)
  end)

  local it_with_core = nginx.with_core and it or pending -- the journal needs it
  it_with_core("keeps the decision, its id and its strict outcome in the journal", function()
    local path = os.tmpname()
    finally(function()
      os.execute(("rm -f %s %s.*"):format(path, path))
    end)
    start { journal = path }
    local _, decision = ask(about "fault-500")
    local line
    local deadline = os.time() + 10
    repeat
      local file = io.open(path)
      line = file and file:read "*l"
      if file then
        file:close()
      end
    until line or os.time() > deadline
    local entry = json.decode(line)
    assert.same({ "unknown", "block", decision.request_id }, { entry.action, entry.outcome, entry.request_id })
  end)
end)
