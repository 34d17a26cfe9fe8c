-- The manual page of the `riskscreen` command, from the declarations of its verbs.

local commands = require "riskscreen.cli.commands"
local configuration = require "riskscreen.cli.configuration"
local parsers = require "riskscreen.cli.parser"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local version = require "riskscreen.version"

-- Text for roff: hyphens that can be copied, and no line that looks like a request.
local function escaped(text)
  text = text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("…", "\\&..."):gsub("`", "")
  return (("\n" .. text):gsub("\n([.'])", "\n\\&%1"):sub(2))
end

local Page = {}
Page.__index = Page

function Page:add(...)
  for _, line in ipairs { ... } do
    self[#self + 1] = line
  end
end

function Page:section(name)
  self:add(".SH " .. name)
end

function Page:paragraph(text)
  self:add(".PP", escaped(text))
end

-- A term in bold with its value, and its meaning.
function Page:item(names, value, meaning)
  local shown = {}
  for index, name in ipairs(names) do
    shown[index] = "\\fB" .. escaped(name) .. "\\fR" .. (value and " \\fI" .. escaped(value) .. "\\fR" or "")
  end
  self:add(".TP", table.concat(shown, ", "), escaped(meaning))
end

function Page:options(list)
  for _, option in ipairs(list) do
    local names, value = parsers.names(option)
    self:item(names, value, parsers.meaning(option))
  end
end

function Page:statuses(meanings)
  for _, entry in ipairs(status.list(meanings)) do
    self:item({ tostring(entry.status) }, nil, entry.what)
  end
end

local shown_arguments = { ["1"] = "%s", ["?"] = "[%s]", ["*"] = "[%s ...]", ["+"] = "%s [%s ...]" }

function Page:command(command)
  self:add(".SS riskscreen " .. escaped(command.name))
  local words = { "\\fBriskscreen " .. escaped(command.name) .. "\\fR", "[\\fIoptions\\fR]" }
  for _, argument in ipairs(command.arguments or {}) do
    local name = "\\fI" .. argument.name:upper() .. "\\fR"
    words[#words + 1] = shown_arguments[argument.count or "1"]:gsub("%%s", (name:gsub("\\", "\\")))
  end
  self:add(".PP", table.concat(words, " "))
  self:paragraph(command.summary)
  if command.description then
    self:paragraph(command.description)
  end
  for _, argument in ipairs(command.arguments or {}) do
    self:item({ argument.name:upper() }, nil, argument.doc)
  end
  self:options(command.options or {})
  if command.statuses then
    self:paragraph "Exit status:"
    self:statuses(command.statuses)
  end
  self:paragraph "Examples:"
  for _, example in ipairs(command.examples) do
    self:add(
      ".PP",
      escaped(example.what) .. ":",
      ".PP",
      ".nf",
      ".RS",
      "riskscreen " .. escaped(example.line),
      ".RE",
      ".fi"
    )
  end
end

local M = {}

---The manual page.
---@return string
function M.page()
  local page = setmetatable({}, Page)
  page:add(
    '.\\" Written by tools/generate.lua.',
    ('.TH RISKSCREEN 1 "" "riskscreen %s" "User Commands"'):format(version)
  )
  page:section "NAME"
  page:add "riskscreen \\- screen blockchain addresses and transactions against a risk service"
  page:section "SYNOPSIS"
  page:add("\\fBriskscreen\\fR [\\fIoptions\\fR] \\fIverb\\fR [\\fIarguments\\fR]")
  page:section "DESCRIPTION"
  page:paragraph(
    "riskscreen asks a risk service about addresses and transactions, and decides whether they may"
      .. " pass. An error, a timeout or an answer that is not understood is never allow."
  )
  page:paragraph "Where no service is configured, a built-in sandbox answers, and a line on stderr says so."
  page:section "VERBS"
  for _, command in ipairs(commands.list()) do
    page:command(command)
  end
  page:section "OUTPUT OPTIONS"
  page:paragraph(
    "Results are a table that fits the terminal, or one of the following. Messages go to stderr."
      .. " Colours are for terminals, unless NO_COLOR is set."
  )
  page:options(parsers.output_options)
  page:paragraph(
    "CSV follows RFC 4180. A cell that begins with =, +, -, @, a tab or a carriage return gets an"
      .. " apostrophe in front, because a spreadsheet would take it for a formula."
  )
  page:section "SERVICE OPTIONS"
  for _, setting in ipairs(configuration.settings) do
    if setting.has_flag then
      page:options { setting.option }
    end
  end
  page:options { parsers.set_option }
  page:section "CONFIGURATION"
  page:paragraph(
    "Each setting has a value from a flag, from --set, from the environment, from a profile, or its"
      .. " default, in this order. riskscreen config show tells where each value comes from. A profile has"
      .. " lines of 'name = value'; a line that begins with # is a comment."
  )
  page:paragraph(
    "There is no flag for the access key, because every user of the machine could read it in the list"
      .. " of processes."
  )
  page:section "ENVIRONMENT"
  page:item({ "RISKSCREEN_ACCESS_KEY" }, nil, "The access key.")
  page:item(
    { "RISKSCREEN_NAME" },
    nil,
    "The setting NAME: timeout is RISKSCREEN_TIMEOUT, rate_limit.rate is RISKSCREEN_RATE_LIMIT_RATE."
  )
  page:item({ "NO_COLOR" }, nil, "No colours.")
  page:section "FILES"
  page:item(
    { "$XDG_CONFIG_HOME/riskscreen/default.conf" },
    nil,
    "The profile that is read unless another is named. Without XDG_CONFIG_HOME it is in ~/.config."
  )
  page:section "EXIT STATUS"
  page:paragraph "The verbs above name their own; these are those of the others, and of all where they can occur."
  page:statuses(tables.merge(status.of_others, status.of_all))
  return table.concat(page, "\n") .. "\n"
end

return M
