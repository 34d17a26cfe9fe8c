-- Writes the decisions of files as one page of charts and rows: CSV with a header, or one JSON object on each line. One
-- row is in memory at a time. The first lines that have a fault are noted. page.lua writes the page.
local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local errors = require "riskscreen.errors"
local files = require "riskscreen.util.files"
local options = require "riskscreen.options.rows"
local pages = require "riskscreen.report.page"
local report_rows = require "riskscreen.report.row"
local rows = require "riskscreen.rows"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local MAX_NOTES = 20 -- faults that are named
local INPUT = "Files of decisions, in CSV with a header or as JSON lines: a path, an open file, or a list of them."
local OUTPUT = "The page: a path, which is replaced when the page is complete, or an open file."

local M = {}

---@class riskscreen.ReportRequest
---@field input string|file*|(string|file*)[] files of decisions: paths, or open files
---@field output string|file* the page: a path that is replaced when the page is complete, or an open file
---@field title? string of the page
---@field time? number Unix seconds at which the page is made, now by default

---@type riskscreen.Option[]
M.options = tables.concat({
  build.required { name = "input", type = "any", doc = INPUT },
  build.required { name = "output", type = "any", doc = OUTPUT },
  { name = "title", type = "string", default = "Screening report", doc = "The page's title." },
  { name = "time", type = "number", doc = "Unix seconds at which the page is made; now by default." },
}, options)

---@class riskscreen.ReportSummary
---@field rows integer
---@field actions table<riskscreen.Action, integer>
---@field unreadable integer lines that are not counted
---@field notes string[] the faults of the input, as the page shows them

local TWICE = "%s is a journal, and %s is none: a decision in both is counted twice."
local UNREAD = "cannot be read and is not counted"

-- A row of the report; or nil for a line that cannot be read. The others are its fault, and the effect.
local function decision_of(input, row, field_of)
  local found = row.value or row.fields
  if row.fault then
    return nil, row.fault, UNREAD
  elseif row.value and found.lost and not found.action then
    return nil, "decisions that could not be recorded here: " .. tostring(found.lost), UNREAD
  end
  local decision, has_action, wrong_time = report_rows.of(found, field_of, not row.value and input.names or nil)
  if not has_action then
    return decision, "it has no verdict, or two", "counts as unknown"
  end
  return decision, wrong_time and text.show(wrong_time) .. " is no date and no Unix time", "counts without a time"
end

-- Adds the decisions of a file to the page, and notes its faults.
local function read_file(page, name, input, field_of)
  local before = page.rows
  for row in input:each() do
    local is_journal = row.value and row.value.seq and row.value.hash
    page[is_journal and "journal" or "results"] = name
    local decision, fault, effect = decision_of(input, row, field_of)
    if decision then
      page:add(decision)
    else
      page.unreadable = page.unreadable + 1
      input:count_invalid(row.line, fault)
    end
    if fault then
      page.faults = page.faults + 1
      if page.faults <= MAX_NOTES then
        table.insert(page.notes, ("%s, line %d %s: %s."):format(name, row.line, effect, fault))
      end
    end
  end
  table.insert(page.sources, { name = name, rows = page.rows - before })
end

---Writes the report of decisions. The input may be as large as the page may be: a million rows.
---@param request riskscreen.ReportRequest
---@return riskscreen.ReportSummary|nil summary
---@return riskscreen.Error|nil err
function M.write(request)
  local checked = check.arguments("report", M.options, request)
  local sources, output = type(checked.input) == "table" and checked.input or { checked.input }, checked.output
  if not tables.sequence_length(sources) then
    error("report: input must be a list without a gap", 2)
  end
  for _, value in ipairs(tables.concat(sources, { output })) do
    if type(value) ~= "string" and io.type(value) ~= "file" then
      error("report: input and output must be paths or open files (got " .. text.kind(value) .. ")", 2)
    end
  end
  for _, source in ipairs(sources) do
    if files.belong(output, source) then
      local message = "the page would be written over its input: give another output"
      return nil, errors.new("invalid_argument", message, { field = "output", sent = false })
    end
  end
  local page, input
  local ok, result = pcall(function()
    page = pages.open(output)
    page:begin(checked.title)
    local field_of = report_rows.fields(checked)
    for _, source in ipairs(sources) do
      local name = type(source) == "string" and (source:match "[^/]+$" or source) or "standard input"
      local settings = tables.merge(checked, { name = name, needs = report_rows.ACTION })
      input = errors.ensure(rows.open(source, settings))
      read_file(page, name, input, field_of)
      input:close()
    end
    if page.journal and page.results then
      table.insert(page.notes, TWICE:format(page.journal, page.results))
    end
    if page.faults > MAX_NOTES then
      table.insert(page.notes, ("Further lines with a fault: %d."):format(page.faults - MAX_NOTES))
    end
    page:finish(checked.time or os.time())
    return { rows = page.rows, actions = page.actions, unreadable = page.unreadable, notes = page.notes }
  end)
  if page then
    page:close()
  end
  if input then
    input:close()
  end
  return errors.result(ok, result)
end

return M
