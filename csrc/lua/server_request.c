#include "lua/server_request.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lua/binding.h"

#define REQUEST_TYPE "riskscreen.request"

struct request_box {
    struct rsc_exchange *request;
    struct rsc_buffer headers; /* the response's headers, while they are checked */
};

/* Fields */

static void set_string(lua_State *L, const char *field, const char *text, size_t length) {
    lua_pushlstring(L, text, length);
    lua_setfield(L, -2, field);
}

static void set_target(lua_State *L, const char *target) {
    const char *question = strchr(target, '?');
    if (question == NULL) {
        set_string(L, "path", target, strlen(target));
    } else {
        set_string(L, "path", target, (size_t)(question - target));
        set_string(L, "query", question + 1, strlen(question + 1));
    }
}

static void set_headers(lua_State *L, const struct rsc_buffer *headers) {
    const char *name = headers->data;
    const char *end = name + headers->length;
    lua_newtable(L);
    while (name < end) {
        struct rsc_text value = {name + strlen(name) + 1, 0};
        value.length = strlen(value.bytes);
        rsc_lua_add_header(L, (struct rsc_text){name, strlen(name)}, value);
        name = value.bytes + value.length + 1;
    }
    lua_setfield(L, -2, "headers");
}

/* Sets the request's fields in the table at the top. */
static void set_fields(lua_State *L, struct rsc_exchange *request) {
    const struct rsc_exchange_input *input = rsc_exchange_input(request);
    set_string(L, "method", input->method, strlen(input->method));
    set_string(L, "remote", input->remote, strlen(input->remote));
    set_string(L, "body", input->body.length == 0 ? "" : input->body.data, input->body.length);
    set_target(L, input->target);
    set_headers(L, &input->headers);
    rsc_exchange_forget_input(request);
}

void rsc_server_request_push_next(lua_State *L, struct rsc_server *server) {
    if (rsc_server_waiting(server) == 0) {
        lua_pushnil(L);
        return;
    }
    struct request_box *box = rsc_lua_new_object(L, sizeof *box, REQUEST_TYPE);
    rsc_buffer_init(&box->headers, RSC_SERVER_MAX_REPLY_HEADERS);
    lua_createtable(L, 0, 6);
    lua_pushvalue(L, -1);
    rsc_lua_set_uservalue(L, -3);
    box->request = rsc_server_next(server);
    set_fields(L, box->request);
    lua_pop(L, 1);
}

/* __index: a method, or a field of the request. The upvalue is the table of methods. */
static int request_index(lua_State *L) {
    (void)luaL_checkudata(L, 1, REQUEST_TYPE);
    lua_pushvalue(L, 2);
    lua_rawget(L, lua_upvalueindex(1));
    if (lua_isnil(L, -1)) {
        rsc_lua_get_uservalue(L, 1);
        lua_pushvalue(L, 2);
        lua_rawget(L, -2);
    }
    return 1;
}

/* Responses */

static struct request_box *check_open(lua_State *L) {
    struct request_box *box = luaL_checkudata(L, 1, REQUEST_TYPE);
    if (box->request == NULL || rsc_exchange_replied(box->request)) {
        luaL_error(L, "the request has been answered already");
    }
    rsc_exchange_check_process(box->request);
    return box;
}

/* Adds a header whose value is at the top. Values may be secret, so messages show only names. */
static void add_header(lua_State *L, struct rsc_buffer *headers, const char *name, size_t name_length) {
    size_t value_length;
    if (lua_type(L, -1) != LUA_TSTRING && lua_type(L, -1) != LUA_TNUMBER) {
        luaL_error(L, "header '%s' must be a string, a number or a list of them (got %s)", name, luaL_typename(L, -1));
    }
    lua_pushvalue(L, -1);
    const char *value = lua_tolstring(L, -1, &value_length);
    const char *problem = rsc_reply_header_problem(name, name_length, value, value_length);
    if (problem != NULL) {
        luaL_error(L, "header '%s' cannot be sent: %s", name, problem);
    }
    int status = rsc_buffer_append(headers, name, name_length + 1);
    status = status == RSC_OK ? rsc_buffer_append(headers, value, value_length + 1) : status;
    if (status == RSC_ERROR_LIMIT) {
        luaL_error(L, "the headers of an answer must fit %d bytes", (int)RSC_SERVER_MAX_REPLY_HEADERS);
    } else if (status != RSC_OK) {
        luaL_error(L, "not enough memory");
    }
    lua_pop(L, 1);
}

/* Checks and serializes the table of headers, or nil, at `index`. */
static void collect_headers(lua_State *L, int index, struct rsc_buffer *headers) {
    rsc_buffer_reset(headers);
    if (lua_isnoneornil(L, index)) {
        return;
    }
    luaL_checktype(L, index, LUA_TTABLE);
    for (lua_pushnil(L); lua_next(L, index) != 0; lua_pop(L, 1)) {
        size_t name_length;
        if (lua_type(L, -2) != LUA_TSTRING) {
            luaL_error(L, "headers must be a table of name = value (got a %s as a name)", luaL_typename(L, -2));
        }
        const char *name = lua_tolstring(L, -2, &name_length);
        if (!lua_istable(L, -1)) {
            add_header(L, headers, name, name_length);
            continue;
        }
        for (int i = 1; i <= (int)lua_rawlen(L, -1); i++) {
            lua_rawgeti(L, -1, i);
            add_header(L, headers, name, name_length);
            lua_pop(L, 1);
        }
    }
}

static int64_t check_integer(lua_State *L, int index, int64_t least, int64_t most) {
    int64_t value = 0;
    if (!rsc_lua_to_int64(L, index, &value) || value < least || value > most) {
        char message[64];
        (void)snprintf(message, sizeof message, "an integer from %" PRId64 " to %" PRId64 " is needed", least, most);
        luaL_argerror(L, index, message);
    }
    return value;
}

/* Reads the arguments status, headers and body, which start at index 2. */
static struct request_box *check_reply(lua_State *L, struct rsc_reply *reply) {
    struct request_box *box = check_open(L);
    memset(reply, 0, sizeof *reply);
    reply->status = (unsigned)check_integer(L, 2, 200, 999);
    reply->body = "";
    if (!lua_isnoneornil(L, 4)) {
        luaL_checktype(L, 4, LUA_TSTRING);
        reply->body = lua_tolstring(L, 4, &reply->body_length);
    }
    collect_headers(L, 3, &box->headers);
    reply->headers = &box->headers;
    return box;
}

static int send_reply(lua_State *L, struct request_box *box, const struct rsc_reply *reply) {
    enum rsc_reply_result result = rsc_exchange_reply(box->request, reply);
    rsc_buffer_free(&box->headers);
    if (result == RSC_REPLY_FAILED) {
        lua_pushnil(L);
        lua_pushliteral(L, "not enough memory for the answer");
        return 2;
    }
    lua_pushboolean(L, result == RSC_REPLY_QUEUED);
    return 1;
}

static int request_respond(lua_State *L) {
    struct rsc_reply reply;
    struct request_box *box = check_reply(L, &reply);
    return send_reply(L, box, &reply);
}

static int request_truncate(lua_State *L) {
    struct rsc_reply reply;
    struct request_box *box = check_reply(L, &reply);
    reply.truncated = true;
    reply.sent = (size_t)check_integer(L, 5, 0, (int64_t)reply.body_length);
    return send_reply(L, box, &reply);
}

static int request_drip(lua_State *L) {
    struct rsc_reply reply;
    struct request_box *box = check_reply(L, &reply);
    reply.piece = (size_t)check_integer(L, 5, 1, INT32_MAX);
    reply.interval = luaL_checknumber(L, 6);
    if (!(reply.interval >= 0 && reply.interval <= RSC_SERVER_MAX_INTERVAL)) {
        luaL_argerror(L, 6, "seconds from 0 to 86400 are needed");
    }
    return send_reply(L, box, &reply);
}

static int request_reset(lua_State *L) {
    rsc_exchange_reset(check_open(L)->request);
    return 0;
}

static int request_stall(lua_State *L) {
    rsc_exchange_stall(check_open(L)->request);
    return 0;
}

static int request_gc(lua_State *L) {
    struct request_box *box = luaL_checkudata(L, 1, REQUEST_TYPE);
    rsc_buffer_free(&box->headers);
    if (box->request != NULL) {
        rsc_exchange_release(box->request);
        box->request = NULL;
    }
    return 0;
}

void rsc_server_request_register(lua_State *L) {
    static const luaL_Reg methods[] = {
        {"respond", request_respond}, {"truncate", request_truncate}, {"drip", request_drip},
        {"reset", request_reset},     {"stall", request_stall},       {NULL, NULL},
    };
    luaL_newmetatable(L, REQUEST_TYPE);
    lua_newtable(L);
    rsc_lua_set_functions(L, methods);
    lua_pushcclosure(L, request_index, 1);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, request_gc);
    lua_setfield(L, -2, "__gc");
    lua_pop(L, 1);
}
