-- The library in a program that `resty` runs: nginx without a server, whose one worker runs the program in a timer and
-- then ends. Debian has no resty, so its configuration is made here; where resty is installed, it runs, too.
local nginx = require "spec.support.nginx"
local program = require "spec.support.nginx_program"

-- As resty writes it: `print` goes to stdout, in init_by_lua; the program starts in a timer of the worker.
local CONFIGURATION = [[
MODULES
daemon off;
master_process off;
worker_processes 1;
error_log stderr warn;
pid DIR/nginx.pid;
events { worker_connections 64; }
http {
  access_log off;
  lua_package_path "PATH;;";
  lua_package_cpath "CORE;;";
  init_by_lua_block {
    ngx.config.is_console = true
    print = function(...)
      io.stdout:write(table.concat({ ... }, " "), "\n")
    end
  }
  init_worker_by_lua_block {
    assert(ngx.timer.at(0, function()
      local ok, problem = xpcall(assert(loadfile "DIR/program.lua"), debug.traceback)
      if not ok then
        io.stderr:write(problem, "\n")
      end
      io.stdout:flush()
      os.exit(ok and 0 or 1)
    end))
  }
}
]]

local function output_of(command)
  local pipe = assert(io.popen("{ " .. command .. "\n} 2>&1; printf '\\001%d' $?"))
  local output, status = pipe:read("*a"):match "^(.*)\1(%d+)$"
  pipe:close()
  return output, tonumber(status)
end

local root = output_of("pwd"):match "[^\n]+"
local path = ("%s/lua/?.lua;%s/lua/?/init.lua"):format(root, root)
local core = nginx.with_core and root .. "/build/luajit/?.so" or ""
local has_resty = select(2, output_of "command -v resty") == 0

local function write(name, text)
  local file = assert(io.open(name, "w"))
  file:write(text)
  file:close()
end

-- Each runs a program and returns its output.
local runners = {}

runners["nginx as resty configures it"] = function(directory, code)
  local values = { MODULES = program.modules(), DIR = directory, PATH = path, CORE = core }
  write(directory .. "/program.lua", code)
  write(directory .. "/nginx.conf", (CONFIGURATION:gsub("%f[%w]%u+%f[%W]", values)))
  return output_of(("timeout 20 env %s -p %s -c %s/nginx.conf"):format(program.command, directory, directory))
end

if has_resty then
  runners.resty = function(directory, code)
    write(directory .. "/program.lua", code)
    local flags = ("-I %s/lua %s"):format(root, core ~= "" and "-I " .. core:match "^(.*)/%?" or "")
    return output_of(('timeout 20 resty %s -e "$(cat %s/program.lua)"'):format(flags, directory))
  end
end

for name, run in pairs(runners) do
  describe("a program in " .. name, function()
    local directory

    before_each(function()
      directory = output_of("mktemp -d"):match "%S+"
    end)

    after_each(function()
      os.execute("rm -rf " .. directory)
    end)

    -- The sandbox is a process of its own, because this one waits for the program.
    local function run_beside_sandbox(code)
      local serve = [[
        local server = assert(require("riskscreen").sandbox.serve {})
        io.stdout:write(server.url, "\n")
        io.stdout:flush()
        while true do server:step(1) end
      ]]
      write(directory .. "/serve.lua", serve)
      local lua = os.getenv "RISKSCREEN_LUA" or "lua5.4"
      local pipe = assert(io.popen(("echo $$; exec %s %s/serve.lua"):format(lua, directory)))
      local pid, url = pipe:read "*n", pipe:read "*l" and pipe:read "*l"
      local output, status = run(directory, ("local URL = %q\n"):format(url) .. code)
      output_of(("kill %d"):format(pid))
      pipe:close()
      return output, status
    end

    it("screens an address over HTTP", function()
      local output, status = run_beside_sandbox [[
        local riskscreen = require "riskscreen"
        local client = riskscreen.new { base_url = URL, access_key = "sandbox-key" }
        local bad, clean = riskscreen.sandbox.scenario "type-hack", riskscreen.sandbox.scenario "clean-eth"
        print(client:screen({ address = bad.address, network = "eth" }).action)
        print(client:screen({ address = clean.address, network = "eth" }).action)
      ]]
      assert.same({ "block\nallow\n", 0 }, { output, status })
    end)

    it("runs tasks side by side, and a list", function()
      local output, status = run_beside_sandbox [[
        local riskscreen = require "riskscreen"
        local client = riskscreen.new { base_url = URL, access_key = "sandbox-key" }
        local addresses = {}
        for number = 1, 20 do
          addresses[number] = ("0x%040x"):format(number)
        end
        local count = 0
        for decision in client:screen_all { source = addresses, network = "eth", concurrency = 5 } do
          count = count + (decision.error and 0 or 1)
        end
        print(count)
        riskscreen.run(function()
          local task = riskscreen.spawn(function()
            riskscreen.sleep(0.01)
            return "done"
          end)
          print((task:await()))
        end)
      ]]
      assert.same({ "20\ndone\n", 0 }, { output, status })
    end)

    it("screens with the sandbox in the process", function()
      local output, status = run(
        directory,
        [[
        local riskscreen = require "riskscreen"
        local bad = riskscreen.sandbox.scenario "type-hack"
        print(tostring(riskscreen.sandbox.client {}:screen { address = bad.address, network = "eth" }))
        print((require("riskscreen.address").validate("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAeD", "eth")) or "wrong")
      ]]
      )
      assert.equal(0, status, output)
      assert.is_truthy(output:find("^block 0x%w+ %(eth%): rule 'high risk' matches high / hack\n"), output)
      assert.is_truthy(output:find "\nwrong\n$")
    end)
  end)
end
