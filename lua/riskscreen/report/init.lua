-- Writes decisions as one page of charts and rows. input.lua reads the decisions, and page.lua writes the page.
local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local errors = require "riskscreen.errors"
local inputs = require "riskscreen.report.input"
local options = require "riskscreen.options.rows"
local pages = require "riskscreen.report.page"
local rows = require "riskscreen.rows"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local M = {}

---@class riskscreen.ReportRequest
---@field input string|file*|(string|file*)[] files of decisions: paths, or open files
---@field output string|file* the page: a path that is replaced when the page is complete, or an open file
---@field title? string of the page
---@field time? number Unix seconds at which the page is made, now by default

---@type riskscreen.Option[]
M.options = tables.concat({
  build.required {
    name = "input",
    type = "any",
    doc = "Files of decisions, in CSV with a header or as JSON lines: a path, an open file, or a list of them.",
  },
  build.required {
    name = "output",
    type = "any",
    doc = "The page: a path, which is replaced when the page is complete, or an open file.",
  },
  { name = "title", type = "string", default = "Screening report", doc = "The page's title." },
  { name = "time", type = "number", doc = "Unix seconds at which the page is made; now by default." },
}, options)

---@class riskscreen.ReportSummary
---@field rows integer
---@field actions table<riskscreen.Action, integer>
---@field unreadable integer lines that are not counted
---@field notes string[] the faults of the input, as the page shows them

-- Writes the page row by row, and returns the summary.
local function write(page, sources, settings)
  page:begin(settings.title)
  local input = inputs.read(sources, settings, function(row)
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
  for _, source in ipairs(sources) do
    if rows.are_one(output, source) then
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
    page:close(ok)
  end
  if ok then
    return result
  elseif errors.is(result) then
    return nil, result
  end
  error(result, 0)
end

return M
