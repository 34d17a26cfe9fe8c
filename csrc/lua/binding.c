#include "lua/binding.h"

#include <string.h>

static void set_method(lua_State *L, int metatable_index, const char *name, lua_CFunction function) {
    lua_pushvalue(L, metatable_index);
    lua_pushcclosure(L, function, 1);
    lua_setfield(L, -2, name);
}

void rsc_lua_new_type(lua_State *L, const char *type, const luaL_Reg *methods, lua_CFunction close) {
    (void)luaL_newmetatable(L, type);
    int metatable = lua_gettop(L);
    /* Set last. If it is missing, memory has run out in an earlier attempt. */
    lua_getfield(L, metatable, "__index");
    bool made = !lua_isnil(L, -1);
    lua_pop(L, 1);
    if (!made) {
        if (close != NULL) {
            set_method(L, metatable, "__gc", close);
            set_method(L, metatable, "__close", close);
        }
        lua_createtable(L, 0, 8);
        for (; methods != NULL && methods->name != NULL; methods++) {
            set_method(L, metatable, methods->name, methods->func);
        }
        lua_setfield(L, metatable, "__index");
    }
    lua_pop(L, 1);
}

void *rsc_lua_new_object(lua_State *L, size_t size, const char *type) {
    void *object = lua_newuserdata(L, size);
    memset(object, 0, size);
    luaL_getmetatable(L, type);
    lua_setmetatable(L, -2);
    return object;
}

void *rsc_lua_check_self(lua_State *L, const char *type) {
    /* luaL_checkudata would look the metatable up by name on every call. */
    if (lua_getmetatable(L, 1)) {
        bool same = lua_rawequal(L, -1, lua_upvalueindex(1)) != 0;
        lua_pop(L, 1);
        if (same) {
            return lua_touserdata(L, 1);
        }
    }
    return luaL_checkudata(L, 1, type);
}

void rsc_lua_set_count(lua_State *L, const char *name, uint64_t count) {
    rsc_lua_push_int64(L, (int64_t)count);
    lua_setfield(L, -2, name);
}

struct rsc_text rsc_lua_check_text(lua_State *L, int index) {
    struct rsc_text text;
    luaL_checktype(L, index, LUA_TSTRING);
    text.bytes = lua_tolstring(L, index, &text.length);
    return text;
}

void rsc_lua_add_header(lua_State *L, struct rsc_text name, struct rsc_text value) {
    lua_pushlstring(L, name.bytes, name.length);
    lua_pushvalue(L, -1);
    lua_rawget(L, -3);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        lua_pushlstring(L, value.bytes, value.length);
    } else {
        lua_pushliteral(L, ", ");
        lua_pushlstring(L, value.bytes, value.length);
        lua_concat(L, 3);
    }
    lua_rawset(L, -3);
}

int rsc_lua_push_error(lua_State *L, const struct rsc_error *error) {
    lua_pushnil(L);
    lua_pushstring(L, error->message);
    return 2;
}

int rsc_lua_raise(lua_State *L, const struct rsc_error *error) {
    return luaL_error(L, "%s", error->code == RSC_ERROR_MEMORY ? "not enough memory" : error->message);
}
