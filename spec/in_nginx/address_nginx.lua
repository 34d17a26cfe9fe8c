-- The places of an address in a request, and requests in which two programs could find two addresses.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local gates = require "spec.support.gate"

local CLEAN, HIGH = addresses["clean-eth"], addresses["high-eth"]

describe("the gate finds the address", function()
  local running

  local function close()
    if running then
      local ending = running
      running = nil
      ending.close { "is buffered to a temporary file" }
    end
  end

  local function start(source, options)
    close()
    options = options or {}
    options.init = ("gate = new_gate { network = 'eth', on_unknown = 'allow', address = %s }"):format(source)
    options.locations = { ["/"] = "gate:enforce()" }
    running = gates.start(options)
  end

  after_each(close)

  local function passes(target, request)
    local status = running.status(target, request)
    assert.truthy(status == 200 or status == 403, "status " .. status)
    return status == 200
  end

  -- A clean address passes and a bad one does not, so the gate reads this one.
  local function finds(make)
    assert.is_true(passes(make(CLEAN)))
    assert.is_false(passes(make(HIGH)))
  end

  local function refuses_all(list)
    local before = #running.service:requests()
    for _, one in ipairs(list) do
      assert.is_false(passes(one[1] or one, one[2]), type(one) == "table" and (one[2].body or one[1]) or one)
    end
    assert.equal(before, #running.service:requests())
  end

  it("in an argument", function()
    start "{ argument = 'to' }"
    finds(function(address)
      return "/?amount=1&to=" .. address .. "&from=" .. CLEAN
    end)
    finds(function(address)
      return "/?t%6F=%30" .. address:sub(2)
    end)
  end)

  it("in an argument, unless some program could see two", function()
    start "{ argument = 'to' }"
    refuses_all {
      "/",
      "/?to",
      "/?to=",
      "/?to=" .. CLEAN .. "&to=" .. HIGH,
      "/?to=" .. CLEAN .. "&TO=" .. HIGH,
      "/?to=" .. CLEAN .. "&t%6f=" .. HIGH,
      "/?to=" .. CLEAN .. "&to[]=" .. HIGH,
      "/?to=" .. CLEAN .. "&to%5B0%5D=" .. HIGH,
      "/?to=" .. CLEAN .. "&+to=" .. HIGH,
      "/?to=" .. CLEAN .. "&to%00=" .. HIGH,
      "/?x=1;to=" .. HIGH .. "&to=" .. CLEAN,
      "/?to=" .. CLEAN .. ";to=" .. HIGH,
      "/?to=" .. CLEAN .. "#&to=" .. HIGH,
      "/?to=" .. CLEAN .. "#",
      "/#?to=" .. CLEAN,
      "/?TO=" .. CLEAN,
      "/?to[]=" .. CLEAN,
    }
  end)

  it("in a header", function()
    start("{ header = 'X-To' }", { server = "underscores_in_headers on; ignore_invalid_headers off;" })
    finds(function(address)
      return "/", { headers = { "x-to: " .. address } }
    end)
    refuses_all {
      { "/", {} },
      { "/", { headers = { "X-To: " .. CLEAN, "X-To: " .. HIGH } } },
      { "/", { headers = { "X-To: " .. CLEAN, "X_To: " .. HIGH } } },
      { "/", { headers = { "X-To: " .. CLEAN, "X.To: " .. HIGH } } },
      { "/", { headers = { "X-To: " .. CLEAN, "XTo: " .. HIGH } } },
      { "/", { headers = { "X-To: " .. CLEAN .. ", " .. HIGH } } },
    }
  end)

  it("in a header with an underscore", function()
    start("{ header = 'X_To' }", { server = "underscores_in_headers on;" })
    finds(function(address)
      return "/", { headers = { "X_To: " .. address } }
    end)
    refuses_all {
      { "/", { headers = { "X-To: " .. CLEAN } } },
      { "/", { headers = { "X_To: " .. CLEAN, "X-To: " .. HIGH } } },
    }
  end)

  it("in a header behind many others", function()
    start "{ header = 'X-To' }"
    local headers = {}
    for index = 1, 150 do
      headers[index] = ("X-%d: %d"):format(index, index)
    end
    headers[#headers + 1] = "X-To: " .. HIGH
    assert.is_false(passes("/", { headers = headers }))
    headers[1] = "X-To: " .. CLEAN
    assert.is_false(passes("/", { headers = headers }))
    assert.equal(1, #running.service:requests())
  end)

  it("in a variable", function()
    start("{ variable = 'target' }", { server = "set $target $arg_x;" })
    finds(function(address)
      return "/?x=" .. address
    end)
    refuses_all { "/", "/?x=" }
  end)

  it("in a capture of the location, unless the path can be read in two ways", function()
    start("{ variable = 'captured' }", {
      server = [[location ~ ^/withdraw/(?<captured>[^/]+) {
        access_by_lua_block { gate:enforce() }
        content_by_lua_block { ngx.say "ok" }
      }]],
    })
    finds(function(address)
      return "/withdraw/" .. address .. "/now"
    end)
    refuses_all {
      "/withdraw/" .. HIGH .. "/../" .. CLEAN,
      "/other/../withdraw/" .. CLEAN,
      "/withdraw//" .. CLEAN,
      "/withdraw/" .. CLEAN .. "/;x",
      "/withdraw/" .. CLEAN .. "%2f..%2f" .. HIGH,
    }
  end)

  it("in a capture of a path that was rewritten since, unless the path can be read in two ways", function()
    start("{ variable = 'captured' }", {
      server = [[location /withdraw/ { rewrite "^/withdraw/(?<captured>[^/;]+)" /rewritten last; }
        location /rewritten {
          access_by_lua_block { gate:enforce() }
          content_by_lua_block { ngx.say "ok" }
        }]],
    })
    finds(function(address)
      return "/withdraw/" .. address
    end)
    local escaped = CLEAN:sub(1, 2) .. ("%%%02x"):format(CLEAN:byte(3)) .. CLEAN:sub(4)
    assert.is_true(passes("/withdraw/" .. escaped))
    refuses_all {
      "/withdraw/" .. escaped .. "/..;/" .. HIGH,
      "/withdraw/" .. escaped .. "//" .. HIGH,
      "/other/../withdraw/" .. escaped,
    }
  end)

  it("in a variable that is made from $request_uri, unless the path can be read in two ways", function()
    start("{ variable = 'mapped' }", {
      http = [[map $request_uri $mapped { "~^/withdraw/(?<to>[^/?]+)" $to; }]],
    })
    finds(function(address)
      return "/withdraw/" .. address .. "/now"
    end)
    refuses_all {
      "/withdraw/" .. CLEAN .. "/../" .. HIGH,
      "/withdraw/" .. CLEAN .. "/%2e%2e/" .. HIGH,
    }
  end)

  it("not in a variable that nginx does not define, and says so", function()
    start "{ variable = 'targte' }"
    refuses_all { "/" }
    assert.truthy(running.nginx:log():find("targte is missing, or nginx.conf does not define it", 1, true))
  end)

  it("in a segment of the path", function()
    start "{ path = 2 }"
    finds(function(address)
      return "/withdraw/" .. address .. "/now?x=/" .. CLEAN
    end)
    refuses_all {
      "/withdraw",
      "/withdraw/",
      "/withdraw//" .. CLEAN,
      "/withdraw/" .. CLEAN .. "/../" .. HIGH,
      "/withdraw/x/../" .. CLEAN,
      "/withdraw/x/%2e%2e/" .. CLEAN,
      "/withdraw/x%2F..%2F" .. CLEAN,
      "/withdraw/./" .. CLEAN,
      "/withdraw/" .. CLEAN .. ";to=" .. HIGH,
      "/withdraw/" .. CLEAN .. "%5C" .. HIGH,
      "/withdraw/" .. CLEAN .. "/..",
      "/withdraw/" .. CLEAN .. "#/../" .. HIGH,
      "/withdraw/" .. CLEAN .. "/..%3B/" .. HIGH,
      "/withdraw/.%3bx/" .. CLEAN .. "/" .. HIGH,
      "/withdraw/" .. CLEAN .. "/%252e%252e/" .. HIGH,
      "/withdraw/" .. CLEAN .. "/%C0%AE%C0%AE/" .. HIGH,
      "/withdraw/" .. CLEAN .. "/%E0%80%AE%e0%80%ae/" .. HIGH,
      "/withdraw/" .. CLEAN .. "/%F0%80%80%AE./" .. HIGH,
      "/withdraw/" .. CLEAN .. "/..%20/" .. HIGH,
      "/withdraw/" .. CLEAN .. "/..%23/" .. HIGH,
    }
    assert.is_true(passes("/.well-known/" .. CLEAN .. "/a%20b.c"))
    assert.is_true(passes("/w/" .. CLEAN .. "/%C3%A4%E0%A4%85%E2%82%AC%F0%9F%98%80"))
  end)

  local function json_request(body, media_type)
    return { body = body, headers = { "Content-Type: " .. (media_type or "application/json") } }
  end

  it("in a field of a JSON body", function()
    start "{ json = 'withdrawal.to' }"
    finds(function(address)
      return "/", json_request(('{"a": [1, {"to": "x"}], "withdrawal": {"to": "%s", "s": "\\"}"}}'):format(address))
    end)
    finds(function(address)
      local body = ('{"withdrawa\\u006c":{"to":"\\u0030%s"}}'):format(address:sub(2))
      return "/", json_request(body, 'application/vnd.api+json; charset="UTF-8"')
    end)
  end)

  it("in a JSON body that nginx has buffered in a file", function()
    start("{ json = 'to', max_body = 300000 }", { server = "client_body_buffer_size 1k;" })
    finds(function(address)
      return "/", json_request(('{"note": "%s", "to": "%s"}'):format(("x"):rep(200000), address))
    end)
  end)

  it("in a body of up to 64 KiB, or max_body", function()
    local function request(size, media_type)
      if media_type then
        return "/", json_request(("to=%s&note=%s"):format(CLEAN, ("x"):rep(size)), media_type)
      end
      return "/", json_request(('{"note": "%s", "to": "%s"}'):format(("x"):rep(size), CLEAN))
    end
    start "{ json = 'to' }"
    assert.is_true(passes(request(65000)))
    refuses_all { { request(65536) } }
    start "{ form = 'to' }"
    assert.is_true(passes(request(65000, "application/x-www-form-urlencoded")))
    refuses_all { { request(65536, "application/x-www-form-urlencoded") } }
    start "{ max_body = 100, json = 'to' }"
    assert.is_true(passes(request(10)))
    refuses_all { { request(100) } }
  end)

  it("in a JSON body, unless another program could find another one", function()
    start "{ json = 'withdrawal.to' }"
    local bodies = {
      "",
      "{",
      "[]",
      '"x"',
      "{}",
      '{"withdrawal": null}',
      '{"withdrawal": {"to": null}}',
      '{"withdrawal": {"to": 5}}',
      '{"withdrawal": {"to": ["CLEAN"]}}',
      '{"withdrawal": {"to": {"to": "CLEAN"}}}',
      '{"withdrawal": [{"to": "CLEAN"}]}',
      '{"withdrawal.to": "CLEAN"}',
      '{"withdrawal": {"To": "CLEAN"}}',
      '{"withdrawal": {"to": "CLEAN", "to": "HIGH"}}',
      '{"withdrawal": {"to": "CLEAN", "t\\u006f": "HIGH"}}',
      '{"withdrawal": {"to": "CLEAN", "TO": "HIGH"}}',
      '{"withdrawal": {"to": "CLEAN"}, "withdrawal": {"to": "HIGH"}}',
      '{"withdrawal": {"to": "CLEAN"}, "Withdrawal": {"to": "HIGH"}}',
      '{"withdrawal": {"to": "CLEAN"}} {"withdrawal": {"to": "HIGH"}}',
      '{"withdrawal": {"to": "CLEAN"}, /* "withdrawal": {"to": "HIGH"} */ "x": 1}',
      "{'withdrawal': {'to': 'CLEAN'}}",
      '\239\187\191{"withdrawal": {"to": "CLEAN"}}',
      '{"x": "\255", "withdrawal": {"to": "CLEAN"}}',
    }
    local requests = {}
    for index, body in ipairs(bodies) do
      requests[index] = { "/", json_request((body:gsub("CLEAN", CLEAN):gsub("HIGH", HIGH))) }
    end
    refuses_all(requests)
  end)

  it("in a JSON body, and not in one of another media type", function()
    start "{ json = 'to' }"
    local body = ('{"to": "%s"}'):format(CLEAN)
    refuses_all {
      { "/", { body = body } },
      { "/", json_request(body, "application/x-www-form-urlencoded") },
      { "/", json_request(body, "text/plain") },
      { "/", json_request(body, "application/json; charset=utf-16") },
      { "/", json_request(body, "application/jsonp") },
      { "/", json_request(body, "application/json, text/plain") },
      { "/", json_request(body, "application/json multipart/form-data; boundary=x") },
      { "/", { headers = { "Content-Type: application/json" } } },
    }
  end)

  it("in a body that every program reads as UTF-8", function()
    start "{ json = 'to' }"
    local body = ('{"to": "%s"}'):format(CLEAN)
    for _, parameters in ipairs { "", ";", "; charset=utf-8", ';charset = "UTF-8" ;v=1', "; v=1; charset=utf-8" } do
      assert.is_true(passes("/", json_request(body, "application/json" .. parameters)), parameters)
    end
    local requests = {}
    for index, parameters in ipairs {
      "; charset=utf-7",
      "; charset=utf-8; charset=utf-7",
      "; charset=utf-8, charset=utf-7",
      "; xcharset=utf-8; charset=utf-7",
      '; x="charset=utf-8"; charset=utf-7',
      "; charset*=utf-8''utf-7",
      "; charset",
    } do
      requests[index] = { "/", json_request(body, "application/json" .. parameters) }
    end
    refuses_all(requests)
  end)

  it("in a body that is not compressed", function()
    start "{ form = 'to' }"
    local function form(encoding)
      return {
        body = "to=" .. CLEAN,
        headers = { "Content-Type: application/x-www-form-urlencoded", "Content-Encoding: " .. encoding },
      }
    end
    assert.is_true(passes("/", form "identity"))
    refuses_all { { "/", form "gzip" }, { "/", form "deflate" }, { "/", form "br" }, { "/", form "identity, gzip" } }
  end)

  it("in every place of a JSON body that the path matches", function()
    start "{ json = 'outputs.*.to' }"
    local function outputs(of)
      local list = {}
      for index, address in ipairs(of) do
        list[index] = ('{"to": "%s"}'):format(address)
      end
      return json_request(('{"outputs": [%s]}'):format(table.concat(list, ", ")))
    end
    assert.is_true(passes("/", outputs { CLEAN }))
    assert.is_true(passes("/", outputs { CLEAN, addresses["low-eth"] }))
    assert.is_false(passes("/", outputs { CLEAN, HIGH }))
    assert.is_false(passes("/", outputs { HIGH, CLEAN }))
    assert.is_false(passes("/", outputs {}))
    assert.is_false(passes("/", json_request(('{"outputs": [{"to": "%s"}, {}]}'):format(CLEAN))))
    assert.is_false(passes("/", json_request(('{"outputs": {"to": "%s"}}'):format(CLEAN))))
    local many = {}
    for index = 1, 101 do
      many[index] = CLEAN
    end
    assert.is_false(passes("/", outputs(many)))
  end)

  it("in a form", function()
    start "{ form = 'to' }"
    local function form(body)
      return { body = body, headers = { "Content-Type: application/x-www-form-urlencoded" } }
    end
    finds(function(address)
      return "/?to=" .. CLEAN, form("amount=1&to=" .. address)
    end)
    refuses_all {
      { "/", form "" },
      { "/", form("to=" .. CLEAN .. "&to=" .. HIGH) },
      { "/", { body = "to=" .. CLEAN, headers = { "Content-Type: text/plain" } } },
    }
  end)

  it("with a function", function()
    start "function() return ngx.var.arg_x or nil end"
    finds(function(address)
      return "/?x=" .. address
    end)
    refuses_all { "/" }
  end)

  it("and leaves the body to the application", function()
    start(
      "{ json = 'to' }",
      { behind = [[content_by_lua_block { ngx.req.read_body() ngx.print(ngx.req.get_body_data()) }]] }
    )
    local body = ('{"to": "%s"}'):format(CLEAN)
    assert.equal(body, running.get("/", json_request(body)).body)
  end)
end)

describe("the gate finds the network", function()
  it("in the same places, and refuses an unknown network", function()
    local running = gates.start {
      init = [[gate = new_gate { on_unknown = 'allow', address = { argument = 'to' }, network = { argument = 'on' } }]],
      locations = { ["/"] = "gate:enforce()" },
    }
    local tron = addresses["high-tron"]
    assert.equal(403, running.status("/?to=" .. tron .. "&on=tron"))
    assert.equal(200, running.status("/?to=" .. addresses["clean-tron"] .. "&on=tron"))
    for _, query in ipairs { "", "&on=", "&on=TRON", "&on=dogecoin", "&on=eth", "&on=tron&on=eth" } do
      assert.equal(403, running.status("/?to=" .. addresses["clean-tron"] .. query), query)
    end
    assert.equal(2, #running.service:requests())
    running.close()
  end)
end)
