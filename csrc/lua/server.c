/* riskscreen.server: new{…}, and the methods of a server. */
#include "server_request.h"

#include <stdio.h>
#include <string.h>

#include "riskscreen.h"

#define SERVER_TYPE "riskscreen.server"

struct server_box {
    struct rsc_server *server; /* NULL once closed */
};

/* Options --------------------------------------------------------------------------------------------------------- */

enum option_kind { OPTION_TEXT, OPTION_INTEGER, OPTION_SECONDS };

static const struct option {
    const char *name;
    enum option_kind kind;
    size_t offset;
    double least, most;
} options_known[] = {
    {"host", OPTION_TEXT, offsetof(struct rsc_server_options, host), 1, 255},
    {"port", OPTION_INTEGER, offsetof(struct rsc_server_options, port), 0, 65535},
    {"max_body", OPTION_INTEGER, offsetof(struct rsc_server_options, max_body), 0, (double)RSC_SERVER_MAX_BODY_LIMIT},
    {"max_headers", OPTION_INTEGER, offsetof(struct rsc_server_options, max_headers),
     (double)RSC_SERVER_MIN_HEADERS_LIMIT, (double)RSC_SERVER_MAX_HEADERS_LIMIT},
    {"max_connections", OPTION_INTEGER, offsetof(struct rsc_server_options, max_connections), 1,
     RSC_SERVER_MAX_CONNECTIONS_LIMIT},
    {"idle_timeout", OPTION_SECONDS, offsetof(struct rsc_server_options, idle_timeout), 0.001,
     RSC_SERVER_MAX_IDLE_TIMEOUT},
};

static const struct rsc_server_options options_default = {
    .host = "127.0.0.1",
    .max_body = (size_t)1 << 20,
    .max_headers = (size_t)1 << 15,
    .max_connections = 1024,
    .idle_timeout = 60,
};

#define OPTION_COUNT (sizeof options_known / sizeof options_known[0])

static const struct option *find_option(const char *name) {
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        if (strcmp(options_known[i].name, name) == 0) {
            return &options_known[i];
        }
    }
    return NULL;
}

static int refuse_name(lua_State *L, const char *name) {
    luaL_checkstack(L, (int)OPTION_COUNT + LUA_MINSTACK, NULL);
    for (size_t i = 0; i < OPTION_COUNT; i++) {
        lua_pushfstring(L, i == 0 ? "%s" : ", %s", options_known[i].name);
    }
    lua_concat(L, (int)OPTION_COUNT);
    return luaL_error(L, "unknown option '%s' (known: %s)", name, lua_tostring(L, -1));
}

static bool read_text(lua_State *L, const struct option *option, const char **text) {
    size_t length = 0;
    *text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, &length) : "";
    return strlen(*text) == length && (double)length >= option->least && (double)length <= option->most;
}

static bool read_number(lua_State *L, const struct option *option, double *number) {
    *number = lua_tonumber(L, -1);
    return lua_type(L, -1) == LUA_TNUMBER && *number >= option->least && *number <= option->most;
}

static void refuse_value(lua_State *L, const struct option *option) {
    static const char *const kinds[][2] = {{"a string of", " bytes"}, {"an integer from", ""}, {"seconds from", ""}};
    char range[64];
    (void)snprintf(range, sizeof range, "%.10g to %.10g", option->least, option->most);
    const char *value = lua_isstring(L, -1) ? lua_tostring(L, -1) : luaL_typename(L, -1);
    luaL_error(L, "option '%s' must be %s %s%s (got %s)", option->name, kinds[option->kind][0], range,
               kinds[option->kind][1], value);
}

/* The option's value is at the top. */
static void read_option(lua_State *L, const struct option *option, struct rsc_server_options *options) {
    void *field = (char *)options + option->offset;
    int64_t integer = 0;
    double number;
    bool good = false;
    switch (option->kind) {
    case OPTION_TEXT:
        good = read_text(L, option, field);
        break;
    case OPTION_INTEGER:
        good = read_number(L, option, &number) && rsc_lua_to_int64(L, -1, &integer);
        *(size_t *)field = (size_t)integer;
        break;
    case OPTION_SECONDS:
        good = read_number(L, option, field);
        break;
    }
    if (!good) {
        refuse_value(L, option);
    }
}

static int module_new(lua_State *L) {
    struct rsc_server_options options = options_default;
    struct rsc_error error;
    if (!lua_isnoneornil(L, 1)) {
        luaL_checktype(L, 1, LUA_TTABLE);
        for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
            if (lua_type(L, -2) != LUA_TSTRING) {
                return luaL_error(L, "options must be a table of name = value");
            }
            const struct option *option = find_option(lua_tostring(L, -2));
            if (option == NULL) {
                return refuse_name(L, lua_tostring(L, -2));
            }
            read_option(L, option, &options);
        }
    }
    struct server_box *box = lua_newuserdata(L, sizeof *box);
    box->server = NULL;
    luaL_getmetatable(L, SERVER_TYPE);
    lua_setmetatable(L, -2);
    box->server = rsc_server_new(&options, &error);
    if (box->server == NULL) {
        lua_pushnil(L);
        lua_pushstring(L, error.message);
        return 2;
    }
    return 1;
}

/* Methods --------------------------------------------------------------------------------------------------------- */

static struct rsc_server *check_server(lua_State *L) {
    struct server_box *box = luaL_checkudata(L, 1, SERVER_TYPE);
    if (box->server == NULL) {
        luaL_error(L, "the server is closed");
    }
    return box->server;
}

static int server_port(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)rsc_server_port(check_server(L)));
    return 1;
}

static int server_pollfd(lua_State *L) {
    lua_pushinteger(L, rsc_server_pollfd(check_server(L)));
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
        lua_pushnil(L);
        lua_pushstring(L, error.message);
        return 2;
    }
    lua_pushinteger(L, (lua_Integer)rsc_server_waiting(server));
    return 1;
}

static int server_next(lua_State *L) {
    rsc_server_request_push_next(L, check_server(L));
    return 1;
}

static int server_stats(lua_State *L) {
    struct rsc_server_stats stats;
    rsc_server_stats(check_server(L), &stats);
    lua_createtable(L, 0, 3);
    lua_pushinteger(L, (lua_Integer)stats.connections);
    lua_setfield(L, -2, "connections");
    lua_pushinteger(L, (lua_Integer)stats.waiting);
    lua_setfield(L, -2, "waiting");
    lua_pushinteger(L, (lua_Integer)stats.open);
    lua_setfield(L, -2, "open");
    return 1;
}

static int server_close(lua_State *L) {
    struct server_box *box = luaL_checkudata(L, 1, SERVER_TYPE);
    struct rsc_server *server = box->server;
    box->server = NULL;
    if (server != NULL) {
        rsc_server_free(server);
    }
    return 0;
}

int luaopen_riskscreen_server(lua_State *L) {
    static const luaL_Reg methods[] = {
        {"port", server_port},       {"pollfd", server_pollfd}, {"events", server_events},
        {"timeout", server_timeout}, {"step", server_step},     {"next", server_next},
        {"stats", server_stats},     {"close", server_close},   {NULL, NULL},
    };
    static const luaL_Reg metamethods[] = {{"__gc", server_close}, {"__close", server_close}, {NULL, NULL}};
    rsc_server_request_register(L);
    luaL_newmetatable(L, SERVER_TYPE);
    rsc_lua_set_functions(L, metamethods);
    lua_newtable(L);
    rsc_lua_set_functions(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);

    lua_newtable(L);
    lua_pushcfunction(L, module_new);
    lua_setfield(L, -2, "new");
    return 1;
}
