-- A wrong table in the options of a public function raises where the program calls the function, not at its first use.
local call_options = require "riskscreen.options"
local riskscreen = require "riskscreen"
local screen = require "riskscreen.client.screen"
local screen_all = require "riskscreen.client.screen_all"
local tables = require "riskscreen.util.tables"

local HERE = debug.getinfo(1, "S").short_src
local KEY = "key-of-nested-options"

local function nothing() end

local client = riskscreen.sandbox.client {}
local store = riskscreen.store.memory()
local redis = riskscreen.redis.new "redis://127.0.0.1:1"
local rules = { { any = true, action = "block" } }

-- Each function with its option tables and the options that a call needs. The call is a tail call, so that its caller
-- is the line of `raises`.
local functions = {
  { "riskscreen.new", riskscreen.new, call_options.client, { access_key = KEY, base_url = "https://a.example" } },
  { "sandbox.client", riskscreen.sandbox.client, require("riskscreen.sandbox.settings").service, {} },
  { "client:screen", client.screen, screen.options, { address = "x" }, client },
  { "client:screen_all", client.screen_all, screen_all.options, { source = {} }, client },
  { "client:request", client.request, call_options.request, {}, client, "GET", "/x" },
  { "client.kya:risk", client.kya.risk, call_options.call, {}, client.kya, {} },
  {
    "riskscreen.watch",
    riskscreen.watch,
    require("riskscreen.watch").options,
    {
      source = {},
      store = store,
      on_change = nothing,
    },
    client,
  },
  { "queue.new", riskscreen.queue.new, riskscreen.queue.options, { redis = redis } },
  {
    "queue:worker",
    riskscreen.queue.new({ redis = redis }).worker,
    riskscreen.queue.worker_options,
    { client = client },
    riskscreen.queue.new { redis = redis },
  },
  { "store.redis", riskscreen.store.redis, riskscreen.store.options.redis, { redis = redis } },
  { "redis.new", riskscreen.redis.new, riskscreen.redis.options, { url = "redis://a" } },
  {
    "webhook.inbox",
    riskscreen.webhook.inbox,
    require("riskscreen.webhook.inbox").options,
    { accept_unauthenticated = true },
  },
  { "riskscreen.report", riskscreen.report.write, riskscreen.report.options, { source = {} } },
  { "riskscreen.map", riskscreen.map, call_options.map, {}, {}, nothing },
  { "riskscreen.explore", riskscreen.explore.run, riskscreen.explore.options, {}, nothing },
  { "riskscreen.policy", riskscreen.policy, require("riskscreen.policy").options, { rules = rules } },
}

-- Tables that are handed on as they are, each with the reason.
local HANDED_ON = {
  source = "any item is screened, and one that is no address has a decision that says so",
  network = "it is the item's, as the address",
  body = "it is JSON of the program's own",
}

-- Fields that a nested table must have.
local REQUIRED = { rate_limit = { rate = 1 } }

local function wrong_tables(name)
  return {
    ["inherits a field"] = setmetatable({}, { __index = { timeout = 1 } }),
    -- A value of a query that cannot be sent is an error of the call.
    ["has a value of a wrong kind"] = { [name == "query" and 1 or "no such name"] = coroutine.create(nothing) },
  }
end

local function is_table(option)
  return option.type == "any" or ("|" .. option.type .. "|"):find("|table|", 1, true)
end

-- The wrong options of a table of options: each table in it is wrong once, at every depth.
local function wrong_options(specs, found, wrap)
  for _, option in ipairs(specs) do
    if is_table(option) and not HANDED_ON[option.name] then
      for what, value in pairs(wrong_tables(option.name)) do
        found[#found + 1] = { option.name .. " that " .. what, wrap { [option.name] = value }, option.name }
      end
      wrong_options(option.fields or {}, found, function(fields)
        return wrap { [option.name] = tables.merge(REQUIRED[option.name] or {}, fields) }
      end)
    end
  end
  return found
end

describe("a wrong table of options raises at the caller's line, at once", function()
  for _, case in ipairs(functions) do
    local name, call, specs, more = tables.unpack(case, 1, 4)
    it("of " .. name, function()
      local function with_more(options)
        return tables.merge(more, options)
      end
      for _, wrong in ipairs(wrong_options(specs, {}, with_more)) do
        local what, options, field = tables.unpack(wrong)
        local arguments = { tables.unpack(case, 5, 7) }
        arguments[#arguments + 1] = options
        local line
        local ok, message = pcall(function()
          line = debug.getinfo(1, "l").currentline + 1
          call(tables.unpack(arguments))
        end)
        assert.is_false(ok, what)
        local place = ("%s:%d:"):format(HERE, line)
        assert.equal(place, tostring(message):match "^.-:%d+:", what .. ": " .. tostring(message))
        assert.truthy(message:find(field, 1, true), what .. ": " .. message)
      end
    end)
  end
end)
