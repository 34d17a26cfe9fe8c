-- Run by `luarocks test` after `luarocks make`: the specs of the library with busted, rock or package, and without a
-- network. A spec file that fails where it asked for a module or a program which is not installed is pending, and the
-- package is named. Arguments are parts of paths: `luarocks test -- policy` runs the specs whose path holds "policy".

-- Modules of the tests, and optional ones of the library, with the packages that bring them.
local modules = {
  cjson = "lua-cjson",
  cqueues = "lua-cqueues",
  ["dbd.sqlite3"] = "lua-dbi-sqlite3",
  lxp = "lua-expat",
  luv = "lua-luv",
  posix = "lua-posix",
  ["riskscreen.decoder"] = "the decoder alone, which CMake builds",
  socket = "lua-socket",
  zlib = "lua-zlib",
}
-- Programs, by the file of spec/support that starts them.
local programs = {
  ["spec.support.libcurl"] = "cc",
  ["spec.support.nginx_program"] = "nginx",
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

local function succeeds(command)
  local status = os.execute(command)
  return status == true or status == 0
end

-- Every Lua of a spec runs this script first. It notes which absent modules, and which files of absent programs, are
-- asked for.
local asked, preload = os.tmpname(), os.tmpname()
local script = assert(io.open(preload, "w"))
local function is_absent(name, brought_by)
  local note = "package.preload[%q] = function() local f = io.open(%q, 'a') f:write(%q, '\\n') f:close() "
    .. "error('%s is not installed', 0) end\n"
  script:write(note:format(name, asked, brought_by, brought_by))
end
for name, package_name in pairs(modules) do
  if not pcall(require, name) then
    is_absent(name, package_name)
  end
end
for name, program in pairs(programs) do
  local look_up = "PATH=$PATH:/usr/sbin:/usr/local/openresty/nginx/sbin command -v %s >/dev/null 2>&1"
  if not succeeds(look_up:format(program)) then
    is_absent(name, program)
  end
end
script:close()

-- The packages that were asked for since the last look, and are not installed.
local function take_asked()
  local names, seen = {}, {}
  for name in io.lines(asked) do
    if not seen[name] then
      names[#names + 1], seen[name] = name, true
    end
  end
  assert(io.open(asked, "w")):close()
  table.sort(names)
  return table.concat(names, ", ")
end

local function is_wanted(path)
  for _, part in ipairs(arg) do
    if path:find(part, 1, true) then
      return true
    end
  end
  return #arg == 0
end

-- By variables, because some specs start other programs. Each file has a process of its own, as with `./dev test`.
local interpreter = arg[-1]
local command = "echo 'require [[busted.runner]] { standalone = false }' | "
  .. "LUA_INIT=@%s LUA_PATH='%s' LUA_CPATH='%s' RISKSCREEN_LUA=%s %s - %s >%s 2>&1"
local output = os.tmpname()
local passed, pending, failed = 0, 0, 0
local list = assert(io.popen "find spec/unit spec/contract -name '*_spec.lua' ! -path '*/unit/tools/*' | sort")
for path in list:lines() do
  if is_wanted(path) then
    local variables = command:format(preload, package.path, package.cpath, interpreter, interpreter, path, output)
    local ran, needs = succeeds(variables), take_asked()
    if ran then
      passed = passed + 1
      print("passed: " .. path)
    elseif needs ~= "" then
      pending = pending + 1
      print(("pending: %s needs %s"):format(path, needs))
    else
      failed = failed + 1
      os.execute("cat " .. output)
      print("failed: " .. path)
    end
  end
end
list:close()
os.remove(asked)
os.remove(preload)
os.remove(output)
print(("%d spec files passed, %d are pending, %d failed"):format(passed, pending, failed))
os.exit(failed == 0 and passed + pending > 0 and 0 or 1)
