-- fork and wait: luaposix, or for Lua 5.4, which has none in Debian 12, a module that is compiled here.
local loaded, unistd = pcall(require, "posix.unistd")
if loaded then
  local wait = require("posix.sys.wait").wait
  return {
    fork = unistd.fork,
    wait = function(pid)
      local _, how, status = wait(pid)
      return how == "exited" and status or how
    end,
  }
end

local path = os.tmpname()
local command = "env -u LD_PRELOAD cc -shared -fPIC $(pkg-config --cflags lua5.4) spec/support/fork.c -o " .. path
assert(os.execute(command))
local module = assert(package.loadlib(path, "luaopen_fork"))()
os.remove(path)
return module
