local addresses = require "riskscreen.address"
local entries = require "riskscreen.lists.entry"
local index = require "riskscreen.lists.index"
local spellings = require "spec.support.spellings"

local EVM = "0x12ae66cdc592e10b60f9097a7b0d3c59fce29876"

local function expiry(value)
  local entry, problem = entries.read { address = EVM, expires = value }
  return entry and entry.expires, problem
end

describe("a row of a list", function()
  it("becomes an entry, without the spaces around its fields", function()
    assert.same(
      { places = { { scope = "eth", address = EVM } }, note = "ours", expires = 0 },
      entries.read { address = " " .. EVM:upper():gsub("^0X", "0x") .. " ", network = " ETH ", note = " ours " }
    )
  end)

  it("has a time of expiry as a date, a time in UTC, or Unix seconds", function()
    assert.equal(0, expiry(nil))
    assert.equal(0, expiry " ")
    assert.equal(1798675200, expiry "2026-12-31")
    assert.equal(1798675200 + 12 * 3600 + 34 * 60 + 56, expiry "2026-12-31T12:34:56Z")
    assert.equal(1798675200 + 86399, expiry "2026-12-31 23:59:59Z")
    assert.equal(1e9, expiry(1e9))
    assert.equal(1798675200, expiry "1798675200")
    assert.equal(1798675200, expiry(1798675200))
  end)

  it("may have fields of other programs, and none that could mean that it does not hold", function()
    for _, name in ipairs { "name", "Created At", "createdAt", "date-added", "Expires", "NOTE", "risk_levels" } do
      assert.is_nil(entries.unknown_field { [name] = true })
    end
    for _, name in ipairs { "valid_till", "notAfter", "status", "active", "gueltig_bis", "bis", "ends" } do
      assert.matches("is not a field of a list", entries.unknown_field { [name] = true }, 1, true)
    end
    assert.matches("did you mean 'expires'", entries.unknown_field { Expire = true }, 1, true)
  end)

  it("is refused for a time of expiry that is none", function()
    local wrong =
      { "2026-02-30", "31.12.2026", "never", "2026-12-31T12:00:00", "1970-01-01", 0, -1, 1, 20261231, 1e11, true }
    wrong[#wrong + 1] = "1970-01-01T00:00:00Z"
    wrong[#wrong + 1] = "1969-12-31T23:59:59Z"
    wrong[#wrong + 1] = "2026-12-31T12:00:00+00:00"
    for _, time in ipairs { "24:00:00", "12:60:00", "12:00:61" } do
      wrong[#wrong + 1] = ("2026-12-31T%sZ"):format(time)
    end
    for _, value in ipairs(wrong) do
      local seconds, problem = expiry(value)
      assert.is_nil(seconds, tostring(value))
      assert.matches("^expires must be a date", problem)
    end
  end)

  it("is refused without an address, and for fields of another type", function()
    assert.matches("address must be a text", (select(2, entries.read {})))
    assert.matches("address must be a text", (select(2, entries.read { address = {} })))
    assert.matches("network must be a text", (select(2, entries.read { address = EVM, network = 1 })))
    assert.matches("note must be a text", (select(2, entries.read { address = EVM, note = {} })))
  end)

  it("has a note of one line, which is cut", function()
    assert.equal("a?b", entries.read({ address = EVM, note = "a\nb" }).note)
    assert.is_true(#entries.read({ address = EVM, note = ("x"):rep(5000) }).note < 1000)
  end)

  it("holds on every network where it is checked as one of a network", function()
    assert.same({ { scope = "*", address = EVM } }, entries.read({ address = EVM, as = "eth" }).places)
    assert.is_nil((entries.read { address = EVM, as = "btc" }))
  end)

  it("holds on every network where its text is an address, by whichever network it is checked", function()
    local tried = 0
    for _, written in pairs(spellings) do
      for _, address in ipairs(written) do
        for as in pairs(addresses.network_names) do
          local entry = entries.read { address = address, as = as }
          local list = index.new()
          for _, place in ipairs(entry and entry.places or {}) do
            list:add(place, "note", 0)
          end
          for _, network in ipairs(entry and addresses.networks_of(address) or {}) do
            local canonical = addresses.validate(address, network)
            assert.equal("note", (list:find(canonical, network, 0)), ("%s as %s on %s"):format(address, as, network))
            tried = tried + 1
          end
        end
      end
    end
    assert.is_true(tried > 1000)
  end)
end)
