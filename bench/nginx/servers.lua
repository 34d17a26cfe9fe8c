-- The two nginx of bench/nginx.lua: the measured gateway, and the service with its fixed answer, which has one worker.
-- Linux only: CPU times are read from /proc.

local free_port = require("spec.support.free_port")
local program = require("spec.support.nginx_program")
local socket = require("socket")

local GATEWAY = [[
MODULES
user root; worker_processes WORKERS; AFFINITY1 SINGLE pid DIR/gateway.pid; error_log DIR/error.log warn;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 3600s;
  client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi;
  uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
  lua_package_path "ROOT/lua/?.lua;ROOT/lua/?/init.lua;ROOT/bench/?.lua;GIVEN;;";
  lua_package_cpath "ROOT/build/luajit/?.so;;";
HTTP
  server {
    listen 127.0.0.1:PORT;
SERVER
  }
}
]]

local SERVICE = [[
user root; worker_processes 1; AFFINITY2 pid DIR/service.pid; error_log DIR/error.log warn;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 3600s;
  client_body_temp_path DIR/body2; proxy_temp_path DIR/proxy2; fastcgi_temp_path DIR/fastcgi2;
  uwsgi_temp_path DIR/uwsgi2; scgi_temp_path DIR/scgi2;
  server {
    listen 127.0.0.1:BEHIND; default_type application/json;
    location = /requests { stub_status; }
    location / { return 200 'BODY'; }
  }
}
]]

local VALGRIND = "valgrind --tool=callgrind --dump-before=%s --callgrind-out-file=%s/counts "

-- nginx puts in the address, because an answer about another address would be refused.
local BODY = '{"success":true,"code":1,"msg":"SUCCESS","data":{"time":1767225600000,"address":"$arg_address",'
  .. '"network":"$arg_network","whitelist":false,"risks":[{"riskLevel":"low","riskType":"online-gambling",'
  .. '"riskSource":"Provider"}]}}'

local function execute(command)
  local result = os.execute(command)
  assert(result == true or result == 0, "failed: " .. command)
end

local function read(path)
  local file = io.open(path)
  local text = file and file:read("*a")
  if file then
    file:close()
  end
  return text
end

local function first_line_of(command)
  local pipe = assert(io.popen(command))
  local line = pipe:read("*l")
  pipe:close()
  return line
end

local function lines_of(command)
  local pipe, lines = assert(io.popen(command)), {}
  for line in pipe:lines() do
    lines[#lines + 1] = line
  end
  pipe:close()
  return lines
end

local function fill(text, values)
  return (text:gsub("%f[%w]%u+%d?%f[^%w]", values))
end

local function start(directory, name, text, values)
  local path = ("%s/%s.conf"):format(directory, name)
  local file = assert(io.open(path, "w"))
  file:write(fill(text, values))
  file:close()
  local under = values.MARK and VALGRIND:format(values.MARK, directory) or ""
  local command = program.command:gsub("nginx$", under .. "%0")
  local output = values.MARK and (" >%s/valgrind.log 2>&1 &"):format(directory) or ""
  execute(("%s -p %s -c %s -e %s/error.log%s"):format(command, directory, path, directory, output))
end

---@class riskscreen.bench.Servers
---@field private counted? integer files of counts that were read
---@field url string of the gateway
---@field directory string
---@field private port integer of the service
---@field private workers string[] the processes that are measured
local Servers = {}
Servers.__index = Servers

local M = {}

---Whether there is a core for the measured worker alone.
M.can_pin = tonumber(first_line_of("nproc")) >= 2

---Starts both. ROOT, DIR and BEHIND (the service's port) are replaced in the directives.
---@param directives { http: string, server: string }
---@param workers integer of the gateway; 0: it has one process
---@param pinned? boolean whether the gateway's one worker has its own core
---@param mark? string the C function before whose calls callgrind writes its counts; without it there is no callgrind
---@return riskscreen.bench.Servers
function M.start(directives, workers, pinned, mark)
  local directory = os.tmpname()
  os.remove(directory)
  execute("mkdir " .. directory)
  local values = { DIR = directory, ROOT = first_line_of("pwd"), MODULES = program.modules(), BODY = BODY }
  values.PORT, values.BEHIND = tostring(free_port()), tostring(free_port())
  -- nginx does not read LUA_PATH.
  values.GIVEN = (os.getenv("LUA_PATH") or ""):gsub(";;+", ";")
  values.WORKERS = tostring(math.max(workers, 1))
  -- Its clock stands still: how often it ticks in a count differs from run to run.
  values.SINGLE = workers == 0 and "daemon off; master_process off; timer_resolution 1000s;" or ""
  values.AFFINITY1 = pinned and "worker_cpu_affinity 01;" or ""
  values.AFFINITY2 = pinned and "worker_cpu_affinity 10;" or ""
  values.HTTP, values.SERVER = fill(directives.http, values), fill(directives.server, values)
  local self = setmetatable({ directory = directory, port = values.BEHIND }, Servers)
  self.url = "http://127.0.0.1:" .. values.PORT
  start(directory, "service", SERVICE, values)
  values.MARK = mark
  local is_started, message = pcall(start, directory, "gateway", GATEWAY, values)
  local deadline = socket.gettime() + 60
  repeat
    local connection = is_started and socket.connect("127.0.0.1", values.PORT)
    self.workers = connection and workers > 0 and lines_of(("pgrep -P $(cat %s/gateway.pid)"):format(directory)) or {}
    local is_ready = connection and #self.workers >= workers
  until is_ready or not is_started or socket.gettime() > deadline
  if not is_started then
    message = message .. "\n" .. self:log()
    self:stop()
    error(message, 0)
  end
  return self
end

---The body of a page.
---@param port integer|string
---@param path string
---@return string
local function page(port, path)
  local connection = assert(socket.connect("127.0.0.1", port))
  connection:send(("GET %s HTTP/1.0\r\n\r\n"):format(path))
  local answer = connection:receive("*a")
  connection:close()
  return (answer:match("\r\n\r\n(.*)$"))
end

---The body of a page of the gateway.
---@param path string
---@return string
function Servers:page(path)
  return page(self.url:match("%d+$"), path)
end

---How many requests have reached the service.
---@return integer
function Servers:looked_up()
  return tonumber((page(self.port, "/requests"):match("%d+ %d+ (%d+)")))
end

---The seconds for which the measured workers have run.
---@return number
function Servers:cpu()
  local ran = 0
  for _, worker in ipairs(self.workers) do
    ran = ran + tonumber(read(("/proc/%s/schedstat"):format(worker)):match("%d+")) / 1e9
  end
  return ran
end

---The instructions since the last mark, which callgrind has written.
---@return integer
function Servers:instructions()
  self.counted = (self.counted or 0) + 1
  return tonumber(read(("%s/counts.%d"):format(self.directory, self.counted)):match("\ntotals: (%d+)"))
end

---Everything in the error log.
---@return string
function Servers:log()
  return read(self.directory .. "/error.log") or ""
end

function Servers:stop()
  for _, name in ipairs({ "gateway", "service" }) do
    os.execute(("kill $(cat %s/%s.pid)"):format(self.directory, name))
  end
  os.execute("rm -rf " .. self.directory)
end

return M
