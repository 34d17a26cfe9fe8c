-- The requirements for every hostile text in every place, for every runtime.

local busted = require "busted"
local requests = require "spec.injection.requests"

local assert, describe, it, setup = busted.assert, busted.describe, busted.it, busted.setup

-- A place and what was tried there, in the order in which they came.
local function grouped(attacks)
  local groups, by_place = {}, {}
  for _, attack in ipairs(attacks) do
    local group = by_place[attack.place]
    if not group then
      group = { harmless = attack }
      by_place[attack.place] = group
      groups[#groups + 1] = group
    end
    group[#group + 1] = attack
  end
  return groups
end

local function told(attack)
  return ("%s in %s (%s)"):format(attack.what, attack.place, tostring(attack.message))
end

local function assert_sent(attack, harmless, seen, harmless_seen)
  assert.equal(1, #seen, told(attack))
  -- A place that takes no text of its own takes no hostile one either.
  assert.is_not_nil(harmless_seen, told(attack) .. " was sent, a harmless text was not")
  local ok, request = pcall(requests.read, seen[1], attack)
  assert.is_true(ok, told(attack) .. ": " .. tostring(request))
  assert.same(requests.read(harmless_seen[1], harmless), request, told(attack))
end

---@param run fun(): riskscreen.spec.Attack[], string[] what was tried, and the requests that the server saw
return function(run)
  describe("a hostile text", function()
    local groups, seen

    setup(function()
      local attacks, raw = run()
      groups, seen = grouped(attacks), requests.by_attack(raw)
    end)

    it("makes no request of its own", function()
      assert.same({}, seen.none)
    end)

    it("is sent as it is, in its own place, or not at all", function()
      local sent, refused = 0, 0
      for _, group in ipairs(groups) do
        for _, attack in ipairs(group) do
          if attack.refused then
            assert.is_nil(seen[attack.id], told(attack))
            refused = refused + 1
          else
            assert_sent(attack, group.harmless, seen[attack.id] or {}, seen[group.harmless.id])
            sent = sent + 1
          end
        end
      end
      assert.is_true(sent > 500 and refused > 500, sent .. " sent, " .. refused .. " refused")
    end)

    it("does not break the line of an error message", function()
      for _, group in ipairs(groups) do
        for _, attack in ipairs(group) do
          assert.is_nil((attack.message or ""):find "[%z\1-\31\127]", told(attack))
        end
      end
    end)

    it("does not bring the key to light", function()
      for _, group in ipairs(groups) do
        for _, attack in ipairs(group) do
          assert.is_false(attack.tells_key, told(attack))
        end
      end
    end)
  end)
end
