-- Finds the nginx that specs and benchmarks run, and the modules it loads for Lua. The first on PATH is taken, else the
-- one of Debian or OpenResty.
local M = {}

---The shell command that starts it, without arguments.
M.command = "PATH=$PATH:/usr/sbin:/usr/local/openresty/nginx/sbin nginx"

local function output_of(command)
  local pipe = assert(io.popen(command))
  local output = pipe:read("*a")
  pipe:close()
  return output
end

local function exists(path)
  local file = io.open(path)
  return file and file:close()
end

---The directives that load the Lua module; none for OpenResty, which has it inside.
---@return string
function M.modules()
  local directory = output_of(M.command .. " -V 2>&1"):match("%-%-modules%-path=(%S+)")
  if not directory or not exists(directory .. "/ngx_http_lua_module.so") then
    return ""
  end
  return ("load_module %s/ndk_http_module.so;\nload_module %s/ngx_http_lua_module.so;"):format(directory, directory)
end

return M
