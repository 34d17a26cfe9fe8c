-- The report in a real browser. spec/unit/report/ tests what is written into it.
local node = require "spec.support.node"
local json = require "riskscreen.json"
local random = require "spec.support.random"
local report = require "riskscreen.report"

local checks = {
  "loads nothing and has no script but its own",
  "shows the verdicts of the input",
  "has numbers that lead to as many rows",
  "filters by clicks, and goes back",
  "sorts by clicks",
  "searches every column, as one types",
  "opens a row by keyboard and gives the focus back",
  "lets the keyboard skip to the decisions",
  "draws the counterparties of an address",
  "filters by case and analyst, and shows them",
  "downloads the decisions that match as CSV",
  "shows hostile texts as texts",
  "stays small and usable with 50,000 rows",
  "fits three widths in light and dark",
  "has no serious finding of axe",
  "prints the charts and the rows that match",
  "says so where there is no JavaScript",
}

local types = { "hack", "scam", "sanction", "online-gambling", "launder-money", "drug" }
local entities = { "", "", "Binance", "Kraken", "Tornado Cash", "Lazarus Group", "Garantex" }
local networks = { "eth", "eth", "tron", "btc" }

-- The CSV of a run over `count` addresses.
local function write_run(path, count)
  local numbers = random.new(count)
  local file = assert(io.open(path, "wb"))
  file:write "time,address,network,action,reasons,risk_levels,risk_types,entity,error,customer\n"
  for index = 1, count do
    local digits, percent = {}, numbers.integer(100)
    for place = 1, 40 do
      digits[place] = ("%x"):format(numbers.integer(16) - 1)
    end
    local kind = numbers.pick(types)
    local kinds = numbers.integer(5) == 1 and kind .. "; " .. numbers.pick(types) or kind
    local action, reasons, level, failure = "allow", "no rule matches", "", ""
    if percent <= 4 then
      action, reasons, level = "block", "rule 'high risk' matches high / " .. kind, "high"
    elseif percent <= 12 then
      action, reasons, level = "review", "rule 'elevated' matches generally-high / " .. kind, "generally-high"
    elseif percent <= 14 then
      action, reasons, failure = "unknown", "riskscreen: timeout: no complete answer", "timeout"
    end
    local time = 1795000000 + index * 600 + numbers.integer(3000)
    local row = '%d,0x%s,%s,%s,"%s",%s,%s,%s,%s,customer-%d\n'
    file:write(
      row:format(
        time,
        table.concat(digits),
        numbers.pick(networks),
        action,
        reasons,
        level,
        level ~= "" and kinds or "",
        numbers.pick(entities),
        failure,
        index
      )
    )
  end
  file:close()
end

local function write_lines(path, list)
  local file = assert(io.open(path, "wb"))
  for _, value in ipairs(list) do
    file:write(assert(json.encode(value)), "\n")
  end
  file:close()
end

local function opponent(direction, name, amount, level)
  return {
    dir = direction,
    address = "0x" .. ("1"):rep(40),
    amount = amount,
    symbol = "ETH",
    transactionNumbers = 3,
    entities = { name and { entityName = name } },
    risks = { level and { riskLevel = level, riskType = "hack" } },
  }
end

-- Texts that a page must show as they are, each with what is seen of it.
local hostile = {
  { "<script>alert(1)</script>", "<script>alert(1)</script>" },
  { "</script><img src=x onerror=alert(1)>", "</script><img src=x onerror=alert(1)>" },
  { "<!--<script>", "<!--<script>" },
  { "]]>'\"&lt;&amp;`${alert(1)}", "]]>'\"&lt;&amp;`${alert(1)}" },
  { "a\226\128\168b\226\128\169c", "a[U+2028]b[U+2029]c" },
  { "\226\128\174gnp.exe", "[U+202E]gnp.exe" },
  { "javascript:alert(1)", "javascript:alert(1)" },
  { "#action=allow&q=%3Cb%3E", "#action=allow&q=%3Cb%3E" },
  { "constructor", "constructor" },
  { "__proto__", "__proto__" },
}

describe("the report in a browser", function()
  local results, folder

  setup(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
    local function write(name, input, title)
      return assert(report.write {
        input = folder .. "/" .. input,
        output = folder .. "/" .. name .. ".html",
        title = title,
      })
    end
    write_run(folder .. "/small.csv", 400)
    local summary = write("small", "small.csv")
    write_run(folder .. "/few.csv", 20) -- axe's time is that of its elements
    write("few", "few.csv")
    write_run(folder .. "/large.csv", 50000)
    write("large", "large.csv")
    local opponents = {
      opponent("in", "Ronin Exploit", 173600.5, "high"),
      opponent("out", "Tornado Cash", 90000, "generally-high"),
      opponent("out", nil, 20000),
      opponent("out", "Binance", 12, "low"),
    }
    local decision = { action = "block", address = "0x098B716B8Aaf21512996dC57EB0615e2383E2f96", network = "eth" }
    decision.counterparties = { opponents = opponents }
    write_lines(folder .. "/counterparties.jsonl", { decision })
    write("counterparties", "counterparties.jsonl")
    local lines = {}
    for index, pair in ipairs(hostile) do
      local text = pair[1]
      lines[index] =
        { action = "allow", address = text, network = text, entity = text, reasons = { text }, risk_types = { text } }
      lines[index].source, lines[index].note = text, text
    end
    local cases = {}
    for index = 1, 6 do
      cases[index] = { action = index == 1 and "block" or "allow", address = "0x" .. index, network = "eth" }
      cases[index].time = "2026-11-18T11:06:40Z"
      cases[index].meta = { case = "C-" .. index % 2, analyst = index < 4 and "alice" or "bob", note = "=1+1, say" }
    end
    cases[6].reasons, cases[6].meta.verdict_of = { "one", 'the "other"' }, " spaced"
    write_lines(folder .. "/cases.jsonl", cases)
    write("cases", "cases.jsonl")
    write_lines(folder .. "/hostile.jsonl", lines)
    write("hostile", "hostile.jsonl", "Report </title><script>alert(1)</script>")
    results =
      node.run("browser", "report.cjs", folder, assert(json.encode(summary.actions)), assert(json.encode(hostile)))
  end)

  teardown(function()
    os.execute("rm -r " .. folder)
  end)

  for _, name in ipairs(checks) do
    it(name, function()
      if not results then
        return pending(node.MISSING)
      end
      assert.is_true(results[name] == true, results[name] or "the check did not run")
    end)
  end

  it("reads a download again, with the same facts", function()
    if not results then
      return pending(node.MISSING)
    end
    local path = folder .. "/downloaded"
    local summary = assert(report.write { input = path .. ".csv", output = path .. ".html" })
    assert.same({ 3, 3, 0 }, { summary.rows, summary.actions.allow, summary.unreadable })
  end)

  it("has no check beside these", function()
    if not results then
      return pending(node.MISSING)
    end
    local count = 0
    for _ in pairs(results) do
      count = count + 1
    end
    assert.equal(#checks, count)
  end)
end)
