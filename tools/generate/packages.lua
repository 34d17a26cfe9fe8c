-- The files of LuaRocks and OPM that state the version: rockspecs and dist.ini.

local version = require "riskscreen.version"

local SUMMARY = "Screen blockchain addresses and transactions against a risk service, and never get a wrong yes"
local DECODER_SUMMARY = "The JSON decoder of riskscreen alone: strict, fast, and without libcurl"
-- Stands for the addresses of the project, which is not published yet.
local HOME = "https://example.com/riskscreen"

-- The command needs argparse, which no rock names: most systems have it as a package that LuaRocks does not see.
local ROCK = [[
rockspec_format = "3.0"
package = "%s"
version = "%s-1"
source = { url = "%s" }
description = {
  summary = "%s",
  license = "MIT",
}
dependencies = { "lua >= 5.1, < 5.6"%s }%s
build = {
  type = "cmake",
  variables = {
    CMAKE_BUILD_TYPE = "Release",
    CMAKE_INSTALL_PREFIX = "$(PREFIX)",
    LUA_INCLUDE_DIR = "$(LUA_INCDIR)",
    RISKSCREEN_INSTALL_CMOD = "$(LIBDIR)",
%s  },%s
}
]]

local DECODER = [[
    RISKSCREEN_PARTS = "decoder",
]]

local LIBRARY = [[
    RISKSCREEN_INSTALL_LMOD = "$(LUADIR)",
    RISKSCREEN_INSTALL_BINDIR = "$(BINDIR)",
    RISKSCREEN_INTERPRETER = "$(LUA)",
    RISKSCREEN_PARTS = "library", -- LuaRocks builds all rocks in the same directory
    RISKSCREEN_ROOMS = "%s",
]]

local CURL = [[

external_dependencies = {
  CURL = { library = "curl" },
}]]
local TYPES = '\n  copy_directories = { "docs", "types" },'
local TEST = [[
test = { type = "command", script = "spec/rock.lua" }
]]

-- The purpose of each room, in the order of cmake/rooms.cmake.
local ROOMS = {
  library = "riskscreen's library alone: screen blockchain addresses and transactions from Lua",
  sandbox = "The simulated risk service of riskscreen, for tests and demonstrations",
  durable = "Stores, journals, queues, watches and webhooks of riskscreen",
  gate = "The gate of riskscreen for nginx and OpenResty",
  command = "The command of riskscreen, for shells, scripts and files of addresses",
}

local DIST = [[
# What opm reads. Written by tools/generate.lua.
name = riskscreen
abstract = %s
author = the riskscreen authors
is_original = yes
license = mit
repo_link = %s
lib_dir = lua
doc_dir = docs
main_module = lua/riskscreen/init.lua
version = %s
requires = luajit >= 2.1.0, ngx_http_lua >= 0.10.19
]]

local M = {}

-- The value of a variable that cmake/rooms.cmake sets, as a list.
local function rooms_variable(cmake, name)
  local list = {}
  for room in (cmake:match("set%(" .. name .. "%s+([^)]*)%)") or ""):gmatch "%S+" do
    list[#list + 1] = room
  end
  return list
end

-- The rockspec of a room, which depends on the rocks of the rooms that it needs.
local function room_rock(cmake, room, release, url)
  local needed = ""
  for _, name in ipairs(rooms_variable(cmake, "room_" .. room .. "_needs")) do
    needed = ('%s, "riskscreen-%s == %s"'):format(needed, name, release)
  end
  local is_library = room == "library"
  local name = "riskscreen-" .. room
  local curl, types = is_library and CURL or "", is_library and TYPES or ""
  return ROCK:format(name, release, url, ROOMS[room], needed, curl, LIBRARY:format(room), types)
end

---The files by path.
---@return table<string, string>
function M.files()
  local tarball = ("%s/riskscreen-%s.tar.gz"):format(HOME, version)
  local cmake = assert(io.open "cmake/rooms.cmake"):read "*a"
  local rooms = rooms_variable(cmake, "riskscreen_rooms")
  local files = { ["dist.ini"] = DIST:format(SUMMARY, HOME, version) }
  for release, url in pairs { scm = "git+file://.", [version] = tarball } do
    local whole = release == "scm" and "" or "rockspecs/"
    files[("%sriskscreen-%s-1.rockspec"):format(whole, release)] = ROCK:format(
      "riskscreen",
      release,
      url,
      SUMMARY,
      "",
      CURL,
      LIBRARY:format(table.concat(rooms, ";")),
      TYPES
    ) .. TEST
    files[("rockspecs/decoder/riskscreen-decoder-%s-1.rockspec"):format(release)] =
      ROCK:format("riskscreen-decoder", release, url, DECODER_SUMMARY, "", "", DECODER, "")
    for _, room in ipairs(rooms) do
      files[("rockspecs/rooms/riskscreen-%s-%s-1.rockspec"):format(room, release)] =
        room_rock(cmake, room, release, url)
    end
  end
  return files
end

return M
