#include "lua/loop.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "lua/options.h"
#include "lua/parts.h"
#include "http/transfer.h"

#define SECONDS_MAX 1e9 /* longest timer or wait */

void rsc_lua_check_open(lua_State *L, struct rsc_loop *loop) {
    if (rsc_loop_inherited(loop)) {
        rsc_loop_close(loop);
    }
    if (loop->closed) {
        luaL_error(L, "the loop is closed");
    }
}

struct rsc_loop *rsc_lua_check_loop(lua_State *L) {
    struct rsc_loop *loop = rsc_lua_check_self(L, RSC_LOOP_TYPE);
    rsc_lua_check_open(L, loop);
    return loop;
}

/* core.loop() */
static int loop_new(lua_State *L) {
    struct rsc_error error;
    struct rsc_loop *loop = rsc_lua_new_object(L, sizeof *loop, RSC_LOOP_TYPE);
    if (rsc_loop_open(loop, &error) != RSC_OK) {
        return rsc_lua_raise(L, &error);
    }
    return 1;
}

static int loop_pollfd(lua_State *L) {
    int fd = rsc_loop_pollfd(rsc_lua_check_loop(L));
    if (fd < 0) {
        return luaL_error(L, "the loop cannot be polled: %s", strerror(errno));
    }
    lua_pushinteger(L, fd);
    return 1;
}

static int loop_events(lua_State *L) {
    (void)rsc_lua_check_loop(L);
    lua_pushliteral(L, "r");
    return 1;
}

static int loop_timeout(lua_State *L) {
    uint64_t due = rsc_loop_due(rsc_lua_check_loop(L));
    if (due == RSC_NEVER) {
        lua_pushnil(L);
        return 1;
    }
    uint64_t now = due > 0 ? rsc_now() : 0;
    lua_pushnumber(L, due > now ? (lua_Number)(due - now) / 1e9 : 0);
    return 1;
}

static double check_seconds(lua_State *L, int index) {
    double seconds = luaL_checknumber(L, index);
    luaL_argcheck(L, seconds >= 0 && seconds <= SECONDS_MAX, index, "seconds must be from 0 to 1e9");
    return seconds;
}

static uint64_t optional_ns(lua_State *L, int index) {
    return lua_isnoneornil(L, index) ? RSC_NEVER : rsc_seconds_to_ns(check_seconds(L, index));
}

/* loop:step(wait, budget), in seconds */
static int loop_step(lua_State *L) {
    struct rsc_loop *loop = rsc_lua_check_loop(L);
    lua_pushinteger(L, (lua_Integer)rsc_loop_step(loop, optional_ns(L, 2), optional_ns(L, 3)));
    return 1;
}

/* loop:inherited(): whether it is that of a parent process. */
static int loop_inherited(lua_State *L) {
    lua_pushboolean(L, rsc_loop_inherited(rsc_lua_check_self(L, RSC_LOOP_TYPE)));
    return 1;
}

/* Operations */

static int push_number(lua_State *L, int64_t number) {
    rsc_lua_push_int64(L, number);
    return 1;
}

/* loop:next(): the number of the oldest finished operation, or nil. */
static int loop_next(lua_State *L) {
    struct rsc_loop *loop = rsc_lua_check_self(L, RSC_LOOP_TYPE);
    int64_t number = -1;
    if (!rsc_loop_inherited(loop)) {
        rsc_lua_check_open(L, loop);
        number = rsc_operation_next(loop);
    }
    if (number < 0) {
        lua_pushnil(L);
        return 1;
    }
    return push_number(L, number);
}

struct rsc_operation *rsc_lua_find_operation(lua_State *L, const struct rsc_loop *loop) {
    int64_t number = -1;
    luaL_argcheck(L, rsc_lua_to_int64(L, 2, &number), 2, "not a number of an operation");
    return rsc_operation_find(loop, number);
}

/* loop:done(number): whether an operation has finished, or is none any more. */
static int loop_done(lua_State *L) {
    const struct rsc_operation *operation = rsc_lua_find_operation(L, rsc_lua_check_self(L, RSC_LOOP_TYPE));
    lua_pushboolean(L, operation == NULL || operation->state >= RSC_FINISHED);
    return 1;
}

/* loop:cancel(number): whether there was such an operation. */
static int loop_cancel(lua_State *L) {
    struct rsc_loop *loop = rsc_lua_check_self(L, RSC_LOOP_TYPE);
    if (rsc_loop_inherited(loop)) {
        rsc_loop_close(loop);
    }
    struct rsc_operation *operation = rsc_lua_find_operation(L, loop);
    if (operation != NULL) {
        rsc_operation_cancel(operation);
    }
    lua_pushboolean(L, operation != NULL);
    return 1;
}

static int loop_timer(lua_State *L) {
    struct rsc_loop *loop = rsc_lua_check_loop(L);
    const struct rsc_operation *timer = rsc_timer_start(loop, rsc_seconds_to_ns(check_seconds(L, 2)));
    return timer != NULL ? push_number(L, timer->number) : luaL_error(L, "not enough memory");
}

static uint32_t check_events(lua_State *L, int index) {
    static const char *const names[] = {"r", "w", "rw", NULL};
    static const uint32_t events[] = {RSC_READABLE, RSC_WRITABLE, RSC_READABLE | RSC_WRITABLE};
    return events[luaL_checkoption(L, index, NULL, names)];
}

static int loop_watch(lua_State *L) {
    struct rsc_loop *loop = rsc_lua_check_loop(L);
    int fd = (int)luaL_checkinteger(L, 2);
    struct rsc_error error;
    const struct rsc_operation *watch = rsc_watch_start(loop, fd, check_events(L, 3), &error);
    return watch != NULL ? push_number(L, watch->number) : rsc_lua_raise(L, &error);
}

static int loop_stats(lua_State *L) {
    struct rsc_loop *loop = rsc_lua_check_loop(L);
    size_t handles = 0;
    for (struct rsc_link *link = loop->origins.next; link != &loop->origins; link = link->next) {
        handles += RSC_CONTAINER(link, struct rsc_origin, link)->idle_count;
    }
    lua_createtable(L, 0, 5);
    rsc_lua_set_count(L, "transfers", loop->transfer_count);
    rsc_lua_set_count(L, "queued", loop->queued_count);
    rsc_lua_set_count(L, "handles", handles);
    rsc_lua_set_count(L, "timers", loop->timer_count);
    rsc_lua_set_count(L, "watches", loop->watch_count);
    return 1;
}

static int loop_close(lua_State *L) {
    rsc_loop_close(rsc_lua_check_self(L, RSC_LOOP_TYPE));
    return 0;
}

void rsc_loop_register(lua_State *L) {
    static const luaL_Reg methods[] = {
        {"pollfd", loop_pollfd}, {"events", loop_events},     {"timeout", loop_timeout},
        {"step", loop_step},     {"next", loop_next},         {"inherited", loop_inherited},
        {"timer", loop_timer},   {"watch", loop_watch},       {"done", loop_done},
        {"cancel", loop_cancel}, {"take", rsc_transfer_take}, {"origin", rsc_origin_push_new},
        {"stats", loop_stats},   {"close", loop_close},       {NULL, NULL},
    };
    static const luaL_Reg functions[] = {{"loop", loop_new}, {"details", rsc_transfer_details}, {NULL, NULL}};
    rsc_lua_new_type(L, RSC_LOOP_TYPE, methods, loop_close);
    rsc_origin_register(L);
    rsc_lua_set_functions(L, functions);
}
