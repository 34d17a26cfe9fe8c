/* The bindings of the loop, its origins and its operations: transfers, timers and watches.
 *
 * A Lua program knows an operation by its number, which stands for nothing after the operation was taken or cancelled.
 * An origin keeps its loop alive. */
#ifndef RSC_LUA_LOOP_H
#define RSC_LUA_LOOP_H

#include "lua/binding.h"

#include "http/loop.h"

#define RSC_LOOP_TYPE   "riskscreen.loop"
#define RSC_ORIGIN_TYPE "riskscreen.origin"

struct rsc_origin_box {
    struct rsc_origin *origin;
};

/* Creates the metatable of origins. */
void rsc_origin_register(lua_State *L);

/* loop:origin { … } */
int rsc_origin_push_new(lua_State *L);

/* origin:send(method, target, headers, timeout, connect_timeout, body, fresh, untimed): the number of a transfer, or
 * nil in a forked child of the origin's process. Only the first two and `timeout` must be there. Nobody reads the times
 * of an `untimed` response. */
int rsc_origin_send(lua_State *L);

/* loop:take(number, with_head): the status, the body and the head for core.details, or nil and the failure, of a
 * transfer that has finished. Only a 200 has no head unless it is asked for. */
int rsc_transfer_take(lua_State *L);

/* core.details(head): the headers, the times and the HTTP version in a head that `take` has returned. */
int rsc_transfer_details(lua_State *L);

/* Returns the loop at index 1. Raises if it is closed, or that of a parent process. */
struct rsc_loop *rsc_lua_check_loop(lua_State *L);

/* Raises if the loop is closed, or that of a parent process. */
void rsc_lua_check_open(lua_State *L, struct rsc_loop *loop);

/* Returns the operation whose number is at index 2, or NULL. */
struct rsc_operation *rsc_lua_find_operation(lua_State *L, const struct rsc_loop *loop);

#endif
