-- The options of every reader of rows: which columns count, and what a file may be.
local build = require "riskscreen.options.build"

local tables = require "riskscreen.util.tables"

local IGNORE_COLUMNS = "Columns that say nothing about the network or the end of an entry, though they look like it."

local function names(value)
  return build.list_of(value, "names of columns", function(name)
    return type(name) == "string" and name ~= ""
  end)
end

local delimiters = { tab = "\t", ["\\t"] = "\t" }

local function delimiter(value)
  value = delimiters[value] or value
  if #value ~= 1 or value:find '[%w"\r\n\128-\255]' then
    return nil, "must be one character, such as ';', or 'tab'"
  end
  return value
end

return {
  {
    name = "address_column",
    type = "string",
    argument = "NAME",
    doc = "Column of the addresses; by default address, wallet, recipient and the like.",
  },
  {
    name = "network_column",
    type = "string",
    argument = "NAME",
    doc = "Column of the networks; by default network, chain or blockchain.",
  },
  tables.merge(
    build.checked("ignore_columns", "table|string", names, IGNORE_COLUMNS),
    { list = true, argument = "NAMES" }
  ),
  build.checked("delimiter", "string", delimiter, "What stands between two columns; by default ',', ';' or a tab."),
  build.choice("encoding", { "utf-8", "latin1" }, "utf-8", "How the text is encoded."),
  build.count("max_invalid", "rows", 1000, 0, 2 ^ 40, "The most rows that may be invalid; one more ends the reading."),
  build.flag("allow_empty", false, "true: a file may have no rows."),
}
