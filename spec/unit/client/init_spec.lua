local client = require "riskscreen.client"
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local recorder = require "spec.support.recorder"
local samples = require "spec.support.samples"

local KEY = "K3y/with+odd=chars"

local risk = operations.by_name.getAddressRisk
local good = { address = samples.address, network = "eth" }

local function new(transport, more)
  local options = { access_key = KEY, transport = transport }
  for name, value in pairs(more or {}) do
    options[name] = value
  end
  return client.new(options)
end

-- A client of a transport with these answers, and the list of its requests.
local function answering(...)
  local transport, requests = recorder.new(...)
  return new(transport), requests
end

local function success(operation)
  return recorder.reply(200, (select(2, samples.of(operation))))
end

local function assert_hidden(value, secret, seen)
  seen = seen or {}
  if type(value) == "string" then
    assert.is_nil(value:find(secret, 1, true), value)
  elseif type(value) == "table" and not seen[value] then
    seen[value] = true
    for key, member in pairs(value) do
      assert_hidden(key, secret, seen)
      assert_hidden(member, secret, seen)
    end
    assert_hidden(tostring(value), secret, seen)
    assert_hidden(getmetatable(value), secret, seen)
  end
end

describe("a client", function()
  for _, operation in ipairs(operations.list) do
    it(("has %s:%s for %s"):format(operation.namespace, operation.method, operation.name), function()
      local mine = answering(recorder.reply(500))
      assert.is_function(mine[operation.namespace][operation.method])
    end)
  end

  it("refuses a misspelt method at the line that names it, with the nearest one", function()
    local mine = answering(recorder.reply(500))
    local line = debug.getinfo(1, "l").currentline + 2
    local _, message = pcall(function()
      return mine.kya:rsk()
    end)
    assert.equal(
      ("%s:%d: client.kya has no method 'rsk'; did you mean 'risk'?"):format("init_spec.lua", line),
      message:match "[%w_]+%.lua:.*"
    )
    for misspelt, hint in pairs { kay = "kya", scren = "screen", blackist = "blacklist" } do
      _, message = pcall(function()
        return mine[misspelt]
      end)
      assert.matches(("client has no method '%s'; did you mean '%s'?"):format(misspelt, hint), message, 1, true)
    end
  end)

  it("has no fields other than its methods, its namespaces and its policy", function()
    local mine = answering(recorder.reply(500))
    assert.is_nil(mine.policy)
    assert.is_nil(mine[1])
  end)

  for _, operation in ipairs(operations.list) do
    if operation.path then
      it(("sends %s by its method and by its name alike"):format(operation.name), function()
        local mine, requests = answering(success(operation))
        local parameters = samples.of(operation)
        local namespace = mine[operation.namespace]
        local value, result = namespace[operation.method](namespace, parameters)
        assert.is_not_nil(value)
        assert.equal(1, result.attempts)
        assert.is_number(result.elapsed)
        assert.is_not_nil((mine:call(operation.name, parameters)))
        assert.same(requests[1], requests[2])
        assert.equal(operation.http, requests[1].method)
        assert.equal(KEY, requests[1].headers["X-Access-Key"])
      end)
    end
  end

  it("takes no parameters for an empty table", function()
    local mine, requests = answering(success(operations.by_name.getAccountUsage))
    assert.is_table((mine.account:usage()))
    assert.equal("/api/v1/tracker/account/usage", requests[1].target)
  end)

  it("sends a call's timeout and headers", function()
    local mine, requests = answering(success(risk))
    mine.kya:risk(good, { timeout = 0.5, headers = { ["X-Trace"] = "a" } })
    assert.equal(0.5, requests[1].timeout)
    assert.equal("a", requests[1].headers["X-Trace"])
  end)

  it("has the policy of its options", function()
    local policy = require("riskscreen.policy").new()
    assert.equal(policy, new(print, { policy = policy }).policy)
  end)

  it("reads the dates of an answer by its clock", function()
    local headers = { ["retry-after"] = "Sun, 06 Nov 1994 08:49:47 GMT" }
    local transport = recorder.new(recorder.reply(429, nil, headers))
    local mine = new(transport, {
      clock = function()
        return 784111777
      end,
    })
    local _, err = mine.kya:risk(good)
    assert.equal(10, err.retry_after)
  end)

  it("reads the envelope of an endpoint in its options", function()
    local transport = recorder.new(recorder.reply(200, { code = 200, message = "SUCCESS", data = { done = true } }))
    local endpoint = { method = "GET", path = "/r", envelope = "usage" }
    local mine = new(transport, { endpoints = { kyt_result = endpoint } })
    assert.same({ done = true }, (mine.kyt:result { requestId = "r" }))
  end)

  it("sends a request that no operation describes", function()
    local mine, requests = answering(recorder.reply(200, { anything = 1 }))
    local value = mine:request("POST", "/api/v1/new", { query = { a = 1 }, body = { b = 2 }, timeout = 2 })
    assert.same({ anything = 1 }, value)
    assert.equal("/api/v1/new?a=1", requests[1].target)
    assert.equal('{"b":2}', requests[1].body)
    assert.equal(2, requests[1].timeout)
    assert.equal(KEY, requests[1].headers["X-Access-Key"])
  end)

  it("keeps null members in the answer to such a request only where it is asked", function()
    local mine = answering(recorder.page(200, '{"a":null,"b":1}'))
    assert.same({ b = 1 }, (mine:request("GET", "/new")))
    assert.same({ a = json.null, b = 1 }, (mine:request("GET", "/new", { keep_null = true })))
  end)

  it("does not change the caller's tables", function()
    local mine = answering(success(operations.by_name.listAddressEntities))
    local parameters = { addresses = { samples.address, samples.other_address }, network = "eth" }
    local call = { headers = { ["X-A"] = "b" } }
    mine.kya:entities(parameters, call)
    assert.same({ addresses = { samples.address, samples.other_address }, network = "eth" }, parameters)
    assert.same({ headers = { ["X-A"] = "b" } }, call)
  end)

  it("can yield inside its transport, on every Lua", function()
    local mine = new(function(request)
      return coroutine.yield(request)
    end)
    local co = coroutine.create(function()
      return mine.kya:risk(good)
    end)
    local ok, request = coroutine.resume(co)
    assert.is_true(ok, request)
    assert.equal("GET", request.method)
    local resumed, value = coroutine.resume(co, success(risk))
    assert.is_true(resumed, value)
    assert.equal(samples.address, value.address)
  end)
end)

describe("an error", function()
  it("of the arguments says that nothing was sent", function()
    local mine, requests = answering(success(risk))
    local value, err = mine.kya:risk { address = samples.address, network = "etherum" }
    assert.is_nil(value)
    assert.equal("invalid_argument", err.kind)
    assert.same({ "getAddressRisk", 0, false }, { err.operation, err.attempts, err.sent })
    assert.equal(0, #requests)
  end)

  it("of an unpublished path names the option to set, and says that nothing was sent", function()
    local mine, requests = answering(success(risk))
    local _, err = mine.kyt:result { requestId = "r" }
    assert.equal("unsupported", err.kind)
    assert.matches("endpoints.kyt_result", err.message, 1, true)
    assert.same({ "getAsynchronousResult", 0, false }, { err.operation, err.attempts, err.sent })
    assert.equal(0, #requests)
  end)

  it("of the service says that it was sent", function()
    local mine = answering(recorder.reply(500, samples.failure(9, "no")))
    local _, err = mine.kya:risk(good, { retry = false })
    assert.same({ "server", "getAddressRisk", 500, 9, 1, true, true }, {
      err.kind,
      err.operation,
      err.status,
      err.code,
      err.attempts,
      err.sent,
      err.retryable,
    })
    assert.is_number(err.elapsed)
  end)

  for _, kind in ipairs { "network", "timeout", "tls", "protocol", "cancelled" } do
    it(("of the transport keeps its kind %s and has no status"):format(kind), function()
      for _, sent in ipairs { true, false } do
        local mine = answering(recorder.failure(kind, "it broke", sent))
        local value, err = mine.kya:risk(good)
        assert.is_nil(value)
        assert.same({ kind, "it broke", sent }, { err.kind, err.message, err.sent })
        assert.is_nil(err.status)
      end
    end)
  end

  for what, answers in pairs {
    ["nothing"] = {},
    ["a failure of an unknown kind"] = { nil, { kind = "bad luck", message = "x" } },
    ["a text for a failure"] = { nil, "it broke" },
    ["a reply without a status"] = { { headers = {} } },
    ["a reply without headers"] = { { status = 200, body = "{}" } },
    ["a reply whose body is decoded"] = { { status = 200, headers = {}, body = {} } },
    ["true"] = { true },
  } do
    it("is a protocol error when a transport returns " .. what, function()
      local mine = new(function()
        return answers[1], answers[2]
      end)
      local value, err = mine.kya:risk(good)
      assert.is_nil(value)
      assert.equal("protocol", err.kind)
      assert.is_true(err.sent)
    end)
  end

  it("of a request that no operation describes names the method and the path", function()
    local mine = answering(recorder.reply(404))
    local _, err = mine:request("GET", "/api/v9/new")
    assert.same({ "http", "GET /api/v9/new" }, { err.kind, err.operation })
  end)

  for _, path in ipairs { "", "api", "//evil.example/x", "/a?b=c", "/a#b", "/a b", "/a\r\nX: y", "/a/../b", "/\228" } do
    it(("refuses the path %q"):format(path), function()
      local mine, requests = answering(success(risk))
      local value, err = mine:request("GET", path)
      assert.is_nil(value)
      assert.same({ "invalid_argument", "path", 0 }, { err.kind, err.field, #requests })
    end)
  end
end)

describe("the access key", function()
  it("is in no field of a client or its errors at any depth", function()
    local leaks = "your key "
      .. KEY
      .. " is bad: "
      .. KEY:gsub("[^%w]", function(byte)
        return ("%%%02X"):format(byte:byte())
      end)
    local headers = { location = "https://elsewhere.example/?key=" .. KEY, ["x-echo"] = KEY }
    local about_another = select(2, samples.of(risk))
    about_another.data.address = KEY
    local cut = ("x"):rep(190) .. KEY
    local page = recorder.page(403, cut:sub(1, 200), headers)
    for _, answer in ipairs {
      recorder.reply(400, samples.failure(1, leaks), headers),
      recorder.reply(401, samples.failure(1, leaks), headers),
      recorder.reply(200, samples.failure(1, leaks), headers),
      recorder.reply(302, nil, headers),
      recorder.reply(200, about_another, headers),
      recorder.reply(200, { success = true, code = 1, status = KEY }, headers),
      recorder.page(200, leaks, headers),
      page,
      recorder.failure("network", "proxy said " .. leaks, true),
    } do
      local mine = answering(answer)
      local value, err = mine.kya:risk(good)
      assert.is_nil(value)
      assert_hidden(err, KEY)
      assert_hidden(err, KEY:sub(1, 6))
      assert_hidden(mine, KEY)
    end
  end)

  it("is in no error of a call that was given it as a value", function()
    local told = {}
    local mine = new(recorder.new(recorder.failure("network", "refused", false)), {
      retry = false,
      on = {
        error = function(failure)
          told[#told + 1] = failure
        end,
      },
    })
    local kyt, address = mine.kyt, samples.address
    local errs = {}
    for _, value in ipairs { KEY, KEY .. "\1", "/" .. KEY, ("x"):rep(20) .. KEY .. ("x"):rep(200) } do
      local submission = { network = "eth", hash = value, customId = value, outputAddress = value }
      for index, err in ipairs {
        select(2, mine.kya:risk { address = value, network = "eth" }),
        (select(2, mine.kya:risk { address = address, network = value })),
        (select(2, mine.kya:entities { addresses = { value }, network = "eth" })),
        (select(2, mine.kya:entities { addresses = { address }, network = value })),
        (select(2, mine.blacklist:add { list = { { address = value } } })),
        (select(2, kyt:submit(submission))),
        (select(2, kyt:await(value .. "\1"))),
        (select(2, kyt:resume(value))),
        (select(2, mine:request("GET", value))),
        (select(2, pcall(mine.call, mine, value))),
        mine:screen({ address = value, network = "eth" }).error,
        mine:screen({ address = address, network = value }).error,
        mine:screen_all({ source = { value }, network = "eth" })().error,
      } do
        assert_hidden(err, KEY:sub(1, 6))
        errs[index] = err
      end
    end
    assert.is_true(#errs >= 12)
    assert_hidden(told, KEY:sub(1, 6))
  end)

  it("may come from a function, which is called each time", function()
    local count = 0
    local transport, requests = recorder.new(success(risk))
    local mine = new(transport, {
      access_key = function()
        count = count + 1
        return "test-key" .. count
      end,
    })
    local at_first = count
    assert.is_true(at_first <= 1)
    mine.kya:risk(good)
    mine.kya:risk(good)
    assert.equal("test-key" .. at_first + 1, requests[1].headers["X-Access-Key"])
    assert.equal("test-key" .. at_first + 2, requests[2].headers["X-Access-Key"])
  end)

  for what, provide in pairs {
    ["raises an error"] = function()
      error("cannot decrypt " .. KEY)
    end,
    ["returns nothing"] = function() end,
    ["returns an empty text"] = function()
      return ""
    end,
    ["returns a number"] = function()
      return 5
    end,
    ["returns a key of seven bytes"] = function()
      return "7-bytes"
    end,
    ["returns a space at the end"] = function()
      return KEY .. " "
    end,
    ["returns a line end"] = function()
      return KEY .. "\n"
    end,
  } do
    it("makes the call fail when its function " .. what, function()
      local transport, requests = recorder.new(success(risk))
      local value, err = new(transport, { access_key = provide }).kya:risk(good)
      assert.is_nil(value)
      assert.same({ "unauthorized", false, 0, 0 }, { err.kind, err.sent, err.attempts, #requests })
      assert.matches("access_key function", err.message, 1, true)
      assert.is_nil(err.status)
      assert_hidden(err, KEY)
    end)
  end
end)
