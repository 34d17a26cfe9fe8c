-- The options of local lists: of a client, of a gate, and of a build.
local build = require "riskscreen.options.build"
local rows = require "riskscreen.options.rows"
local tables = require "riskscreen.util.tables"

local LONGEST_AGE = 10 * 365 * 86400 -- seconds
local MAX_FILES = 100
local MIB = 1024 * 1024

-- A list of paths; a text is one path.
local function paths(value, fewest)
  return build.list_of(value, "file names", function(path)
    return type(path) == "string" and path:match(build.forms.file.pattern)
  end, fewest, MAX_FILES)
end

local function given_paths(value)
  return paths(value, 1)
end

local MAX_SHRINK = "The share of its entries that a deny list may lose at once. A file that has lost more is not taken."

local max_shrink = build.number("max_shrink", "share", 0.5, 0, 1, MAX_SHRINK)

local DENY = "Files of addresses that are blocked without a call: compiled, CSV, JSON or plain lists."
local ALLOW_WITHOUT_CALL = "true: an address on an allow list passes without a call, and the decision is `degraded`. "
  .. "Otherwise the service is asked, and the entry is one more reason."
local MAX_AGE = "Age from which on a list is stale. A stale deny list still blocks, with a warning; a stale allow list "
  .. "does not count."

local fields = {
  build.checked("deny", "table|string", paths, DENY, {}),
  build.checked("allow", "table|string", paths, "Files of addresses that are allowed, in the same formats.", {}),
  build.flag("allow_without_call", false, ALLOW_WITHOUT_CALL),
  build.seconds("max_age", nil, MAX_AGE, 1, LONGEST_AGE),
  max_shrink,
  build.seconds("interval", 10, "Time between two looks at whether a file has changed.", 0.1),
  build.notice("on_problem", "Called with a message about a list that is stale, invalid in part, or not loaded."),
}

local M = {}

---@type riskscreen.Option
M.option = build.group("lists", fields, "Local deny and allow lists, which decide before the service is asked.")

---@type riskscreen.Option[]
M.build = tables.concat({
  build.required { name = "output", type = "string", doc = "The file to write." },
  build.required(build.checked("inputs", "table|string", given_paths, "The files to read.")),
  { name = "title", type = "string", doc = "A text about the list, at most 190 bytes." },
  build.flag("strict", false, "true: writes nothing if a row is no entry. Otherwise such rows are reported."),
  build.choice("address_check", { "checksum", "format" }, "checksum", "How the addresses are checked."),
  build.number("time", "Unix seconds", nil, 1, 2 ^ 40, "The time of the build; by default now."),
  build.count("buffer", "bytes", 64 * MIB, 4096, 1024 * MIB, "Memory for sorting; a longer list is merged from files."),
  max_shrink,
}, rows)

return M
