/* The one file that knows that Lua versions differ. Everything in csrc/lua includes this instead of lua.h.
 *
 * Names without a prefix are those of Lua 5.4's API, filled in where a version lacks them. */
#ifndef RSC_LUA_COMPAT_H
#define RSC_LUA_COMPAT_H

#include <stdbool.h>
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>

#if LUA_VERSION_NUM < 501 || LUA_VERSION_NUM > 504
#    error "riskscreen supports Lua 5.1 to 5.4 and LuaJIT"
#endif

/* Whether a table is made faster by a Lua function that has a constructor for it than member by member from C. So it is
 * on LuaJIT (known by its luaconf.h), and nowhere else. */
#if !defined(RSC_LUA_PLANS)
#    if defined(LUA_LJDIR)
#        define RSC_LUA_PLANS 1
#    else
#        define RSC_LUA_PLANS 0
#    endif
#endif

#if LUA_VERSION_NUM == 501
#    define lua_rawlen(L, index) lua_objlen(L, index)

static inline int lua_absindex(lua_State *L, int index) {
    return index > 0 || index <= LUA_REGISTRYINDEX ? index : lua_gettop(L) + index + 1;
}
#endif

/* The table that a userdata keeps alive. A userdata that never had one gives nil, or before 5.2 some other table. */
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

/* An integer where the version has them, otherwise the nearest double. */
static inline void rsc_lua_push_int64(lua_State *L, int64_t integer) {
#if LUA_VERSION_NUM >= 503
    lua_pushinteger(L, (lua_Integer)integer);
#else
    lua_pushnumber(L, (lua_Number)integer);
#endif
}

/* Whether the value is a number with no fraction that fits int64; *integer is set then. Strings are not numbers. */
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

/* Sets functions in the table at the top. The list ends with a NULL name. */
static inline void rsc_lua_set_functions(lua_State *L, const luaL_Reg *functions) {
    for (; functions->name != NULL; functions++) {
        lua_pushcfunction(L, functions->func);
        lua_setfield(L, -2, functions->name);
    }
}

#endif
