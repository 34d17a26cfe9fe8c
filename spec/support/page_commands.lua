-- Runs the code blocks of a page that are no Lua: shell commands, C programs, and nginx configurations with a sandbox
-- behind them.
local nginx = require "spec.support.nginx"
local pages = require "spec.support.pages"
local program = require "spec.support.nginx_program"
local redis = require "spec.support.redis"

local M = {}

local interpreter = os.getenv "RISKSCREEN_LUA" or "lua5.4"

---Runs a shell command in the root of the checkout.
---@param command string
---@return string output of stdout and stderr
---@return integer status
function M.run(command)
  local pipe = assert(io.popen("{ " .. command .. "\n} 2>&1; printf '\\001%d' $?"))
  local output = pipe:read "*a"
  pipe:close()
  local text, status = output:match "^(.*)\1(%d+)$"
  return text, tonumber(status)
end

-- The environment that the pages about nginx tell the reader to set.
local ENVIRONMENT = "RISKSCREEN_ACCESS_KEY=sandbox-key WEBHOOK_SECRET=a-secret-of-the-documentation "
  .. "RISKSCREEN_FLEET_KEY=a-key-of-the-documentation DECISIONS_SECRET=a-secret-of-the-documentation "

-- The lines of docs/README.md that set the environment of the Lua blocks.
local function exports()
  local lines = {}
  for _, block in ipairs(pages.blocks "docs/README.md") do
    lines[#lines + 1] = block.language == "sh" and block.text or nil
  end
  return table.concat(lines)
end

---Runs the Lua blocks of a page as one program, in a process of its own. It has the variables of docs/README.md alone.
---@param blocks riskscreen.spec.Block[]
---@return table<integer, string> outputs by the line of the block
---@return integer status
---@return string problem what it wrote to stderr
function M.run_lua(blocks)
  local path, errors = os.tmpname(), os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(pages.program(blocks))
  file:close()
  local server = pages.program(blocks):find "REDIS_URL" and redis.start()
  local environment = "unset RISKSCREEN_ACCESS_KEY REDIS_URL\n" .. exports()
  local own = server and "REDIS_URL=" .. server.url or ""
  local output, status = M.run(("%s%s timeout 30 %s %s 2>%s"):format(environment, own, interpreter, path, errors))
  if server then
    server:stop()
  end
  local problem = pages.read(errors):gsub(path:gsub("%p", "%%%0"), blocks[1].page)
  os.remove(path)
  os.remove(errors)
  return pages.outputs(output), status, problem
end

---Compiles a C program against the headers of this checkout and of Lua 5.4.
---@param block riskscreen.spec.Block
---@return string output
---@return integer status
function M.compile_c(block)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(block.text)
  file:close()
  local flags = "-std=c11 -Wall -Wextra -Werror -Icsrc $(pkg-config --cflags lua5.4)"
  local output, status = M.run(("cc -fsyntax-only -x c %s %s"):format(flags, path))
  os.remove(path)
  return output, status
end

-- How each kind of shell line is treated: `run` runs it, anything else is a check of it.
local packages = M.run ". tools/common.sh; echo $build_packages $nginx_packages $test_packages"

local function known_packages(line)
  for name in line:gsub("^sudo apt%-get install", ""):gmatch "%S+" do
    if not name:find "^%-" and not (" " .. packages:gsub("%s+", " ")):find(" " .. name .. " ", 1, true) then
      return name .. " is none of the packages in tools/common.sh"
    end
  end
end

local function is_command_of_dev(line)
  local name = line:match "^%./dev (%w+)"
  local file = name and io.open("tools/" .. name .. ".sh")
  if not file then
    return "there is no such command of ./dev"
  end
  file:close()
end

-- tools/rocks.sh runs this command, in a tree of its own.
local function is_checked_by_install(line)
  local arguments = line:match " (make.*)$"
  if not arguments or not pages.read("tools/rocks.sh"):find("rocks first " .. arguments, 1, true) then
    return "tools/rocks.sh runs another command"
  end
end

local function accepted() end

local kinds = {
  { "^sudo apt%-get install ", known_packages },
  { "^%./dev ", is_command_of_dev },
  { "^PATH=%S+ %./dev ", accepted },
  { '^eval "%$%(%./dev env', accepted },
  { "^sudo luarocks ", is_checked_by_install },
  { "^export RISKSCREEN_[%u_]+=", accepted },
  { "^export REDIS_URL=", accepted }, -- the Lua blocks run with it
  { "^sudo [-E ]*/usr/sbin/nginx ", accepted }, -- the page's configuration is started from its nginx block
  { "^curl .*%-%-retry%-connrefused ", accepted }, -- the sandbox of the test is up
  { "^nginx %-e stderr %-p examples/nginx ", accepted }, -- spec/in_nginx/gateway_nginx.lua starts it
  { "^riskscreen ", "run" },
  { "^echo '[^']*' | riskscreen ", "run" },
  { "^lua5%.4 ", "run" },
  { "^curl ", "run" },
  { "^cmake ", "run" },
  { "^cc ", "run" },
  { "^c%+%+ ", "run" },
  { "^build/embed/[%w_]+$", "run" },
}

local function kind_of(line)
  for _, kind in ipairs(kinds) do
    if line:find(kind[1]) then
      return kind[2]
    end
  end
end

local NOTICE = "riskscreen: no service is configured"
local directory -- where the pages' `riskscreen` commands run, one after another
local queue_server -- the Redis of their queues

-- The command of this checkout, in a directory with addresses.csv and some files of examples/.
local function run_riskscreen(command)
  if not directory then
    directory = M.run "mktemp -d":gsub("%s+$", "")
    M.run(("cp examples/addresses.csv %s; mkdir %s/examples"):format(directory, directory))
    M.run(("cp examples/addresses.csv examples/cases.csv examples/payouts.lua %s/examples"):format(directory))
  end
  local environment = ""
  if command:find "^riskscreen queue " then
    queue_server = queue_server or redis.start()
    environment = "export RISKSCREEN_REDIS_URL=" .. queue_server.url .. "; "
  end
  local line = 'root=$PWD; riskscreen() { %s "$root/bin/riskscreen.in" "$@"; }; cd %s; export XDG_CONFIG_HOME=$PWD; %s'
  return M.run((environment .. line):format(interpreter, directory, command))
end

---Removes what the pages' `riskscreen` commands have written.
function M.remove_directory()
  if queue_server then
    queue_server:stop()
    queue_server = nil
  end
  if directory then
    M.run("rm -r " .. directory)
    directory = nil
  end
end

---Runs the lines of a shell block that can be run here and checks the others. A line of `riskscreen` that the sandbox
---answers says so on stderr; a page may leave that line out.
---@param block riskscreen.spec.Block
---@param adapt? fun(line: string): string what a line is changed to before it is run
---@return string output
---@return string|nil problem
function M.run_shell(block, adapt)
  local outputs = {}
  for line in block.text:gsub("\\\n%s*", ""):gmatch "[^\n]+" do
    local command = line:gsub("%s+#.*$", ""):gsub("%s+&$", "")
    local kind = kind_of(command)
    if kind == "run" then
      -- Lua 5.1 and LuaJIT write to a pipe at their end, and to a reader's terminal line by line.
      command = command:gsub("^lua5%.4 ", interpreter .. " -e 'io.stdout:setvbuf \"line\"' ")
      -- The output is the same without optimization, which saves most of the build time.
      command = command:gsub("^cmake ", "CMAKE_BUILD_TYPE=Debug cmake ")
      local run = (command:find "^riskscreen " or command:find "| riskscreen ") and run_riskscreen or M.run
      local output, status = run(adapt and adapt(command) or command)
      if not (block.expected or ""):find(NOTICE, 1, true) then
        output = output:gsub(NOTICE .. "[^\n]*\n", "")
      end
      outputs[#outputs + 1] = output
      if status ~= 0 and not block.expected then
        return table.concat(outputs), ("%s: exit %d"):format(command, status)
      end
    elseif kind then
      local problem = kind(command)
      if problem then
        return "", ("%s: %s"):format(command, problem)
      end
    else
      return "", ("%s: nothing says how to check this command"):format(command)
    end
  end
  return table.concat(outputs)
end

-- nginx ---------------------------------------------------------------------------------------------------------------

-- The sandbox in a process of its own, since curl and nginx are waited for.
local function start_sandbox()
  local path = os.tmpname()
  local pid = M.run(("%s tools/sandbox.lua >%s 2>/dev/null & echo $!"):format(interpreter, path))
  local url = nginx.wait_for("the sandbox", function()
    return pages.read(path):match "RISKSCREEN_BASE_URL=(%S+)\nRISKSCREEN_ACCESS_KEY=%S+\n"
  end)
  os.remove(path)
  return { url = url, pid = tonumber(pid) }
end

-- Puts text before the end of a block of directives, which begins at a pattern.
local function insert(configuration, pattern, text)
  local from = assert(configuration:find(pattern), "the page's first configuration has no " .. pattern)
  local _, to = configuration:find("%b{}", from)
  return configuration:sub(1, to - 1) .. text .. configuration:sub(to)
end

-- A page's blocks as one configuration: the first is a whole file, the others are parts of it.
local function assembled(blocks)
  local whole
  for _, block in ipairs(blocks) do
    if block.language == "nginx" and not whole then
      whole = block.text
    elseif block.language == "nginx" then
      local level = block.text:find "^location" and "server {" or "http {"
      whole = insert(whole, level, block.text)
    elseif block.language == "lua" then
      whole = insert(whole, "init_by_lua_block {", "do\n" .. block.text .. "end\n")
    end
  end
  return whole
end

-- Where the file on the page names places of a real machine, those of this test.
local function adapted(configuration, sandbox, redis_url)
  local root = M.run("pwd"):gsub("\n", "")
  local text = configuration:gsub("load_module [^\n]*\n", "")
  text = text:gsub("%$prefix", root):gsub("/opt/riskscreen", root)
  text =
    text:gsub("pid [^\n;]*;", "pid DIR/nginx.pid;"):gsub("error_log [^\n;]* notice;", "error_log DIR/error.log notice;")
  text =
    text:gsub("127%.0%.0%.1:8080", "127.0.0.1:PORT"):gsub("http://127%.0%.0%.1:8081", (sandbox.url:gsub("%%", "%%%%")))
  text = redis_url and text:gsub("redis://127%.0%.0%.1:6379", redis_url) or text
  return program.modules() .. "\nuser root;\n" .. text
end

---Starts nginx with the configuration of a page and a sandbox behind it.
---@param blocks riskscreen.spec.Block[]
---@return { adapt: fun(line: string): string, stop: fun() }
function M.start_nginx(blocks)
  local sandbox, configuration = start_sandbox(), assembled(blocks)
  local redis_server = configuration:find("redis://", 1, true) and redis.start()
  local function stop_others()
    os.execute("kill " .. sandbox.pid)
    if redis_server then
      redis_server:stop()
    end
  end
  local ok, server = pcall(nginx.start, {
    configuration = adapted(configuration, sandbox, redis_server and redis_server.url),
    environment = ENVIRONMENT .. "RISKSCREEN_BASE_URL=" .. sandbox.url,
  })
  if not ok then
    stop_others()
    error(server, 0)
  end
  return {
    adapt = function(line)
      return (line:gsub("127%.0%.0%.1:8080", "127.0.0.1:" .. server.port))
    end,
    stop = function()
      local stopped, problem = pcall(server.stop, server)
      stop_others()
      if not stopped then
        error(problem, 0)
      end
    end,
  }
end

return M
