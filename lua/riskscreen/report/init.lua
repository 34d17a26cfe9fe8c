-- Writes decisions as one page of HTML, with charts and a table; it names the first lines of the input that cannot be
-- read. The page needs no network. page/ has its style and script; `lua5.4 tools/generate.lua` makes assets.lua of it.
local assets = require "riskscreen.report.assets"
local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local enums = require "riskscreen.interface.enums"
local errors = require "riskscreen.errors"
local input = require "riskscreen.report.input"
local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local version = require "riskscreen.version"

local MAX_ROWS = 1000000 -- a browser does not open a larger page
local MAX_TEXT = 2000 -- bytes of a field
local MAX_SHARED = 100000 -- texts that rows refer to by their number
local MAX_NOTES = 20 -- faults that the page names

local ACTIONS = { "block", "review", "unknown", "allow" }

-- Nothing is loaded, and no script or style runs but the page's own.
local POLICY = "default-src 'none'; script-src '%s'; style-src '%s'; base-uri 'none'; form-action 'none'"

local HEAD = [[
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="riskscreen %s">
<title>%s</title>
<style>%s</style>
</head>
<body>
%s<script type="application/json" id="data">{"rows":[
]]

local TAIL = [[}</script>
<noscript>%s</noscript>
<script>%s</script>
</body>
</html>
]]

-- The fields of a row, in the order in which the page reads them.
local SHARED_FIELDS = { "network", "action", "level", "entity", "category", "reasons", "source", "error" }

local escapes = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

local function escape(value)
  return (text.utf8(value):gsub("[&<>\"']", escapes))
end

-- No character of a JSON text in the page may end the element or the line that holds it.
local function escape_character(character)
  return ("\\u%04x"):format(character:byte())
end

local function quote(value)
  if #value > MAX_TEXT then
    local last = MAX_TEXT
    while last > MAX_TEXT - 4 and (value:byte(last + 1) or 0) >= 0x80 and value:byte(last + 1) < 0xC0 do
      last = last - 1
    end
    value = value:sub(1, last) .. "…"
  end
  if value:find "[^ !#-%%'-;=?-%[%]-~]" then
    value = text.utf8(value):gsub('[%z\1-\31"\\<>&\127]', escape_character)
    value = value:gsub("\226\128\168", "\\u2028"):gsub("\226\128\169", "\\u2029")
  end
  return '"' .. value .. '"'
end

local function number(value)
  return value and json.number(value) or "null"
end

-- Writes a text once and its number, which is above 0, everywhere else.
local function new_shared()
  local numbers, list = {}, {}
  local function shared(value)
    if value == nil or value == "" then
      return "0"
    elseif not numbers[value] then
      if #list >= MAX_SHARED then
        return quote(value)
      end
      list[#list + 1] = quote(value)
      numbers[value] = tostring(#list)
    end
    return numbers[value]
  end
  return shared, list
end

local function counterparties_text(found, shared)
  local parts = {}
  for index, one in ipairs(found.list) do
    parts[index] = ("[%s,%s,%s,%s,%s,%s,%s,%s]"):format(
      quote(one.address or ""),
      shared(one.direction),
      number(one.amount),
      shared(one.symbol),
      number(one.transactions),
      shared(one.entity),
      shared(one.level),
      shared(table.concat(one.types, ", "))
    )
  end
  return ("[%d,%s]"):format(found.total, table.concat(parts, ","))
end

local function row_text(row, shared)
  local parts = { number(row.time), quote(row.address or "") }
  for _, field in ipairs(SHARED_FIELDS) do
    parts[#parts + 1] = shared(row[field])
  end
  local types, others = {}, {}
  for index, name in ipairs(row.types) do
    types[index] = shared(name)
  end
  for index, other in ipairs(row.others) do
    others[index * 2 - 1], others[index * 2] = shared(other[1]), quote(other[2])
  end
  parts[#parts + 1] = "[" .. table.concat(types, ",") .. "]"
  parts[#parts + 1] = others[1] and "[" .. table.concat(others, ",") .. "]" or "0"
  parts[#parts + 1] = row.counterparties and counterparties_text(row.counterparties, shared) or nil
  return "[" .. table.concat(parts, ",") .. "]"
end

local function quoted_list(list)
  local quoted = {}
  for index, value in ipairs(list) do
    quoted[index] = quote(value)
  end
  return "[" .. table.concat(quoted, ",") .. "]"
end

local function plain_summary(summary)
  local items = {}
  for index, action in ipairs(ACTIONS) do
    items[index] = ("<li>%s: %d</li>"):format(action, summary.actions[action])
  end
  return ("<p>%d decisions. The table needs JavaScript.</p><ul>%s</ul>"):format(summary.rows, table.concat(items))
end

local function fail(message, ...)
  error(errors.new("storage", message:format(...), { sent = false }), 0)
end

-- The result of a function that writes. In place of nil and a message it raises an error object.
local function ensure(written, problem)
  return written or fail("the report cannot be written: %s", problem)
end

-- The state of one report while it is written. A method that fails raises an error object.
local Report = {}
Report.__index = Report

function Report:write(...)
  ensure(self.output:write(...))
end

function Report:note(message)
  self.faults = self.faults + 1
  if self.faults <= MAX_NOTES then
    self.notes[#self.notes + 1] = message
  end
end

function Report:write_row(row)
  local summary = self.summary
  summary.rows = summary.rows + 1
  summary.actions[row.action] = summary.actions[row.action] + 1
  self:write(summary.rows > 1 and ",\n" or "", row_text(row, self.shared))
end

function Report:add_file(name, file)
  local before, next_row = self.summary.rows, input.reader(file)
  while true do
    local row, line, fault = next_row()
    if row == nil then
      if line then
        fail("%s cannot be read: %s", name, line)
      end
      break
    elseif not row then
      self.summary.unreadable = self.summary.unreadable + 1
      self:note(("%s, line %d cannot be read and is not counted: %s."):format(name, line, fault))
    elseif self.summary.rows >= MAX_ROWS then
      fail("a report has at most %d rows; divide the input", MAX_ROWS)
    else
      if fault then
        self:note(("%s, line %d counts as unknown: %s."):format(name, line, fault))
      end
      self:write_row(row)
    end
  end
  self.sources[#self.sources + 1] = { name = name, rows = self.summary.rows - before }
end

local function source_texts(sources)
  local parts = {}
  for index, source in ipairs(sources) do
    parts[index] = ("[%s,%d]"):format(quote(source.name), source.rows)
  end
  return "[" .. table.concat(parts, ",") .. "]"
end

function Report:finish(title, time)
  if self.faults > MAX_NOTES then
    self.notes[#self.notes + 1] = ("%d more lines have a fault."):format(self.faults - MAX_NOTES)
  end
  self:write(
    "\n],\n",
    ('"texts":%s,\n'):format("[" .. table.concat(self.texts, ",") .. "]"),
    ('"title":%s,"time":%s,"version":%s,\n'):format(quote(title), number(time), quote(version)),
    ('"sources":%s,"notes":%s,\n'):format(source_texts(self.sources), quoted_list(self.notes)),
    ('"levels":%s'):format(quoted_list(enums.values.risk_level)),
    TAIL:format(plain_summary(self.summary), assets.script)
  )
end

local M = {}

---@class riskscreen.ReportRequest
---@field input string|file*|(string|file*)[] files of decisions: paths, or open files
---@field output string|file* the page: a path that is replaced when the page is complete, or an open file
---@field title? string of the page
---@field time? number Unix seconds at which the page is made, now by default

---@type riskscreen.Option[]
M.options = {
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
}

---@class riskscreen.ReportSummary
---@field rows integer
---@field actions table<riskscreen.Action, integer>
---@field unreadable integer lines that are not counted
---@field notes string[] the faults of the input, as the page shows them

local function name_of(source)
  return type(source) == "string" and (source:match "[^/]+$" or source) or "standard input"
end

function Report:add_inputs(sources)
  for _, source in ipairs(sources) do
    local file, problem = source, nil
    if type(source) == "string" then
      file, problem = io.open(source, "rb")
      self.opened = file
    end
    if not file then
      fail("the input cannot be read: %s", problem)
    end
    self:add_file(name_of(source), file)
    self:close_input()
  end
end

function Report:close_input()
  if self.opened then
    self.opened:close()
    self.opened = nil
  end
end

function Report:write_page(sources, title, time)
  local policy = POLICY:format(assets.script_hash, assets.style_hash)
  self:write(HEAD:format(policy, version, escape(title), assets.style, assets.body))
  self:add_inputs(sources)
  self:finish(title, time)
  ensure(self.output:flush())
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
  local shared, texts = new_shared()
  local summary = { rows = 0, unreadable = 0, actions = { allow = 0, review = 0, block = 0, unknown = 0 } }
  local self =
    setmetatable({ summary = summary, shared = shared, texts = texts, notes = {}, faults = 0, sources = {} }, Report)
  summary.notes = self.notes
  -- A page that has a path appears whole or not at all.
  local unfinished = type(output) == "string" and output .. ".part" or nil
  local ok, failure = pcall(function()
    self.output = unfinished and ensure(io.open(unfinished, "wb")) or output
    self:write_page(sources, checked.title, checked.time or os.time())
    if unfinished then
      ensure(os.rename(unfinished, output))
    end
  end)
  self:close_input()
  if unfinished and self.output then
    self.output:close()
  end
  if ok then
    return summary
  elseif unfinished and self.output then
    os.remove(unfinished)
  end
  if errors.is(failure) then
    return nil, failure
  end
  error(failure, 0)
end

return M
