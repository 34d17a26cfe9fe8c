-- A file in the working directory that has the name of a module is never loaded: it may come from somebody else.
local command_line = require "spec.support.command_line"

local NAMES = {
  "ffi",
  "zlib",
  "lxp",
  "argparse",
  "cjson",
  "table/new",
  "riskscreen/core",
  "riskscreen/decoder",
  "riskscreen/server",
  "riskscreen/system",
}

local root = assert(io.popen "pwd"):read "*l"

local function write(path, text)
  local file = assert(io.open(path, "w"))
  file:write(text)
  file:close()
end

describe("a file in the working directory", function()
  local directory

  before_each(function()
    directory = os.tmpname()
    os.remove(directory)
    assert(os.execute(("mkdir -p %s/riskscreen %s/table"):format(directory, directory)))
    local trap = 'io.stderr:write("TRAPPED\\n") os.exit(99)'
    for _, name in ipairs(NAMES) do
      write(directory .. "/" .. name .. ".lua", trap)
    end
  end)

  after_each(function()
    os.execute("rm -r " .. directory)
  end)

  local function run(line)
    local output, status = command_line.run(("sh -c 'cd %s && %s'"):format(directory, line))
    assert.is_nil(output:find("TRAPPED", 1, true), output)
    return output, status
  end

  it("is not loaded by the command, whatever the path allows", function()
    local interpreter = root .. "/build/5.4/bin/riskscreen"
    for _, path in ipairs { "./?.lua;", "?.lua;" } do
      local line = 'LUA_PATH="%s%s/lua/?.lua;%s/lua/?/init.lua;;" LUA_CPATH="%s/build/5.4/?.so;;" %s doctor --sandbox'
      local output = run(line:format(path, root, root, root, interpreter))
      assert.truthy(output:find("installation", 1, true), output)
    end
  end)

  it("is no compiled module for a program, in a folder of any relative path", function()
    local code = [[package.cpath = "lib/?.so;./?.so;?.so;../%s/?.so;" .. package.cpath
      for _, name in ipairs { "riskscreen.core", "zlib" } do
        local module, message = require("riskscreen.util.optional")(name)
        assert(module or not message:find("file too short", 1, true), message)
      end
      print "made"]]
    assert(os.execute(("mkdir -p %s/lib/riskscreen"):format(directory)))
    for _, name in ipairs { "riskscreen/core.so", "zlib.so", "lib/riskscreen/core.so", "lib/zlib.so" } do
      write(directory .. "/" .. name, "")
    end
    for _, interpreter in ipairs { "lua5.4", "lua5.1", "luajit" } do
      write(directory .. "/program.lua", code:format(directory:match "[^/]*$"))
      local line = 'LUA_PATH="%s/lua/?.lua;%s/lua/?/init.lua;;" LUA_CPATH=";;" %s program.lua'
      local output = run(line:format(root, root, interpreter))
      assert.truthy(output:find("made", 1, true), output)
    end
  end)

  it("is not loaded by a program in place of a module that may be missing", function()
    local code = [[require("riskscreen.policy").new() print(require("riskscreen.util.optional")("zlib") ~= 1, "made")]]
    for _, interpreter in ipairs { "lua5.4", "lua5.1", "luajit" } do
      for _, cpath in ipairs { "", root .. "/build/5.4/?.so;" } do
        write(directory .. "/program.lua", code)
        local line = 'LUA_PATH="%s/lua/?.lua;%s/lua/?/init.lua;./?.lua;;" LUA_CPATH="%s;;" %s program.lua'
        local output = run(line:format(root, root, interpreter == "lua5.4" and cpath or "", interpreter))
        assert.truthy(output:find("made", 1, true), output)
      end
    end
  end)
end)
