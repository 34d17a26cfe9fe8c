-- Runs a program of spec/support with locales that the machine may lack.
local program = require "spec.support.program"
local temporary = require "spec.support.temporary"

-- With the table of UTF-8 localedef needs a second of processor time for each.
local CHARSETS = { en_US = "ISO-8859-1", de_DE = "ISO-8859-1", tr_TR = "ISO-8859-9" }

local M = {}

---The lines that a program prints.
---@param names string[] of the locales that it uses, such as "en_US" for en_US.ISO-8859-1
---@param name string
---@param ... string its arguments
---@return string[]
function M.run(names, name, ...)
  local place = temporary.path "locales"
  local steps = { "mkdir " .. place, "export LOCPATH=" .. place }
  for _, locale in ipairs(names) do
    local charset = CHARSETS[locale]
    steps[#steps + 1] = ("localedef -i %s -f %s %s/%s.%s 2>&-"):format(locale, charset, place, locale, charset)
  end
  local lines = {}
  for line in program.start(name, { ... }, { before = "{ " .. table.concat(steps, "; ") .. "; } >&2" }):lines() do
    lines[#lines + 1] = line
  end
  return lines
end

return M
