-- Stands in for lua-resty-core, which nginx loads first, and records each line of the library that runs inside nginx.
-- See ../../nginx.lua and tools/coverage.sh.
local getinfo = debug.getinfo
local jit, ngx = _G.jit, _G.ngx
local directory = os.getenv "RISKSCREEN_COVERAGE"

-- The real one is next in the path.
package.path = package.path:gsub("^[^;]*;", "", 1)
package.loaded["resty.core"] = nil

local seen, file, of_process = {}, nil, nil

-- A worker inherits what its master has seen, and writes to a file of its own.
local function write(text)
  local pid = ngx.worker.pid()
  if pid ~= of_process then
    file = assert(io.open(("%s/nginx.%d"):format(directory, pid), "a"))
    file:setvbuf "line"
    of_process = pid
  end
  file:write(text, "\n")
end

-- Compiled code calls no hook.
jit.off()
debug.sethook(function(_, line)
  local source = getinfo(2, "S").source
  local lines = seen[source]
  if not lines then
    lines = { path = source:match "^@.*/(lua/riskscreen/.*)$" }
    seen[source] = lines
  end
  if lines.path and not lines[line] then
    lines[line] = true
    write(lines.path .. ":" .. line)
  end
end, "l")

return require "resty.core"
