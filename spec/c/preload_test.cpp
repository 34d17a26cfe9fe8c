// Checks that a C++ program can include riskscreen.h and link the static library.
#include "riskscreen.h"

#include <cstdio>

#include <lua.hpp>

int main() {
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    riskscreen_preload(L);
    const char *script = "return require('riskscreen.core').decode('{\"a\":[1,2]}').a[2]";
    bool ok = luaL_loadstring(L, script) == 0 && lua_pcall(L, 0, 1, 0) == 0 && lua_tonumber(L, -1) == 2;
    if (!ok) {
        std::fprintf(stderr, "%s\n", lua_tostring(L, -1));
    }
    lua_close(L);
    return ok ? 0 : 1;
}
