/* A program that links the library statically, and finds no Lua file and no C module on disk. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <string.h>

#include "riskscreen.h"

static const char script[] = "package.path, package.cpath = '', ''\n"
                             "local riskscreen = require 'riskscreen'\n"
                             "local client = riskscreen.sandbox.client {}\n"
                             "local bad = riskscreen.sandbox.scenario 'type-sanction'\n"
                             "local decision = client:screen { address = bad.address, network = bad.network }\n"
                             "assert(decision.action == 'block', decision.action)\n"
                             "local addresses = { bad.address, bad.address }\n"
                             "assert(client.kya:entities { addresses = addresses, network = bad.network })\n"
                             "local input, output = os.tmpname(), os.tmpname()\n"
                             "local file = assert(io.open(input, 'w'))\n"
                             "file:write 'address,network,action\\n0x1,eth,block\\n'\n"
                             "file:close()\n"
                             "local summary = assert(riskscreen.report.write { input = input, output = output })\n"
                             "os.remove(input)\n"
                             "os.remove(output)\n"
                             "assert(summary.actions.block == 1)\n";

static int preload(lua_State *L) {
    riskscreen_preload(L);
    return 0;
}

int main(void) {
    lua_State *L = luaL_newstate();
    lua_pushcfunction(L, preload);
    if (lua_pcall(L, 0, 0, 0) == 0 || strstr(lua_tostring(L, -1), "luaL_openlibs") == NULL) {
        fprintf(stderr, "before luaL_openlibs: no clear error\n");
        return 1;
    }
    lua_pop(L, 1);
    luaL_openlibs(L);
    riskscreen_preload(L);
    int status = luaL_loadstring(L, script) != 0 || lua_pcall(L, 0, 0, 0) != 0;
    if (status != 0) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
    }
    lua_close(L);
    return status;
}
