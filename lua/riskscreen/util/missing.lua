-- Names the package that brings a module or a shared library which is not installed.

-- Debian's packages.
local packages = {
  argparse = "lua-argparse",
  cjson = "lua-cjson",
  ["dbd.sqlite3"] = "lua-dbi-sqlite3",
  lxp = "lua-expat",
  zlib = "lua-zlib",
  libcurl = "libcurl4",
  libmicrohttpd = "libmicrohttpd12",
}

-- The rooms of this library's folders, but for those of the room `library`. cmake/rooms.cmake has them all.
local rooms = { sandbox = "sandbox", nginx = "gate", cli = "command", explore = "command", report = "command" }
for _, folder in ipairs { "store", "journal", "queue", "watch", "webhook", "redis" } do
  rooms[folder] = "durable"
end

local built_with = {
  ["riskscreen.server"] = "libmicrohttpd-dev",
}

local M = { rooms = rooms }

local function remedy(name)
  local room = rooms[name:match "^riskscreen%.([%w_]+)"]
  if packages[name] then
    return (": apt install %s"):format(packages[name])
  elseif room then
    local debian = room == "command" and "riskscreen" or "lua-riskscreen-" .. room
    return (": apt install %s, or the rock riskscreen-%s"):format(debian, room)
  elseif built_with[name] then
    return (": build the library with %s"):format(built_with[name])
  end
  return name:find "^riskscreen" and ": build the library for this Lua" or ""
end

---A line for a person about a failure of `require`, or nil for another failure.
---@param err any
---@return string|nil
function M.explain(err)
  local message = tostring(err)
  local library = message:match "%f[%w](lib[%w.+-]-%.so[%d.]*): cannot open shared object file"
  if library then
    local module = message:match "error loading module '([^']+)'" or "a module"
    return ("%s needs %s, which is not installed%s"):format(module, library, remedy(library:match "^[^.]+"))
  end
  local module = message:match "module '([^']+)' not found"
  local told = message:match "the Lua module %S+ is not installed for .*"
  return told or module and ("the Lua module %s is not installed for %s%s"):format(module, _VERSION, remedy(module))
end

return M
