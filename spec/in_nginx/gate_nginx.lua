-- The gate in a real nginx: the effect of each decision and of each option.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local gates = require "spec.support.gate"
local nginx = require "spec.support.nginx"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"

describe("the gate", function()
  local running

  local function start(init, locations, options)
    options = options or {}
    options.init, options.locations = init, locations
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

  local function get(...)
    return running.get(...)
  end

  local function status_of(...)
    return running.status(...)
  end

  local GATE = "gate = new_gate { network = 'eth' }"
  local ENFORCE = "gate:enforce { address = ngx.var.arg_to }"

  local TRANSFER = [[gate:enforce { subjects = {
    { address = { argument = "from" } }, { address = { argument = "to" } } } }]]

  local function to(name)
    return "/withdraw?to=" .. addresses[name]
  end

  it("lets an address without risk pass", function()
    start(GATE, { ["/withdraw"] = ENFORCE })
    local answer = get(to "clean-eth")
    assert.same({ 200, "passed" }, { answer.status, answer.body })
  end)

  it("denies a blocked address, an address to review, and an unknown one", function()
    start(GATE, { ["/withdraw"] = ENFORCE })
    for _, name in ipairs { "high-eth", "generally-high-eth", "fault-500", "risks-null" } do
      assert.equal(403, status_of(to(name)), name)
    end
  end)

  it("gives every denied request the same answer, without a reason", function()
    start(GATE, { ["/withdraw"] = ENFORCE })
    local expected = get(to "high-eth")
    assert.equal("application/json", expected.headers["content-type"])
    assert.equal("no-store", expected.headers["cache-control"])
    local others = { to "type-sanction", to "generally-high-eth", to "fault-500", "/withdraw", "/withdraw?to=x" }
    for _, target in ipairs(others) do
      local answer = get(target)
      assert.equal(expected.body, answer.body)
      for _, name in ipairs { "date", "x-request-id" } do
        expected.headers[name], answer.headers[name] = nil, nil
      end
      assert.same(expected.headers, answer.headers)
    end
    for _, word in ipairs { "risk", "sanction", "block", "high", "address" } do
      assert.is_nil(expected.body:lower():find(word, 1, true), word)
    end
  end)

  it("refuses other methods than those that were named, and headers that stand for another method", function()
    start("gate = new_gate { network = 'eth', address = { argument = 'to' }, methods = { 'POST' } }", {
      ["/withdraw"] = "gate:enforce()",
    })
    assert.equal(200, status_of(to "clean-eth", { method = "POST", body = "" }))
    for _, method in ipairs { "GET", "HEAD", "PUT", "PATCH", "DELETE" } do
      assert.equal(403, status_of(to "clean-eth", { method = method }), method)
    end
    for _, header in ipairs { "X-HTTP-Method-Override", "x-http-method", "X-Method-Override" } do
      local request = { method = "POST", body = "", headers = { header .. ": PUT" } }
      assert.equal(403, status_of(to "clean-eth", request), header)
    end
    assert.matches("the method GET is not one of POST", running.nginx:log(), 1, true)
    assert.matches("the header x-http-method stands for another method", running.nginx:log(), 1, true)
  end)

  it("takes HEAD for GET, in a location too, and any method where none is named", function()
    start(
      [[gate = new_gate { network = 'eth', address = { argument = 'to' } }
        reads = gate:location { methods = { 'GET' } }]],
      {
        ["/withdraw"] = "gate:enforce()",
        ["/read"] = "reads:enforce()",
        ["/call"] = "gate:enforce { address = { argument = 'to' }, methods = { 'PUT', 'POST' } }",
      }
    )
    local query = "?to=" .. addresses["clean-eth"]
    assert.equal(200, status_of("/read" .. query, { method = "HEAD" }))
    assert.equal(200, status_of("/read" .. query))
    assert.equal(403, status_of("/read" .. query, { method = "POST", body = "" }))
    assert.equal(200, status_of("/withdraw" .. query, { method = "POST", body = "" }))
    assert.equal(200, status_of("/call" .. query, { method = "PUT", body = "" }))
    assert.equal(403, status_of("/call" .. query))
  end)

  it("uses two results of an operator's function, and no third one", function()
    start("gate = new_gate { network = function() return 'eth', nil, 'note' end, address = { argument = 'to' } }", {
      ["/withdraw"] = "gate:enforce()",
      ["/call"] = "gate:enforce { address = function() return ngx.var.arg_to, nil, 'network=btc' end }",
    })
    for _, path in ipairs { "/withdraw", "/call" } do
      assert.equal(200, status_of(path .. "?to=" .. addresses["clean-eth"]), path)
      assert.equal(403, status_of(path .. "?to=" .. addresses["high-eth"]), path)
    end
  end)

  it("names a denied request by an id in the answer, in the log and in ngx.ctx", function()
    start(GATE, { ["/withdraw"] = ENFORCE }, {
      server = [[ log_by_lua_block { ngx.log(ngx.NOTICE, "ctx has ", tostring(ngx.ctx.riskscreen_request_id)) } ]],
    })
    local first, second = get(to "high-eth"), get(to "high-eth")
    local id = first.headers["x-request-id"]
    assert.matches("^%x+$", id)
    assert.are_not.equal(id, second.headers["x-request-id"])
    assert.matches("riskscreen: block %(upstream%): .* request " .. id, running.nginx:log())
    nginx.wait_for("the log phase", function()
      return running.nginx:log():find("ctx has " .. id, 1, true)
    end)
    assert.is_nil(get(to "clean-eth").headers["x-request-id"])
    assert.is_nil(first.body:find(id, 1, true))
  end)

  it("says when a client that gets 503 may come again, unless the operator says so", function()
    local init = "gate = new_gate { network = 'eth', address = { argument = 'to' }, unknown = { status = 503 } }"
    start(init .. " own = gate:location { unknown = { status = 503, headers = { ['retry-after'] = '60' } } }", {
      ["/withdraw"] = "gate:enforce()",
      ["/own"] = "own:enforce()",
    })
    local answer = get(to "fault-500")
    assert.same({ 503, "5" }, { answer.status, answer.headers["retry-after"] })
    assert.equal("60", get("/own?to=" .. addresses["fault-500"]).headers["retry-after"])
    assert.is_nil(get(to "high-eth").headers["retry-after"])
  end)

  it("takes a client with a transport and no base_url", function()
    start(
      [[gate = new_gate { network = 'eth', client = {
        access_key = 'test-key', identity = 'test',
        transport = function() return { status = 500, headers = {} } end } }]],
      { ["/withdraw"] = ENFORCE }
    )
    assert.equal(403, status_of(to "clean-eth"))
    assert.matches("riskscreen: block %(upstream, decision unknown%)", running.nginx:log())
  end)

  it("goes on for others while one caller asks for an address on which the service fails, in any spelling", function()
    local service = sandbox.new {}
    local server = assert(sandbox.serve { service = service })
    local init = [[gate = new_gate { network = 'eth', ttl = { unknown = 0 }, client = { base_url = '%s',
      access_key = '%s', account = 'test', retry = false, breaker = { failures = 3, minimum = 3, cooldown = 1000 } } }]]
    local enforce = "gate:enforce { address = ngx.var.arg_to, network = ngx.var.arg_on or 'eth' }"
    start(init:format(server.url, server.access_key), { ["/withdraw"] = enforce }, { shared = server })
    local failing = addresses["fault-500"]
    local upper = "0x" .. failing:sub(3):upper()
    for _ = 1, 3 do
      for _, spelling in ipairs { failing, failing:lower(), upper, upper .. "&on=ethereum" } do
        assert.equal(403, status_of("/withdraw?to=" .. spelling))
      end
    end
    assert.equal(12, #service:requests())
    assert.equal(200, status_of(to "clean-eth"))
    service:fault { kind = "status", status = 500 }
    assert.equal(403, status_of(to "high-eth"))
    assert.equal(403, status_of(to "low-eth"))
    assert.equal(14, #service:requests()) -- two addresses of three failed: that opens the circuit
    stop()
    server:close()
  end)

  it("decides a second request from the cache", function()
    start(GATE, { ["/withdraw"] = ENFORCE })
    for _ = 1, 3 do
      assert.equal(403, status_of(to "high-eth"))
    end
    assert.equal(403, status_of("/withdraw?to=" .. addresses["high-eth"]:lower()))
    assert.equal(1, #running.service:requests())
  end)

  it("asks for the canonical spelling, because the answer counts for all spellings", function()
    start(GATE, { ["/withdraw"] = ENFORCE })
    local digits = addresses["high-eth"]:sub(3)
    for _, spelling in ipairs { "0X" .. digits, "0x" .. digits, "0x" .. digits:upper() } do
      assert.equal(403, status_of("/withdraw?to=" .. spelling))
      running.nginx:eval("return gate:purge((...)[1])", { addresses["high-eth"] })
    end
    for _, request in ipairs(running.service:requests()) do
      assert.equal("0x" .. digits:lower(), request.parameters.address)
    end
    assert.equal(3, #running.service:requests())
  end)

  it("applies on_unknown when the service fails", function()
    start("gate = new_gate { network = 'eth', on_unknown = 'allow' }", { ["/withdraw"] = ENFORCE })
    assert.equal(200, status_of(to "fault-500"))
    assert.equal(403, status_of(to "high-eth"))
  end)

  it("denies a request without a valid address, whatever on_unknown says", function()
    start("gate = new_gate { network = 'eth', on_unknown = 'allow' }", {
      ["/withdraw"] = ENFORCE,
      ["/both"] = "gate:enforce { address = ngx.var.arg_to, network = ngx.var.arg_network }",
    })
    local high = addresses["high-eth"]
    for _, target in ipairs {
      "/withdraw",
      "/withdraw?to=",
      "/withdraw?to=%30" .. high:sub(2),
      "/withdraw?to=" .. high:sub(3),
      "/withdraw?to=" .. high .. "%20",
      "/withdraw?to=" .. ("0x" .. ("a"):rep(4000)),
      "/both?to=" .. high .. "&network=ETH",
      "/both?to=" .. high .. "&network=tron",
    } do
      assert.equal(403, status_of(target), target)
    end
    assert.equal(0, #running.service:requests())
  end)

  it("applies on_invalid to a request without an address", function()
    start("gate = new_gate { network = 'eth', on_invalid = 'allow' }", { ["/withdraw"] = ENFORCE })
    assert.equal(200, status_of "/withdraw")
    assert.equal(403, status_of(to "fault-500"))
  end)

  it("says why a call whose table has no address is refused", function()
    start(
      "gate = new_gate { address = { argument = 'to' }, network = { argument = 'network' } }\n"
        .. "posts = gate:location { methods = { 'GET' } }",
      { ["/table"] = "gate:enforce { methods = { 'GET' } }", ["/kept"] = "posts:enforce()" }
    )
    local query = "?network=eth&to=" .. addresses["clean-eth"]
    assert.equal(403, status_of("/table" .. query))
    assert.matches("(invalid): no address on 'eth': ", running.nginx:log(), 1, true)
    assert.matches("the call names no address (is its value nil?): only gate:location", running.nginx:log(), 1, true)
    assert.equal(200, status_of("/kept" .. query))
    assert.equal(403, status_of "/kept")
    assert.matches("(invalid): no address: ", running.nginx:log(), 1, true)
  end)

  it("leaves a review to the application if on_review says so", function()
    start("gate = new_gate { network = 'eth', on_review = 'allow' }", { ["/withdraw"] = ENFORCE })
    assert.equal(200, status_of(to "generally-high-eth"))
    assert.equal(403, status_of(to "high-eth"))
  end)

  it("applies the worst decision of several addresses", function()
    start("gate = new_gate { network = 'eth' }", {
      ["/transfer"] = TRANSFER,
    })
    local function transfer(from, other)
      return status_of(("/transfer?from=%s&to=%s"):format(addresses[from], addresses[other]))
    end
    assert.equal(200, transfer("clean-eth", "low-eth"))
    assert.equal(403, transfer("clean-eth", "high-eth"))
    assert.equal(403, transfer("high-eth", "clean-eth"))
    assert.equal(403, status_of("/transfer?from=" .. addresses["clean-eth"]))
  end)

  it("does not let an unknown address hide one to review", function()
    start("gate = new_gate { network = 'eth', on_unknown = 'allow', review = { status = 409 } }", {
      ["/transfer"] = TRANSFER,
    })
    local function transfer(from, other)
      return status_of(("/transfer?from=%s&to=%s"):format(addresses[from], addresses[other]))
    end
    assert.equal(409, transfer("fault-500", "generally-high-eth"))
    assert.equal(409, transfer("generally-high-eth", "fault-500"))
    assert.equal(200, transfer("fault-500", "clean-eth"))
  end)

  it("looks up several addresses side by side", function()
    -- Each lookup ends only after both have begun.
    start(
      [[
      local begun, both = 0, require("ngx.semaphore").new()
      gate = new_gate { network = 'eth', timeout = 10, client = { identity = 'two', screen = function(_, request)
        begun = begun + 1
        if begun == 2 then both:post(1) else assert(both:wait(10)) end
        return { action = "allow", reasons = { { action = "allow", message = "fine" } } }
      end } }
    ]],
      { ["/transfer"] = TRANSFER }
    )
    assert.equal(200, status_of(("/transfer?from=%s&to=%s"):format(addresses["clean-eth"], addresses["low-eth"])))
  end)

  it("sends the answer that is set for the effective action", function()
    start(
      [[gate = new_gate { network = 'eth',
        block = { status = 451, body = { code = 7 }, headers = { ["X-Reference"] = "42" } },
        review = { status = 202, body = "wait", content_type = "text/plain" },
        unknown = { status = 503, headers = { ["Retry-After"] = "5" } },
        invalid = { status = 400, body = false } }]],
      { ["/withdraw"] = ENFORCE }
    )
    local blocked, review = get(to "high-eth"), get(to "generally-high-eth")
    assert.same({ 451, '{"code":7}', "42" }, { blocked.status, blocked.body, blocked.headers["x-reference"] })
    assert.same({ 202, "wait", "text/plain" }, { review.status, review.body, review.headers["content-type"] })
    local unknown, invalid = get(to "fault-500"), get "/withdraw"
    assert.same({ 503, "5" }, { unknown.status, unknown.headers["retry-after"] })
    assert.equal(400, invalid.status)
    assert.truthy(invalid.body:find("400 Bad Request", 1, true))
  end)

  it("denies a request with an unread body, and keeps the connection", function()
    start(GATE, { ["/withdraw"] = ENFORCE })
    for _ = 1, 3 do
      local answer = get(to "high-eth", { body = ("x"):rep(100000) })
      assert.equal(403, answer.status)
    end
    assert.equal(200, status_of(to "clean-eth"))
  end)

  it("lets every request pass in monitor mode, and logs what it would do", function()
    start("gate = new_gate { network = 'eth', monitor = true }", { ["/withdraw"] = ENFORCE })
    for _, target in ipairs { to "high-eth", to "generally-high-eth", to "fault-500", "/withdraw" } do
      assert.equal(200, status_of(target))
    end
    local address = addresses["high-eth"]:lower()
    assert.truthy(running.nginx:log():find("would block (upstream): '" .. address, 1, true))
    assert.truthy(running.nginx:log():find("would review (upstream): '", 1, true))
    assert.truthy(running.nginx:log():find("would block (upstream, decision unknown): '", 1, true))
    assert.truthy(running.nginx:log():find("would block (invalid)", 1, true))
  end)

  it("lets a request pass in monitor mode if it fails to decide", function()
    start("gate = new_gate { network = 'eth', monitor = true }", {
      ["/withdraw"] = "gate:enforce { address = function() error('no such thing') end }",
    })
    assert.equal(200, status_of "/withdraw")
    stop { "cannot decide: .*no such thing" }
  end)

  it("lets a request pass in monitor mode after misuse, or after a decision without a reason", function()
    start(
      [[gate = new_gate { network = 'eth', monitor = true }
        mute = new_gate { network = 'eth', monitor = true, name = "mute", client = { identity = "m", screen = function()
          return { action = "unknown", error = require("riskscreen.errors").new("unsupported", "not here") }
        end } }]],
      {
        ["/misspelt"] = "gate:enforce { adress = ngx.var.arg_to }",
        ["/nothing"] = "gate:enforce()",
        ["/text"] = "gate:enforce(ngx.var.arg_to)",
        ["/mute"] = "mute:enforce { address = ngx.var.arg_to }",
      }
    )
    for _, path in ipairs { "/misspelt", "/nothing", "/text", "/mute" } do
      assert.equal(200, status_of(path .. "?to=" .. addresses["high-eth"]), path)
    end
    stop { "cannot decide: " }
  end)

  it("fails the request if it cannot decide", function()
    start("gate = new_gate { network = 'eth', on_unknown = 'allow' }", {
      ["/raises"] = "gate:enforce { address = function() error('no such thing') end }",
      ["/misspelt"] = "gate:enforce { adress = ngx.var.arg_to }",
      ["/source"] = "gate:enforce { address = { arg = 'to' } }",
      ["/nothing"] = "gate:enforce()",
    })
    for path, words in pairs {
      ["/raises"] = "no such thing",
      ["/misspelt"] = "unknown option 'adress'; did you mean 'address'",
      ["/source"] = "address must be a text, a function, or a table with one of argument",
      ["/nothing"] = "nothing says where the address is",
    } do
      assert.equal(500, status_of(path .. "?to=" .. addresses["clean-eth"]))
      assert.truthy(running.nginx:log():find(words, 1, true), path)
    end
    stop { "lua entry thread aborted" }
  end)

  it("lets no request pass where a function of the operator raises, and leaves no fetch behind", function()
    local clean, bad = addresses["clean-eth"], addresses["high-eth"]
    start(
      [[gate = new_gate { network = 'eth', on_unknown = 'allow', on_invalid = 'allow', timeout = 30,
          is_address = function(address) return address:find("high") and error("no check") or true end }]],
      {
        ["/check"] = [[gate:enforce { address = "high" }]],
        ["/network"] = "gate:enforce { address = ngx.var.arg_to, network = function() error('no network') end }",
        ["/several"] = "gate:enforce { address = function() return { ngx.var.arg_to, 'high' } end }",
        ["/withdraw"] = "gate:enforce { address = ngx.var.arg_to }",
      },
      { workers = 2 }
    )
    running.service:fault { kind = "delay", delay = 0.3, match = { address = bad } }
    for path, words in pairs {
      ["/check"] = "no check",
      ["/network"] = "no network",
      ["/several"] = "no check",
    } do
      assert.equal(500, status_of(path .. "?to=" .. bad), path)
      assert.truthy(running.nginx:log():find(words, 1, true), path)
    end
    local keys = running.nginx:eval "return table.concat(ngx.shared.riskscreen:get_keys(0), ' ')"
    assert.is_nil(keys:find("lock", 1, true))
    assert.equal(200, status_of("/withdraw?to=" .. clean))
    assert.equal(403, status_of("/withdraw?to=" .. bad))
    stop { "lua entry thread aborted" }
  end)

  it("exempts no caller by a function that raises, also in monitor mode, and decides nevertheless", function()
    start(
      [[gate = new_gate { network = 'eth', exempt = { function() error("no callers") end } }
        watching = new_gate { name = 'watching', network = 'eth', monitor = true,
          exempt = function() error("nobody") end }]],
      {
        ["/withdraw"] = ENFORCE,
        ["/watched"] = [[local decision, source = watching:enforce { address = ngx.var.arg_to }
          ngx.header["X-Decision"] = decision and decision.action .. " " .. source]],
      }
    )
    assert.equal(403, status_of(to "high-eth"))
    assert.equal(200, status_of(to "clean-eth"))
    local answer = get("/watched?to=" .. addresses["high-eth"])
    assert.same({ 200, "block upstream" }, { answer.status, answer.headers["x-decision"] })
    for _, words in ipairs { "the function exempt failed: ", "no callers", "nobody" } do
      assert.truthy(running.nginx:log():find(words, 1, true), words)
    end
    stop { "the function exempt failed" }
  end)

  it("names the line that has a dot in place of the colon", function()
    start(GATE, { ["/enforce"] = "gate.enforce { address = ngx.var.arg_to }", ["/decide"] = "gate.decide()" })
    for _, method in ipairs { "enforce", "decide" } do
      assert.equal(500, status_of("/" .. method))
      local line = ("access_by_lua(nginx.conf:%%d+):1: call it with a colon: gate:%s {"):format(method)
      assert.matches(line:gsub("[().]", "%%%0"), running.nginx:log())
    end
    stop { "lua entry thread aborted" }
  end)

  it("refuses a location with a network that does not exist", function()
    start(GATE, {})
    local raised = running.nginx:eval [[return select(2, pcall(function() gate:location { network = "polygn" } end))]]
    assert.matches("^eval.*location: network must be one of .* %(got 'polygn'; did you mean 'polygon'%?%)", raised)
  end)

  local it_with_core = os.getenv "RISKSCREEN_WITHOUT_CORE" and pending or it -- the journal needs it

  it_with_core("has no field that leads to the access key, a password or another secret", function()
    start(GATE, {})
    local path = running.nginx:eval(([[
      local secrecy = dofile "%s/spec/support/secrecy.lua"
      local secret = "a-secret-that-is-not-shown-anywhere"
      local made = require("riskscreen.nginx.gate").new {
        name = "secretive", on_unknown = "block", dict = "riskscreen",
        client = { base_url = "https://x.example", access_key = secret, account = "test" },
        journal = { path = os.tmpname(), key = secret },
        redis = { url = "redis://:" .. secret .. "@127.0.0.1:1", key = secret },
      }
      return secrecy.path_to(made, secret) or secrecy.path_to(made:location { on_review = "allow" }, secret) or "none"
    ]]):format(assert(io.popen "pwd"):read "*l"))
    assert.equal("none", path)
  end)

  it("decides about the address of the call, and not of another call that uses its table meanwhile", function()
    start(
      [[
      local waiting, begun = require("ngx.semaphore").new(), 0
      local shared = {}
      gate = new_gate { network = "eth", exempt = function()
        begun = begun + 1
        if begun == 1 then assert(waiting:wait(10)) else waiting:post(1) end
      end }
      function enforce()
        shared.address = ngx.var.arg_to
        gate:enforce(shared)
      end
    ]],
      { ["/withdraw"] = "enforce()" }
    )
    -- The first call waits until the second one has come.
    local bodies = {}
    for index, name in ipairs { "high-eth", "clean-eth" } do
      bodies[index] = function()
        return status_of(to(name))
      end
    end
    assert.same({ 403, 200 }, (riskscreen.gather(bodies)))
  end)

  it("refuses an address beside subjects, and options that a metatable adds, in a location and in a call", function()
    start(GATE, { ["/both"] = "gate:enforce { address = 'x', subjects = { { address = ngx.var.arg_to } } }" })
    local both = "{ address = 'x', subjects = { { address = 'y' } } }"
    local inherited = "setmetatable({ address = 'x' }, { __index = { on_review = 'block' } })"
    local messages = { [both] = "address and subjects exclude each other", [inherited] = "must be a plain table" }
    local made = "return select(2, pcall(new_gate, { client = setmetatable({}, { __index = { timeout = 1 } }) }))"
    assert.matches("client must be a plain table", running.nginx:eval(made))
    for _, method in ipairs { "location", "decide", "enforce" } do
      for code, message in pairs(messages) do
        local call = ("return select(2, pcall(function() gate:%s(%s) end))"):format(method, code)
        assert.matches("^eval.*" .. message, running.nginx:eval(call))
      end
    end
    assert.equal(500, status_of("/both?to=" .. addresses["clean-eth"]))
    stop { "lua entry thread aborted" }
  end)

  it("does not take a wrong network in a call for misuse, because it may come from the request", function()
    start(GATE, {
      ["/plain"] = "gate:enforce { address = ngx.var.arg_to, network = 'etherum' }",
      ["/with_options"] = "gate:enforce { address = ngx.var.arg_to, network = 'etherum', on_review = 'allow' }",
      ["/several"] = "gate:enforce { subjects = { { address = ngx.var.arg_to } }, network = 'etherum' }",
    })
    for _, path in ipairs { "/plain", "/with_options", "/several" } do
      assert.equal(403, status_of(path .. "?to=" .. addresses["clean-eth"]), path)
    end
  end)

  it("has locations with their own options, made beforehand or in the call", function()
    start(
      [[
      gate = new_gate { network = 'eth', address = { argument = "to" } }
      lenient = gate:location { on_unknown = "allow", on_review = "allow" }
      watching = lenient:location { monitor = true }
      from = gate:location { address = { argument = "from" }, block = { status = 451 } }
      local policy = require("riskscreen").policy
      strict = gate:location { policy = policy { rules = { { no_risk = true, action = "allow" } } } }
    ]],
      {
        ["/strict"] = "strict:enforce()",
        ["/usual"] = "gate:enforce()",
        ["/lenient"] = "lenient:enforce()",
        ["/watching"] = "watching:enforce()",
        ["/from"] = "from:enforce()",
        ["/inline"] = "gate:enforce { address = ngx.var.arg_to, on_review = 'allow' }",
      }
    )
    local function ask(path, name)
      return status_of(path .. "?to=" .. addresses[name])
    end
    assert.equal(403, ask("/usual", "generally-high-eth"))
    assert.equal(200, ask("/lenient", "generally-high-eth"))
    assert.equal(200, ask("/inline", "generally-high-eth"))
    assert.equal(403, ask("/inline", "high-eth"))
    assert.equal(403, status_of "/inline")
    assert.equal(200, ask("/lenient", "fault-500"))
    assert.equal(403, ask("/lenient", "high-eth"))
    assert.equal(200, ask("/watching", "high-eth"))
    assert.equal(451, status_of(("/from?to=%s&from=%s"):format(addresses["clean-eth"], addresses["high-eth"])))
    -- Two policies do not share decisions.
    assert.equal(200, ask("/usual", "low-eth"))
    assert.equal(403, ask("/strict", "low-eth"))
    assert.equal(200, ask("/usual", "low-eth"))
  end)

  it("does not use the gate's own address if a call finds none", function()
    start("gate = new_gate { network = 'eth', address = '" .. addresses["clean-eth"] .. "' }", {
      ["/call"] = "gate:enforce { address = ngx.var.arg_to }",
      ["/more"] = "gate:enforce { address = ngx.var.arg_to, monitor = false }",
      ["/own"] = "gate:enforce()",
    })
    assert.same({ 403, 403, 200 }, { status_of "/call", status_of "/more", status_of "/own" })
  end)

  it("lets exempt callers pass without a lookup", function()
    start("gate = new_gate { network = 'eth' }", {
      ["/network"] = "gate:enforce { address = ngx.var.arg_to, exempt = { '127.0.0.0/8' } }",
      ["/elsewhere"] = "gate:enforce { address = ngx.var.arg_to, exempt = { '192.0.2.0/24', '::1' } }",
      ["/function"] = [[gate:enforce { address = ngx.var.arg_to,
        exempt = function() return ngx.var.http_x_internal == "yes" end }]],
      ["/truthy"] = "gate:enforce { address = ngx.var.arg_to, exempt = { function() return 'no' end } }",
    })
    local function ask(path, headers)
      return status_of(path .. "?to=" .. addresses["high-eth"], { headers = headers })
    end
    assert.equal(200, ask "/network")
    assert.equal(403, ask "/elsewhere")
    assert.equal(403, ask "/function")
    assert.equal(200, ask("/function", { "X-Internal: yes" }))
    assert.equal(403, ask "/truthy")
  end)

  it("shows the decision in ngx.ctx and in variables", function()
    start(
      [[gate = new_gate { network = 'eth', on_review = "allow", address = { argument = "to" },
        variables = { action = "action", source = "source", outcome = "outcome", reason = "reason" } }]],
      { ["/withdraw"] = "gate:enforce()" },
      {
        behind = [[content_by_lua_block {
          local decision, source = ngx.ctx.riskscreen, ngx.ctx.riskscreen_source
          ngx.print(decision.action, " ", source, " ", decision.reasons[1].risk.riskLevel, " ", ngx.var.reason) }]],
      }
    )
    assert.matches(
      "^review upstream generally%-high rule 'elevated risk' matches generally%-high / ",
      get(to "generally-high-eth").body
    )
    assert.equal(403, status_of(to "high-eth"))
    assert.equal(403, status_of "/withdraw")
    -- nginx logs a request after its answer.
    for _, line in ipairs {
      "/withdraw 200 review upstream allow",
      "/withdraw 403 block upstream block",
      "/withdraw 403 unknown invalid block",
    } do
      nginx.wait_for(line, function()
        return io.open(running.nginx.directory .. "/access.log"):read("*a"):find(line, 1, true)
      end)
    end
  end)

  it("answers 503 and says why where a variable of `variables` does not exist", function()
    start(
      [[gate = new_gate { network = 'eth', variables = { source = "sourse" } }
        watcher = gate:location { monitor = true }
        builtin = gate:location { variables = { action = "remote_addr" } }]],
      {
        ["/withdraw"] = ENFORCE,
        ["/decide"] = "gate:decide { address = ngx.var.arg_to }",
        ["/watched"] = "watcher:enforce { address = ngx.var.arg_to }",
        ["/builtin"] = "builtin:enforce { address = ngx.var.arg_to }",
      }
    )
    local function line(pattern)
      return "%[error%][^\n]*riskscreen: " .. pattern
    end
    for _, path in ipairs { "/withdraw", "/decide" } do
      local answer = get(path .. "?to=" .. addresses["clean-eth"])
      assert.equal(503, answer.status)
      assert.matches("^%x+$", answer.headers["x-request-id"])
      local message = "variables%.source names the variable sourse, which cannot be set: declare it with `map` or `set`"
      assert.matches(line(message .. "[^\n]*; request " .. answer.headers["x-request-id"]), running.nginx:log())
    end
    assert.equal(503, status_of("/builtin?to=" .. addresses["clean-eth"]))
    assert.matches(line "variables%.action names the variable remote_addr, which cannot be set", running.nginx:log())
    assert.equal(200, status_of("/watched?to=" .. addresses["high-eth"]))
    assert.matches(line "cannot decide: variables%.source names the variable sourse", running.nginx:log())
    assert.equal(503, status_of("/withdraw?to=" .. addresses["high-eth"]))
    stop { "which cannot be set" }
  end)

  it("decides, and leaves acting to the caller", function()
    start(GATE, {
      ["/decide"] = [[local decision, source = gate:decide { address = ngx.var.arg_to }
        ngx.header["X-Verdict"] = decision.action .. " " .. source]],
    })
    local function ask(name)
      local answer = get("/decide?to=" .. (addresses[name] or ""))
      return answer.status .. " " .. answer.headers["x-verdict"]
    end
    assert.equal("200 block upstream", ask "high-eth")
    assert.equal("200 block lru", ask "high-eth")
    assert.equal("200 unknown invalid", ask "nobody")
  end)

  it("forgets an address, also in the other workers", function()
    start(GATE, { ["/withdraw"] = ENFORCE }, { workers = 2 })
    for _ = 1, 10 do
      assert.equal(403, status_of(to "high-eth"))
    end
    assert.equal(1, #running.service:requests())
    assert.is_true(running.nginx:eval("return gate:purge(...)", addresses["high-eth"]))
    for _ = 1, 10 do
      assert.equal(403, status_of(to "high-eth"))
    end
    assert.equal(2, #running.service:requests())
  end)

  it("says which texts cannot be purged, as they come from a URL", function()
    start(GATE, { ["/withdraw"] = ENFORCE })
    local purge = "local ok, err = gate:purge((...)[1], (...)[2]) return ok, err and err.kind, err and err.message"
    for problem, given in pairs {
      ["is an address of no network"] = { addresses["high-eth"]:sub(1, -2) },
      ["expected an address and, at most, a network"] = { addresses["high-eth"], "nowhere" },
      ["expected an address and, at most"] = {},
    } do
      local ok, kind, message = running.nginx:eval(purge, given)
      assert.same({ nil, "invalid_argument" }, { ok, kind })
      assert.matches(problem, message, 1, true)
    end
  end)

  it("needs no shared dict", function()
    start("gate = new_gate { network = 'eth', dict = false }", { ["/withdraw"] = ENFORCE })
    assert.equal(200, status_of(to "clean-eth"))
    assert.equal(403, status_of(to "high-eth"))
    assert.equal(403, status_of(to "high-eth"))
    assert.equal(2, #running.service:requests())
  end)

  it("does not share decisions with another gate of the same dict", function()
    start(
      "gate = new_gate { network = 'eth' } other = new_gate { network = 'eth', name = 'other' }",
      { ["/withdraw"] = ENFORCE, ["/other"] = "other:enforce { address = ngx.var.arg_to }" }
    )
    for _ = 1, 2 do
      assert.equal(403, status_of(to "high-eth"))
      assert.equal(403, status_of("/other?to=" .. addresses["high-eth"]))
    end
    assert.equal(2, #running.service:requests())
  end)

  it("shares no decision with a gate whose client knows other values", function()
    start(
      [[local function answer(request)
          local address = request.target:match "address=(%w+)"
          local risk = { riskLevel = "low", riskType = "mixer", riskSource = "Community" }
          local data = { time = 1, address = address, network = "eth", whitelist = false, risks = { risk } }
          local body = require("riskscreen.json").encode { success = true, code = 1, data = data }
          return { status = 200, headers = {}, body = body }
        end
        local function gate_of(extend)
          local client = require("riskscreen").new {
            access_key = "test-key", transport = answer, identity = "one", extend = extend,
          }
          return new_gate { network = "eth", client = client }
        end
        gate, strict = gate_of { risk_type = { "mixer" } }, gate_of()]],
      { ["/withdraw"] = ENFORCE, ["/strict"] = "strict:enforce { address = ngx.var.arg_to }" }
    )
    assert.equal(200, status_of(to "clean-eth"))
    assert.equal(403, status_of("/strict?to=" .. addresses["clean-eth"]))
  end)

  it("shares decisions with gates of the same service and account alone", function()
    start([[
      function source_of(client)
        local gate = new_gate { network = "eth", client = client }
        return select(2, gate:decide { address = "]] .. addresses["clean-eth"] .. [[" })
      end
      function client(options)
        local all = { base_url = service, access_key = key, account = "test", retry = false }
        for name, value in pairs(options) do all[name] = value end
        return all
      end
      function transport() return { status = 200, headers = {}, body = "{}" } end]], {})
    running.nginx:eval(
      "rawset(_G, 'service', (...)[1]) rawset(_G, 'key', (...)[2])",
      { running.server.url, running.server.access_key }
    )
    local function source_of(options)
      return running.nginx:eval("return source_of(client " .. options .. ")")
    end
    assert.equal("upstream", source_of "{}")
    assert.equal("dict", source_of "{}")
    assert.equal("dict", source_of "{ timeout = 3, retry = {} }")
    for _, options in ipairs {
      "{ account = 'live' }",
      "{ base_url = 'SERVICE/live' }",
      "{ account = 'other', timeout = 3 }",
      "{ transport = transport, identity = 'live' }",
      "{ transport = transport, identity = 'test' }",
      "{ extend = { risk_type = { 'mixer' } } }",
    } do
      assert.equal("upstream", source_of(options:gsub("SERVICE", running.server.url)), options)
    end
    assert.equal("dict", source_of "{}")
  end)

  it("refuses a client with local lists, which would decide behind the cache", function()
    start(GATE, {})
    local raised = running.nginx:eval [[
      local client = { base_url = "https://x", access_key = "test-key", lists = { deny = "/dev/null.txt" } }
      client.lists.deny = {}
      return select(2, pcall(require("riskscreen.nginx.gate").new, { client = client, on_unknown = "block" }))]]
    assert.matches("give `lists` to the gate and not to its client", raised, 1, true)
  end)

  it("takes every spelling of an address for one, and a misspelt one for none", function()
    start("gate = new_gate { network = 'eth', on_unknown = 'allow' }", { ["/withdraw"] = ENFORCE })
    local clean = addresses["clean-eth"]
    local misspelt = clean:sub(1, -2) .. "4"
    for _ = 1, 2 do
      for _, spelling in ipairs { clean:lower(), clean, "0x" .. clean:sub(3):upper() } do
        assert.equal(200, status_of("/withdraw?to=" .. spelling))
      end
      -- In lower case it would be another address.
      assert.equal(403, status_of("/withdraw?to=" .. misspelt))
      assert.equal(403, status_of("/withdraw?to=" .. clean:gsub("a", "A")))
      assert.equal(403, status_of("/withdraw?to=" .. clean .. "%E2%80%8B"))
    end
    assert.equal(1, #running.service:requests())
  end)

  it("checks addresses as its client does, or as it is told", function()
    start([[gate = new_gate { network = 'eth', address_check = "format" }]], { ["/withdraw"] = ENFORCE })
    assert.equal(200, status_of("/withdraw?to=" .. addresses["clean-eth"]:gsub("a", "A")))
    assert.equal(403, status_of "/withdraw?to=0x12")
  end)

  it("lets the operator define valid addresses", function()
    start(
      [[gate = new_gate { network = 'eth', on_unknown = 'allow',
        is_address = function(address, network) return address == "name.eth" and network == "eth" end }]],
      { ["/withdraw"] = ENFORCE }
    )
    assert.equal(200, status_of "/withdraw?to=name.eth")
    assert.equal(403, status_of "/withdraw?to=other.eth")
    assert.equal(403, status_of(to "clean-eth"))
    assert.equal("name.eth", running.service:requests()[1].parameters.address)
    assert.equal(1, #running.service:requests())
  end)

  it("never shows the access key", function()
    start(GATE, { ["/withdraw"] = ENFORCE }, {
      server = [[location = /metrics { content_by_lua_block { gate:metrics() } }
        location = /status { content_by_lua_block { gate:status() } }]],
    })
    running.service:fault { kind = "status", status = 401 }
    assert.equal(403, status_of(to "clean-eth"))
    local texts = { running.nginx:log(), get("/metrics").body, get("/status").body, get(to "clean-eth").body }
    for _, text in ipairs(texts) do
      assert.is_nil(text:find(running.server.access_key, 1, true))
    end
  end)

  it("refuses wrong options at the caller's line", function()
    start(GATE, {})
    local client = "client = { base_url = 'https://x', access_key = 'test-key' }"
    local rest = ", " .. client .. ", on_unknown = 'block' }"
    local own = ", client = { screen = function() end }, on_unknown = 'block' }"
    local transport = ", " .. client:sub(1, -2) .. ", transport = function() end }, on_unknown = 'block' }"
    local redis = "{ url = 'redis://127.0.0.1:1', key = 'a secret of the fleet' }"
    local nil_options = "client needs client%.base_url and client%.access_key %(got nil%); .* `env RISKSCREEN_BASE_URL"
    local only_transport = "{ client = { transport = function() end }, on_unknown = 'block' }"
    local wrong_network = "network must be one of .* %(got 'etherum'; did you mean 'ethereum'%?%)"
    for message, code in pairs {
      ["on_unknown is required"] = "{ " .. client .. " }",
      ["on_unknown must be one of block, review, allow"] = "{ " .. client .. ", on_unknown = 'alow' }",
      [nil_options] = "{ client = {}, on_unknown = 'block' }",
      ["gate: client needs client.access_key"] = "{ client = { base_url = 'https://x' }, on_unknown = 'block' }",
      ["client needs client%.access_key %(got nil%)"] = only_transport,
      ["methods must be a list of HTTP methods such as POST"] = "{ methods = { 'post' }" .. rest,
      ["methods must be a list of HTTP methods such as POST, at least 1"] = "{ methods = {}" .. rest,
      ["^eval.* " .. wrong_network] = "{ network = 'etherum'" .. rest,
      ["gate: " .. wrong_network] = "{ subjects = { { address = 'x', network = 'etherum' } }" .. rest,
      ["must be the name of a lua_shared_dict"] = "{ dict = 'nowhere'" .. rest,
      ["variables%.action must be the name of a variable, without '%$'"] = "{ variables = { action = '$x' }" .. rest,
      ["exempt must hold functions"] = "{ exempt = { 'x' }" .. rest,
      ["address must have a name as argument"] = "{ address = { argument = 1 }" .. rest,
      ["take { argument = 'to' }"] = "{ address = { variable = 'arg_to' }" .. rest,
      ["take { argument = 'pay' }"] = "{ address = { variable = 'Arg_pay' }" .. rest,
      ["take { header = 'x%-to' }"] = "{ address = { variable = 'http_x_to' }" .. rest,
      ["redis needs a client with `account`"] = "{ dict = 'riskscreen', redis = " .. redis .. rest,
      ["redis needs a client with `identity`"] = "{ dict = 'riskscreen', redis = " .. redis .. own,
      ["dict needs a client with `identity`"] = "{ dict = 'riskscreen'" .. own,
      ["dict needs a client with `identity`: "] = "{ dict = 'riskscreen'" .. transport,
      ["redis%.key is required %(got nil; if it comes from os%.getenv"] = "{ dict = 'riskscreen', redis = { url = 'x' }"
        .. rest,
      ["lists%.deny must be a path that begins with '/' %(got 'deny.csv'%)"] = "{ lists = { deny = 'deny.csv' }"
        .. rest,
      ["lists%.allow must be a path that begins with '/' %(got './y'%)"] = "{ lists = { allow = { '/x', './y' } }"
        .. rest,
      ["did you mean 'argument'"] = "{ address = { arguments = 'x' }" .. rest,
      ["max_body beside json or form only"] = "{ address = { argument = 'x', max_body = 5 }" .. rest,
      ["max_body between 1 and 16777216 bytes"] = "{ address = { json = 'x', max_body = 0.5 }" .. rest,
      ["with one of argument"] = "{ address = { max_body = 5 }" .. rest,
      ["subjects%[2%]%.address is required"] = "{ subjects = { { address = 'x' }, {} }" .. rest,
      ["block.status must be between 300 and 599"] = "{ block = { status = 99 }" .. rest,
      ["invalid.status must be between 300 and 599"] = "{ invalid = { status = 200 }" .. rest,
      ["review.status must be between 200 and 599"] = "{ review = { status = 199 }" .. rest,
    } do
      local raised = running.nginx:eval([[local ok, message = pcall(function(...)
        local gate = require("riskscreen.nginx.gate").new(]] .. code .. [[)
        return gate
      end)
      return message]])
      assert.matches(message, raised)
      assert.matches("^eval", raised)
    end
  end)
end)
