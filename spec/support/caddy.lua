-- A real Caddy with a Caddyfile of a test. It listens on 127.0.0.1 alone, and keeps its files in a directory of
-- its own.
local free_port = require "spec.support.free_port"
local http = require "spec.support.http"
local nginx = require "spec.support.nginx"
local socket = require "socket"

local INSTALL = "root=$(pwd) && set -eu && . tools/caddy.sh && get_caddy 2>/dev/null && echo $CADDY"
local OPTIONS = "{\n  admin off\n  auto_https off\n}\n"

local M = { MISSING = "apt-get cannot download Caddy here" }

---@class riskscreen.spec.Caddy
---@field get fun(target: string, request?: riskscreen.spec.Request): riskscreen.spec.Answer|nil, table|nil
---@field stop fun()

---@param site string the directives of a site
---@return riskscreen.spec.Caddy|nil caddy nil where Debian's package cannot be downloaded
function M.start(site)
  local install = assert(io.popen(INSTALL))
  local program = install:read "*l"
  install:close()
  if not program then
    return nil
  end
  local port, directory = free_port(), os.tmpname()
  os.remove(directory)
  assert(os.execute("mkdir " .. directory))
  local file = assert(io.open(directory .. "/Caddyfile", "w"))
  file:write(OPTIONS, ("http://127.0.0.1:%d {\n  bind 127.0.0.1\n%s\n}\n"):format(port, site))
  file:close()
  local line = "HOME=%s XDG_CONFIG_HOME=%s %s run --adapter caddyfile --config %s/Caddyfile >%s/log 2>&1 & echo $!"
  local pipe = assert(io.popen(line:format(directory, directory, program, directory, directory)))
  local process = pipe:read "*l"
  pipe:close()
  nginx.wait_for("Caddy to listen", function()
    local connection = socket.connect("127.0.0.1", port)
    return connection and connection:close()
  end)
  return {
    get = http.origin("http://127.0.0.1:" .. port),
    stop = function()
      local ending = "kill %s; while kill -0 %s 2>/dev/null; do sleep 0.01; done; rm -rf %s"
      os.execute(ending:format(process, process, directory))
    end,
  }
end

return M
