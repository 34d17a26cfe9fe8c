-- The dashboard and the alerts in examples/ use the metrics that a gate has.
local cjson = require "cjson"
local command_line = require "spec.support.command_line"
local definitions = require "riskscreen.nginx.metrics.definitions"

local function read(path)
  local file = assert(io.open(path, "rb"))
  local content = file:read "*a"
  file:close()
  return content
end

-- The metrics by the names of their samples, each with the set of its labels.
local function samples()
  local known = {}
  for _, metric in ipairs(definitions.list) do
    local labels = { gate = true }
    for _, label in ipairs(metric.labels) do
      labels[label] = true
    end
    if metric.type == "histogram" then
      known[metric.name .. "_sum"], known[metric.name .. "_count"] = labels, labels
      known[metric.name .. "_bucket"] = setmetatable({ le = true }, { __index = labels })
    else
      known[metric.name] = labels
    end
  end
  return known
end

-- The faults of an expression.
local function faults_of(expression, known, faults)
  for name, selector in (expression .. " "):gmatch "(riskscreen_[%w_]+)(%b{})" do
    for label in selector:gmatch "([%w_]+)%s*[=!]" do
      if known[name] and not known[name][label] then
        faults[#faults + 1] = name .. " has no label " .. label
      end
    end
  end
  for name in expression:gmatch "riskscreen_[%w_]+" do
    if not known[name] then
      faults[#faults + 1] = "there is no metric " .. name
    end
  end
end

local function rules_text()
  return (read("examples/prometheus/riskscreen.rules.yml"):gsub("[^\n]*%f[%w]description:[^\n]*", ""))
end

describe("the examples for Prometheus and Grafana", function()
  it("have a dashboard whose panels show metrics of the gate", function()
    local dashboard = cjson.decode(read "examples/grafana/riskscreen.json")
    local known, faults, ids, count = samples(), {}, {}, 0
    for _, panel in ipairs(dashboard.panels) do
      assert.is_nil(ids[panel.id])
      ids[panel.id] = true
      assert.is_true(#panel.targets > 0, panel.title)
      for _, target in ipairs(panel.targets) do
        faults_of(target.expr, known, faults)
        count = count + 1
      end
    end
    assert.same({}, faults)
    assert.is_true(count > 15)
  end)

  it("have alerts about metrics of the gate", function()
    local faults, text = {}, rules_text()
    faults_of(text, samples(), faults)
    assert.same({}, faults)
    local _, alerts = text:gsub("alert: ", "")
    assert.is_true(alerts > 5)
  end)

  it("have rules that promtool accepts and whose tests pass", function()
    local _, absent = command_line.run "sh -c 'command -v promtool'"
    if absent ~= 0 then
      pending "promtool is not installed; it is in the package prometheus"
      return
    end
    local output, status = command_line.run "promtool check rules examples/prometheus/riskscreen.rules.yml"
    assert.equal(0, status, output)
    output, status = command_line.run "promtool test rules examples/prometheus/riskscreen.test.yml"
    assert.equal(0, status, output)
  end)

  it("have expressions in the dashboard that promtool can parse", function()
    local _, absent = command_line.run "sh -c 'command -v promtool'"
    if absent ~= 0 then
      pending "promtool is not installed; it is in the package prometheus"
      return
    end
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write "groups:\n  - name: dashboard\n    rules:\n"
    for _, panel in ipairs(cjson.decode(read "examples/grafana/riskscreen.json").panels) do
      for _, target in ipairs(panel.targets) do
        local expression = target.expr:gsub("%$__rate_interval", "5m"):gsub("%$gate", ".*"):gsub("'", "''")
        file:write(("      - record: panel:%d%s\n        expr: '%s'\n"):format(panel.id, target.refId, expression))
      end
    end
    file:close()
    local output, status = command_line.run("promtool check rules " .. path)
    os.remove(path)
    assert.equal(0, status, output)
  end)
end)
