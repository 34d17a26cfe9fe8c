/* What the bindings of the loop's objects share.
 *
 * Every loop has a table, its registry, that keeps alive what is in flight: luaL_ref's integers lead to the userdata of
 * operations, "loop" to the loop and "decoder" to the decoder of origins that have no other. An origin owns a list of
 * itself, its registry and its decoder; its transfers own the same list. So nothing that an operation points at is
 * freed before it, and the order in which finalizers run does not matter. */
#ifndef RSC_LUA_BINDING_H
#define RSC_LUA_BINDING_H

#include "compat.h"
#include "http/loop.h"

#define RSC_LOOP_TYPE     "riskscreen.loop"
#define RSC_ORIGIN_TYPE   "riskscreen.origin"
#define RSC_TRANSFER_TYPE "riskscreen.transfer"

/* Indexes in the list that an origin and its transfers own. */
enum { RSC_OWNED_ORIGIN = 1, RSC_OWNED_REGISTRY, RSC_OWNED_DECODER };

/* Sets `loop` in the core table at the top; core.decoder must be there. */
void rsc_loop_register(lua_State *L);
void rsc_origin_register(lua_State *L);
void rsc_transfer_register(lua_State *L);

/* A metatable with these methods and `close` as its finalizer. It is the first upvalue of them all. */
void rsc_lua_new_type(lua_State *L, const char *name, const luaL_Reg *methods, lua_CFunction close);

/* In such a method: the userdata at index 1, which must have the metatable. */
void *rsc_lua_check_self(lua_State *L, const char *type);

/* A zeroed userdata with the metatable. */
void *rsc_lua_new_object(lua_State *L, size_t size, const char *type);

/* Raises if the loop is closed. */
void rsc_lua_check_open(lua_State *L, const struct rsc_loop *loop);

/* Keeps the operation's userdata, at the top of the stack, alive in the registry at `registry_index`. May raise. */
void rsc_lua_anchor(lua_State *L, int registry_index, struct rsc_operation *operation);

/* Undoes it; never raises. */
void rsc_lua_release(lua_State *L, int registry_index, struct rsc_operation *operation);

/* Raises what a Lua-free part could not do: misuse is described, exhausted memory is Lua's error. */
int rsc_lua_raise(lua_State *L, const struct rsc_error *error);

/* loop:origin { … } */
int rsc_origin_new(lua_State *L);

/* origin:send { … } */
int rsc_transfer_new(lua_State *L);

#endif
