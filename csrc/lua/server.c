/* The module riskscreen.server: new{…} and the methods of a server. */
#include "lua/server_request.h"

#include <errno.h>
#include <string.h>

#include "lua/binding.h"
#include "lua/options.h"
#include "riskscreen.h"

#define SERVER_TYPE "riskscreen.server"

struct server_box {
    struct rsc_server *server; /* NULL once closed */
};

/* Creating a server */

static const struct rsc_option options[] = {
    {"host", RSC_OPTION_TEXT, offsetof(struct rsc_server_options, host), 1, 255, NULL},
    {"port", RSC_OPTION_COUNT, offsetof(struct rsc_server_options, port), 0, 65535, NULL},
    {"max_body", RSC_OPTION_COUNT, offsetof(struct rsc_server_options, max_body), 0, (double)RSC_SERVER_MAX_BODY_LIMIT,
     NULL},
    {"max_headers", RSC_OPTION_COUNT, offsetof(struct rsc_server_options, max_headers),
     (double)RSC_SERVER_MIN_HEADERS_LIMIT, (double)RSC_SERVER_MAX_HEADERS_LIMIT, NULL},
    {"max_connections", RSC_OPTION_COUNT, offsetof(struct rsc_server_options, max_connections), 1,
     RSC_SERVER_MAX_CONNECTIONS_LIMIT, NULL},
    {"idle_timeout", RSC_OPTION_SECONDS, offsetof(struct rsc_server_options, idle_timeout), 0.001,
     RSC_SERVER_MAX_IDLE_TIMEOUT, NULL},
};

static int module_new(lua_State *L) {
    struct rsc_server_options given = {
        .host = "127.0.0.1", .max_body = 1 << 20, .max_headers = 1 << 15, .max_connections = 1024, .idle_timeout = 60};
    struct rsc_error error;
    rsc_options_read(L, 1, "server", options, sizeof options / sizeof *options, &given);
    struct server_box *box = rsc_lua_new_object(L, sizeof *box, SERVER_TYPE);
    box->server = rsc_server_new(&given, &error);
    if (box->server == NULL) {
        return rsc_lua_push_error(L, &error);
    }
    return 1;
}

/* Methods */

static struct rsc_server *check_server(lua_State *L) {
    struct server_box *box = rsc_lua_check_self(L, SERVER_TYPE);
    if (box->server == NULL) {
        luaL_error(L, "the server is closed");
    }
    if (rsc_server_inherited(box->server)) {
        luaL_error(L, "the server is that of the parent process");
    }
    return box->server;
}

static int server_port(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)rsc_server_port(check_server(L)));
    return 1;
}

static int server_pollfd(lua_State *L) {
    int fd = rsc_server_pollfd(check_server(L));
    if (fd < 0) {
        return luaL_error(L, "the server cannot be polled: %s", strerror(errno));
    }
    lua_pushinteger(L, fd);
    return 1;
}

static int server_events(lua_State *L) {
    (void)check_server(L);
    lua_pushliteral(L, "r");
    return 1;
}

static int server_timeout(lua_State *L) {
    double seconds = rsc_server_timeout(check_server(L));
    if (seconds < 0) {
        lua_pushnil(L);
    } else {
        lua_pushnumber(L, seconds);
    }
    return 1;
}

static int server_step(lua_State *L) {
    struct rsc_server *server = check_server(L);
    struct rsc_error error;
    double seconds = -1;
    if (!lua_isnoneornil(L, 2)) {
        seconds = luaL_checknumber(L, 2);
        luaL_argcheck(L, seconds >= 0, 2, "seconds from 0 on, or nil to wait, are needed");
    }
    if (rsc_server_step(server, seconds, &error) != RSC_OK) {
        return rsc_lua_push_error(L, &error);
    }
    lua_pushinteger(L, (lua_Integer)rsc_server_waiting(server));
    return 1;
}

static int server_next(lua_State *L) {
    rsc_server_request_push_next(L, check_server(L));
    return 1;
}

/* Returns the status and the sender of a refusal, or nothing. */
static int server_refused(lua_State *L) {
    struct rsc_refusal refusal;
    if (!rsc_server_refused(check_server(L), &refusal)) {
        return 0;
    }
    lua_pushinteger(L, (lua_Integer)refusal.status);
    lua_pushstring(L, refusal.remote);
    return 2;
}

static int server_stats(lua_State *L) {
    struct rsc_server_stats stats;
    rsc_server_stats(check_server(L), &stats);
    lua_createtable(L, 0, 3);
    rsc_lua_set_count(L, "connections", stats.connections);
    rsc_lua_set_count(L, "waiting", stats.waiting);
    rsc_lua_set_count(L, "open", stats.open);
    return 1;
}

static int server_close(lua_State *L) {
    struct server_box *box = rsc_lua_check_self(L, SERVER_TYPE);
    struct rsc_server *server = box->server;
    box->server = NULL;
    if (server != NULL) {
        rsc_server_free(server);
    }
    return 0;
}

int luaopen_riskscreen_server(lua_State *L) {
    static const luaL_Reg methods[] = {
        {"port", server_port},       {"pollfd", server_pollfd},
        {"events", server_events},   {"timeout", server_timeout},
        {"step", server_step},       {"next", server_next},
        {"refused", server_refused}, {"stats", server_stats},
        {"close", server_close},     {NULL, NULL},
    };
    static const luaL_Reg functions[] = {{"new", module_new}, {NULL, NULL}};
    luaL_checkversion(L);
    rsc_lua_new_type(L, SERVER_TYPE, methods, server_close);
    rsc_server_request_register(L);

    lua_newtable(L);
    rsc_lua_set_functions(L, functions);
    return 1;
}
