-- Arguments of a wrong type raise at the caller's line, or come back as an error, in every public function and method.
-- No position inside the library is ever shown.
local riskscreen = require "riskscreen"
local temporary = require "spec.support.temporary"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143
local HERE = debug.getinfo(1, "S").short_src

local VALUES = { nil, -1, "/nonexistent/file", true, {}, { 1 }, function() end, io.stdout, n = 8 }

-- Without arguments they wait for what may never come.
local UNTRIED = { step = true, run = true }

-- It takes no argument and tries every rule of a policy, which lasts as long as thousands of other calls.
local WITHOUT_ARGUMENTS = { check = true }

-- lua-dbi never frees the connection where SQLite cannot open the file, which the sanitizers report. The spec of the
-- store opens such a file.
local function leaks(name, arguments)
  return name == "sqlite" and arguments[1] == VALUES[3]
end

-- The names that the reference describes, with or without their owner.
local documented = {}
for heading in assert(io.open "docs/reference.md"):lines() do
  local name = heading:match "^### `[%w_.:]-([%w_]+)%(" or heading:match "^### `client%.[%w_.:]-([%w_]+)`"
  documented[name or ""] = true
end

-- The public methods and functions of a table or of an object.
local function functions_of(subject)
  local found, seen = {}, {}
  local function walk(holder)
    while type(holder) == "table" and not seen[holder] do
      seen[holder] = true
      for name, value in pairs(holder) do
        if type(name) == "string" and type(value) == "function" and documented[name] and not UNTRIED[name] then
          found[name] = value
        end
      end
      holder = type(getmetatable(holder)) == "table" and rawget(getmetatable(holder), "__index")
    end
  end
  for name in pairs(documented) do
    pcall(function()
      return subject[name] -- some are loaded when they are first named
    end)
  end
  walk(subject)
  return found
end

-- Calls a function at a line of this file. Returns the raised error, the returned error, or the result.
local function call(fn, arguments)
  local _, failure, err = pcall(function()
    local result, err = fn(unpack(arguments, 1, arguments.n))
    return result, err
  end)
  return failure == nil and err or failure
end

local function is_good(failure)
  local text = tostring(failure)
  local first = text:match "^[^\n]*"
  return not first:find "riskscreen/[%w_/]+%.lua:%d+:"
    and (not first:find "^[^ ]+%.lua:%d+: " or first:find(HERE, 1, true) == 1)
end

-- The lists of at most `most` wrong arguments after the object, if it is one.
local function each_list(object, most)
  local lists = {}
  local function add(...)
    lists[#lists + 1] = object and { object, n = select("#", ...) + 1, ... } or { n = select("#", ...), ... }
  end
  for first = 1, VALUES.n do
    add(VALUES[first])
    for second = 1, most > 1 and VALUES.n or 0 do
      add(VALUES[first], VALUES[second])
      add({}, VALUES[first], VALUES[second])
    end
  end
  return lists
end

local function show(arguments)
  local shown = {}
  for index = 1, arguments.n do
    local value = arguments[index]
    shown[index] = (type(value) == "string" or type(value) == "number") and tostring(value) or type(value)
  end
  return table.concat(shown, ", ")
end

-- Tries the functions of what `make` returns. An object is made anew for each of its methods: one of them may close it.
local function sweep(make, is_object)
  local bad, tried = {}, 0
  for name in pairs(functions_of((make()))) do
    local subject, finish = make()
    local fn = functions_of(subject)[name]
    local most = is_object and WITHOUT_ARGUMENTS[name] and 1 or 3
    for _, arguments in ipairs(each_list(is_object and subject or nil, most)) do
      local failure = not leaks(name, arguments) and call(fn, arguments)
      tried = tried + 1
      if not is_good(failure) then
        bad[#bad + 1] = ("%s(%s): %s"):format(name, show(arguments), tostring(failure):match "^[^\n]*")
        break
      end
    end
    if finish then
      finish()
    end
  end
  table.sort(bad)
  assert.same({}, bad)
  assert.is_true(tried > 0)
end

describe("arguments of a wrong type", function()
  local address = riskscreen.sandbox.scenario("clean-eth").address
  local NOWHERE = "redis://127.0.0.1:1"

  after_each(temporary.clean)

  for _, name in ipairs {
    "address",
    "decimal",
    "errors",
    "journal",
    "queue",
    "redis",
    "report",
    "sandbox",
    "store",
    "webhook",
  } do
    it("are refused by the functions of riskscreen." .. name, function()
      sweep(function()
        return riskscreen[name]
      end)
    end)
  end

  it("are refused by the functions of riskscreen", function()
    sweep(function()
      return riskscreen
    end)
  end)

  local function with_client(field)
    return function()
      local client = riskscreen.sandbox.client { store = riskscreen.store.memory {}, account = "test" }
      return field and client[field] or client, function()
        client:close()
      end
    end
  end

  local objects = {
    ["riskscreen.loop"] = function()
      return riskscreen.loop
    end,
    ["a client"] = with_client(),
    ["client.kya"] = with_client "kya",
    ["client.kyt"] = with_client "kyt",
    ["client.account"] = with_client "account",
    ["client.blacklist"] = with_client "blacklist",
    ["client.whitelist"] = with_client "whitelist",
    ["a policy"] = function()
      return riskscreen.policy {}
    end,
    ["a score policy"] = function()
      return riskscreen.score_policy { rules = { { action = "block", score_at_least = "1" } } }
    end,
    ["a transaction"] = function()
      local client = with_client()()
      local payout = { network = "eth", hash = "0x5f16", direction = "sent", customId = "payout-4" }
      return assert(client.kyt:submit(payout)), function()
        client:close()
      end
    end,
    ["a task"] = function()
      return riskscreen.spawn(function() end)
    end,
    ["a run"] = function()
      local client = with_client()()
      return client:screen_all { source = { address }, network = "eth" }
    end,
    ["a watch"] = function()
      local client = with_client()()
      return riskscreen.watch(client, {
        source = {},
        network = "eth",
        store = riskscreen.store.memory {},
        name = "test",
        on_change = function() end,
      })
    end,
    ["a store in memory"] = function()
      return riskscreen.store.memory {}
    end,
    ["a store in SQLite"] = function()
      return riskscreen.store.sqlite(temporary.path "store.db")
    end,
    ["a space in memory"] = function()
      return riskscreen.store.memory {}:space "test"
    end,
    ["a space in SQLite"] = function()
      return riskscreen.store.sqlite(temporary.path "store.db"):space "test"
    end,
    ["a client of Redis"] = function()
      return riskscreen.redis.new(NOWHERE)
    end,
    ["a queue"] = function()
      return riskscreen.queue.new { redis = riskscreen.redis.new(NOWHERE) }
    end,
    ["a worker"] = function()
      return riskscreen.queue.new({ redis = riskscreen.redis.new(NOWHERE) }):worker { client = with_client()() }
    end,
    ["a journal"] = function()
      return riskscreen.journal.file(temporary.path "journal")
    end,
    ["a sandbox"] = function()
      return riskscreen.sandbox.new {}
    end,
    ["a served sandbox"] = function()
      local served = assert(riskscreen.sandbox.serve {})
      return served, function()
        served:close()
      end
    end,
    ["an inbox"] = function()
      return riskscreen.webhook.inbox { secret = { value = ("s"):rep(32), path = true } }
    end,
  }
  for what, make in pairs(objects) do
    it("are refused by the methods of " .. what, function()
      sweep(make, true)
    end)
  end
end)
