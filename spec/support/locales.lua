-- Runs a program of spec/support with locales that the machine may lack.
local program = require "spec.support.program"
local temporary = require "spec.support.temporary"

local M = {}

---The lines that a program prints.
---@param name string
---@param ... string its arguments
---@return string[]
function M.run(name, ...)
  local place = temporary.path "locales"
  local steps = { "mkdir " .. place, "export LOCPATH=" .. place }
  for locale, charset in pairs { en_US = "UTF-8", de_DE = "UTF-8", tr_TR = "ISO-8859-9" } do
    steps[#steps + 1] = ("localedef -i %s -f %s %s/%s.%s 2>&-"):format(locale, charset, place, locale, charset)
  end
  local lines = {}
  for line in program.start(name, { ... }, { before = "{ " .. table.concat(steps, "; ") .. "; } >&2" }):lines() do
    lines[#lines + 1] = line
  end
  return lines
end

return M
