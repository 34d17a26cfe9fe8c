-- No field of an object that a program holds leads to a secret: somebody may log the object, or send it elsewhere.
local riskscreen = require "riskscreen"
local secrecy = require "spec.support.secrecy"

local KEY, SECRET, PASSWORD = "reachable-access-key", "reachable-webhook-secret", "reachable-redis-password"
local sandbox = riskscreen.sandbox
local clean = sandbox.scenario "clean-eth"
local SUBMISSION = { network = "eth", hash = "0xabc", direction = "sent" }

local function leads_to_nothing(...)
  for index = 1, select("#", ...) do
    for _, secret in ipairs { KEY, SECRET, PASSWORD } do
      local path = secrecy.path_to(select(index, ...), secret)
      assert.is_nil(path, path)
    end
  end
end

local function new_service()
  return sandbox.new { accounts = { [KEY] = {} }, kyt_delay = 1000 }
end

local function new_client(options)
  options = options or {}
  options.service, options.access_key = options.service or new_service(), KEY
  return sandbox.client(options)
end

describe("no field leads to a secret", function()
  it("from a client, its calls, decisions, errors and iterators", function()
    local real = riskscreen.new { base_url = "http://127.0.0.1:1", access_key = KEY, retry = false }
    local client = new_client()
    leads_to_nothing(real, client, client:screen { address = clean.address, network = "eth" })
    leads_to_nothing(real.kya:risk { address = clean.address, network = "eth" })
    leads_to_nothing(client.blacklist:pages())
    leads_to_nothing(client.blacklist:each())
    leads_to_nothing(client:screen_all { source = { clean.address }, network = "eth" })
    leads_to_nothing(real)
  end)

  it("from a task that waits for an answer", function()
    riskscreen.run(function()
      local client = riskscreen.new {
        access_key = KEY,
        identity = "spec",
        transport = function()
          riskscreen.sleep(10)
          return nil, { kind = "network", message = "away" }
        end,
      }
      local task = riskscreen.spawn(function()
        return client.kya:risk { address = clean.address, network = "eth" }
      end)
      riskscreen.sleep(0.01)
      leads_to_nothing(task, client)
      task:cancel()
    end)
  end)

  it("from an inbox, a transaction and a task that awaits it", function()
    local inbox = riskscreen.webhook.inbox { secret = { value = SECRET, header = "x-secret" } }
    local client = new_client { inbox = inbox, polling = { first = 100 } }
    riskscreen.run(function()
      local transaction = assert(client.kyt:submit(SUBMISSION))
      local task = riskscreen.spawn(function()
        return transaction:await { timeout = 10 }
      end)
      riskscreen.sleep(0.01)
      leads_to_nothing(inbox, transaction, task, client)
      task:cancel()
      local _, err = transaction:await { timeout = 0 }
      leads_to_nothing(err)
    end)
    local listener = inbox:listen { port = 0 }
    leads_to_nothing(listener)
    listener:close()
  end)

  it("from the sandbox's service, also after a call", function()
    local service = new_service()
    new_client({ service = service }):screen { address = clean.address, network = "eth" }
    leads_to_nothing(service)
    local served = sandbox.serve { service = service, port = 0 }
    leads_to_nothing(served)
    served:close()
  end)

  it("from a client of Redis, a store, a queue and a worker", function()
    for _, options in ipairs {
      { url = "redis://:" .. PASSWORD .. "@127.0.0.1:1" },
      { url = "redis://127.0.0.1:1", password = PASSWORD, username = "me" },
      { sentinels = { hosts = { "127.0.0.1:1" }, name = "main", password = PASSWORD } },
    } do
      local redis = riskscreen.redis.new(options)
      local queue = riskscreen.queue.new { redis = redis, name = "q" }
      leads_to_nothing(redis, queue, riskscreen.store.redis { redis = redis })
      leads_to_nothing(queue:worker { client = new_client() })
      leads_to_nothing(select(2, redis:call "PING"))
      leads_to_nothing(redis)
    end
  end)

  it("from a journal and a watch", function()
    local path = os.tmpname()
    local journal = assert(riskscreen.journal.file(path, { key = SECRET }))
    leads_to_nothing(journal, riskscreen.journal.store(riskscreen.store.memory {}, { key = SECRET }))
    local client_store = riskscreen.store.memory {}
    local client = new_client { journal = journal, store = client_store }
    local watch = riskscreen.watch(client, {
      name = "w",
      every = 3600,
      store = client_store,
      network = "eth",
      source = { clean.address },
      webhook = { url = "http://127.0.0.1:1/", secret = SECRET },
    })
    leads_to_nothing(watch, client)
    journal:close()
    os.remove(path)
  end)
end)
