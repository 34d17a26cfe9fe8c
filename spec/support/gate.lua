-- A gate in a real nginx before pages that say "passed", with a sandbox in the process of the spec.
local nginx = require "spec.support.nginx"
local sandbox = require "riskscreen.sandbox"

local HTTP = [[
  lua_shared_dict riskscreen DICTSIZE;
  log_format decided '$uri $status $action $source $outcome';
  init_by_lua_block {
    function new_gate(options)
      options.client = options.client
        or { base_url = "SERVICE", access_key = "ACCESSKEY", account = "test", retry = false }
      if options.dict == nil then
        options.dict = "riskscreen"
      end
      options.dict = options.dict or nil
      options.on_unknown = options.on_unknown or "block"
      return require("riskscreen.nginx.gate").new(options)
    end
    INIT
  }
]]

local SERVER = [[ set $action ""; set $source ""; set $outcome ""; set $reason ""; access_log DIR/access.log decided; ]]

local PASSED = [[content_by_lua_block { ngx.print("passed") }]]

local M = {}

---@class riskscreen.spec.GateOptions
---@field init? string Lua of init_by_lua; `new_gate` makes a gate that asks the sandbox
---@field locations? table<string, string> the Lua of each location's access phase
---@field behind? string directives of the application, in each location
---@field http? string more directives of http
---@field server? string more directives of the server
---@field workers? integer
---@field dict_size? string
---@field sandbox? table its options
---@field shared? table a served sandbox that other gates ask too; its owner closes it

---@class riskscreen.spec.Gate
---@field nginx riskscreen.spec.Nginx
---@field service table the sandbox
---@field server table what serves it
---@field get fun(target: string, request?: table): riskscreen.spec.Answer
---@field status fun(target: string, request?: table): integer
---@field close fun(allowed?: string[]) patterns of lines that the error log may have

---@param options riskscreen.spec.GateOptions
---@return riskscreen.spec.Gate
function M.start(options)
  local server = options.shared or assert(sandbox.serve { service = sandbox.new(options.sandbox or {}) })
  local values = {
    SERVICE = server.url,
    ACCESSKEY = server.access_key,
    DICTSIZE = options.dict_size or "4m",
    INIT = options.init or "gate = new_gate { network = 'eth' }",
  }
  local lines = { SERVER, options.server or "" }
  for path, code in pairs(options.locations or {}) do
    local behind = options.behind or PASSED
    lines[#lines + 1] = ("location %s { access_by_lua_block { %s } %s }"):format(path, code, behind)
  end
  local started, running = pcall(nginx.start, {
    workers = options.workers,
    http = (options.http or "") .. HTTP:gsub("%f[%w]%u+%f[%W]", values),
    server = table.concat(lines, "\n"),
  })
  local function close_server()
    if not options.shared then
      server:close()
    end
  end
  if not started then
    close_server()
    error(running, 2)
  end
  local self = { nginx = running, service = server.service, server = server }
  function self.get(target, request)
    return assert(running.get(target, request))
  end
  function self.status(target, request)
    return self.get(target, request).status
  end
  function self.close(allowed)
    -- nginx first: it logs broken connections, and a background fetch may be under way.
    local ok, failure = pcall(running.stop, running, allowed)
    close_server()
    if not ok then
      error(failure, 0)
    end
  end
  return self
end

return M
