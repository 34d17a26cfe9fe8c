-- Checks of pages in Chromium: runs a program of spec/browser/ and gives the result of each of its checks.

local M = { MISSING = "npm cannot install playwright-core and axe-core here" }

local INSTALL = "root=$(pwd) && set -eu && . tools/browser.sh && get_browser_tests && echo $BROWSER_ROOT"

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

---@param program string a file of spec/browser/
---@param ... string its arguments
---@return table<string, true|string>|nil results nil where npm does not work; by the check's name: true, or the failure
function M.run(program, ...)
  local arguments = {}
  for index, argument in ipairs { ... } do
    arguments[index] = quote(argument)
  end
  local install = assert(io.popen(("sh -c %s"):format(quote(INSTALL))))
  local root = install:read "*l"
  install:close()
  if not root then
    return nil
  end
  local line = "BROWSER_ROOT=%s timeout 300 node spec/browser/%s %s 2>&1"
  local pipe = assert(io.popen(line:format(quote(root), program, table.concat(arguments, " "))))
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
