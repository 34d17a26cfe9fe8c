-- riskscreen policy: proves claims about a policy, compares it with another one, and tests it with cases.

local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local claims = require "riskscreen.policy.claim"
local clients = require "riskscreen.cli.client"
local files = require "riskscreen.util.files"
local json = require "riskscreen.json"
local option_of = require "riskscreen.cli.option"
local decisions = require "riskscreen.policy.decision"
local decide = require("riskscreen.journal.replay").decide
local journals = require "riskscreen.journal"
local rows = require "riskscreen.rows"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local decoder = json.decoder { duplicates = "refuse", null = "keep" }

local function open(path)
  local file, problem = io.open(path, "rb")
  if not file or files.kind(path) == "directory" then
    status.fail(status.unknown, problem or path .. ": the file cannot be read")
  end
  return file
end

local function content_of(path)
  local file = open(path)
  local content = file:read "*a"
  file:close()
  return content or status.fail(status.unknown, path .. ": the file cannot be read")
end

-- Whether a line is empty, or a comment.
local function is_empty(line)
  return not line:find "^%s*[^%s#]"
end

-- The lines of a file that are not empty, with their numbers. Without one the command ends: nothing would be proved or
-- tested.
local function lines_of(path, content)
  local lines, number = {}, 0
  for line in ((content or content_of(path)) .. "\n"):gmatch "(.-)\n" do
    number = number + 1
    lines[#lines + 1] = not is_empty(line) and { text = text.trim(line), number = number } or nil
  end
  return lines[1] and lines or status.fail(status.unknown, path .. ": the file is empty")
end

local function is_text(context)
  return context.format == "table" or context.format == "csv"
end

-- Evidence as a journal has it, in the form of the output.
local function record_of(context, evidence)
  local record, errs = tables.copy(evidence), {}
  for lookup, err in pairs(evidence.errors or {}) do
    errs[lookup] = tables.pick(err, { "kind", "message", "absent" })
  end
  record.errors = evidence.errors and errs
  return is_text(context) and json.ordered(record) or record
end

local function run_prove(context)
  local policy = clients.load_policy(context.arguments.policy)
  local list = context.options.claims and tables.pluck(lines_of(context.options.claims), "text") or {}
  list = tables.concat(context.arguments.claim, list)
  local output, worst = context:output { "claim", "answer", "action", "record" }, status.done
  for _, claim in ipairs(list[1] and list or policy.rules_about and claims.standard_scores or claims.standard) do
    context:check_time()
    local ok, proof = pcall(policy.prove, policy, claim)
    if not ok then
      status.misuse(("%s: %s"):format(claim, (tostring(proof):gsub("^.-prove: ", ""))))
    end
    local action = proof.decision and proof.decision.action
    local record = proof.evidence and record_of(context, proof.evidence)
    local answer = action and "does not hold" or tostring(proof)
    output:add { claim = claim, answer = answer, holds = proof.holds, action = action, record = record }
    worst = status.worse(worst, action and status.block or proof.holds and status.done or status.unknown)
  end
  output:finish()
  return worst
end

-- What becomes of a line's decision under two policies: "allow to block", "" where nothing does, or nil where that is
-- not known.
local function change_of(line, old, new)
  local entry = decoder:decode(line)
  if type(entry) ~= "table" then
    return nil
  elseif entry.source == "list" then
    return "" -- no policy changes the decision of a list
  end
  local before, after = decide(old, entry.record), decide(new, entry.record)
  return before and after and (before.action ~= after.action and before.action .. " to " .. after.action or "")
end

-- Writes the changes of a journal's decisions to stderr; returns whether there is one, and whether all were decided.
local function compare_lines(context, path, old, new)
  local changes, count, skipped = {}, 0, 0
  for _, file in ipairs(journals.files(path)) do
    for line in open(file):lines() do
      if not is_empty(line) then
        local change = change_of(line, old, new)
        count, skipped = count + 1, skipped + (change and 0 or 1)
        if change and change ~= "" then
          changes[change] = (changes[change] or 0) + 1
        end
      end
    end
  end
  for _, change in ipairs(tables.sorted_keys(changes)) do
    context:tell(("%s: %s from %s"):format(path, text.count(changes[change], "decision"), change))
  end
  context:tell(("%s: %s, %d without a record to decide"):format(path, text.count(count, "line"), skipped))
  return next(changes) ~= nil, skipped == 0 and count > 0
end

local function run_diff(context)
  local old, new = clients.load_policy(context.arguments.old), clients.load_policy(context.arguments.new)
  if getmetatable(old) ~= getmetatable(new) then
    status.misuse "a policy for addresses and a score policy cannot be compared"
  end
  local diff, output = old:diff(new), context:output { "before", "after", "reasons", "record" }
  for _, change in ipairs(diff.changes) do
    local record = change.evidence and record_of(context, change.evidence) or is_text(context) and "not decided" or nil
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
  local output, faults = context:output { "about", "finding" }, 0
  for _, finding in ipairs(policy:check()) do
    output:add { about = finding.about, finding = finding.message, fault = finding.is_fault }
    faults = faults + (finding.is_fault and 1 or 0)
  end
  output:finish()
  context:tell(text.count(faults, "fault"))
  return faults > 0 and status.unknown or status.done
end

-- The places of a CSV's cells in a record. An empty cell is a field that is absent.
local cells = {
  level = { "risk", "risks", 1, "riskLevel" },
  type = { "risk", "risks", 1, "riskType" },
  source = { "risk", "risks", 1, "riskSource" },
  whitelist = { "risk", "whitelist" },
  contract = { "entity", "contract" },
  category = { "entity", "entity", "entityCategory" },
  category_code = { "entity", "entity", "entityCategoryCode" },
  max_score = { "risk", "maxScore" },
  status = { "risk", "status" },
  direction = { "strategy", "direction" },
  strategy = { "strategy", "strategyNo" },
  strategy_name = { "strategy", "strategyName" },
  strategy_score = { "strategy", "score" },
  detail = { "strategy", "details", 1, "code" },
  detail_name = { "strategy", "details", 1, "name" },
  detail_score = { "strategy", "details", 1, "score" },
  error = { "errors", "risk", "kind" },
}
local BOOLEANS = { ["true"] = true, ["false"] = false }

-- The record of a row of CSV; nil and what is wrong with it.
local function record_of_row(fields)
  local given = fields.record
  if given then
    return decoder:decode(given)
  end
  local is_result = (fields.max_score or "") ~= "" or (fields.status or "") ~= "" or (fields.direction or "") ~= ""
  local record = { risk = is_result and { requestId = "case" } or { risks = json.empty_array() } }
  record.risk = (fields.error or "") == "" and record.risk or nil
  for _, name in ipairs(tables.sorted_keys(tables.without(fields, "action", "name"))) do
    local path, place, value = cells[name], record, fields[name]
    if not path then
      local known = table.concat(tables.sorted_keys(cells), ", ")
      return nil, ("the column %s is not known: there are action, name, record, %s"):format(text.show(name), known)
    end
    for depth = 1, value ~= "" and #path - 1 or 0 do
      place[path[depth]] = place[path[depth]] or {}
      place = place[path[depth]]
    end
    if value ~= "" then
      place[path[#path]] = BOOLEANS[value] == nil and (name == "status" and tonumber(value) or value) or BOOLEANS[value]
    end
  end
  if record.errors then
    record.errors.risk.message = "the lookup failed"
  end
  local strategy = record.strategy
  if strategy and not (strategy.direction and record.risk) then
    return nil, "a strategy or a detail needs the column direction, and no error"
  elseif strategy then
    local number = strategy.strategyNo or "case"
    record.risk.dirData = tables.merge({ ["in"] = {}, out = {} }, { [strategy.direction] = { [number] = strategy } })
    strategy.strategyNo, strategy.details = number, strategy.details or json.empty_array()
    strategy.direction, record.strategy = nil, nil
  end
  return record
end

-- The cases of a file: those of CSV, or lines of JSON.
local function cases_of(path)
  local content, cases = content_of(path), {}
  local lines = lines_of(path, content)
  if lines[1].text:find "^{" then
    for index, line in ipairs(lines) do
      local case, err = decoder:decode(line.text)
      cases[index] = tables.merge(type(case) == "table" and case or {}, { line = line.number, problem = err })
    end
    return cases
  end
  local source = {
    read = function()
      local piece = content
      content = nil
      return piece
    end,
  }
  local input, err = rows.open(source, { name = path, needs = { "action" }, allow_empty = true })
  local row
  if input then
    row, err = input:next()
  end
  while row do
    local record, problem = record_of_row(row.fields)
    problem = row.fault or problem
    cases[#cases + 1] = { line = row.line, action = row.fields.action, record = record, problem = problem }
    row, err = input:next()
  end
  return err and status.fail(status.unknown, err.message) or cases
end

local expectation = { build.choice("action", decisions.actions, nil, "The expected action.") }

-- Decides the cases, but for those of a journal that a list has decided. Without another one the command ends.
local function results_of_cases(policy, path)
  local results = {}
  for _, case in ipairs(cases_of(path)) do
    local decision = decide(policy, case.record)
    if not decision or type(case.action) ~= "string" then
      local problem = case.problem or "a case has `record`, as a journal has it, and `action`"
      status.fail(status.unknown, ("%s, line %d: %s"):format(path, case.line, tostring(problem)))
    end
    local _, err = check.options(expectation, { action = case.action })
    if err then
      status.fail(status.unknown, ("%s, line %d: %s"):format(path, case.line, err.message))
    end
    results[#results + 1] = case.source ~= "list"
        and {
          line = case.line,
          expected = case.action,
          action = decision.action,
          reasons = tables.pluck(decision.reasons, "message"),
        }
      or nil
  end
  return results[1] and results or status.fail(status.unknown, path .. ": the file has no case for a policy")
end

local reports = {}

function reports.tap(_, results)
  local lines = { "TAP version 13", "1.." .. #results }
  for number, one in ipairs(results) do
    local is_right = one.action == one.expected
    lines[#lines + 1] = ("%s %d - line %d is %s"):format(is_right and "ok" or "not ok", number, one.line, one.expected)
    for _, detail in ipairs(is_right and {} or tables.concat({ "it is " .. one.action }, one.reasons)) do
      lines[#lines + 1] = "# " .. text.printable(detail)
    end
  end
  return lines
end

function reports.junit(path, results, wrong)
  local function escaped(value)
    return (text.printable(value):gsub('[&<>"]', { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;" }))
  end
  local suite = '<testsuite name="%s" tests="%d" failures="%d">'
  local lines = { '<?xml version="1.0" encoding="UTF-8"?>', suite:format(escaped(path), #results, wrong) }
  for _, one in ipairs(results) do
    local failure = ""
    if one.action ~= one.expected then
      failure = ('<failure message="it is %s">%s</failure>'):format(
        one.action,
        escaped(table.concat(one.reasons, "; "))
      )
    end
    local name = ("line %d is %s"):format(one.line, one.expected)
    lines[#lines + 1] = ('<testcase name="%s">%s</testcase>'):format(escaped(name), failure)
  end
  return tables.concat(lines, { "</testsuite>" })
end

local function run_test(context)
  local path, wrong = context.arguments.tests, {}
  local results = results_of_cases(clients.load_policy(context.arguments.policy), path)
  for _, one in ipairs(results) do
    wrong[#wrong + 1] = one.action ~= one.expected and one or nil
  end
  local report = context.options.report
  if report then
    local lines = reports[report](path, results, #wrong)
    status.ensure_written(context:stream():write(table.concat(lines, "\n"), "\n"))
  else
    context:write_records({ "line", "expected", "action", "reasons" }, wrong)
  end
  context:tell(("%s: %d with another action"):format(text.count(#results, "case"), #wrong))
  return wrong[1] and status.block or status.done
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
      done = "each rule decides about some evidence",
      unknown = "a rule never decides, or that is not decided",
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
      done = "all claims hold",
      block = "a claim does not hold",
      unknown = "a claim is not decided, or a file cannot be read",
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
      done = "no difference",
      block = "an action changes",
      unknown = "not decided, or a file or a line cannot be read",
    },
    run = run_diff,
  },
  {
    name = "policy test",
    summary = "Decide cases by a policy, and show those with another action than expected.",
    description = "A case is a line of JSON with `record` and `action`, such as a line of a journal with records, or a "
      .. "row of CSV. See docs/policy-proofs.md.",
    arguments = { policy_argument, { name = "tests", doc = "The file of the cases, or a journal." } },
    options = { build.choice("report", { "tap", "junit" }, nil, "Report every case, as TAP or as JUnit's XML.") },
    examples = {
      { line = "policy test policy.lua cases.jsonl", what = "The cases that fail" },
      { line = "policy test policy.lua cases.csv --report junit", what = "Every case, for a build server" },
    },
    statuses = {
      done = "each case has the expected action",
      block = "a case has another action",
      unknown = "a case cannot be read",
    },
    run = run_test,
  },
}
