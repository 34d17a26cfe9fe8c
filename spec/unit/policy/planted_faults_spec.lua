-- Policies with planted faults: a check finds the rule that never decides, or a proof finds what gets in.

local policies = require "riskscreen.policy"
local score_policy = require "riskscreen.policy.score"
local tables = require "riskscreen.util.tables"

local SANCTION = { type = "sanction", action = "block" }
local HIGH = { level = "high", action = "block" }
local LOW = { level = "low", action = "allow" }
local ANY = { any = true, action = "allow" }
local OUT = { counterparty = { level = "high", direction = "out" }, action = "block" }
local MIXER = { category = "mixer", action = "block" }
local FROZEN = { frozen = true, action = "block" }

local function policy(options, ...)
  return policies.new(tables.merge({ rules = { ... }, not_offered = "unknown" }, options))
end

local function scores(options, ...)
  return score_policy.new(tables.merge({ rules = { ... } }, options))
end

-- The fault, the policy, and the label of the rule that never decides or the claim that does not hold.
local cases = {
  {
    "a rule that an earlier one hides",
    policy({}, HIGH, { level = "high", type = "hack", action = "allow" }),
    "rule 2",
  },
  { "a rule behind one for every case", policy({}, ANY, HIGH), "rule 2" },
  {
    "a rule with conditions that exclude each other",
    policy({}, LOW, { no_risk = true, level = "low", action = "block" }),
    "rule 2",
  },
  {
    "an error rule whose kinds are handled",
    policy({}, LOW, { error = true, action = "review" }, { error = "timeout", action = "block" }),
    "rule 3",
  },
  { "a risk that is hidden by a mild rule", policy({}, LOW, SANCTION), "never allow where type = sanction" },
  { "a type that is left out", policy({}, SANCTION, ANY), "never allow where type = csam" },
  { "a level that is left out", policy({}, SANCTION, ANY), "never allow where level = high" },
  {
    "an unknown value that is allowed",
    policy({}, { unrecognised = true, action = "allow" }, HIGH),
    "never allow where unrecognised = true",
  },
  {
    "a failure that is allowed",
    policy({}, LOW, { error = "timeout", action = "allow" }),
    "never allow where a lookup failed",
  },
  {
    "a whitelisted sanction",
    policy({}, { whitelist = true, action = "allow" }, SANCTION),
    "never allow where type = sanction",
  },
  {
    "an entity that is missing and helps",
    policy({ absent_entity = "none" }, MIXER, LOW),
    "never allow where entity is absent",
  },
  {
    "risks that are missing and help",
    policy({ absent_risks = "none" }, { no_risk = true, action = "allow" }),
    "never allow where risks is missing",
  },
  { "counterparties that are missing and help", policy({}, LOW), "never allow where counterparty.level = high" },
  { "incoming counterparties that are left out", policy({}, OUT, LOW), "never allow where counterparty.level = high" },
  { "a freeze that is asked too late", policy({}, LOW, FROZEN), "never allow where frozen = true" },
  {
    "a lookup that is not offered and skips a rule",
    policy({ not_offered = "skip" }, FROZEN, { frozen = false, action = "block" }, ANY),
    "never allow",
  },
  {
    "a category that no rule names",
    policy({ extend = { category = { "darknet" } } }, MIXER, LOW),
    "never allow where category = darknet",
  },
  {
    "a score that is too high",
    scores({}, { score_below = "70", action = "allow" }),
    "never allow where score_at_least = 50",
  },
  {
    "a direction that is left out",
    scores({}, { direction = "in", detail = "mixer", action = "block" }, { any = true, action = "allow" }),
    "never allow where detail = mixer",
  },
  {
    "a score rule that is hidden",
    scores({}, { score_below = "50", action = "allow" }, { score_below = "30", action = "review" }),
    "rule 2",
  },
}

describe("a planted fault is found:", function()
  for _, case in ipairs(cases) do
    it(case[1], function()
      local made, wanted = case[2], case[3]
      if wanted:find "^rule" then
        local faults = {}
        for _, finding in ipairs(made:check()) do
          faults[#faults + 1] = finding.is_fault and finding.about or nil
        end
        assert.same({ wanted }, faults)
      else
        local proof = made:prove(wanted)
        assert.is_false(proof.holds)
        assert.equal("allow", proof.decision.action)
      end
    end)
  end
end)
