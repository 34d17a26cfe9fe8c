#include "http/transfer.h"

#include <string.h>

#include "lua/loop.h"
#include "lua/options.h"

#define TIMEOUT_MIN 0.001 /* seconds */

/* The arguments of origin:send. */
enum { ORIGIN = 1, METHOD, TARGET, HEADERS, TIMEOUT, CONNECT_TIMEOUT, BODY, FRESH, UNTIMED };

/* Sending */

static int refuse_size(lua_State *L) {
    return luaL_error(L, "the request is too large (body at most %d bytes, target and headers %d)",
                      RSC_REQUEST_BODY_MAX, RSC_REQUEST_TEXT_MAX);
}

/* Reads a line of the list of headers. Its bytes stay valid as long as the list. */
static struct rsc_text line_at(lua_State *L, size_t index) {
    struct rsc_text line = {NULL, 0};
    lua_rawgeti(L, HEADERS, (int)index + 1);
    if (lua_type(L, -1) == LUA_TSTRING) {
        line.bytes = lua_tolstring(L, -1, &line.length);
    }
    lua_pop(L, 1);
    return line;
}

/* Whether the list of headers has the same lines as the last request. */
static bool same_headers(lua_State *L, const struct rsc_headers *headers, size_t count) {
    if (headers == NULL || headers->count != count) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        struct rsc_text line = line_at(L, i);
        if (line.bytes == NULL || !rsc_headers_equal(headers, i, line)) {
            return false;
        }
    }
    return true;
}

/* Checks the lines of the list of headers and copies them. Header values are secret, so messages give only a line's
 * index. */
static struct rsc_headers *copy_headers(lua_State *L, const struct rsc_origin *origin, size_t count) {
    size_t bytes = 0;
    if (count > RSC_REQUEST_HEADERS_MAX) {
        luaL_error(L, "headers must have at most %d lines", RSC_REQUEST_HEADERS_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        struct rsc_text line = line_at(L, i);
        if (line.bytes == NULL || !rsc_request_header_valid(line)) {
            luaL_error(L, "headers[%d] must be a string \"Name: value\" without CR, LF or NUL", (int)i + 1);
        }
        bytes += line.length;
    }
    if (bytes > RSC_REQUEST_TEXT_MAX) {
        refuse_size(L);
    }
    struct rsc_headers *headers = rsc_headers_new(origin, count, bytes);
    if (headers == NULL) {
        luaL_error(L, "not enough memory");
    }
    for (size_t i = 0; i < count; i++) {
        rsc_headers_add(headers, line_at(L, i)); /* raises no error */
    }
    return headers;
}

/* Returns the headers in the list, which may be nil. The origin owns them until its next request. */
static struct rsc_headers *take_headers(lua_State *L, struct rsc_origin *origin) {
    size_t count = lua_isnil(L, HEADERS) ? 0 : (size_t)lua_rawlen(L, HEADERS);
    if (!same_headers(L, origin->headers, count)) {
        struct rsc_headers *headers = copy_headers(L, origin, count);
        rsc_headers_refer(&origin->headers, headers);
        rsc_headers_refer(&headers, NULL);
    }
    return origin->headers;
}

static double check_timeout(lua_State *L, int index) {
    double seconds = luaL_checknumber(L, index);
    luaL_argcheck(L, seconds >= TIMEOUT_MIN && seconds <= RSC_TIMEOUT_MAX, index, "not from 0.001 to 86400 seconds");
    return seconds;
}

static struct rsc_request check_request(lua_State *L, const struct rsc_origin *origin) {
    struct rsc_request request = {
        .method = rsc_lua_check_text(L, METHOD),
        .target = rsc_lua_check_text(L, TARGET),
        .timeout = rsc_seconds_to_ns(check_timeout(L, TIMEOUT)),
        .connect_timeout = origin->connect_timeout,
        .has_body = !lua_isnil(L, BODY),
        .fresh = lua_toboolean(L, FRESH) != 0,
        .timed = lua_toboolean(L, UNTIMED) == 0,
    };
    luaL_argcheck(L, rsc_request_method_valid(request.method), METHOD, "not upper-case letters");
    luaL_argcheck(L, rsc_request_target_valid(request.target), TARGET,
                  "does not begin with '/', or has spaces or control characters");
    if (!lua_isnil(L, HEADERS)) {
        luaL_checktype(L, HEADERS, LUA_TTABLE);
    }
    if (!lua_isnil(L, CONNECT_TIMEOUT)) {
        request.connect_timeout = rsc_seconds_to_ms(check_timeout(L, CONNECT_TIMEOUT));
    }
    if (request.has_body) {
        request.body = rsc_lua_check_text(L, BODY);
    }
    return request;
}

int rsc_origin_send(lua_State *L) {
    const struct rsc_origin_box *box = rsc_lua_check_self(L, RSC_ORIGIN_TYPE);
    if (box->origin == NULL) {
        return luaL_error(L, "the origin is closed"); /* its finalizer has run before that of the caller */
    }
    if (rsc_loop_inherited(box->origin->loop)) {
        lua_pushnil(L);
        return 1;
    }
    rsc_lua_check_open(L, box->origin->loop);
    lua_settop(L, UNTIMED);
    struct rsc_request request = check_request(L, box->origin);
    struct rsc_transfer *transfer;
    request.headers = take_headers(L, box->origin);
    int status = rsc_transfer_send(box->origin, &request, &transfer);
    if (status != RSC_OK) {
        return status == RSC_ERROR_LIMIT ? refuse_size(L) : luaL_error(L, "not enough memory");
    }
    rsc_lua_push_int64(L, transfer->operation.number);
    return 1;
}

/* The response */

static void set_number(lua_State *L, const char *name, double number) {
    lua_pushnumber(L, number);
    lua_setfield(L, -2, name);
}

static void push_headers(lua_State *L, const char *line, size_t length) {
    const char *end = line + length;
    lua_createtable(L, 0, 8);
    while (line < end) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *next = newline != NULL ? newline + 1 : end;
        const char *colon = memchr(line, ':', (size_t)(next - line));
        /* The reason of the status line may have a colon. */
        if (colon != NULL && next - colon > 2 && !rsc_head_begins((struct rsc_text){line, (size_t)(next - line)})) {
            struct rsc_text value = {colon + 1, (size_t)(next - colon) - sizeof "\r\n"};
            rsc_lua_add_header(L, (struct rsc_text){line, (size_t)(colon - line)}, rsc_text_trim(value));
        }
        line = next;
    }
}

static void push_times(lua_State *L, const struct rsc_response *response) {
    lua_createtable(L, 0, 5);
    set_number(L, "name_lookup", response->name_lookup);
    set_number(L, "connect", response->connect);
    set_number(L, "tls", response->tls);
    set_number(L, "first_byte", response->first_byte);
    set_number(L, "total", response->total);
}

static void push_failure(lua_State *L, const struct rsc_failure *failure) {
    lua_createtable(L, 0, 4);
    lua_pushstring(L, rsc_failure_kind_name(failure->kind));
    lua_setfield(L, -2, "kind");
    lua_pushstring(L, failure->message != NULL ? failure->message : "not enough memory for a message");
    lua_setfield(L, -2, "message");
    lua_pushboolean(L, failure->sent);
    lua_setfield(L, -2, "sent");
    if (failure->dead_connection) {
        lua_pushboolean(L, true);
        lua_setfield(L, -2, "dead_connection");
    }
    lua_pushstring(L, rsc_phase_name(failure->phase));
    lua_setfield(L, -2, "phase");
}

/* Pushes what rsc_transfer_details reads later, when the transfer is gone: the times, then the head. */
static void push_head(lua_State *L, const struct rsc_transfer *transfer) {
    luaL_Buffer text;
    luaL_buffinit(L, &text);
    luaL_addlstring(&text, (const char *)&transfer->outcome.response, sizeof transfer->outcome.response);
    luaL_addlstring(&text, transfer->received.data, transfer->head_size);
    luaL_pushresult(&text);
}

int rsc_transfer_details(lua_State *L) {
    size_t length = 0;
    struct rsc_response response;
    const char *head = luaL_checklstring(L, 1, &length);
    luaL_argcheck(L, length >= sizeof response, 1, "not a head");
    memcpy(&response, head, sizeof response);
    const char *line = head + sizeof response, *version = line + sizeof "HTTP";
    push_headers(L, line, length - sizeof response);
    push_times(L, &response);
    const char *space = memchr(line, ' ', length - sizeof response);
    lua_pushlstring(L, version, space != NULL && space > version ? (size_t)(space - version) : 0);
    return 3;
}

/* Pushes the outcome of the transfer at index 1. A head is pushed only if index 2 is there. */
static int push_outcome(lua_State *L) {
    const struct rsc_transfer *transfer = lua_touserdata(L, 1);
    bool with_head = lua_toboolean(L, 2) != 0;
    lua_settop(L, 0);
    if (transfer->failed) {
        lua_pushnil(L);
        push_failure(L, &transfer->outcome.failure);
        return 2;
    }
    struct rsc_text body = rsc_transfer_body(transfer);
    lua_pushinteger(L, transfer->head.status);
    lua_pushlstring(L, body.bytes, body.length);
    if (with_head || transfer->head.status != 200) {
        push_head(L, transfer);
    }
    return lua_gettop(L);
}

/* Frees the transfer, also if memory runs out for its outcome. A finalizer that runs meanwhile finds none. */
int rsc_transfer_take(lua_State *L) {
    struct rsc_loop *loop = rsc_lua_check_loop(L);
    struct rsc_operation *operation = rsc_lua_find_operation(L, loop);
    if (operation == NULL || operation->kind != RSC_TRANSFER) {
        return luaL_error(L, "the transfer is closed");
    } else if (operation->state < RSC_FINISHED) {
        return luaL_error(L, "the transfer has not finished");
    }
    bool with_head = lua_toboolean(L, 3) != 0;
    lua_settop(L, 2);
    lua_pushcfunction(L, push_outcome);
    lua_pushlightuserdata(L, operation);
    lua_pushboolean(L, with_head);
    int status = lua_pcall(L, 2, LUA_MULTRET, 0);
    rsc_operation_cancel(operation);
    return status == 0 ? lua_gettop(L) - 2 : lua_error(L);
}
