-- A decision as text and back, and what becomes of texts that are none: a verdict that was not stored is never read.
local cjson = require "cjson"
local entries = require "riskscreen.nginx.entry"
local errors = require "riskscreen.errors"
local random = require "spec.support.random"
local worlds = require "spec.support.cache_world"

local KEY, ADDRESS, NETWORK = "eth:0xab", "0xab", "eth"

local function decode(text, network, address)
  local decision, at, patience = entries.decode(text, network or NETWORK, address or ADDRESS)
  return decision and { decision = decision, at = at, patience = patience }
end

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

describe("an entry", function()
  it("is the decision without its records, and when it was made", function()
    local risk = { riskLevel = "high", riskType = "scam", riskSource = "own", hops = 3 }
    local text = entries.encode(
      NETWORK,
      ADDRESS,
      decision("block", {
        reason(
          "block",
          "a 'bad'\none \0 €",
          { rule = { name = "scams", action = "block", level = "high" }, risk = risk }
        ),
        reason("review", "and an odd one", { rule = { action = "review" } }),
      }, { records = { {} }, degraded = true, elapsed = 3 }),
      1700000000.125
    )
    local entry = decode(text)
    assert.equal(1700000000.125, entry.at)
    assert.is_nil(entry.patience)
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
      address = ADDRESS,
      network = NETWORK,
      degraded = true,
      cached = true,
      stale = false,
      elapsed = 0,
    }, entry.decision)
  end)

  it("has the error of a failure, and how long was too short", function()
    local err = errors.new("timeout", "no answer within 3 seconds", { operation = "getAddressRisk" })
    local text = entries.encode(
      NETWORK,
      ADDRESS,
      decision("unknown", { reason("unknown", tostring(err), { error = err }) }),
      5,
      2.5
    )
    local entry = decode(text)
    assert.equal(2.5, entry.patience)
    assert.is_true(errors.is(entry.decision.error))
    assert.equal("timeout", entry.decision.error.kind)
    assert.equal(err.message, entry.decision.error.message)
    assert.equal(entry.decision.error, entry.decision.reasons[1].error)
  end)

  it("gives a reason where none was given", function()
    for _, reasons in ipairs { {}, false } do
      local entry = decode((entries.encode(NETWORK, ADDRESS, decision("review", reasons or nil), 1)))
      assert.equal("review", entry.decision.action)
      assert.equal("review", entry.decision.reasons[1].action)
      assert.is_string(entry.decision.reasons[1].message)
    end
  end)

  it("is not written where it would not be read again", function()
    for _, text in ipairs {
      entries.encode(NETWORK, ADDRESS, decision("allow", { reason("allow", print) }), 1) or false,
      entries.encode(NETWORK, ADDRESS, decision("allow", { reason("allow", 0 / 0) }), 1) or false,
    } do
      assert.is_nil(text and decode(text) or nil)
    end
  end)

  it("is about what it says it is about", function()
    local text = entries.encode(NETWORK, ADDRESS, decision("allow", { reason("allow", "fine") }), 1)
    assert.is_table(decode(text))
    for _, other in ipairs {
      { "eth", "0xac" },
      { "bsc", "0xab" },
      { "eth", "0xa" },
      { "eth", "xab" },
      { "et", "0xab" },
      { "et", "h:0xab" },
      { "eth:0xab", "" },
      { "eth", "0xab\n" },
      { "", "" },
      { "", "\n" },
    } do
      assert.is_nil(decode(text, other[1], other[2]))
    end
  end)

  it("is nothing that is no text, or no full one", function()
    for _, text in ipairs { 5, true, {}, "", "\n", "\n\n", "\n\n\n", "1\n\n" .. KEY, "x\n\n" .. KEY .. "\n{}" } do
      assert.is_nil(decode(text))
    end
    assert.is_nil(decode(nil))
  end)

  local function with(at, json)
    return decode(at .. "\n\n" .. KEY .. "\n" .. json)
  end

  it("has a time that is a number", function()
    local json = '{"a":"allow","r":[{"a":"allow","m":"x"}]}'
    assert.equal(1.5, with("1500", json).at)
    for _, at in ipairs { "", " ", "x", "nan", "inf", "-inf", "1e999", "1 2", "1;", "1.5", "-1", "1e15" } do
      assert.is_nil(with(at, json))
    end
  end)

  it("must add up", function()
    for _, json in ipairs {
      "null",
      "[]",
      "1",
      '"allow"',
      "{}",
      '{"a":"allow"}',
      '{"r":[{"a":"allow","m":"x"}]}',
      '{"a":"allow","r":[]}',
      '{"a":"allow","r":{}}',
      '{"a":"allow","r":null}',
      '{"a":"allow","r":[null]}',
      '{"a":"allow","r":[{"a":"allow"}]}',
      '{"a":"allow","r":[{"a":"allow","m":1}]}',
      '{"a":"allow","r":[{"m":"x"}]}',
      '{"a":"ALLOW","r":[{"a":"ALLOW","m":"x"}]}',
      '{"a":"pass","r":[{"a":"pass","m":"x"}]}',
      '{"a":null,"r":[{"a":null,"m":"x"}]}',
      '{"a":true,"r":[{"a":true,"m":"x"}]}',
      '{"a":"allow","r":[{"a":"block","m":"x"}]}',
      '{"a":"allow","r":[{"a":"allow","m":"x"},{"a":"block","m":"x"}]}',
      '{"a":"allow","r":[{"a":"allow","m":"x"},{"a":"unknown","m":"x"}]}',
      '{"a":"allow","r":[{"a":"allow","m":"x"},null]}',
      '{"a":"allow","r":[{"a":"allow","m":"x"},1]}',
      '{"a":"review","r":[{"a":"allow","m":"x"}]}',
      '{"a":"block","r":[{"a":"allow","m":"x"},{"a":"block","m":"x"}]}',
      '{"a":"allow","r":[{"a":"allow","m":"x"}]} x',
      '{"a":"allow","r":[{"a":"allow","m":"x"}]',
      '{"a":"block","a":"allow","r":[{"a":"block","m":"x"}]}',
    } do
      assert.is_nil(with("1", json), json)
    end
  end)

  it("is another where anything is another but the message", function()
    local risks = {
      { riskLevel = "low", riskType = "scam", riskSource = "own" },
      { riskLevel = "high", riskType = "scam", riskSource = "own" },
      { riskLevel = "low", riskType = "hack", riskSource = "own" },
      { riskLevel = "low", riskType = "scam", riskSource = "other" },
      {},
    }
    local all = {
      decision("allow", { reason("allow", "m") }),
      decision("block", { reason("block", "m") }),
      decision("review", { reason("review", "m") }),
      decision("block", { reason("block", "m") }, { degraded = true }),
      decision("block", { reason("block", "m", { rule = { name = "one" } }) }),
      decision("block", { reason("block", "m", { rule = { name = "two" } }) }),
    }
    for _, risk in ipairs(risks) do
      all[#all + 1] = decision("block", { reason("block", "m", { risk = risk }) })
    end
    local function check(one)
      local read = decode((entries.encode(NETWORK, ADDRESS, one, 1))).decision
      local said = one.reasons[1]
      assert.same({ one.action, one.degraded, said.risk }, { read.action, read.degraded, read.reasons[1].risk })
      assert.equal(said.rule and said.rule.name, read.reasons[1].rule and read.reasons[1].rule.name)
    end
    for _, before in ipairs(all) do
      for _, one in ipairs(all) do
        check(before)
        check(one)
      end
    end
  end)

  it("shares what is the same in many, and nothing else", function()
    local one = decode((entries.encode(NETWORK, ADDRESS, decision("allow", { reason("allow", "fine") }), 1)))
    local other = decode((entries.encode("btc", "b", decision("allow", { reason("allow", "fine") }), 2)), "btc", "b")
    assert.same({ ADDRESS, NETWORK, 1 }, { one.decision.address, one.decision.network, one.at })
    assert.same({ "b", "btc", 2 }, { other.decision.address, other.decision.network, other.at })
    for index = 1, 600 do
      local message = "reason " .. index
      local entry = decode((entries.encode(NETWORK, ADDRESS, decision("block", { reason("block", message) }), index)))
      assert.same({ "block", message }, { entry.decision.action, entry.decision.reasons[1].message })
    end
    assert.equal(
      "allow",
      decode((entries.encode(NETWORK, ADDRESS, decision("allow", { reason("allow", "fine") }), 1))).decision.action
    )
  end)
end)

-- Anybody may write to the dict, and memory may fail: whatever becomes of the entries, who was not allowed is not.
describe("entries that are not as they were stored", function()
  local ROUNDS = 400
  local ACTIONS = { "allow", "review", "block", "unknown" }
  local VERSIONS = { "one", "two" }
  local NETWORKS = { "eth", "bsc" }
  local ADDRESSES = { "0xaa", "0xab", "tb1q", "TB1Q" }

  local world, draw, pick

  -- What the service says at first: the same in every run. Later on, it says `block`.
  local function verdict_on(address, network, version)
    local generator = random.new(worlds.checksum(address .. network .. version))
    generator.integer(1)
    return generator.pick(ACTIONS)
  end

  local later

  local function new_worker(version)
    return world:worker {
      version = version,
      lru = 0,
      ttl = { unknown = 3600 },
      stale = { allow = 0 },
      look_up = function(address, network)
        return world.decision(later and "block" or verdict_on(address, network, version), address, network)
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
      world:call(cache.decide, cache, address, network)
    end)
    later = true
  end)

  -- Nobody is allowed by what is remembered but those who were.
  local function check(what)
    for_all(function(cache, address, network, version)
      local action = world:call(cache.decide, cache, address, network).action
      if action == "allow" and verdict_on(address, network, version) ~= "allow" then
        error(("%s allows %s on %s in %s"):format(what, address, network, version), 0)
      end
    end)
  end

  it("would be found as they are", function()
    local counts = {}
    for_all(function(cache, address, network, version)
      local found, source = world:call(cache.decide, cache, address, network)
      assert.same({ verdict_on(address, network, version), "dict" }, { found.action, source })
      counts[found.action] = (counts[found.action] or 0) + 1
    end)
    for _, action in ipairs(ACTIONS) do
      assert.is_true((counts[action] or 0) > 1, action)
    end
  end)

  local function sorted_keys(entries_of_dict)
    local keys = {}
    for key in pairs(entries_of_dict) do
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

  -- Bytes are changed; the checksum is what it was.
  local damages = {
    flip = flip,
    ["several flips"] = function(text)
      for _ = 1, draw(8) do
        text = flip(text)
      end
      return text
    end,
    truncation = function(text)
      return text:sub(1, draw(#text) - 1)
    end,
    ["another action"] = function(text)
      return (text:gsub('"block"', '"allow"'):gsub('"review"', '"allow"'):gsub('"unknown"', '"allow"'))
    end,
    ["another end"] = function(text)
      return text .. string.char(draw(256) - 1)
    end,
    ["no text"] = function()
      return pick { 0, 1, true, false, -1, 1e300 }
    end,
  }

  for what, damage in pairs(damages) do
    it("are misses: " .. what, function()
      for _ = 1, ROUNDS / 8 do
        local kept = {}
        for key, entry in pairs(world.dict.entries) do
          kept[key] = { value = entry.value, flags = entry.flags, expires = entry.expires }
        end
        for _, key in ipairs(sorted_keys(world.dict.entries)) do
          local entry = world.dict.entries[key]
          entry.value = type(entry.value) == "string" and damage(entry.value) or entry.value
        end
        check(what)
        world.dict.entries = kept
      end
    end)
  end

  it("are misses: one that belongs to another key", function()
    local keys = sorted_keys(world.dict.entries)
    local all = world.dict.entries
    for _, from in ipairs(keys) do
      world.dict.entries = {}
      for _, to in ipairs(keys) do
        world.dict.entries[to] = { value = all[from].value, flags = all[from].flags }
      end
      check(("the entry of %s under all keys"):format(from))
    end
  end)

  -- Whoever writes those knows how: they are told by what they say alone.
  local function forged(text, change)
    local head, json = text:match "^(.*)\n(.-)$"
    local packed = cjson.decode(json)
    change(packed)
    return head .. "\n" .. cjson.encode(packed)
  end

  it("are misses: an action with reasons for another, though the checksum is right", function()
    for _, change in ipairs {
      function(packed)
        packed.a = "allow"
      end,
      function(packed)
        table.insert(packed.r, 1, { a = "allow", m = "forged" })
      end,
      function(packed)
        packed.a = "allow"
        table.insert(packed.r, 1, { a = "allow", m = "forged" })
      end,
      function(packed)
        packed.a, packed.r = "allow", {}
      end,
      function(packed)
        packed.a, packed.r = "allow", nil
      end,
    } do
      for _, key in ipairs(sorted_keys(world.dict.entries)) do
        local entry = world.dict.entries[key]
        if type(entry.value) == "string" and not entry.value:find('"allow"', 1, true) then
          local salt = (entry.flags - worlds.checksum(entry.value)) % 2 ^ 31
          entry.value = forged(entry.value, change)
          entry.flags = (worlds.checksum(entry.value) + salt) % 2 ^ 31
        end
      end
      check "a forgery"
    end
  end)
end)
