#include "lua/compat.h"

#include <string.h>

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
    static const luaL_Reg modules[] = {
        {"riskscreen.core", luaopen_riskscreen_core},
        {"riskscreen.system", luaopen_riskscreen_system},
#ifdef RISKSCREEN_HAS_SERVER
        {"riskscreen.server", luaopen_riskscreen_server},
#endif
        {NULL, NULL},
    };
    lua_getglobal(L, "package");
    luaL_argcheck(L, lua_istable(L, -1), 1, "riskscreen_preload: open the standard libraries first, by luaL_openlibs");
    lua_getfield(L, -1, "preload");
    for (const struct rsc_module *module = rsc_modules; module->name != NULL; module++) {
        lua_pushlightuserdata(L, (void *)(size_t)module);
        lua_pushcclosure(L, load_module, 1);
        lua_setfield(L, -2, module->name);
    }
    rsc_lua_set_functions(L, modules);
    lua_pop(L, 2);
}

/* Steps the loop if `require "riskscreen"` has loaded it. The budget is the userdata at index 1. */
static int step(lua_State *L) {
    lua_Number budget = *(const lua_Number *)lua_touserdata(L, 1);
    lua_getfield(L, LUA_REGISTRYINDEX, "_LOADED");
    if (!lua_istable(L, -1)) {
        return 0;
    }
    lua_getfield(L, -1, "riskscreen");
    if (!lua_istable(L, -1)) {
        return 0;
    }
    lua_getfield(L, -1, "loop");
    lua_getfield(L, -1, "step");
    lua_insert(L, -2);
    lua_createtable(L, 0, 1);
    lua_pushnumber(L, budget);
    lua_setfield(L, -2, "budget");
    lua_call(L, 2, 0);
    return 0;
}

int riskscreen_step(lua_State *L, double budget) {
    lua_Number seconds = (lua_Number)budget;
#if LUA_VERSION_NUM == 501
    /* There lua_pushcfunction may run out of memory, outside of lua_pcall. */
    return lua_cpcall(L, step, &seconds);
#else
    lua_pushcfunction(L, step);
    lua_pushlightuserdata(L, &seconds);
    return lua_pcall(L, 1, 0, 0);
#endif
}

int riskscreen_may_interrupt(lua_State *L) {
    static const char library[] = "=riskscreen/";
    lua_Debug record;
    return lua_getstack(L, 0, &record) == 0 || lua_getinfo(L, "S", &record) == 0 ||
           strncmp(record.source, library, sizeof library - 1) != 0;
}
