/* Hides the differences between Lua versions. Every file in csrc/lua includes this instead of lua.h.
 *
 * Names without a prefix are Lua 5.4's; this file defines those that an older version lacks. */
#ifndef RSC_LUA_COMPAT_H
#define RSC_LUA_COMPAT_H

#include <stdbool.h>
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>

#if LUA_VERSION_NUM < 501 || LUA_VERSION_NUM > 505
#    error "riskscreen supports Lua 5.1 to 5.5 and LuaJIT"
#endif

_Static_assert(sizeof(lua_Number) == sizeof(double) &&
                   (LUA_VERSION_NUM < 503 || sizeof(lua_Integer) == sizeof(int64_t)),
               "riskscreen needs a Lua with 64-bit integers and doubles; this one has 32-bit numbers (LUA_32BITS)");

/* Whether the decoder uses plans (see plan.h). LuaJIT also loads modules that were compiled for Lua 5.1, where plans
 * cost up to a tenth. */
#if !defined(RSC_LUA_PLANS)
#    define RSC_LUA_PLANS (LUA_VERSION_NUM == 501)
#endif

/* Raises if the module was built for a Lua with other numbers than the one that loads it. */
#if LUA_VERSION_NUM < 502
#    define luaL_checkversion(L) ((void)(L))
#endif

#if LUA_VERSION_NUM == 501
#    define lua_rawlen(L, index) lua_objlen(L, index)

static inline int lua_absindex(lua_State *L, int index) {
    return index > 0 || index <= LUA_REGISTRYINDEX ? index : lua_gettop(L) + index + 1;
}
#endif

/* A userdata's user value: a table that it keeps alive. Without one, get pushes nil, or in 5.1 an unrelated table. */
static inline void rsc_lua_set_uservalue(lua_State *L, int userdata_index) {
#if LUA_VERSION_NUM == 501
    lua_setfenv(L, userdata_index);
#elif LUA_VERSION_NUM < 504
    lua_setuservalue(L, userdata_index);
#else
    lua_setiuservalue(L, userdata_index, 1);
#endif
}

static inline void rsc_lua_get_uservalue(lua_State *L, int userdata_index) {
#if LUA_VERSION_NUM == 501
    lua_getfenv(L, userdata_index);
#elif LUA_VERSION_NUM < 504
    lua_getuservalue(L, userdata_index);
#else
    lua_getiuservalue(L, userdata_index, 1);
#endif
}

/* Pushes an integer, or before Lua 5.3 the nearest double. */
static inline void rsc_lua_push_int64(lua_State *L, int64_t integer) {
#if LUA_VERSION_NUM >= 503
    lua_pushinteger(L, (lua_Integer)integer);
#else
    lua_pushnumber(L, (lua_Number)integer);
#endif
}

/* Returns whether the value is a number without a fraction, at most 2^53 in size, and if so sets *integer. */
static inline bool rsc_lua_to_int64(lua_State *L, int index, int64_t *integer) {
    if (lua_type(L, index) != LUA_TNUMBER) {
        return false;
    }
    lua_Number number = lua_tonumber(L, index);
    if (!(number >= -9007199254740992.0 && number <= 9007199254740992.0)) {
        return false;
    }
    *integer = (int64_t)number;
    return (lua_Number)*integer == number;
}

/* Sets the functions in the table at the top of the stack. A NULL name ends the list. */
static inline void rsc_lua_set_functions(lua_State *L, const luaL_Reg *functions) {
    for (; functions->name != NULL; functions++) {
        lua_pushcfunction(L, functions->func);
        lua_setfield(L, -2, functions->name);
    }
}

#endif
