-- riskscreen policy: proves claims about a policy, compares it with another one, and tests it with cases.

local claims = require "riskscreen.policy.claim"
local clients = require "riskscreen.cli.client"
local json = require "riskscreen.json"
local option_of = require "riskscreen.cli.option"
local results_of = require("riskscreen.journal.replay").results_of
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local decoder = json.decoder { duplicates = "refuse", null = "keep" }

-- The lines of a file that are not empty and no comments, with their numbers. Without one the command ends: nothing
-- would be proved or tested.
local function lines_of(path)
  local file, problem = io.open(path, "rb")
  local lines, number = {}, 0
  if not file then
    status.fail(status.unknown, tostring(problem))
  end
  for line in file:lines() do
    number = number + 1
    local is_empty = not line:find "%S" or line:find "^%s*#"
    lines[#lines + 1] = not is_empty and { text = text.trim(line), number = number } or nil
  end
  file:close()
  return lines[1] and lines or status.fail(status.unknown, path .. ": the file is empty")
end

-- Evidence as a journal has it.
local function record_of(evidence)
  local record, errs = tables.copy(evidence), {}
  for lookup, err in pairs(evidence.errors or {}) do
    errs[lookup] = tables.pick(err, { "kind", "message", "absent" })
  end
  record.errors = evidence.errors and errs
  return record
end

local function run_prove(context)
  local policy = clients.load_policy(context.arguments.policy)
  local list = context.options.claims and tables.pluck(lines_of(context.options.claims), "text") or {}
  list = tables.concat(context.arguments.claim, list)
  local output, worst = context:output { "claim", "answer", "action", "record" }, status.done
  local is_text = context.format == "table" or context.format == "csv"
  if not policy.prove then
    status.misuse "a score policy has no proofs"
  end
  for _, claim in ipairs(list[1] and list or claims.standard) do
    context:check_time()
    local ok, proof = pcall(policy.prove, policy, claim)
    if not ok then
      status.misuse(("%s: %s"):format(claim, (tostring(proof):gsub("^.-prove: ", ""))))
    end
    local action = proof.decision and proof.decision.action
    local record = proof.evidence and record_of(proof.evidence)
    record = is_text and record and json.ordered(record) or record
    local answer = action and "does not hold" or tostring(proof)
    output:add { claim = claim, answer = answer, holds = proof.holds, action = action, record = record }
    worst = status.worse(worst, action and status.block or proof.holds and status.done or status.unknown)
  end
  output:finish()
  return worst
end

-- Writes the changes of a journal's decisions to stderr; returns whether there is one, and whether all were decided.
local function compare_lines(context, path, old, new)
  local changes, lines, skipped = {}, lines_of(path), 0
  for _, line in ipairs(lines) do
    local entry = decoder:decode(line.text)
    local ok, pair = pcall(function()
      if entry.source == "list" then
        return "" -- no policy changes the decision of a list
      end
      local results = results_of(entry.record)
      local before, after = old:decide(results).action, new:decide(results).action
      return before ~= after and before .. " to " .. after or ""
    end)
    if ok and pair ~= "" then
      changes[pair] = (changes[pair] or 0) + 1
    end
    skipped = skipped + (ok and 0 or 1)
  end
  for _, pair in ipairs(tables.sorted_keys(changes)) do
    context:tell(("%s: %s from %s"):format(path, text.count(changes[pair], "decision"), pair))
  end
  context:tell(("%s: %s, %d without a record to decide"):format(path, text.count(#lines, "line"), skipped))
  return next(changes) ~= nil, skipped == 0
end

local function run_diff(context)
  local old, new = clients.load_policy(context.arguments.old), clients.load_policy(context.arguments.new)
  if not old.diff or not new.diff then
    status.misuse "score policies cannot be compared"
  end
  local diff, output = old:diff(new), context:output { "before", "after", "reasons", "record" }
  local is_text = context.format == "table" or context.format == "csv"
  for _, change in ipairs(diff.changes) do
    local record = change.evidence and record_of(change.evidence)
    record = is_text and record and json.ordered(record) or record or is_text and "not decided" or nil
    output:add { before = change.before, after = change.after, reasons = change.reasons, record = record }
  end
  output:finish()
  context:tell(tostring(diff))
  local differs, is_read = diff.differs, true
  if context.options.journal then
    local has_changes, has_all = compare_lines(context, context.options.journal, old, new)
    differs, is_read = has_changes or differs, has_all
  end
  return differs and status.block or differs == false and is_read and status.done or status.unknown
end

local function run_check(context)
  local policy = clients.load_policy(context.arguments.policy)
  if not policy.check then
    status.misuse "a score policy has no check"
  end
  local output, faults = context:output { "about", "finding" }, 0
  for _, finding in ipairs(policy:check()) do
    output:add { about = finding.about, finding = finding.message, fault = finding.is_fault }
    faults = faults + (finding.is_fault and 1 or 0)
  end
  output:finish()
  context:tell(text.count(faults, "fault"))
  return faults > 0 and status.unknown or status.done
end

local function run_test(context)
  local policy = clients.load_policy(context.arguments.policy)
  local output, count, wrong = context:output { "line", "expected", "action", "reasons" }, 0, 0
  for _, line in ipairs(lines_of(context.arguments.tests)) do
    local case, err = decoder:decode(line.text)
    local ok, decision = pcall(function()
      return policy:decide(results_of(case.record))
    end)
    if not ok or type(case.record) ~= "table" or type(case.action) ~= "string" then
      local problem = err or "a case has `record`, as a journal has it, and `action`"
      status.fail(status.unknown, ("%s, line %d: %s"):format(context.arguments.tests, line.number, tostring(problem)))
    end
    local is_of_policy = case.source ~= "list" -- such a line of a journal was decided by a list
    count = count + (is_of_policy and 1 or 0)
    if is_of_policy and decision.action ~= case.action then
      wrong = wrong + 1
      local reasons = tables.pluck(decision.reasons, "message")
      output:add { line = line.number, expected = case.action, action = decision.action, reasons = reasons }
    end
  end
  output:finish()
  context:tell(("%s: %d with another action"):format(text.count(count, "case"), wrong))
  return wrong > 0 and status.block or status.done
end

local policy_argument = { name = "policy", doc = "The Lua file that returns the policy, or its options." }

return {
  {
    name = "policy check",
    summary = "Show rules that never decide, and what a policy does where something is not known.",
    description = "A fault is a rule that no evidence meets, or that earlier rules hide. See docs/policy-proofs.md.",
    arguments = { policy_argument },
    examples = { { line = "policy check policy.lua", what = "Before a policy is used" } },
    statuses = {
      { status = status.done, what = "each rule decides about some evidence" },
      { status = status.unknown, what = "a rule never decides, or that is not decided" },
    },
    run = run_check,
  },
  {
    name = "policy prove",
    summary = "Prove what a policy does with every evidence, or show the plainest counterexample.",
    description = "Without a claim those are proved that every policy should satisfy. See docs/policy-proofs.md.",
    arguments = {
      policy_argument,
      { name = "claim", count = "*", doc = "Such as 'never allow where type = sanction'." },
    },
    options = { option_of.text("claims", "FILE", "A file with more claims, one a line; # begins a comment.") },
    examples = { { line = "policy prove policy.lua 'never allow where type = sanction'", what = "One claim" } },
    statuses = {
      { status = status.done, what = "all claims hold" },
      { status = status.block, what = "a claim does not hold" },
      { status = status.unknown, what = "a claim is not decided, or a file cannot be read" },
    },
    run = run_prove,
  },
  {
    name = "policy diff",
    summary = "Show the kinds of evidence whose action another policy changes, the worst first.",
    description = "With a journal also the number of its decisions that change. See docs/policy-proofs.md.",
    arguments = {
      { name = "old", doc = "The Lua file that returns the policy, or its options." },
      { name = "new", doc = "Likewise, of the other policy." },
    },
    options = { option_of.text("journal", "FILE", "A journal with records.") },
    examples = { { line = "policy diff old.lua new.lua", what = "What a change lets in" } },
    statuses = {
      { status = status.done, what = "no difference" },
      { status = status.block, what = "an action changes" },
      { status = status.unknown, what = "not decided, or a file or a line cannot be read" },
    },
    run = run_diff,
  },
  {
    name = "policy test",
    summary = "Decide cases by a policy, and show those with another action than expected.",
    description = "A case is a line of JSON with `record` and `action`, such as a line of a journal with records.",
    arguments = { policy_argument, { name = "tests", doc = "The file of the cases, or a journal." } },
    examples = { { line = "policy test policy.lua cases.jsonl", what = "The cases that fail" } },
    statuses = {
      { status = status.done, what = "each case has the expected action" },
      { status = status.block, what = "a case has another action" },
      { status = status.unknown, what = "a case cannot be read" },
    },
    run = run_test,
  },
}
