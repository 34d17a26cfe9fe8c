/* A C program with Lua inside that screens an address. It reads none of the library's Lua files from disk. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

#include "riskscreen.h"

static const char script[] = "local riskscreen = require 'riskscreen'\n"
                             "local client = riskscreen.sandbox.client {}\n"
                             "local bad = riskscreen.sandbox.scenario 'type-sanction'\n"
                             "return client:screen({ address = bad.address, network = bad.network }).action\n";

int main(void) {
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    riskscreen_preload(L); /* after the standard libraries, once for each state */
    int failed = luaL_loadstring(L, script) != 0 || lua_pcall(L, 0, 1, 0) != 0;
    printf("%s\n", lua_tostring(L, -1));
    lua_close(L);
    return failed;
}
