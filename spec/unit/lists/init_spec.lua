local errors = require "riskscreen.errors"
local build = require("riskscreen.lists.build").build
local list_files = require "spec.support.list_files"
local riskscreen = require "riskscreen"

local address = list_files.address
local DAY = 86400

describe("a client with local lists", function()
  local directory, now, date_step, problems, sent

  before_each(function()
    directory = list_files.new()
    now, date_step, problems, sent = os.time(), 0, {}, {}
  end)

  after_each(function()
    directory:remove()
  end)

  -- The network is down for this client; it counts the requests that it would have sent.
  local function client(lists, more)
    local options = {
      access_key = "key-of-lists",
      retry = false,
      clock = function()
        return now + date_step
      end,
      -- Its clock is monotonic: no date that is set changes it.
      runtime = setmetatable({
        now = function()
          return now
        end,
      }, { __index = require "riskscreen.runtime" }),
      transport = function(request)
        sent[#sent + 1] = request.target
        return nil, { kind = "network", message = "down" }
      end,
      lists = lists,
    }
    lists.on_problem = function(message)
      problems[#problems + 1] = message
    end
    for name, value in pairs(more or {}) do
      options[name] = value
    end
    return riskscreen.new(options)
  end

  local function csv(name, ...)
    return directory:write(name, "address,network,note,expires\n" .. table.concat({ ... }, "\n") .. "\n")
  end

  local function compiled(name, ...)
    local input, output = csv(name .. ".csv", ...), directory:path(name)
    assert(build { output = output, inputs = input, time = now })
    return output
  end

  local function screen(made, text, network)
    return made:screen { address = text, network = network or "eth" }
  end

  it("reads when an entry ends in rows of JSON too, in any case of the name", function()
    for _, name in ipairs { "expires", "Expires", "EXPIRES" } do
      local row = ('{"address":"%s","%s":"2020-01-01"}'):format(address(1), name)
      for _, content in ipairs { row .. "\n", "[" .. row .. "]" } do
        local made = client { allow = directory:write("allow.json", content), allow_without_call = true }
        assert.equal("unknown", screen(made, address(1)).action)
      end
    end
  end)

  it("blocks without a call who is on a deny list, with list, entry and note as the reason", function()
    local path = compiled("deny.rsl", address(1) .. ",eth,why,2999-01-01")
    local decision = screen(client { deny = path }, "0x" .. address(1):sub(3):upper(), "ethereum")
    assert.equal("block", decision.action)
    assert.equal("list", decision.source)
    assert.is_false(decision.degraded)
    assert.same({ address = address(1), network = "eth", expires = 32472144000 }, decision.reasons[1].entry)
    assert.same({ path, "why" }, { decision.reasons[1].list, decision.reasons[1].note })
    assert.matches("the deny list .*deny%.rsl has the address on eth: why", decision.reasons[1].message)
    assert.same({}, sent)
  end)

  it("asks the service about other addresses, and about this one on other networks", function()
    local made = client { deny = compiled("deny.rsl", address(1) .. ",eth,,") }
    assert.equal("unknown", screen(made, address(2)).action)
    assert.equal("unknown", screen(made, address(1), "bsc").action)
    assert.equal(2, #sent)
  end)

  it("names every deny list that has the address", function()
    local lists = { deny = { compiled("a.rsl", address(1) .. ",,,"), csv("b.csv", address(1) .. ",eth,,") } }
    local decision = screen(client(lists), address(1))
    assert.same({ lists.deny[1], lists.deny[2] }, { decision.reasons[1].list, decision.reasons[2].list })
  end)

  it("lets nobody pass by an allow list unless the operator says so", function()
    local path = csv("allow.csv", address(1) .. ",,ours,")
    local decision = screen(client { allow = path }, address(1))
    assert.equal("unknown", decision.action)
    assert.equal(1, #sent)
    assert.same({ "unknown", "allow" }, { decision.reasons[1].action, decision.reasons[2].action })
    assert.equal("ours", decision.reasons[2].note)

    decision = screen(client { allow = path, allow_without_call = true }, address(1))
    assert.same({ "allow", "list", true }, { decision.action, decision.source, decision.degraded })
    assert.equal(1, #sent)
  end)

  it("asks about an address that is not on the allow list which passes others without a call", function()
    local made = client { allow = csv("allow.csv", address(1) .. ",eth,ours,"), allow_without_call = true }
    for count, asked in ipairs { { address(2), "eth" }, { address(1), "bsc" } } do
      local decision = screen(made, asked[1], asked[2])
      assert.same({ "unknown", "network", 1 }, { decision.action, decision.error.kind, #decision.reasons })
      assert.equal(count, #sent)
    end
  end)

  it("says where each list comes from, what it holds and how old it is", function()
    local deny, allow = compiled("deny.rsl", address(1) .. ",,,"), compiled("allow.rsl", address(2) .. ",,,")
    local made = client { deny = deny, allow = allow, max_age = DAY }
    now = now + 60
    local facts = made:stats().lists
    for position, kind in ipairs { "deny", "allow" } do
      local list = facts[position]
      assert.same(
        { directory:path(kind .. ".rsl"), kind, 1, 60 },
        { list.file, list.kind, list.entries, list.age_seconds }
      )
      assert.same({ #directory:read(kind .. ".rsl"), false }, { list.bytes, list.stale })
      assert.is_nil(list.problem)
    end
    now = now + DAY
    assert.matches("is 1%.0 days old$", made:stats().lists[1].problem)
    assert.matches("is 1%.0 days old, and does not count$", made:stats().lists[2].problem)
  end)

  it("lets deny win over allow", function()
    local lists = { deny = csv("deny.csv", address(1) .. ",,,"), allow = csv("allow.csv", address(1) .. ",eth,,") }
    lists.allow_without_call = true
    assert.equal("block", screen(client(lists), address(1)).action)
  end)

  it("refuses a text that is no address before it looks at the lists", function()
    local typo = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD"
    local lists = { allow = csv("allow.csv", typo:lower() .. ",,,"), allow_without_call = true }
    assert.equal("unknown", screen(client(lists), typo).action)
  end)

  it("decides about results that were looked up before, too", function()
    local made = client { deny = csv("deny.csv", address(1) .. ",eth,why,") }
    local function decide(extra)
      local risk = { address = address(1), network = "ethereum", risks = {} }
      for name, value in pairs(extra or {}) do
        risk[name] = value or nil
      end
      local decision, plain = made:decide { risk = risk }, made:decide(risk)
      assert.equal(decision.action, plain.action)
      return decision
    end
    assert.same({ "block", "list" }, { decide().action, decide().source })
    assert.equal("block", decide({ address = "0x" .. address(1):sub(3):upper() }).action)
    assert.equal("allow", decide({ address = address(2) }).action)
    assert.equal("allow", decide({ network = "bsc" }).action)
    assert.equal("unknown", decide({ address = false }).action)
    assert.equal("unknown", decide({ network = false }).action)
    assert.equal("unknown", made:decide({ errors = { risk = errors.new("timeout", "late") } }).action)
    assert.same({}, sent)
  end)

  it("decides so in screen_all as well", function()
    local made = client { deny = csv("deny.csv", address(1) .. ",,,") }
    local actions = {}
    for decision in made:screen_all { source = { address(1), address(2), address(1) }, network = "eth" } do
      actions[#actions + 1] = decision.action
    end
    assert.same({ "block", "unknown", "block" }, actions)
    assert.equal(1, #sent)
  end)

  it("lets an entry count until it expires", function()
    local made = client { deny = csv("deny.csv", address(1) .. ",,," .. now + 100) }
    now = now + 99
    assert.equal("block", screen(made, address(1)).action)
    now = now + 1
    assert.equal("unknown", screen(made, address(1)).action)
  end)

  it("ends an allowing entry for good, also where the date is set back", function()
    local path = csv("allow.csv", address(1) .. ",,," .. now + 100)
    local made = client { allow = path, allow_without_call = true }
    assert.equal("allow", screen(made, address(1)).action)
    now = now + 100
    assert.equal("unknown", screen(made, address(1)).action)
    date_step = -3600
    assert.equal("unknown", screen(made, address(1)).action)
  end)

  it("looks at its files on time, whatever date is set", function()
    local path = csv("deny.csv", address(2) .. ",,,")
    local made = client { deny = path, interval = 10 }
    for index, step in ipairs { -1e6, 1e6 } do
      assert.equal("unknown", screen(made, address(2 + index)).action)
      csv("deny.csv", address(2 + index) .. ",,,")
      date_step, now = step, now + 10
      assert.equal("block", screen(made, address(2 + index)).action)
    end
  end)

  it("refuses a transaction to an address on a deny list, also before it knows where results come from", function()
    local made = client { deny = csv("deny.csv", address(1) .. ",,why,") }
    local transaction = { network = "eth", hash = "0x" .. ("a"):rep(64), outputAddress = address(1) }
    for _, method in ipairs { "screen", "submit" } do
      local result, err = made.kyt[method](made.kyt, transaction)
      assert.is_nil(result)
      assert.same({ "list", false }, { err.kind, err.sent })
      assert.equal("block", err.decision.action)
    end
    assert.same({}, sent)
    local lenient = riskscreen.score_policy { rules = { { error = true, action = "allow" } } }
    assert.equal("block", lenient:decide(made.kyt:screen(transaction)).action)
    lenient = riskscreen.policy { rules = { { error = true, action = "allow" } } }
    assert.equal("block", lenient:decide(made.kyt:screen(transaction)).action)
  end)

  describe("whose file changes", function()
    for _, kind in ipairs { "rsl", "csv" } do
      local function write(...)
        return kind == "rsl" and compiled("deny.rsl", ...) or csv("deny.csv", ...)
      end

      it("takes the new file after the interval: " .. kind, function()
        local made = client { deny = write(address(1) .. ",,,"), interval = 10 }
        write(address(2) .. ",,,")
        now = now + 9
        assert.equal("block", screen(made, address(1)).action)
        now = now + 1
        assert.equal("unknown", screen(made, address(1)).action)
        assert.equal("block", screen(made, address(2)).action)
        write(address(3) .. ",,,")
        now = now + 9
        assert.equal("block", screen(made, address(2)).action)
        assert.same({}, problems)
      end)

      it("is asked again after a lookup that waited: " .. kind, function()
        local made
        made = client({ deny = write(address(9) .. ",,,"), interval = 10 }, {
          transport = function()
            write(address(1) .. ",,,")
            now = now + 10
            return nil, { kind = "network", message = "down" }
          end,
        })
        local decision = screen(made, address(1))
        assert.same({ "block", "list" }, { decision.action, decision.source })
        assert.equal("unknown", screen(made, address(2)).action)
      end)

      it("is asked again for each repeat of a run: " .. kind, function()
        local made = client { deny = write(address(9) .. ",,,"), interval = 10 }
        -- A run reads 8 items ahead: so many others stand between a change of the list and the address.
        local function pause(change)
          local list = {}
          for index = 1, 20 do
            list[index] = address(100 + index)
          end
          list.change = change
          return list
        end
        local function deny(number)
          return pause(function()
            write(address(number) .. ",,,")
            now = now + 10
          end)
        end
        local rows, changes = {}, {}
        local one = address(1)
        for _, part in ipairs { { one, one }, deny(1), { one }, deny(9), { one, one } } do
          changes[#rows + 10] = part.change
          for _, row in ipairs(part) do
            rows[#rows + 1] = row
          end
        end
        local index, actions, repeats = 0, {}, {}
        local function source()
          index = index + 1
          if changes[index] then
            changes[index]()
          end
          return rows[index]
        end
        for decision in made:screen_all { source = source, network = "eth", concurrency = 1 } do
          if decision.address == address(1) then
            actions[#actions + 1], repeats[#repeats + 1] = decision.action, decision.repeats or false
          end
        end
        assert.same({ "unknown", "unknown", "block", "unknown", "unknown" }, actions)
        assert.same({ false, 1, false, false, 44 }, repeats)
      end)

      it("keeps the old list and reports it once, where the new file is damaged or gone: " .. kind, function()
        local path = write(address(1) .. ",,,")
        local made = client { deny = path, interval = 10 }
        directory:write("deny." .. kind, kind == "rsl" and directory:read("deny.rsl"):sub(1, -2) or "adress,note\n")
        for _ = 1, 3 do
          now = now + 10
          assert.equal("block", screen(made, address(1)).action)
        end
        assert.equal(1, #problems)
        assert.matches("was not loaded again, and the old one counts", problems[1])
        assert.is_true(made:stats().lists[1].faulty)
        os.remove(path)
        now = now + 10
        assert.equal("block", screen(made, address(1)).action)
        assert.matches("No such file", problems[2])
        write(address(2) .. ",,,")
        now = now + 10
        assert.equal("block", screen(made, address(2)).action)
        assert.is_false(made:stats().lists[1].faulty)
      end)
    end

    it("says unknown, and never asks, where a long list is changed in place to one that cannot be loaded", function()
      local rows = {}
      for number = 1, 20000 do
        rows[number] = address(number) .. ",,,"
      end
      local path = compiled("deny.rsl", table.concat(rows, "\n"))
      local good = directory:read "deny.rsl"
      local made = client { deny = path }
      assert.equal("block", screen(made, address(20000)).action)
      assert(os.execute(": > " .. path))
      local decision = screen(made, address(30000))
      assert.same({ "unknown", "list" }, { decision.action, decision.error.kind })
      assert.matches("changed in place", decision.reasons[1].message)
      assert.same({}, sent)
      directory:write("deny.rsl", good)
      assert.equal("block", screen(made, address(20000)).action)
    end)
  end)

  describe("with max_age", function()
    it("goes on to block by a stale deny list, and warns", function()
      local made = client { deny = compiled("deny.rsl", address(1) .. ",,,"), max_age = DAY, interval = 10 }
      assert.is_false(screen(made, address(1)).stale)
      now = now + 2 * DAY
      local decision = screen(made, address(1))
      assert.same({ "block", true }, { decision.action, decision.stale })
      assert.equal(1, #problems)
      assert.matches("is 2%.0 days old", problems[1])
      now = now + DAY
      screen(made, address(1))
      assert.equal(1, #problems)
      assert.is_true(made:stats().lists[1].stale)
    end)

    it("lets an allow list from the future count for nothing, and a deny list block", function()
      local allow = csv("allow.csv", address(1) .. ",,,")
      local deny = csv("deny.csv", address(2) .. ",,,")
      date_step = -3600
      local made = client { allow = allow, deny = deny, allow_without_call = true, max_age = DAY }
      assert.equal("unknown", screen(made, address(1)).action)
      local decision = screen(made, address(2))
      assert.same({ "block", true }, { decision.action, decision.stale })
    end)

    it("lets a stale allow list count for nothing", function()
      local path = csv("allow.csv", address(1) .. ",,,")
      local made = client { allow = path, allow_without_call = true, max_age = DAY }
      assert.equal("allow", screen(made, address(1)).action)
      now = now + DAY + 10
      local decision = screen(made, address(1))
      assert.equal("unknown", decision.action)
      assert.equal(1, #decision.reasons)
    end)
  end)

  it("reports the rows of a text that are no entries", function()
    local made = client { deny = csv("deny.csv", "abc,,,", address(1) .. ",,,") }
    assert.equal("block", screen(made, address(1)).action)
    assert.matches("1 row without an entry: line 2: 'abc' is not an address", problems[1])
    assert.equal(1, made:stats().lists[1].invalid)
  end)

  it("is not made with a list that cannot be loaded", function()
    local problems_of =
      { ["none.rsl"] = "No such file", ["list.doc"] = "no column 'address'", ["sdn.xml"] = "compile it" }
    for name, problem in pairs(problems_of) do
      if not name:find "none" then
        directory:write(name, name:find "xml" and "<sdnList/>" or "x")
      end
      local ok, message = pcall(client, { deny = directory:path(name) })
      assert.is_false(ok)
      assert.matches(problem, message)
    end
    assert.error_matches(function()
      client { deney = {} }
    end, "unknown option 'deney' in lists; did you mean 'deny'")
  end)
end)
