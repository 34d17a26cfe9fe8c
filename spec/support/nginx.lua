-- A real nginx with the Lua files of this checkout in a directory of its own. It has the compiled core unless
-- RISKSCREEN_WITHOUT_CORE is set. Its error log must be clean when it is stopped.
local free_port = require "spec.support.free_port"
local http = require "spec.support.http"
local json = require "riskscreen.json"
local program = require "spec.support.nginx_program"
local socket = require "socket"

local DEADLINE = 60 -- seconds until what never comes fails the test
local EVAL_TIMEOUT = 60 -- seconds; thousands of requests may be made inside
local PAUSE = 0.01 -- seconds between two looks

local CONFIGURATION = [[
MODULES
user root;
worker_processes WORKERS;
pid DIR/nginx.pid;
error_log DIR/error.log info;
worker_shutdown_timeout 10s;
COUNTED
MAIN
events { worker_connections 2048; }
http {
  access_log off;
  client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi;
  uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
  lua_package_path "PATH;;LUASSERT";
  lua_package_cpath "CORE;;";
  lua_socket_log_errors off;
HTTP
  server {
    listen 127.0.0.1:PORT backlog=4096 reuseport;
SERVER
    # Runs the Lua text that it is sent and answers what that returns, as JSON.
    location = /eval {
      client_body_buffer_size 1m;
      content_by_lua_block { require("spec.support.nginx_eval")() }
    }
  }
}
]]

-- Where Debian has luassert, which shadow.lua uses inside nginx; OpenResty's own libraries come before.
local LUASSERT = "/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

-- Lines of the error log that no test may leave behind.
local COMPLAINTS = { "%[error%]", "%[crit%]", "%[alert%]", "%[emerg%]", "%[warn%].*lua", "delayed events patch" }

local function read(path)
  local file = io.open(path)
  local content = file and file:read "*a"
  if file then
    file:close()
  end
  return content
end

local function execute(command)
  local result = os.execute(command)
  return result == true or result == 0
end

local function working_directory()
  local pipe = assert(io.popen "pwd")
  local directory = pipe:read "*l"
  pipe:close()
  return directory
end

---@class riskscreen.spec.Nginx
---@field url string
---@field port integer
---@field directory string
---@field get fun(target: string, request?: table): riskscreen.spec.Answer|nil, table|nil
local Nginx = {}
Nginx.__index = Nginx

local M = {}

---Messages of nginx itself about broken connections. lua_socket_log_errors does not silence them.
M.BROKEN_CONNECTIONS = {
  "recv%(%) failed %(104:",
  "send%(%) failed %(104:",
  "send%(%) failed %(32:",
  "connect%(%) to unix:%S+ failed %(2:",
  "SSL_do_handshake%(%) failed",
  "peer closed connection in SSL handshake",
}

---Whether nginx has the compiled core.
M.with_core = os.getenv "RISKSCREEN_WITHOUT_CORE" == nil

-- Replaces the names above, in capitals, in a configuration.
local function fill(text, values)
  return (text:gsub("%f[%w]%u+%f[%W]", values))
end

---Waits, without stepping anything, until a condition holds.
---@param what string
---@param condition fun(): any
---@return any
function M.wait_for(what, condition)
  local deadline = socket.gettime() + DEADLINE
  repeat
    local result = condition()
    if result then
      return result
    end
    socket.sleep(PAUSE)
  until socket.gettime() > deadline
  error("waited in vain for " .. what, 2)
end

local function signal(self, name)
  assert(execute(("kill -%s %d"):format(name, self:master())), "nginx has ended: " .. self:log())
end

---@class riskscreen.spec.NginxOptions
---@field workers? integer
---@field main? string directives outside of http
---@field http? string directives of http; DIR, ROOT, PORT stand for what they say
---@field server? string directives of the server
---@field environment? string such as "A=1 B=2"
---@field configuration? string a whole configuration in place of this module's own

---Starts nginx and waits until it answers.
---@param options riskscreen.spec.NginxOptions
---@return riskscreen.spec.Nginx
function M.start(options)
  local directory = os.tmpname()
  os.remove(directory)
  assert(execute("mkdir " .. directory))
  local root, port = working_directory(), free_port()
  local values = { DIR = directory, ROOT = root, PORT = tostring(port), WORKERS = tostring(options.workers or 1) }
  values.CORE = M.with_core and root .. "/build/luajit/?.so" or ""
  values.MODULES = program.modules()
  local counted = os.getenv "RISKSCREEN_COVERAGE" ~= nil
  values.COUNTED = counted and "env RISKSCREEN_COVERAGE;" or ""
  values.PATH = (counted and "ROOT/spec/support/coverage/?.lua;" or "")
    .. "ROOT/lua/?.lua;ROOT/lua/?/init.lua;ROOT/?.lua"
  values.PATH = values.PATH:gsub("ROOT", root)
  values.LUASSERT = LUASSERT
  values.MAIN = fill(options.main or "", values)
  values.HTTP = fill(options.http or "", values)
  values.SERVER = fill(options.server or "", values)
  local path = directory .. "/nginx.conf"
  local file = assert(io.open(path, "w"))
  file:write(fill(options.configuration or CONFIGURATION, values))
  file:close()
  local command = "%s " .. program.command .. " -p %s -c %s -e %s/error.log > %s/start.log 2>&1"
  local self = setmetatable({ directory = directory, port = port, url = "http://127.0.0.1:" .. port }, Nginx)
  if not execute(command:format(options.environment or "", directory, path, directory, directory)) then
    error("nginx does not start: " .. (read(directory .. "/start.log") or "") .. self:log(), 2)
  end
  self.get = http.origin(self.url)
  M.wait_for("nginx to listen", function()
    local connection = socket.connect("127.0.0.1", port)
    return connection and connection:close()
  end)
  return self
end

---The process that watches the workers.
---@return integer|nil
function Nginx:master()
  return tonumber(read(self.directory .. "/nginx.pid"))
end

---The processes that answer.
---@return integer[]
function Nginx:workers()
  local pipe = assert(io.popen(("pgrep -P %d"):format(self:master())))
  local pids = {}
  for line in pipe:lines() do
    pids[#pids + 1] = tonumber(line)
  end
  pipe:close()
  return pids
end

---Everything in the error log.
---@return string
function Nginx:log()
  return read(self.directory .. "/error.log") or ""
end

---The complaints in the error log, but for those that match a pattern.
---@param allowed? string[]
---@return string[]
function Nginx:complaints(allowed)
  local list = {}
  local function is_allowed(line)
    for _, pattern in ipairs(allowed or {}) do
      if line:find(pattern) then
        return true
      end
    end
  end
  for line in self:log():gmatch "[^\n]+" do
    for _, pattern in ipairs(COMPLAINTS) do
      if line:find(pattern) and not is_allowed(line) then
        list[#list + 1] = line
        break
      end
    end
  end
  return list
end

---Has nginx read its configuration again; returns when the old workers are told to go.
function Nginx:reload()
  signal(self, "HUP")
end

---Runs Lua in a worker's content phase and returns its results, converted by JSON (nil stays nil).
---@param code string
---@param argument? any what JSON can say, given to the code as `...`
---@return any ...
function Nginx:eval(code, argument)
  local body = assert(json.encode { code = code, argument = argument })
  local answer, failure = self.get("/eval", { body = body, timeout = EVAL_TIMEOUT })
  assert(answer, failure and failure.message)
  if answer.status ~= 200 then
    error(("eval: %d %s"):format(answer.status, answer.body), 2)
  end
  local results = assert(json.decode(answer.body))
  local list = {}
  for index = 1, results.n do
    list[index] = results.values[index].value
  end
  return unpack(list, 1, results.n)
end

---Stops it; fails when its error log holds a complaint that matches none of the patterns.
---@param allowed? string[] patterns
function Nginx:stop(allowed)
  local pid = self:master()
  if pid then
    execute(("kill -TERM %d"):format(pid))
    M.wait_for("nginx to end", function()
      return not self:master()
    end)
  end
  local complaints = self:complaints(allowed)
  execute("rm -rf " .. self.directory)
  if complaints[1] then
    error("nginx complains:\n" .. table.concat(complaints, "\n"), 2)
  end
end

return M
