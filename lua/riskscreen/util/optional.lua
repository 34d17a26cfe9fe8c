-- Loads a compiled module that may be missing. It is preloaded, or found by package.cpath or a loader of the program's.
-- A Lua file of its name is never taken for it, nor a file below the working directory: relative templates do not
-- count.

---@param name string
---@return table|nil module
---@return string|nil message
return function(name)
  local path, cpath = package.path, package.cpath
  -- Before anything is changed, because this may run out of memory.
  local absolute = cpath:gsub("[^;]+", function(template)
    return not template:find "^/" and "" or nil
  end)
  package.path, package.cpath = "", absolute
  local found, module = pcall(require, name)
  package.path, package.cpath = path, cpath
  if found then
    return module
  elseif module == "not enough memory" then
    error(module, 0) -- it may be there: a module that asks for it would do without it for good
  end
  return nil, module
end
