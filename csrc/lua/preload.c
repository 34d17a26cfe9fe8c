#include "lua/compat.h"

#include "lua/modules.h"
#include "riskscreen.h"

/* The loader in package.preload. Its upvalue is the embedded module. */
static int load_module(lua_State *L) {
    const struct rsc_module *module = lua_touserdata(L, lua_upvalueindex(1));
    if (luaL_loadbuffer(L, (const char *)module->text, module->length, module->chunk) != 0) {
        return lua_error(L);
    }
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    return 1;
}

void riskscreen_preload(lua_State *L) {
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "preload");
    for (const struct rsc_module *module = rsc_modules; module->name != NULL; module++) {
        lua_pushlightuserdata(L, (void *)(size_t)module);
        lua_pushcclosure(L, load_module, 1);
        lua_setfield(L, -2, module->name);
    }
    lua_pushcfunction(L, luaopen_riskscreen_core);
    lua_setfield(L, -2, "riskscreen.core");
    lua_pushcfunction(L, luaopen_riskscreen_system);
    lua_setfield(L, -2, "riskscreen.system");
#ifdef RISKSCREEN_HAS_SERVER
    lua_pushcfunction(L, luaopen_riskscreen_server);
    lua_setfield(L, -2, "riskscreen.server");
#endif
#ifdef RISKSCREEN_HAS_REDIS
    lua_pushcfunction(L, luaopen_riskscreen_hiredis);
    lua_setfield(L, -2, "riskscreen.hiredis");
#endif
    lua_pop(L, 2);
}
