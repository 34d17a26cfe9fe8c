-- Runs a program of spec/NAME/ with the packages of npm that its package.json lists, and gives the result of each of
-- its checks.

local M = { MISSING = "npm cannot install the packages of this test here" }

local INSTALL = "root=$(pwd) && set -eu && . tools/npm.sh && get_npm_packages %s"

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

---@param folder string of spec/, such as "browser"
---@param program string a file of it
---@param ... string its arguments
---@return table<string, true|string>|nil results nil where npm does not work; by the check's name: true, or the failure
function M.run(folder, program, ...)
  local arguments = {}
  for index, argument in ipairs { ... } do
    arguments[index] = quote(argument)
  end
  local install = assert(io.popen(("sh -c %s"):format(quote(INSTALL:format(folder)))))
  local root = install:read "*l"
  install:close()
  if not root then
    return nil
  end
  local line = "NPM_ROOT=%s timeout 300 node spec/%s/%s %s 2>&1"
  local pipe = assert(io.popen(line:format(quote(root), folder, program, table.concat(arguments, " "))))
  local results, other, name = {}, {}, nil
  for text in pipe:lines() do
    local verdict, check = text:match "^(n?o?t? ?ok) (.+)$"
    if verdict then
      name = check
      results[name] = verdict == "ok" and true or ""
    elseif name and results[name] ~= true then
      results[name] = results[name] .. text .. "\n"
    else
      other[#other + 1] = text
    end
  end
  pipe:close()
  assert(next(results), table.concat(other, "\n"))
  return results
end

return M
