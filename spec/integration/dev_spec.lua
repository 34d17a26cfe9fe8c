-- The commands of ./dev as a person types them.
local command_line = require "spec.support.command_line"
local lfs = require "lfs"
local socket = require "socket"
local temporary = require "spec.support.temporary"

local interrupt, run = command_line.interrupt, command_line.run
local here = run("pwd"):match "[^\n]+"

describe("./dev", function()
  it("names an unknown command and ends with status 2", function()
    local output, status = run "./dev tset"
    assert.equal("dev: unknown command 'tset'; ./dev help lists them\n", output)
    assert.equal(2, status)
  end)

  for _, command in ipairs {
    "sandbox",
    "gateway",
    "test",
    "fuzz",
    "bench",
    "soak",
    "lint",
    "build",
    "packages",
    "install",
    "release",
  } do
    it(command .. " -h explains the command", function()
      local output, status = run("./dev " .. command .. " -h")
      assert.matches("./dev " .. command, output, 1, true)
      assert.is_nil(output:find "^#")
      assert.equal(0, status)
      assert.equal(output, (run("./dev " .. command .. " --help")))
    end)
  end
end)

describe("./dev riskscreen", function()
  it("runs the command of this checkout", function()
    local output, status = run "./dev riskscreen address check 0x12 -n eth --csv"
    assert.matches("0x12,false,", output, 1, true)
    assert.equal(2, status)
    assert.matches("Usage: riskscreen", (run "./dev riskscreen --help"), 1, true)
  end)

  it("reads and writes in the directory of the caller", function()
    local place = temporary.directory()
    temporary.write(place .. "/in.csv", "address\n0x0000000000000000000000000000000000000001\n")
    local line = "sh -c 'cd %s && XDG_CONFIG_HOME=/none %s/dev riskscreen screen --sandbox --file in.csv -n eth'"
    local output, status = run(line:format(place, here))
    assert.equal(0, status, output)
    assert.matches("0x0000000000000000000000000000000000000001,eth,allow", temporary.read(place .. "/in.results.csv"))
    temporary.clean()
  end)
end)

describe("./dev env", function()
  it("puts the command on the PATH", function()
    local output, status = run [[sh -c 'eval "$(./dev env)"; cd /; riskscreen --version']]
    assert.matches("^riskscreen %d", output)
    assert.equal(0, status)
  end)
end)

describe("./dev build", function()
  after_each(temporary.clean)

  it("installs what the build for that Lua needs, and nothing else", function()
    -- A system on which no package is installed, and none can be.
    local directory = temporary.directory()
    for _, name in ipairs { "dpkg-query", "apt-get", "sudo" } do
      temporary.write(directory .. "/" .. name, "#!/bin/sh\nexit 1\n")
      assert(os.execute(("chmod +x %s/%s"):format(directory, name)))
    end
    local output, status = run(("PATH=%s:$PATH ./dev build luajit"):format(directory))
    assert.equal(1, status)
    local packages = output:match "Installing:([^\n]+)"
    for name in packages:gmatch "%S+" do
      local is_needed = name:find "^lib.*%-dev$" or ("gcc cmake ninja-build pkg-config"):find(name, 1, true)
      assert.is_truthy(is_needed, name .. " is not needed for a build")
    end
    assert.matches("libluajit2-5.1-dev", packages, 1, true)
  end)

  it("builds in a checkout that was moved", function()
    local directory = temporary.directory()
    assert(lfs.mkdir(directory .. "/old"))
    temporary.write(directory .. "/old/CMakeLists.txt", "cmake_minimum_required(VERSION 3.18)\nproject(p NONE)\n")
    temporary.write(
      directory .. "/old/CMakePresets.json",
      [[{ "version": 3, "configurePresets": [
        { "name": "p", "generator": "Ninja", "binaryDir": "${sourceDir}/build/${presetName}" } ] }]]
    )
    -- The second is a build that no preset names, as that of the checks.
    local command = "build_preset p && cmake -G Ninja -S . -B build/q >build/q.log 2>&1"
    local build = ("sh -c 'cd %s/%%s && . %s/tools/common.sh && %s'"):format(directory, here, command)
    assert.equal(0, select(2, run(build:format "old")))
    assert(os.rename(directory .. "/old", directory .. "/new"))
    local output, status = run(build:format "new")
    assert.equal("", output)
    assert.equal(0, status)
  end)
end)

describe("./dev install", function()
  after_each(temporary.clean)

  it("installs the library for one Lua below a prefix, which its uninstall target removes", function()
    local prefix = temporary.directory() .. "/prefix"
    local _, status = run(("sh -c 'umask 077; ./dev install 5.4 %s'"):format(prefix))
    assert.equal(0, status)
    local program = temporary.path "program.lua"
    temporary.write(
      program,
      'print(require("riskscreen.core").version, package.searchpath("riskscreen", package.path))'
    )
    local paths = "LUA_PATH='%s/share/lua/5.4/?.lua;%s/share/lua/5.4/?/init.lua' LUA_CPATH='%s/lib/lua/5.4/?.so'"
    assert.matches(
      prefix .. "/share/lua/5.4/riskscreen/init.lua",
      run(paths:gsub("%%s", prefix) .. " lua5.4 " .. program),
      1,
      true
    )
    -- Also where the installing user keeps its own files to itself.
    assert.equal("", (run(("find %s/share %s/lib ! -perm -o=r"):format(prefix, prefix))))
    assert.equal("", (run(("find %s -name bin -o -name man"):format(prefix))))

    assert.equal(0, select(2, run "cmake --build build/5.4 --target uninstall"))
    assert.equal("", (run(("find %s -type f -o -name riskscreen"):format(prefix))))
  end)
end)

describe("./dev test", function()
  it("runs the specs whose path holds a name", function()
    local output, status = run "./dev test unit/version_spec"
    assert.matches("5 successes / 0 failures / 0 errors", output, 1, true)
    assert.equal(0, status)
  end)

  it("refuses a name that no path holds", function()
    local output, status = run "./dev test version_spce"
    assert.equal("test: no spec file has 'version_spce' in its path\n", output)
    assert.equal(2, status)
  end)
end)

for command, lowest in pairs { sandbox = 0, gateway = 1 } do
  describe("./dev " .. command, function()
    for _, port in ipairs { "abc", "80800", "-1", "80.5", "0x50" } do
      it("refuses the port " .. port, function()
        local output, status = run(("./dev %s %s"):format(command, port))
        local message = "%s: PORT must be a whole number from %d to 65535 (got '%s')\n"
        assert.equal(message:format(command, lowest, port), output)
        assert.equal(2, status)
      end)
    end
  end)
end

describe("./dev sandbox", function()
  it("refuses a webhook address that is no URL", function()
    local output, status = run "./dev sandbox 0 example"
    assert.equal("sandbox: WEBHOOK_URL must begin with http:// or https:// (got 'example')\n", output)
    assert.equal(2, status)
  end)

  it("names the port that is taken", function()
    local listener = assert(socket.bind("127.0.0.1", 0))
    local port = select(2, listener:getsockname())
    local output, status = run("./dev sandbox " .. port)
    listener:close()
    assert.matches("^sandbox: [^\n]*" .. port .. "[^\n]*\n$", output)
    assert.equal(1, status)
  end)

  it("ends quietly when it is interrupted", function()
    local rest, status = interrupt("./dev sandbox", "^RISKSCREEN_ACCESS_KEY=")
    assert.equal("", rest)
    assert.equal(0, status)
  end)
end)

describe("luarocks make", function()
  it("builds in a directory that git ignores", function()
    assert.equal("build.luarocks/core.so\n", (command_line.run "git check-ignore build.luarocks/core.so"))
  end)
end)
