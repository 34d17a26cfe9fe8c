-- Loads a compiled module that may be missing. It is preloaded, or found by package.cpath or a loader of the program's.
-- A Lua file of its name, or a file in the working directory, is never taken for it. A folder below is the program's
-- own choice: no interpreter looks there by itself.

---@param name string
---@return table|nil module
---@return string|nil message
return function(name)
  local path, cpath = package.path, package.cpath
  package.path = ""
  package.cpath = cpath:gsub("[^;]+", function(template)
    return template:find "^%.?/?%?" and "" or nil -- such as ./?.so
  end)
  local found, module = pcall(require, name)
  package.path, package.cpath = path, cpath
  if found then
    return module
  end
  return nil, module
end
