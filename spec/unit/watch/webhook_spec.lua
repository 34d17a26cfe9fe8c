-- Changes over real HTTP: the signature as openssl computes it, and a receiver that is down.
local command_line = require "spec.support.command_line"
local riskscreen = require "riskscreen"
local runtime = require "riskscreen.runtime"
local server = require "riskscreen.server"
local temporary = require "spec.support.temporary"

local SECRET = "a secret of the receiver"

-- A receiver that answers with `self.status` and keeps each request.
local function new_receiver()
  local http = assert(server.new { host = "127.0.0.1", port = 0, max_body = 65536 })
  local self = { status = 200, got = {}, url = ("http://127.0.0.1:%d/changes"):format(http:port()) }
  local object = {}
  for _, name in ipairs { "pollfd", "events", "timeout" } do
    object[name] = function()
      return http[name](http)
    end
  end
  function object.step(_, seconds)
    http:step(seconds)
    local request = http:next()
    while request do
      table.insert(self.got, { path = request.path, headers = request.headers, body = request.body })
      request:respond(self.status, {}, "")
      request = http:next()
    end
  end
  runtime.attach(object)
  function self.close()
    runtime.detach(object)
    http:close()
  end
  return self
end

local function header(request, name)
  for key, value in pairs(request.headers) do
    if tostring(key):lower() == name then
      return type(value) == "table" and value[1] or value
    end
  end
end

describe("the webhook of a watch", function()
  local receiver

  before_each(function()
    receiver = new_receiver()
  end)

  after_each(function()
    receiver.close()
    temporary.clean()
  end)

  local function watch_of(store, problems, clock)
    local client = riskscreen.sandbox.client { clock = clock }
    return riskscreen.watch(client, {
      source = { riskscreen.sandbox.scenario("type-hack").address },
      network = "eth",
      store = store,
      webhook = { url = receiver.url, secret = SECRET },
      on_failure = function(message)
        table.insert(problems, message)
      end,
    })
  end

  it("posts a change as JSON, with its id and a signature over the time and the body", function()
    local summary = assert(watch_of(riskscreen.store.memory(), {}):once())
    assert.equal(0, summary.waiting)
    local request = receiver.got[1]
    assert.equal("/changes", request.path)
    local time, signature = header(request, "x-riskscreen-signature"):match "^t=(%d+),v1=(%x+)$"
    local path = temporary.path "signed"
    temporary.write(path, time .. "." .. request.body)
    local output = command_line.run(("openssl dgst -sha256 -hmac '%s' %s"):format(SECRET, path))
    assert.equal(output:match "= (%x+)", signature)
    assert.matches('"id":"' .. header(request, "x-riskscreen-id") .. '"', request.body, 1, true)
    assert.matches('"action":"block"', request.body, 1, true)
    assert.is_nil(header(request, "x-access-key"))
  end)

  it("posts one test that is signed as a change is", function()
    assert.is_true(watch_of(riskscreen.store.memory(), {}):test())
    assert.equal(1, #receiver.got)
    local request = receiver.got[1]
    local time, signature = header(request, "x-riskscreen-signature"):match "^t=(%d+),v1=(%x+)$"
    local path = temporary.path "signed"
    temporary.write(path, time .. "." .. request.body)
    local output = command_line.run(("openssl dgst -sha256 -hmac '%s' %s"):format(SECRET, path))
    assert.equal(output:match "= (%x+)", signature)
    assert.matches('"test":true', request.body, 1, true)
    receiver.status = 500
    assert.same({ nil, "the webhook's receiver answered 500" }, { watch_of(riskscreen.store.memory(), {}):test() })
  end)

  it("signs whole seconds when the client's clock has fractions", function()
    local problems = {}
    watch_of(riskscreen.store.memory(), problems, function()
      return 1795000000.75
    end):once()
    assert.same({}, problems)
    assert.matches("^t=1795000000,", header(receiver.got[1], "x-riskscreen-signature"))
  end)

  it("keeps a change while the receiver is down, also over a restart, and sends it with the same id", function()
    local path, problems = temporary.path "state.db", {}
    local store = assert(riskscreen.store.sqlite(path))
    receiver.status = 503
    assert.equal(1, watch_of(store, problems):once().waiting)
    assert.same({ "the webhook's receiver answered 503" }, problems)
    store:close()
    store = assert(riskscreen.store.sqlite(path))
    receiver.status = 204
    local summary = watch_of(store, problems):once()
    assert.same({ 0, 0 }, { summary.waiting, summary.changed })
    assert.equal(2, #receiver.got)
    assert.equal(header(receiver.got[1], "x-riskscreen-id"), header(receiver.got[2], "x-riskscreen-id"))
    assert.equal(receiver.got[1].body, receiver.got[2].body)
    store:close()
  end)

  it("keeps a change when nothing listens", function()
    local problems = {}
    local watch = watch_of(riskscreen.store.memory(), problems)
    receiver.close()
    assert.equal(1, watch:once().waiting)
    assert.matches("the webhook cannot be sent", problems[1], 1, true)
    receiver = new_receiver()
  end)
end)
