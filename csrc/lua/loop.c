#include "lua/loop.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "lua/options.h"
#include "http/transfer.h"

#define OPERATION_TYPE "riskscreen.operation" /* a timer or a watch */

#define SECONDS_MAX 1e9 /* longest timer or wait */

/* Keeping operations alive */

void rsc_lua_check_open(lua_State *L, struct rsc_loop *loop) {
    if (rsc_loop_inherited(loop)) {
        rsc_loop_close(loop);
    }
    if (loop->closed) {
        luaL_error(L, "the loop is closed");
    }
}

void rsc_lua_anchor(lua_State *L, int registry_index, struct rsc_operation *operation) {
    lua_pushvalue(L, -1);
    operation->reference = luaL_ref(L, registry_index);
}

void rsc_lua_release(lua_State *L, int registry_index, struct rsc_operation *operation) {
    luaL_unref(L, registry_index, operation->reference);
    operation->reference = LUA_NOREF;
}

int rsc_lua_push_id(lua_State *L, const struct rsc_operation *operation) {
    lua_pushinteger(L, operation->state == RSC_CANCELLED ? LUA_NOREF : operation->reference);
    return 1;
}

/* The loop */

static struct rsc_loop *check_loop(lua_State *L) {
    struct rsc_loop *loop = rsc_lua_check_self(L, RSC_LOOP_TYPE);
    rsc_lua_check_open(L, loop);
    return loop;
}

/* Pushes the registry of the loop at index 1 and returns its stack index. */
static int push_registry(lua_State *L) {
    rsc_lua_get_uservalue(L, 1);
    return lua_gettop(L);
}

static void new_registry(lua_State *L, int loop_index) {
    lua_createtable(L, 16, 1);
    lua_pushvalue(L, loop_index);
    lua_setfield(L, -2, "loop");
    /* The first luaL_unref of a table may allocate. It must not happen in rsc_lua_release, which must not raise. */
    lua_pushboolean(L, 1);
    int reference = luaL_ref(L, -2);
    luaL_unref(L, -1, reference);
    rsc_lua_set_uservalue(L, loop_index);
}

/* core.loop(options) */
static int loop_new(lua_State *L) {
    struct {
        int64_t max_connections;
    } values = {0};
    static const struct rsc_option options[] = {
        {"max_connections", RSC_OPTION_COUNT, 0, 1, RSC_CONNECTIONS_MAX, NULL},
    };
    struct rsc_error error;
    if (!lua_isnoneornil(L, 1)) {
        luaL_checktype(L, 1, LUA_TTABLE);
        rsc_options_read(L, 1, "loop", options, sizeof options / sizeof *options, &values);
    }
    struct rsc_loop *loop = rsc_lua_new_object(L, sizeof *loop, RSC_LOOP_TYPE);
    new_registry(L, lua_gettop(L));
    if (rsc_loop_open(loop, (long)values.max_connections, &error) != RSC_OK) {
        return rsc_lua_raise(L, &error);
    }
    return 1;
}

static int loop_pollfd(lua_State *L) {
    int fd = rsc_loop_pollfd(check_loop(L));
    if (fd < 0) {
        return luaL_error(L, "the loop cannot be polled: %s", strerror(errno));
    }
    lua_pushinteger(L, fd);
    return 1;
}

static int loop_events(lua_State *L) {
    (void)check_loop(L);
    lua_pushliteral(L, "r");
    return 1;
}

static int loop_timeout(lua_State *L) {
    uint64_t due = rsc_loop_due(check_loop(L));
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
    struct rsc_loop *loop = check_loop(L);
    lua_pushinteger(L, (lua_Integer)rsc_loop_step(loop, optional_ns(L, 2), optional_ns(L, 3)));
    return 1;
}

/* loop:inherited(): whether it is that of a parent process. */
static int loop_inherited(lua_State *L) {
    lua_pushboolean(L, rsc_loop_inherited(rsc_lua_check_self(L, RSC_LOOP_TYPE)));
    return 1;
}

/* loop:next(): the oldest finished operation and its id, or nil. */
static int loop_next(lua_State *L) {
    struct rsc_loop *loop = rsc_lua_check_self(L, RSC_LOOP_TYPE);
    if (!rsc_loop_inherited(loop)) {
        rsc_lua_check_open(L, loop);
    }
    struct rsc_operation *operation = rsc_loop_inherited(loop) ? NULL : rsc_loop_first(loop);
    if (operation == NULL) {
        lua_pushnil(L);
        return 1;
    }
    int registry = push_registry(L);
    lua_rawgeti(L, registry, operation->reference);
    lua_pushinteger(L, operation->reference);
    if (operation->kind != RSC_WATCH) {
        rsc_lua_release(L, registry, operation);
    }
    rsc_operation_take(operation);
    rsc_loop_sync(loop);
    return 2;
}

static int loop_timer(lua_State *L) {
    struct rsc_loop *loop = check_loop(L);
    uint64_t delay = rsc_seconds_to_ns(check_seconds(L, 2));
    int registry = push_registry(L);
    struct rsc_operation *timer = rsc_lua_new_object(L, sizeof *timer, OPERATION_TYPE);
    rsc_operation_init(timer, loop, RSC_TIMER);
    lua_pushvalue(L, registry);
    rsc_lua_set_uservalue(L, -2);
    rsc_lua_anchor(L, registry, timer);
    if (rsc_timer_start(timer, delay) != RSC_OK) {
        rsc_lua_release(L, registry, timer);
        return luaL_error(L, "not enough memory");
    }
    return 1;
}

static uint32_t check_events(lua_State *L, int index) {
    static const char *const names[] = {"r", "w", "rw", NULL};
    static const uint32_t events[] = {RSC_READABLE, RSC_WRITABLE, RSC_READABLE | RSC_WRITABLE};
    return events[luaL_checkoption(L, index, NULL, names)];
}

static int loop_watch(lua_State *L) {
    struct rsc_loop *loop = check_loop(L);
    int fd = (int)luaL_checkinteger(L, 2);
    uint32_t events = check_events(L, 3);
    struct rsc_error error;
    int registry = push_registry(L);
    struct rsc_watch *watch = rsc_lua_new_object(L, sizeof *watch, OPERATION_TYPE);
    rsc_operation_init(&watch->operation, loop, RSC_WATCH);
    lua_pushvalue(L, registry);
    rsc_lua_set_uservalue(L, -2);
    rsc_lua_anchor(L, registry, &watch->operation);
    if (rsc_watch_start(watch, fd, events, &error) != RSC_OK) {
        rsc_lua_release(L, registry, &watch->operation);
        return rsc_lua_raise(L, &error);
    }
    return 1;
}

static void set_count(lua_State *L, const char *name, size_t count) {
    lua_pushinteger(L, (lua_Integer)count);
    lua_setfield(L, -2, name);
}

static int loop_stats(lua_State *L) {
    struct rsc_loop *loop = check_loop(L);
    size_t handles = 0;
    for (struct rsc_link *link = loop->origins.next; link != &loop->origins; link = link->next) {
        handles += RSC_CONTAINER(link, struct rsc_origin, link)->idle_count;
    }
    lua_createtable(L, 0, 5);
    set_count(L, "transfers", loop->transfer_count);
    set_count(L, "queued", loop->queued_count);
    set_count(L, "handles", handles);
    set_count(L, "timers", loop->timer_count);
    set_count(L, "watches", loop->watch_count);
    return 1;
}

static int loop_gc(lua_State *L) {
    rsc_loop_close(rsc_lua_check_self(L, RSC_LOOP_TYPE));
    return 0;
}

static int loop_close(lua_State *L) {
    struct rsc_loop *loop = rsc_lua_check_self(L, RSC_LOOP_TYPE);
    if (loop->closed) {
        return 0;
    }
    rsc_loop_close(loop);
    /* Nothing is in flight any more, so the registry can let go of every operation. */
    int registry = push_registry(L);
    for (lua_pushnil(L); lua_next(L, registry) != 0;) {
        lua_pop(L, 1);
        if (lua_type(L, -1) == LUA_TNUMBER) {
            lua_pushvalue(L, -1);
            lua_pushnil(L);
            lua_rawset(L, registry);
        }
    }
    return 0;
}

/* Timers and watches */

static int operation_cancel(lua_State *L) {
    struct rsc_operation *operation = rsc_lua_check_self(L, OPERATION_TYPE);
    if (operation->state == RSC_ACTIVE || operation->state == RSC_FINISHED) {
        rsc_operation_cancel(operation);
        rsc_lua_get_uservalue(L, 1);
        rsc_lua_release(L, lua_gettop(L), operation);
    }
    return 0;
}

static int operation_id(lua_State *L) {
    return rsc_lua_push_id(L, rsc_lua_check_self(L, OPERATION_TYPE));
}

/* Releases nothing: it runs only for operations that the registry does not hold, or when the state closes. */
static int operation_gc(lua_State *L) {
    rsc_operation_cancel(rsc_lua_check_self(L, OPERATION_TYPE));
    return 0;
}

void rsc_loop_register(lua_State *L) {
    static const luaL_Reg loop_methods[] = {
        {"pollfd", loop_pollfd},    {"events", loop_events},       {"timeout", loop_timeout}, {"step", loop_step},
        {"next", loop_next},        {"inherited", loop_inherited}, {"timer", loop_timer},     {"watch", loop_watch},
        {"origin", rsc_origin_new}, {"stats", loop_stats},         {"close", loop_close},     {NULL, NULL},
    };
    static const luaL_Reg methods[] = {{"cancel", operation_cancel}, {"id", operation_id}, {NULL, NULL}};
    rsc_lua_new_type(L, RSC_LOOP_TYPE, loop_methods, loop_gc);
    rsc_lua_new_type(L, OPERATION_TYPE, methods, operation_gc);
    rsc_origin_register(L);
    rsc_transfer_register(L);
    lua_pushcfunction(L, loop_new);
    lua_setfield(L, -2, "loop");
}
