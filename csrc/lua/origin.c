#include "http/origin.h"

#include "lua/loop.h"
#include "lua/options.h"

static const char *const http_versions[] = {
    [RSC_HTTP_AUTO] = "auto",
    [RSC_HTTP_1_1] = "1.1",
    [RSC_HTTP_2] = "2",
    NULL,
};

static const struct rsc_option options[] = {
    {"base_url", RSC_OPTION_TEXT, offsetof(struct rsc_origin_options, base_url), 0, 0, NULL},
    {"concurrency", RSC_OPTION_COUNT, offsetof(struct rsc_origin_options, concurrency), 1, RSC_CONCURRENCY_MAX, NULL},
    {"connect_timeout", RSC_OPTION_SECONDS, offsetof(struct rsc_origin_options, connect_timeout), 0.001,
     RSC_TIMEOUT_MAX, NULL},
    {"max_body", RSC_OPTION_COUNT, offsetof(struct rsc_origin_options, max_body), 0, RSC_BODY_MAX, NULL},
    {"max_headers", RSC_OPTION_COUNT, offsetof(struct rsc_origin_options, max_headers), 1, RSC_HEADERS_MAX, NULL},
    {"http_version", RSC_OPTION_CHOICE, offsetof(struct rsc_origin_options, http_version), 0, 0, http_versions},
    {"compression", RSC_OPTION_FLAG, offsetof(struct rsc_origin_options, compression), 0, 0, NULL},
    {"proxy", RSC_OPTION_TEXT, offsetof(struct rsc_origin_options, proxy), 0, 0, NULL},
    {"ca_file", RSC_OPTION_TEXT, offsetof(struct rsc_origin_options, ca_file), 0, 0, NULL},
    {"client_cert", RSC_OPTION_TEXT, offsetof(struct rsc_origin_options, client_cert), 0, 0, NULL},
    {"client_key", RSC_OPTION_TEXT, offsetof(struct rsc_origin_options, client_key), 0, 0, NULL},
    {"unix_socket", RSC_OPTION_TEXT, offsetof(struct rsc_origin_options, unix_socket), 0, 0, NULL},
};

int rsc_origin_push_new(lua_State *L) {
    struct rsc_loop *loop = rsc_lua_check_loop(L);
    struct rsc_error error;
    struct rsc_origin_options given = {
        .concurrency = 32, .connect_timeout = 3, .max_body = 16 << 20, .max_headers = 64 << 10, .compression = true};
    rsc_options_read(L, 2, "origin", options, sizeof options / sizeof *options, &given);
    if (given.base_url == NULL) {
        return luaL_error(L, "base_url is required");
    }
    struct rsc_origin_box *box = rsc_lua_new_object(L, sizeof *box, RSC_ORIGIN_TYPE);
    lua_createtable(L, 1, 0);
    lua_pushvalue(L, 1);
    lua_rawseti(L, -2, 1);
    rsc_lua_set_uservalue(L, -2);
    box->origin = rsc_origin_new(loop, &given, &error);
    return box->origin != NULL ? 1 : rsc_lua_raise(L, &error);
}

static int origin_gc(lua_State *L) {
    struct rsc_origin_box *box = rsc_lua_check_self(L, RSC_ORIGIN_TYPE);
    if (box->origin != NULL) {
        rsc_origin_drop(box->origin);
        box->origin = NULL;
    }
    return 0;
}

void rsc_origin_register(lua_State *L) {
    static const luaL_Reg methods[] = {{"send", rsc_origin_send}, {NULL, NULL}};
    rsc_lua_new_type(L, RSC_ORIGIN_TYPE, methods, origin_gc);
}
