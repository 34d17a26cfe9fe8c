-- Shared by the HTTP benchmarks: an nginx process that answers every request with one body, the programs of floor.c,
-- and medians. Needs nginx, a C compiler and LuaSocket.

local free_port = require("spec.support.free_port")
local program = require("spec.support.nginx_program")

local here = arg[0]:match("^(.*)/[^/]*$") or "."

-- A target below /slow is answered after 100 ms.
local CONFIGURATION = [[
MODULES
worker_processes 1; daemon on; pid DIR/nginx.pid; error_log DIR/error.log;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 3600s;
  client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi;
  uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
  server {
    listen 127.0.0.1:PORT backlog=4096; default_type application/json;
    location / { return 200 'BODY'; }
    location /slow { content_by_lua_block { ngx.sleep(0.1) ngx.print('{"success":true}') } }
  }
}
]]

local function execute(command)
  local result = os.execute(command)
  assert(result == true or result == 0, "failed: " .. command)
end

local function start_server(directory, port, body)
  local file = assert(io.open(directory .. "/nginx.conf", "w"))
  local text = CONFIGURATION:gsub("DIR", directory):gsub("PORT", port):gsub("MODULES", program.modules())
  file:write((text:gsub("BODY", (body:gsub("%%", "%%%%")))))
  file:close()
  local command = "%s -p %s -c %s/nginx.conf 2> %s/start.log"
  execute(command:format(program.command, directory, directory, directory))
end

local M = {}

---The CPU and the wall-clock seconds of a C program that makes so many requests; see floor.c.
function M.floor(directory, mode, port, count, in_flight, rest)
  local command = ("%s/floor %s %s %d %d %s"):format(directory, mode, port, count, in_flight, rest or "")
  local pipe = assert(io.popen(command))
  local cpu, wall = pipe:read("*n", "*n")
  pipe:close()
  return { cpu = cpu, wall = wall }
end

function M.median(list)
  local sorted = {}
  for i, value in ipairs(list) do
    sorted[i] = value
  end
  table.sort(sorted)
  return sorted[math.floor(#sorted / 2) + 1]
end

---The median of the ratios of two lists of costs, round by round.
---@param costs number[]
---@param others number[]
---@return number
function M.ratio(costs, others)
  local list = {}
  for i, cost in ipairs(costs) do
    list[i] = cost / others[i]
  end
  return M.median(list)
end

---Calls `measure(directory, port)` while the server answers with `body`, in which nginx replaces its variables.
function M.serve(body, measure)
  local directory = os.tmpname()
  os.remove(directory)
  execute("mkdir " .. directory)
  local ok, message = pcall(function()
    local port = free_port()
    start_server(directory, port, body)
    measure(directory, port)
  end)
  os.execute(("kill $(cat %s/nginx.pid); rm -rf %s"):format(directory, directory))
  assert(ok, message)
end

---The same, with the programs of floor.c in the directory.
function M.run(body, measure)
  M.serve(body, function(directory, port)
    execute(("cc -O2 -o %s/floor %s/floor.c -lcurl"):format(directory, here))
    measure(directory, port)
  end)
end

return M
