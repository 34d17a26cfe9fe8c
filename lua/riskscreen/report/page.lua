-- Writes the page of a report: HTML with charts and a table, which needs no network. Its style, its script and its body
-- are the files in page/ beside this one.
local digest = require "riskscreen.address.digest"
local enums = require "riskscreen.interface.enums"
local errors = require "riskscreen.errors"
local files = require "riskscreen.util.files"
local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local version = require "riskscreen.version"

local MAX_ROWS = 1000000 -- a browser does not open a larger page
local MAX_TEXT = 2000 -- bytes of a field
local MAX_SHARED = 100000 -- texts that rows refer to by their number

local ACTIONS = { "block", "review", "unknown", "allow" }

local FOLDER = (debug.getinfo(1, "S").source:match "^@(.*)page%.lua$" or "") .. "page/"
-- The parts of the script, in their order. Together they are one function.
local PARTS = { "rows", "filter", "charts", "table", "details", "download", "main" }

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

local TAIL = [[</script>
<noscript>%s</noscript>
<script>%s</script>
</body>
</html>
]]

-- The fields of a row, in the order in which the page reads them.
local SHARED_FIELDS =
  { "network", "action", "level", "entity", "category", "reasons", "source", "error", "case", "analyst" }

local escapes = { ["&"] = "&amp;", ["<"] = "&lt;", [">"] = "&gt;", ['"'] = "&quot;", ["'"] = "&#39;" }

local function escape(value)
  return (text.utf8(value):gsub("[&<>\"']", escapes))
end

-- No character of a JSON text in the page may end the element or the line that holds it.
local json_escapes = { ["<"] = "\\u003c", [">"] = "\\u003e", ["&"] = "\\u0026", ["\127"] = "\\u007f" }
local line_ends = { ["\226\128\168"] = "\\u2028", ["\226\128\169"] = "\\u2029" }

local function encode(value)
  return (assert(json.encode(value)):gsub("[<>&\127]", json_escapes):gsub("\226\128[\168\169]", line_ends))
end

-- A text as the page holds it.
local function clean(value)
  return text.utf8(#value > MAX_TEXT and text.cut(value, MAX_TEXT) .. "…" or value)
end

local function map(list, make)
  local made = json.empty_array()
  for index, value in ipairs(list) do
    made[index] = make(value)
  end
  return made
end

-- A function that gives the number of a text, which is above 0, and the list of the texts. Without a text it gives 0.
-- When the list is full, it gives the text.
local function new_shared()
  local numbers, list = {}, json.empty_array()
  return function(value)
    if value == nil or value == "" then
      return 0
    elseif not numbers[value] then
      if #list >= MAX_SHARED then
        return clean(value)
      end
      list[#list + 1] = clean(value)
      numbers[value] = #list
    end
    return numbers[value]
  end,
    list
end

-- A number that JSON has; else null.
local function number(value)
  return value and json.number(value) and value or json.null
end

local function counterparty_of(one, shared)
  return {
    clean(one.address or ""),
    shared(one.direction),
    number(one.amount),
    shared(one.symbol),
    number(one.transactions),
    shared(one.entity),
    shared(one.level),
    shared(table.concat(one.types, ", ")),
  }
end

-- A row as the page reads it: its values in their order.
local function values_of(row, shared)
  local values, others = { number(row.time), clean(row.address or "") }, json.empty_array()
  for _, field in ipairs(SHARED_FIELDS) do
    values[#values + 1] = shared(row[field])
  end
  for _, other in ipairs(row.others) do
    others[#others + 1], others[#others + 2] = shared(other[1]), clean(other[2])
  end
  values[#values + 1], values[#values + 2] = map(row.types, shared), others
  if row.counterparties then
    local list = map(row.counterparties.list, function(one)
      return counterparty_of(one, shared)
    end)
    values[#values + 1] = tables.concat({ row.counterparties.total }, list)
  end
  return values
end

local function plain_summary(summary)
  local items = map(ACTIONS, function(action)
    return ("<li>%s: %d</li>"):format(action, summary.actions[action])
  end)
  return ("<p>%s. The table needs JavaScript.</p><ul>%s</ul>"):format(
    text.count(summary.rows, "decision"),
    table.concat(items)
  )
end

local function fail(message, ...)
  error(errors.new("storage", message:format(...), { sent = false }), 0)
end

-- The result of a function that writes. In place of nil and a message it raises an error object.
local function ensure(written, message)
  return written or fail("the report cannot be written: %s", message)
end

local function part(name)
  local module = "riskscreen.report.page." .. name
  if package.preload[module] then -- a program that holds the library's modules holds the page's files, too
    return require(module)
  end
  local content, message = files.read(FOLDER .. name)
  return content or fail("a part of the page is not installed: %s", message)
end

local function whole_script()
  local parts = {}
  for index, name in ipairs(PARTS) do
    parts[index] = part(name .. ".js")
  end
  return '(() => {\n"use strict";\n' .. table.concat(parts, "\n") .. "})();\n"
end

-- The source of a policy that allows one text.
local function policy_source(content)
  return "sha256-" .. text.base64(digest.sha256(content))
end

---A page while it is written. A method that fails raises an error object.
---@class riskscreen.report.Page
---@field rows integer
---@field actions table<riskscreen.Action, integer>
---@field sources { name: string, rows: integer }[]
---@field notes string[] the first faults of the input
---@field faults integer
---@field journal? string the name of a file that is one
---@field results? string of a file that is none
---@field unreadable integer lines that are not counted
---@field private title string
---@field private output file*
---@field private close_file? fun(is_complete: boolean): boolean|nil, string|nil of a path
---@field private shared fun(value: string|nil): string
---@field private texts string[]
---@field private script string
local Page = {}
Page.__index = Page

function Page:write(...)
  ensure(self.output:write(...))
end

---@param title string
function Page:begin(title)
  local style = part "style.css"
  self.title, self.script = title, whole_script()
  local policy = POLICY:format(policy_source(self.script), policy_source(style))
  self:write(HEAD:format(policy, version, escape(title), style, part "body.html"))
end

---@param row riskscreen.report.Row
function Page:add(row)
  if self.rows >= MAX_ROWS then
    fail("a report has at most %d rows; divide the input", MAX_ROWS)
  end
  self.rows = self.rows + 1
  self.actions[row.action] = self.actions[row.action] + 1
  self:write(self.rows > 1 and ",\n" or "", encode(values_of(row, self.shared)))
end

---Completes the page.
---@param time number Unix seconds
function Page:finish(time)
  local facts = {
    texts = self.texts,
    title = self.title,
    time = number(time),
    version = version,
    sources = map(self.sources, function(source)
      return { clean(source.name), source.rows }
    end),
    notes = map(self.notes, clean),
    levels = enums.values.risk_level,
  }
  self:write("\n],", encode(facts):sub(2), TAIL:format(plain_summary(self), self.script))
  ensure(self.output:flush())
  if self.close_file then
    local close_file = self.close_file
    self.close_file = nil
    ensure(close_file(true))
  end
end

---Removes what is there of a page that is not complete.
function Page:close()
  if self.close_file then
    self.close_file(false)
  end
end

local M = {}

---@param output string|file* a path, which is replaced when the page is complete, or an open file
---@return riskscreen.report.Page
function M.open(output)
  local shared, texts = new_shared()
  local close_file
  if type(output) == "string" then
    output, close_file = files.replace(output)
    ensure(output, close_file)
  end
  return setmetatable({
    output = output,
    close_file = close_file,
    rows = 0,
    actions = { allow = 0, review = 0, block = 0, unknown = 0 },
    sources = {},
    notes = json.empty_array(),
    faults = 0,
    unreadable = 0,
    shared = shared,
    texts = texts,
  }, Page)
end

return M
