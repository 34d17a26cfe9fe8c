/* The bindings of the loop and its objects: origins, transfers, timers and watches.
 *
 * Each loop has a Lua table, its registry, which keeps the operations in flight alive. Integer keys (luaL_ref) hold the
 * userdata of operations, and "loop" holds the loop.
 *
 * An origin owns a list of itself and the registry; its transfers own the same list. So an operation never
 * outlives the things it points to, whatever the order of finalizers. */
#ifndef RSC_LUA_LOOP_H
#define RSC_LUA_LOOP_H

#include "lua/binding.h"

#include "http/loop.h"

#define RSC_LOOP_TYPE     "riskscreen.loop"
#define RSC_ORIGIN_TYPE   "riskscreen.origin"
#define RSC_TRANSFER_TYPE "riskscreen.transfer"

/* Indexes in the list that an origin and its transfers own. */
enum { RSC_OWNED_ORIGIN = 1, RSC_OWNED_REGISTRY };

/* Sets `loop` in the core table at the top of the stack. */
void rsc_loop_register(lua_State *L);
void rsc_origin_register(lua_State *L);
void rsc_transfer_register(lua_State *L);

/* loop:origin { … } */
int rsc_origin_new(lua_State *L);

/* origin:send(method, target, headers, timeout, connect_timeout, body, fresh, untimed). Only the first two and
 * `timeout` must be there. Nobody reads the times of an `untimed` response. */
int rsc_transfer_new(lua_State *L);

/* Raises if the loop is closed, or that of a parent process. */
void rsc_lua_check_open(lua_State *L, struct rsc_loop *loop);

/* Keeps the operation's userdata, at the top of the stack, alive in the registry. Raises if memory runs out. */
void rsc_lua_anchor(lua_State *L, int registry_index, struct rsc_operation *operation);

/* Lets the registry forget the userdata. Never raises. */
void rsc_lua_release(lua_State *L, int registry_index, struct rsc_operation *operation);

/* Pushes the id of an operation that has not been taken or cancelled: a small integer, which a later operation gets
 * again. A table by ids needs no hash part. */
int rsc_lua_push_id(lua_State *L, const struct rsc_operation *operation);

#endif
