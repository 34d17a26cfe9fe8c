-- The text of a verdict in Redis: anyone who can write there could have written it.
local random = require "spec.support.random"
local seals = require "riskscreen.nginx.fleet.seal"
local verdicts = require "riskscreen.nginx.fleet.verdict"

local KEY, LABEL = "a secret of the fleet's gates", "{riskscreen}:verdict:policy:eth:0xab"
local NOW = 100000 -- seconds
local OFFSET = 1700000000 -- of the clock of Redis
local JSON = '{"action":"allow"}'
local SKEW = 2 -- seconds

local function codec(keys)
  return verdicts.new(keys or { KEY }, SKEW)
end

local function text_of(at, valid_until, purge)
  return codec():encode(LABEL, JSON, at or NOW, valid_until or NOW + 300, OFFSET, purge or 41, 7)
end

local function reason(label, text, now, keys)
  local verdict, why = codec(keys):decode(label, text, now or NOW, OFFSET)
  assert.is_nil(verdict)
  return why
end

describe("a verdict in Redis", function()
  it("has its decision, its times and the last purge before it", function()
    local verdict = codec():decode(LABEL, text_of(), NOW, OFFSET)
    assert.same({ at = NOW - SKEW, valid_until = NOW + 300 - SKEW, purge = 41, json = JSON }, verdict)
  end)

  it("is refused under the key of another policy, network or address", function()
    for _, label in ipairs {
      "{riskscreen}:verdict:other:eth:0xab",
      "{riskscreen}:verdict:policy:bsc:0xab",
      "{riskscreen}:verdict:policy:eth:0xac",
      "{riskscreen}:verdict:policy:eth:0xab1",
      "{staging}:verdict:policy:eth:0xab",
    } do
      assert.equal("forged", reason(label, text_of()))
    end
  end)

  it("is refused where one byte differs, or one is missing or added", function()
    local text = text_of()
    for index = 1, #text do
      local before, after = text:sub(1, index - 1), text:sub(index + 1)
      local changed = string.char((text:byte(index) + 1) % 256)
      local expected = index == 1 and "malformed" or "forged"
      assert.equal(expected, reason(LABEL, before .. changed .. after))
      assert.equal(expected, reason(LABEL, before .. "0" .. text:sub(index)))
      assert.is_truthy(reason(LABEL, before .. after))
    end
  end)

  it("is refused after its time, which its seal covers", function()
    local text = text_of(NOW, NOW + 300)
    assert.is_table(codec():decode(LABEL, text, NOW + 300 - SKEW - 0.001, OFFSET))
    assert.equal("expired", reason(LABEL, text, NOW + 300 - SKEW))
    assert.equal("expired", reason(LABEL, text, NOW + 1e6))
  end)

  it("is refused if it comes from the future, by more than the clocks may differ", function()
    assert.is_table(codec():decode(LABEL, text_of(NOW + SKEW), NOW, OFFSET))
    assert.equal("future", reason(LABEL, text_of(NOW + SKEW + 0.001)))
  end)

  it("is never taken for younger than it is, whatever the clocks say within the limit", function()
    for shift = -SKEW, SKEW, 0.5 do
      -- The other machine's clock is wrong by `shift`. By this machine's clock the fetch was at NOW.
      local verdict = codec():decode(LABEL, text_of(NOW + shift, NOW + shift + 300), NOW + 5, OFFSET)
      assert.is_true(verdict.at <= NOW)
      assert.is_true(verdict.valid_until <= NOW + 300)
    end
  end)

  it("counts under each of several keys, and the first one seals", function()
    local OTHER = "another secret of the gates"
    local both, reversed = { OTHER, KEY }, { KEY, OTHER }
    assert.is_table(codec(both):decode(LABEL, text_of(), NOW, OFFSET))
    local text = codec(both):encode(LABEL, JSON, NOW, NOW + 300, OFFSET, 41, 7)
    assert.is_table(codec(reversed):decode(LABEL, text, NOW, OFFSET))
    assert.equal("forged", reason(LABEL, text, NOW, { KEY }))
  end)

  it("is not sealed like a purge, though the key is the same", function()
    local text = text_of()
    local sealed = seals.new({ KEY }, "purge"):close(LABEL, text:sub(1, -seals.SIZE - 1))
    assert.equal("forged", reason(LABEL, sealed))
  end)

  it("is no text of another kind, and no longer than 8 KiB", function()
    for _, other in ipairs { "", "1", ("1"):rep(100), ("x"):rep(9000), false, 7, {} } do
      assert.is_truthy(reason(LABEL, other))
    end
    assert.is_nil(codec():encode(LABEL, ("x"):rep(8192), NOW, NOW + 1, OFFSET, 1, 0))
  end)

  it("is the one that was written, or none, for any change of its bytes", function()
    local draw = random.new(20).integer
    local good = text_of()
    for _ = 1, 2000 do
      local bytes = { good:byte(1, -1) }
      for _ = 1, draw(4) do
        bytes[draw(#bytes)] = draw(256) - 1
      end
      local text = string.char((table.unpack or unpack)(bytes)) -- luacheck: ignore 113 143
      assert.equal(text == good, codec():decode(LABEL, text, NOW, OFFSET) ~= nil)
    end
  end)
end)

describe("the option key", function()
  it("takes a secret, or several", function()
    assert.same({ KEY }, seals.check_keys(KEY))
    assert.same({ KEY, KEY .. "2" }, seals.check_keys { KEY, KEY .. "2" })
  end)

  it("refuses what is no secret", function()
    for _, value in ipairs { "", "short", {}, { KEY, "short" }, { 7 }, { [2] = KEY } } do
      local keys, problem = seals.check_keys(value)
      assert.is_nil(keys)
      assert.equal("must be a secret of at least 16 bytes, or a list of such secrets", problem)
    end
  end)
end)
