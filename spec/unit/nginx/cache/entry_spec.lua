-- What an entry of the dict holds, in bytes and back, and what becomes of entries that are not as they were stored.
local cjson = require "cjson"
local entries = require "riskscreen.nginx.cache.entry"
local random = require "spec.support.random"
local worlds = require "spec.support.cache_world"

local DIGEST = ("0123456789"):rep(2)

describe("an entry", function()
  it("is which verdict it was, and when, to the millisecond", function()
    for _, at in ipairs { 1700000000.125, 0, 0.001, 2 ^ 32, 281474976710.655 } do
      assert.same({ DIGEST, at }, { entries.unpack(entries.pack(at, DIGEST)) })
    end
  end)

  it("is how long was too short, of a failure", function()
    for _, patience in ipairs { 2.5, 0, 1 / 3, 1e-9 } do
      assert.same({ DIGEST, 5, patience }, { entries.unpack(entries.pack(5, DIGEST, patience)) })
    end
  end)

  it("has a time that is one", function()
    for _, at in ipairs { -1, 281474976710.656, math.huge, -math.huge, 0 / 0 } do
      assert.is_nil(entries.pack(at, DIGEST))
    end
  end)

  it("is nothing that `pack` cannot have made", function()
    local bytes = entries.pack(1700000000.125, DIGEST)
    for length = 0, #bytes - 1 do
      assert.is_nil((entries.unpack(bytes:sub(1, length))))
    end
    for _, more in ipairs { "x", " ", "nan", "inf", "-inf", "1e999", "1 2", "1;", "\0" } do
      assert.is_nil((entries.unpack(bytes .. more)), more)
    end
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

  local function is_text(key)
    return key:find("riskscreen:text:", 1, true) == 1
  end

  local function copy_of(all)
    local copy = {}
    for key, entry in pairs(all) do
      copy[key] = { value = entry.value, flags = entry.flags, expires = entry.expires }
    end
    return copy
  end

  local which_are_damaged = {
    entries = function(key)
      return not is_text(key)
    end,
    ["texts of verdicts"] = is_text,
  }

  for which, is_damaged in pairs(which_are_damaged) do
    for what, damage in pairs(damages) do
      it(("are misses: %s in %s"):format(what, which), function()
        for _ = 1, ROUNDS / 8 do
          local kept = copy_of(world.dict.entries)
          for _, key in ipairs(sorted_keys(world.dict.entries)) do
            local entry = world.dict.entries[key]
            if is_damaged(key) and type(entry.value) == "string" then
              entry.value = damage(entry.value)
            end
          end
          check(what)
          world.dict.entries = kept
        end
      end)
    end
  end

  it("are misses: one that belongs to another key", function()
    local keys = sorted_keys(world.dict.entries)
    local all = world.dict.entries
    for _, from in ipairs(keys) do
      world.dict.entries = copy_of(all)
      for _, to in ipairs(keys) do
        if is_text(from) == is_text(to) then
          world.dict.entries[to] = { value = all[from].value, flags = all[from].flags }
        end
      end
      check(("the entry of %q under all keys"):format(from))
    end
  end)

  it("are misses: one whose verdict nobody has the text of", function()
    for key in pairs(copy_of(world.dict.entries)) do
      world.dict.entries[key] = not is_text(key) and world.dict.entries[key] or nil
    end
    for_all(function(cache, address, network, version)
      local found, source = world:call(cache.decide, cache, address, network)
      assert.not_equal("allow", found.action)
      if verdict_on(address, network, version) == "allow" then
        assert.equal("upstream", source)
      end
    end)
  end)

  -- Whoever writes those knows how: they are told by what they say alone.
  local function forge(change)
    local digests = {}
    for _, key in ipairs(sorted_keys(world.dict.entries)) do
      local entry = world.dict.entries[key]
      if is_text(key) and not entry.value:find('"allow"', 1, true) then
        local packed = cjson.decode(entry.value)
        change(packed)
        local text = cjson.encode(packed)
        digests[key:sub(-#DIGEST)] = worlds.digest(text)
        world.dict.entries[key:sub(1, -#DIGEST - 1) .. worlds.digest(text)] = { value = text, expires = entry.expires }
      end
    end
    for key, entry in pairs(world.dict.entries) do
      local digest, at, patience = nil, nil, nil
      if not is_text(key) and type(entry.value) == "string" then
        digest, at, patience = entries.unpack(entry.value)
      end
      if digests[digest] then
        entry.value = entries.pack(at, digests[digest], patience)
        entry.flags = (worlds.checksum(key) + worlds.checksum(entry.value)) % 2 ^ 31
      end
    end
    return next(digests)
  end

  it("are found as what they say: one that somebody has written who knows how", function()
    assert.is_truthy(forge(function(packed)
      packed.a, packed.r = "allow", { { a = "allow", m = "forged" } }
    end))
    for_all(function(cache, address, network)
      assert.equal("allow", world:call(cache.decide, cache, address, network).action)
    end)
  end)

  it("are misses: an action with reasons for another, though checksum and digest are right", function()
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
      local kept = copy_of(world.dict.entries)
      assert.is_truthy(forge(change))
      check "a forgery"
      world.dict.entries = kept
    end
  end)
end)
