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

---@class riskscreen.report.Input
---@field sources { name: string, rows: integer }[]
---@field notes string[] the first faults
---@field faults integer
---@field unreadable integer lines that are not counted
local Input = {}
Input.__index = Input

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

function Input:read_file(name, input, field_of, add)
  local count = 0
  for row in input:each() do
    local decision, fault, effect = decision_of(input, row, field_of)
    if decision then
      count = count + 1
      add(decision)
    else
      self.unreadable = self.unreadable + 1
      input:count_invalid(row.line, fault)
    end
    if fault then
      local note = ("%s, line %d %s: %s."):format(name, row.line, effect, fault)
      self.faults = self.faults + 1
      self.notes[#self.notes + 1] = self.faults <= MAX_NOTES and note or nil
    end
  end
  self.sources[#self.sources + 1] = { name = name, rows = count }
end

-- Reads files one after the other. A file that is refused raises an error object.
local function read_inputs(sources, settings, add)
  local self = setmetatable({ sources = {}, notes = {}, faults = 0, unreadable = 0 }, Input)
  local field_of = report_rows.fields(settings)
  for _, source in ipairs(sources) do
    local name = type(source) == "string" and (source:match "[^/]+$" or source) or "standard input"
    local options_given = tables.merge(settings, { name = name, needs = report_rows.ACTION })
    local input = errors.ensure(rows.open(source, options_given))
    local ok, failure = pcall(self.read_file, self, name, input, field_of, add)
    input:close()
    errors.ensure(ok or nil, failure)
  end
  if self.faults > MAX_NOTES then
    self.notes[#self.notes + 1] = ("Further lines with a fault: %d."):format(self.faults - MAX_NOTES)
  end
  return self
end

-- Writes the page row by row, and returns the summary.
local function write(page, sources, settings)
  page:begin(settings.title)
  local input = read_inputs(sources, settings, function(row)
    page:add(row)
  end)
  page:finish(input, settings.title, settings.time or os.time())
  return { rows = page.rows, actions = page.actions, unreadable = input.unreadable, notes = input.notes }
end

---Writes the report of decisions. The input may be as large as the page may be: a million rows.
---@param request riskscreen.ReportRequest
---@return riskscreen.ReportSummary|nil summary
---@return riskscreen.Error|nil err
function M.write(request)
  local checked = check.arguments("report", M.options, request)
  local sources, output = checked.input, checked.output
  if type(sources) ~= "table" then
    sources = { sources }
  end
  for _, value in ipairs(tables.concat(sources, { output })) do
    if type(value) ~= "string" and io.type(value) ~= "file" then
      error("report: input and output must be paths or open files (got " .. text.kind(value) .. ")", 2)
    end
  end
  local unfinished = type(output) == "string" and files.unfinished(output)
  for _, source in ipairs(sources) do
    local head = type(source) == "string" and files.target(source) .. ".head" -- of a journal
    if files.are_one(output, source) or files.are_one(unfinished, source) or files.are_one(output, head) then
      local message = "the page would be written over its input: give another output"
      return nil, errors.new("invalid_argument", message, { field = "output", sent = false })
    end
  end
  local page
  local ok, result = pcall(function()
    page = pages.open(output)
    return write(page, sources, checked)
  end)
  if page then
    page:close()
  end
  return errors.result(ok, result)
end

return M
