/* Helpers for every userdata type of the Lua modules: creating one, checking one, raising errors. */
#ifndef RSC_LUA_BINDING_H
#define RSC_LUA_BINDING_H

#include "lua/compat.h"

#include "base/error.h"
#include "base/text.h"

/* Creates the metatable `type` in the registry; does nothing if it exists. Each method gets the metatable as its first
 * upvalue. `close` becomes __gc and __close. `methods` and `close` may be NULL. */
void rsc_lua_new_type(lua_State *L, const char *type, const luaL_Reg *methods, lua_CFunction close);

/* Pushes a zeroed userdata of `size` bytes that has the metatable `type`. */
void *rsc_lua_new_object(lua_State *L, size_t size, const char *type);

/* For methods of rsc_lua_new_type: the userdata at index 1. Raises if it is of another type. */
void *rsc_lua_check_self(lua_State *L, const char *type);

/* Sets a field of the table at the top of the stack. */
void rsc_lua_set_count(lua_State *L, const char *name, uint64_t count);

/* The string at a stack index, which must keep it as long as the text is used. Raises for a value of another type. */
struct rsc_text rsc_lua_check_text(lua_State *L, int index);

/* Adds a header to the table at the top of the stack. Several values of one name are joined by ", ". */
void rsc_lua_add_header(lua_State *L, struct rsc_text name, struct rsc_text value);

/* Pushes nil and the message of a Lua-free function's error. Returns 2. */
int rsc_lua_push_error(lua_State *L, const struct rsc_error *error);

/* Raises the error of a Lua-free function. */
int rsc_lua_raise(lua_State *L, const struct rsc_error *error);

#endif
