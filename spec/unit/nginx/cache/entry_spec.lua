-- Entries and their texts in the dict, and damaged texts: a damaged entry is a miss, and never an allow.
local dicts = require "riskscreen.nginx.cache.dict"
local digest = require "riskscreen.address.digest"
local entries = require "riskscreen.nginx.cache.entry"
local errors = require "riskscreen.errors"
local random = require "spec.support.random"
local shared_dict = require "spec.support.shared_dict"
local worlds = require "spec.support.cache_world"

local NOW = 100000 -- seconds
local KEY = "the key of an entry"
local TTL = { allow = 300, review = 300, block = 3600, unknown = 1 }
local STALE = { allow = 0, review = 0, block = 3600, unknown = 0 }

local function reason(action, message, more)
  local all = { action = action, message = message }
  for name, value in pairs(more or {}) do
    all[name] = value
  end
  return all
end

local function decision(action, reasons, more)
  local all = { action = action, reasons = reasons, degraded = false }
  for name, value in pairs(more or {}) do
    all[name] = value
  end
  return all
end

local codec, dict

local function another_codec()
  return entries.new(TTL, STALE, dict)
end

before_each(function()
  dict = dicts.new(
    shared_dict.new(function()
      return NOW
    end),
    "version"
  )
  codec = another_codec()
end)

-- The text of an entry in the dict.
local function text_of(entry, now)
  codec:save(KEY, entry, now or NOW)
  return dict:get(KEY)
end

local function encoded(one, failed)
  local entry = codec:of(one, NOW, failed)
  return entry and text_of(entry)
end

-- The entry that a worker reads that has read none before, and its decision.
local function decoded(text, now)
  dict:set(KEY, 1, text)
  local entry = another_codec():load(KEY, now or NOW)
  return entry, entry and entries.decision(entry, "0xab", "eth")
end

describe("an entry", function()
  it("keeps the decision and its reasons, and no records", function()
    local risk = { riskLevel = "high", riskType = "scam", riskSource = "own", hops = 3 }
    local rule = { name = "scams", action = "block", level = "high" }
    local _, read = decoded(encoded(decision("block", {
      reason("block", "a 'bad'\none \0 €", { rule = rule, risk = risk }),
      reason("review", "and an odd one", { rule = { action = "review" } }),
    }, { record = {}, degraded = true, elapsed = 3, address = "0xAB" })))
    assert.same({
      action = "block",
      reasons = {
        {
          action = "block",
          message = "a 'bad'\none \0 €",
          rule = { name = "scams", action = "block" },
          risk = { riskLevel = "high", riskType = "scam", riskSource = "own" },
        },
        { action = "review", message = "and an odd one" },
      },
      address = "0xab",
      network = "eth",
      degraded = true,
      cached = true,
      stale = false,
      elapsed = 0,
    }, read)
  end)

  it("keeps the error of a failure", function()
    local err = errors.new("server", "no answer", { operation = "getAddressRisk" })
    local failure = decision("unknown", { reason("unknown", tostring(err), { error = err }) })
    local entry, read = decoded(encoded(failure, true))
    assert.is_true(errors.is(read.error))
    assert.same({ "server", "no answer" }, { read.error.kind, read.error.message })
    assert.equal(read.error, read.reasons[1].error)
    assert.equal(entries.FAILED, entry.kind)
  end)

  it("keeps its times to the millisecond", function()
    for _, at in ipairs { NOW - 0.125, 0, 0.001, 2 ^ 31 / 1000, 1e8 + 0.005 } do
      local text = text_of(codec:of(decision("block", { reason("block", "bad") }), at), at)
      local read = decoded(text, at)
      assert.same({ at, at + 3600, at + 7200 }, { read.at, read.expires_at, codec:usable_until(read) })
    end
  end)

  -- LuaJIT's hash of a long text reads few other bytes, and texts of one hash make each look into the dict slow.
  it("has another end for each moment, where its verdict is the same", function()
    local ends = {}
    for moment = 0, 9999 do
      local text = text_of(codec:of(decision("block", { reason("block", "bad") }), NOW + moment / 1000))
      assert.is_nil(ends[text:sub(-4)])
      ends[text:sub(-4)] = true
    end
  end)

  it("keeps the time of another machine's fetch, also from before this machine has started", function()
    local json = '{"action":"allow","reasons":[{"action":"allow","message":"m"}]}'
    for _, at in ipairs { -250, -0.001, 5 } do
      local entry = codec:restore { json = json, at = at, valid_until = at + 300 }
      local read = decoded(text_of(entry, 10), 10)
      assert.same({ at, at + 300, at, at + 300 }, { entry.at, entry.expires_at, read.at, read.expires_at })
    end
    assert.is_nil(codec:restore { json = "{}", at = 5, valid_until = 305 })
  end)

  it("ends with the shorter time of the machine that fetched it, and of the one that uses it", function()
    local json = '{"action":"allow","reasons":[{"action":"allow","message":"m"}]}'
    for valid_until, expires in pairs { [NOW + 60] = NOW + 60, [NOW + 900] = NOW + 300 } do
      local entry = codec:restore { json = json, at = NOW, valid_until = valid_until }
      local read = decoded(text_of(entry))
      assert.same({ expires, expires }, { entry.expires_at, read.expires_at })
    end
  end)

  it("expires after the ttl of unknown if it is a failure, whatever its action", function()
    local read = decoded(encoded(decision("block", { reason("block", "m") }), true))
    assert.same({ NOW + 1, NOW + 1 }, { read.expires_at, codec:usable_until(read) })
  end)

  it("is served as stale for a moment after the service has failed", function()
    local entry = codec:of(decision("block", { reason("block", "m") }), NOW - 3600)
    local read, its_decision = decoded(text_of(codec:stale(entry, NOW)))
    assert.same({ true, entries.STALE, NOW + 1 }, { its_decision.stale, read.kind, read.expires_at })
    local sooner = decoded(text_of(codec:stale(entry, NOW - 0.5)))
    assert.same({ NOW - 3600, NOW + 0.5 }, { sooner.at, sooner.expires_at })
    assert.equal(NOW + 3600, codec:stale(entry, NOW + 3599.5).expires_at)
  end)

  it("has a reason if the decision has none", function()
    for _, reasons in ipairs { {}, false } do
      local _, read = decoded(encoded(decision("review", reasons or nil)))
      assert.same({ "review", "review" }, { read.action, read.reasons[1].action })
      assert.is_string(read.reasons[1].message)
    end
  end)

  it("is not made of a decision that could not be read again", function()
    for _, message in ipairs { print, 0 / 0, 5 } do
      assert.is_nil(encoded(decision("allow", { reason("allow", message) })))
    end
    assert.is_nil(encoded(decision("allow", { reason("allow", "m"), reason("block", "m") })))
  end)

  it("is not read from a text of another form", function()
    local text = encoded(decision("block", { reason("block", "bad") }))
    assert.is_table(decoded(text))
    for length = 0, #text - 1 do
      assert.is_nil(decoded(text:sub(1, length)))
    end
    for _, other in ipairs {
      text .. "x",
      "6" .. text:sub(2),
      "7x" .. text:sub(3),
      text:sub(1, 2) .. ("x"):rep(12) .. text:sub(-32),
      text:sub(1, -33) .. ("x"):rep(16) .. text:sub(-16),
      text:sub(1, -17) .. ("x"):rep(16),
      text:sub(1, -33) .. ("%16s"):format "nan" .. text:sub(-16),
      text:sub(1, -17) .. ("%16s"):format "inf",
    } do
      assert.is_nil(decoded(other), other)
    end
  end)

  it("is not read if it comes from the future", function()
    local one = decision("block", { reason("block", "bad") })
    assert.is_table(decoded(text_of(codec:of(one, NOW + 1))))
    assert.is_nil(decoded(text_of(codec:of(one, NOW + 1.001))))
  end)

  it("is not read if action and reasons contradict each other", function()
    local text = encoded(decision("block", { reason("block", "bad") }))
    local function with(json)
      local id = digest.sha256(json):sub(1, 12)
      dict:set(dict.verdicts .. id, 1, json)
      return decoded(text:sub(1, 2) .. id .. text:sub(-32))
    end
    assert.is_table(with '{"action":"allow","reasons":[{"action":"allow","message":"x"}]}')
    for _, json in ipairs {
      "",
      "null",
      "[]",
      "1",
      '"allow"',
      "{}",
      '{"action":"allow"}',
      '{"reasons":[{"action":"allow","message":"x"}]}',
      '{"action":"allow","reasons":[]}',
      '{"action":"allow","reasons":{}}',
      '{"action":"allow","reasons":null}',
      '{"action":"allow","reasons":[null]}',
      '{"action":"allow","reasons":[{"action":"allow"}]}',
      '{"action":"allow","reasons":[{"action":"allow","message":1}]}',
      '{"action":"allow","reasons":[{"message":"x"}]}',
      '{"action":"ALLOW","reasons":[{"action":"ALLOW","message":"x"}]}',
      '{"action":"pass","reasons":[{"action":"pass","message":"x"}]}',
      '{"action":null,"reasons":[{"action":null,"message":"x"}]}',
      '{"action":true,"reasons":[{"action":true,"message":"x"}]}',
      '{"action":"allow","reasons":[{"action":"block","message":"x"}]}',
      '{"action":"allow","reasons":[{"action":"allow","message":"x"},{"action":"block","message":"x"}]}',
      '{"action":"allow","reasons":[{"action":"allow","message":"x"},{"action":"unknown","message":"x"}]}',
      '{"action":"allow","reasons":[{"action":"allow","message":"x"},null]}',
      '{"action":"allow","reasons":[{"action":"allow","message":"x"},1]}',
      '{"action":"review","reasons":[{"action":"allow","message":"x"}]}',
      '{"action":"block","reasons":[{"action":"allow","message":"x"},{"action":"block","message":"x"}]}',
      '{"action":"allow","reasons":[{"action":"allow","message":"x"}]} x',
      '{"action":"allow","reasons":[{"action":"allow","message":"x"}]',
      '{"action":"block","action":"allow","reasons":[{"action":"block","message":"x"}]}',
    } do
      assert.is_nil(with(json), json)
    end
  end)

  it("is not read if the dict has lost its verdict, or has another one in its place", function()
    local text = encoded(decision("block", { reason("block", "bad") }))
    local other = '{"action":"allow","reasons":[{"action":"allow","message":"x"}]}'
    local place = dict.verdicts .. text:sub(3, 14)
    local own = dict:get(place)
    for _, json in ipairs { other, own .. " ", own:sub(1, -2), own:gsub("bad", "bat"), "", 5, true } do
      dict:set(place, 1, json)
      assert.is_nil(decoded(text), json)
    end
    dict:set(place, 1, own)
    assert.is_table(decoded(text))
    dict:set(place, 1, nil)
    assert.is_nil(decoded(text))
  end)

  it("is written with its verdict again after a second, because a full dict may have dropped it", function()
    local entry = codec:of(decision("block", { reason("block", "bad") }), NOW)
    local text = text_of(entry)
    dict:set(dict.verdicts .. text:sub(3, 14), 1, nil)
    assert.is_nil(decoded(text_of(entry, NOW + 0.999)))
    assert.is_table(decoded(text_of(entry, NOW + 1)))
  end)

  it("has its verdict in the dict for no longer than it can be served, and a second", function()
    local lifetimes = {}
    local shared = shared_dict.new(function()
      return NOW
    end)
    codec = entries.new(TTL, STALE, dicts.new(shared, "version"))
    local function lifetime_of(one, failed)
      shared.entries = {}
      codec:save(KEY, codec:of(one, NOW, failed), NOW)
      shared.entries[KEY] = nil
      return select(2, next(shared.entries)).expires - NOW
    end
    for index, action in ipairs { "allow", "review", "block", "unknown" } do
      lifetimes[index] = lifetime_of(decision(action, { reason(action, action) }), action == "unknown")
    end
    local err = errors.new("circuit_open", "it is tried again in 4.7 s")
    local failed = decision("block", { reason("block", "no answer", { error = err }) }, { error = err })
    lifetimes[5] = lifetime_of(failed, true)
    assert.same({ 301, 301, 7201, 2, 2 }, lifetimes)
  end)

  it("is read right, however many different ones there are, and however long", function()
    for index = 1, 1500 do
      local message = index .. (" "):rep(index % 3 * 3000)
      encoded(decision("block", { reason("block", message) }))
      assert.equal(message, codec:load(KEY, NOW).verdict.reasons[1].message)
    end
  end)

  it("does not fill the memory with parsed reasons", function()
    collectgarbage()
    collectgarbage()
    local before = collectgarbage "count"
    for index = 1, 4000 do
      codec:of(decision("block", { reason("block", "reason " .. index) }), NOW)
    end
    for index = 1, 400 do
      codec:of(decision("block", { reason("block", index .. (" "):rep(20000)) }), NOW)
    end
    collectgarbage()
    collectgarbage()
    assert.is_true(collectgarbage "count" - before < 2048)
  end)
end)

-- Memory may fail, and other programs may write to the dict.
describe("a damaged entry", function()
  local ROUNDS = 50
  local ACTIONS = { "allow", "review", "block", "unknown" }
  local VERSIONS = { "one", "two" }
  local NETWORKS = { "eth", "bsc" }
  local ADDRESSES = { "0xaa", "0xab", "tb1q", "TB1Q" }

  local world, draw, pick, later

  -- The service's first answer is the same in every run. Its later answer is always block.
  local function first_action(address, network, version)
    local sum = 0
    for byte in (address .. network .. version):gmatch "." do
      sum = (sum * 31 + byte:byte()) % 65521
    end
    local generator = random.new(sum)
    generator.integer(1)
    return generator.pick(ACTIONS)
  end

  local function new_worker(version)
    return world:worker {
      version = version,
      lru = 0,
      ttl = { unknown = 3600 },
      fetch = function(address, network)
        return world.decision(later and "block" or first_action(address, network, version), address, network)
      end,
    }
  end

  local function for_all(visit)
    for _, version in ipairs(VERSIONS) do
      local cache = new_worker(version)
      for _, network in ipairs(NETWORKS) do
        for _, address in ipairs(ADDRESSES) do
          visit(cache, address, network, version)
        end
      end
    end
  end

  before_each(function()
    world, later = worlds.new(), false
    local generator = random.new(20261121)
    draw, pick = generator.integer, generator.pick
    for_all(function(cache, address, network)
      world:call(cache.get, cache, address, network)
    end)
    later = true
  end)

  -- The dict allows no address that was not allowed before.
  local function check(what)
    for_all(function(cache, address, network, version)
      local action = world:call(cache.get, cache, address, network).action
      if action == "allow" and first_action(address, network, version) ~= "allow" then
        error(("%s allows %s on %s in %s"):format(what, address, network, version), 0)
      end
    end)
  end

  it("would be found if it were not damaged", function()
    local counts = {}
    for_all(function(cache, address, network, version)
      local found, source = world:call(cache.get, cache, address, network)
      assert.same({ first_action(address, network, version), "dict" }, { found.action, source })
      counts[found.action] = (counts[found.action] or 0) + 1
    end)
    for _, action in ipairs(ACTIONS) do
      assert.is_true((counts[action] or 0) > 1, action)
    end
  end)

  local function sorted_keys(all)
    local keys = {}
    for key in pairs(all) do
      keys[#keys + 1] = key
    end
    table.sort(keys)
    return keys
  end

  local function flip(text)
    local at = draw(#text)
    local byte = (text:byte(at) + draw(255)) % 256
    return text:sub(1, at - 1) .. string.char(byte) .. text:sub(at + 1)
  end

  local damages = {
    ["a flipped byte"] = flip,
    ["several flipped bytes"] = function(text)
      for _ = 1, draw(8) do
        text = flip(text)
      end
      return text
    end,
    ["a cut end"] = function(text)
      return text:sub(1, draw(#text) - 1)
    end,
    ["another action"] = function(text)
      return (text:gsub('"action":"%a+"', '"action":"allow"', 1))
    end,
    ["a byte more"] = function(text)
      return text .. string.char(draw(256) - 1)
    end,
    ["no text"] = function()
      return pick { 0, 1, true, false, -1, 1e300 }
    end,
  }

  local function copy_of(all)
    local copy = {}
    for key, entry in pairs(all) do
      copy[key] = { value = entry.value, flags = entry.flags, expires = entry.expires }
    end
    return copy
  end

  for what, damage in pairs(damages) do
    it("never allows: " .. what, function()
      for _ = 1, ROUNDS do
        local kept = copy_of(world.dict.entries)
        for _, key in ipairs(sorted_keys(world.dict.entries)) do
          local entry = world.dict.entries[key]
          if type(entry.value) == "string" then
            entry.value = damage(entry.value)
          elseif type(entry.value) == "number" then
            entry.value = damage(tostring(entry.value))
            entry.value = tonumber(entry.value) or entry.value
          end
        end
        check(what)
        world.dict.entries = kept
      end
    end)
  end
end)
