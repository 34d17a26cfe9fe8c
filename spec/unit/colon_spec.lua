-- A method that is called with a dot says that it needs a colon: it must not take its argument for its object.
local riskscreen = require "riskscreen"

local CALLS = {
  loop = "pollfd events timeout step",
  server = "pollfd events timeout step close",
  inbox = "deliver on listen serve",
  watch = "once run stop test",
  run = "where stop finish",
  queue = "prepare add results forget dead requeue status metrics worker",
  worker = "run stop",
  journal = "append flush head rotate stats close",
  store = "batch space is_shared time lock close",
  service = "requests account fault clear_faults deliver due_webhooks deliver_to",
  task = "await cancel",
}

describe("a method without its object", function()
  local objects, client

  setup(function()
    local store = riskscreen.store.memory()
    local service
    client, service = riskscreen.sandbox.client {}
    local redis = riskscreen.redis.new { url = "redis://127.0.0.1:1" }
    objects = {
      loop = riskscreen.loop,
      server = assert(riskscreen.sandbox.serve {}),
      inbox = riskscreen.webhook.inbox { accept_unauthenticated = true },
      watch = riskscreen.watch(client, { source = {}, every = 10, store = store, on_change = print }),
      run = client:screen_all { source = {}, network = "eth" },
      queue = riskscreen.queue.new { redis = redis, name = "colon" },
      journal = riskscreen.journal.store(store),
      store = store,
      service = service,
      task = riskscreen.spawn(function() end),
    }
    objects.worker = objects.queue:worker { client = client }
  end)

  teardown(function()
    objects.server:close()
  end)

  for name, methods in pairs(CALLS) do
    for method in methods:gmatch "%S+" do
      it(("names the colon: %s:%s"):format(name, method), function()
        for _, argument in ipairs { {}, "text", 1, false } do
          local ok, message = pcall(function()
            objects[name][method](argument)
          end)
          assert.is_false(ok)
          assert.matches(("call it with a colon: %s:%s(…)"):format(name, method), message, 1, true)
          assert.matches("^%S*colon_spec%.lua:%d+: ", message)
        end
      end)
    end
  end
end)
