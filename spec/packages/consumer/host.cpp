// A C++ program with Lua inside that screens an address over HTTP, against a sandbox that it serves.
#include <iostream>
#include <lua.hpp>

#include "riskscreen.h"

static const char script[] = R"(
  package.path = "/nowhere/?.lua"
  local riskscreen = require "riskscreen"
  local server = assert(riskscreen.sandbox.serve {})
  local client = riskscreen.new { base_url = server.url, access_key = server.access_key }
  local bad = riskscreen.sandbox.scenario "type-sanction"
  return client:screen({ address = bad.address, network = bad.network }).action
)";

int main() {
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    riskscreen_preload(L);
    bool failed = luaL_loadstring(L, script) != 0 || lua_pcall(L, 0, 1, 0) != 0;
    std::cout << lua_tostring(L, -1) << std::endl;
    lua_close(L);
    return failed ? 1 : 0;
}
