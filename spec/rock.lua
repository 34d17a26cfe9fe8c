-- Run by `luarocks test` after `luarocks make`: the specs of the library with busted, rock or package, and without a
-- network. A spec file that needs a module or a program which is not installed is pending, and named. Arguments are
-- parts of paths: `luarocks test -- policy` runs the specs whose path holds "policy".

-- Modules of the tests alone, with the packages that bring them.
local modules = {
  cjson = "lua-cjson",
  cqueues = "lua-cqueues",
  DBI = "lua-dbi-sqlite3",
  lxp = "lua-expat",
  luv = "lua-luv",
  posix = "lua-posix",
  ["riskscreen.decoder"] = "the decoder alone, which CMake builds",
  socket = "lua-socket",
  zlib = "lua-zlib",
}
-- Modules that the library loads for a spec, by a pattern of the spec's text.
local loaded = {
  ["riskscreen%.json%.strict_cjson"] = "cjson",
  ["store%.sqlite"] = "DBI",
  ["riskscreen%.lists%.ofac"] = "lxp",
}
-- Programs, by the file of spec/support that starts them.
local programs = {
  ["spec.support.libcurl"] = "cc",
  ["spec.support.nginx"] = "nginx",
  ["spec.support.redis"] = "redis-server",
  ["spec.support.tls_server"] = "openssl",
  ["spec.support.unanswered_names"] = "cc",
}

local pwd = assert(io.popen "pwd -P")
local root = pwd:read "*l" -- the command takes no module from a relative path
pwd:close()
local built = root .. "/build.luarocks/?.so"
local core = io.open((built:gsub("?", "riskscreen/core")))
if not core then
  io.stderr:write "run `luarocks make` first: there is no build.luarocks/riskscreen/core.so\n"
  os.exit(1)
end
core:close()
package.path = ("%s/lua/?.lua;%s/lua/?/init.lua;%s/?.lua;%s"):format(root, root, root, package.path)
package.cpath = built .. ";" .. package.cpath

local function read(path)
  local file = io.open(path)
  local text = file and file:read "*a"
  return text, file and file:close()
end

local function has_program(name)
  local found = os.execute(("command -v %s >/dev/null 2>&1"):format(name))
  return found == true or found == 0
end

local function is_installed(module)
  return (pcall(require, module))
end

local known = {}

-- The packages without which a file cannot run.
local function missing_for(path, seen)
  local missing = {}
  seen[path] = true
  local text = read(path) or ""
  for pattern, module in pairs(loaded) do
    if text:find(pattern) and not is_installed(module) then
      missing[modules[module]] = true
    end
  end
  for name in text:gmatch "require%s*%(?%s*['\"]([%w_.]+)['\"]" do
    local package_name, program = modules[name] or modules[name:match "^[^.]+"], programs[name]
    if known[name] == nil then
      known[name] = not (package_name and not is_installed(name)) and not (program and not has_program(program))
    end
    if not known[name] then
      missing[package_name or program] = true
    end
    local file = name:gsub("%.", "/") .. ".lua"
    if name:find "^spec%." and not seen[file] then
      for other in pairs(missing_for(file, seen)) do
        missing[other] = true
      end
    end
  end
  return missing
end

local function is_wanted(path)
  for _, part in ipairs(arg) do
    if path:find(part, 1, true) then
      return true
    end
  end
  return #arg == 0
end

local files, pending = {}, 0
local list = assert(io.popen "find spec/unit spec/contract -name '*_spec.lua' ! -path '*/unit/tools/*' | sort")
for path in list:lines() do
  local names = {}
  for name in pairs(is_wanted(path) and missing_for(path, {}) or {}) do
    names[#names + 1] = name
  end
  if names[1] then
    table.sort(names)
    print(("pending: %s needs %s"):format(path, table.concat(names, ", ")))
    pending = pending + 1
  elseif is_wanted(path) then
    files[#files + 1] = path
  end
end
list:close()
print(("%d spec files run, %d are pending"):format(#files, pending))
if not files[1] then
  os.exit(pending > 0 and 0 or 1)
end

-- By variables, because some specs start other programs. Each file has a process of its own, as with `./dev test`.
local interpreter = arg[-1]
local command = "echo 'require [[busted.runner]] { standalone = false }' | "
  .. "LUA_PATH='%s' LUA_CPATH='%s' RISKSCREEN_LUA=%s %s - %s"
local failed = {}
for _, path in ipairs(files) do
  print(path)
  local ran = os.execute(command:format(package.path, package.cpath, interpreter, interpreter, path))
  if ran ~= true and ran ~= 0 then
    failed[#failed + 1] = path
  end
end
print(("%d of %d spec files failed"):format(#failed, #files))
print(table.concat(failed, "\n"))
os.exit(failed[1] and 1 or 0)
