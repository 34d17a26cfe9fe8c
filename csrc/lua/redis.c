#include "lua/parts.h"

#include <string.h>

#include "lua/binding.h"
#include "lua/options.h"
#include "redis/connection.h"

#define CONNECTION_TYPE "riskscreen.redis_connection"

#define DEFAULT_MAX_REPLY ((int64_t)64 << 20) /* bytes */
#define MAX_REPLY_LIMIT   ((double)((int64_t)1 << 30))
#define STACK_NEEDED      8 /* slots for one level of a reply */

static const struct rsc_option options[] = {
    {"host", RSC_OPTION_TEXT, offsetof(struct rsc_redis_options, host), 1, 255, NULL},
    {"port", RSC_OPTION_COUNT, offsetof(struct rsc_redis_options, port), 1, 65535, NULL},
    {"path", RSC_OPTION_TEXT, offsetof(struct rsc_redis_options, path), 1, 107, NULL},
    {"max_reply", RSC_OPTION_COUNT, offsetof(struct rsc_redis_options, max_reply), 1024, MAX_REPLY_LIMIT, NULL},
};

static const char *kind_of(const struct rsc_error *error) {
    return error->code == RSC_REDIS_PROTOCOL ? "protocol" : "network";
}

/* core.redis{…}: a connection that is being made, or nil, a kind and a message. */
static int redis_connect(lua_State *L) {
    struct rsc_redis_options given = {.host = "127.0.0.1", .port = 6379, .max_reply = DEFAULT_MAX_REPLY};
    struct rsc_error error;
    rsc_options_read(L, 1, "redis", options, sizeof options / sizeof *options, &given);
    struct rsc_redis_connection *connection = rsc_lua_new_object(L, sizeof *connection, CONNECTION_TYPE);
    connection->fd = -1;
    if (rsc_redis_open(connection, &given, &error) != RSC_OK) {
        lua_pushnil(L);
        lua_pushstring(L, kind_of(&error));
        lua_pushstring(L, error.message);
        return 3;
    }
    return 1;
}

static struct rsc_redis_connection *check_connection(lua_State *L) {
    struct rsc_redis_connection *connection = rsc_lua_check_self(L, CONNECTION_TYPE);
    if (!connection->is_open) {
        luaL_error(L, "the connection is closed");
    }
    rsc_redis_check_process(connection);
    return connection;
}

/* connection:watch(): the socket, or -1 in a forked child of its process, the events to poll it for, and the number of
 * sockets so far. */
static int connection_watch(lua_State *L) {
    struct rsc_redis_connection *connection = check_connection(L);
    lua_pushinteger(L, connection->fd);
    lua_pushstring(L, rsc_redis_wants_write(connection) ? "rw" : "r");
    lua_pushinteger(L, (lua_Integer)connection->sockets);
    return 3;
}

static int connection_is_due(lua_State *L) {
    lua_pushboolean(L, rsc_redis_due(check_connection(L)));
    return 1;
}

/* connection:step(): "connecting", "open", or "closed" with a kind and a message. */
static int connection_step(lua_State *L) {
    static const char *const names[] = {"closed", "connecting", "open"};
    struct rsc_redis_connection *connection = check_connection(L);
    rsc_redis_step(connection);
    lua_pushstring(L, names[connection->state]);
    if (connection->state != RSC_REDIS_CLOSED) {
        return 1;
    }
    lua_pushstring(L, kind_of(&connection->error));
    lua_pushstring(L, connection->error.message);
    return 3;
}

/* connection:send(bytes, count): the number of bytes of all commands before these, which are `count`. */
static int connection_send(lua_State *L) {
    struct rsc_redis_connection *connection = check_connection(L);
    size_t size;
    const char *bytes = luaL_checklstring(L, 2, &size);
    lua_Integer count = luaL_checkinteger(L, 3);
    luaL_argcheck(L, count >= 1, 3, "there is at least one command");
    uint64_t before = connection->queued_total;
    int status = rsc_redis_send(connection, bytes, size, (size_t)count);
    if (status != RSC_OK) {
        return luaL_error(L, status == RSC_ERROR_LIMIT ? "too many bytes wait to be sent" : "not enough memory");
    }
    lua_pushnumber(L, (lua_Number)before);
    return 1;
}

/* connection:written(): the number of bytes that have been written since the beginning. */
static int connection_written(lua_State *L) {
    lua_pushnumber(L, (lua_Number)check_connection(L)->written_total);
    return 1;
}

/* Pushes the value at *at, which has come completely, and moves *at behind it. */
static void push_value(lua_State *L, struct rsc_text bytes, size_t *at) {
    struct rsc_redis_value value;
    luaL_checkstack(L, STACK_NEEDED, "reply of Redis");
    (void)rsc_redis_read(bytes, at, &value);
    switch (value.type) {
    case RSC_REDIS_NIL:
        lua_pushboolean(L, 0);
        break;
    case RSC_REDIS_INTEGER:
        rsc_lua_push_int64(L, value.number);
        break;
    case RSC_REDIS_TEXT:
        lua_pushlstring(L, value.text.bytes, value.text.length);
        break;
    case RSC_REDIS_ERROR:
        lua_createtable(L, 0, 1);
        lua_pushlstring(L, value.text.bytes, value.text.length);
        lua_setfield(L, -2, "err");
        break;
    case RSC_REDIS_ARRAY:
        lua_createtable(L, (int)value.number, 0);
        for (int i = 1; i <= value.number; i++) {
            push_value(L, bytes, at);
            lua_rawseti(L, -2, i);
        }
        break;
    }
}

/* connection:next(): the oldest complete reply, or nil. */
static int connection_next(lua_State *L) {
    struct rsc_redis_connection *connection = check_connection(L);
    struct rsc_text bytes;
    size_t at = connection->taken;
    if (connection->lent || !rsc_redis_lend(connection, &bytes)) {
        lua_pushnil(L);
    } else {
        push_value(L, bytes, &at);
        rsc_redis_take(connection, at);
    }
    return 1;
}

static int connection_close(lua_State *L) {
    struct rsc_redis_connection *connection = rsc_lua_check_self(L, CONNECTION_TYPE);
    rsc_redis_check_process(connection);
    rsc_redis_close(connection);
    return 0;
}

/* Frees the bytes of a reply that was lent and not taken, too. */
static int connection_gc(lua_State *L) {
    struct rsc_redis_connection *connection = rsc_lua_check_self(L, CONNECTION_TYPE);
    connection->lent = false;
    return connection_close(L);
}

void rsc_redis_register(lua_State *L) {
    static const luaL_Reg methods[] = {
        {"watch", connection_watch},     {"is_due", connection_is_due},
        {"step", connection_step},       {"send", connection_send},
        {"written", connection_written}, {"next", connection_next},
        {"close", connection_close},     {NULL, NULL},
    };
    rsc_lua_new_type(L, CONNECTION_TYPE, methods, connection_gc);
    lua_pushcfunction(L, redis_connect);
    lua_setfield(L, -2, "redis");
}
