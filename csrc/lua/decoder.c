#include "decoder.h"

#include <string.h>

#include "builder.h"

#define DECODER_TYPE     "riskscreen.decoder"
#define WORKSPACE_TYPE   "riskscreen.decoder.workspace"
#define EMPTY_ARRAY_TYPE "riskscreen.empty_array"

#define SCRATCH_KEPT_MAX 65536 /* bytes of scratch memory that stay with an idle decoder */

/* What an option may be, in one table: name, least, most, default. */
#define DECODER_LIMITS(X)                                                                                              \
    X(max_depth, 1, 2048, 512)                           /* arrays and objects within each other */                    \
    X(max_size, 1, INT64_C(1) << 30, INT64_C(1) << 26)   /* bytes of text */                                           \
    X(max_values, 1, INT64_C(1) << 30, INT64_C(1) << 22) /* values in a text, arrays and objects included */

/* What a decode works in. It belongs to the decoder between calls, and to the call during one. */
struct workspace {
    struct rsc_key_cache cache;
    struct rsc_buffer scratch;
    struct rsc_numbers numbers;
};

struct decoder {
#define X(name, least, most, default) int64_t name;
    DECODER_LIMITS(X)
#undef X
    bool keep_null;
    /* Set while a call uses the workspace. Found set at the start of a call, it means that an earlier call was cut off
     * by an error, or that this one comes from a finalizer that runs within another; both take a new workspace. */
    bool busy;
    struct workspace *workspace; /* kept alive by the decoder's table of strings */
};

static const struct {
    const char *name;
    int64_t least;
    int64_t most;
    int64_t initial;
    size_t offset;
} limits[] = {
#define X(name, least, most, initial) {#name, least, most, initial, offsetof(struct decoder, name)},
    DECODER_LIMITS(X)
#undef X
};

#define LIMIT_COUNT (sizeof limits / sizeof limits[0])

static int64_t *limit_of(struct decoder *decoder, size_t i) {
    return (int64_t *)(void *)((char *)decoder + limits[i].offset);
}

static int workspace_close(lua_State *L) {
    struct workspace *workspace = luaL_checkudata(L, 1, WORKSPACE_TYPE);
    rsc_buffer_free(&workspace->scratch);
    rsc_numbers_free(&workspace->numbers);
    return 0;
}

/* Gives the decoder a new workspace and pushes the table of strings that owns it. */
static void renew_workspace(lua_State *L, int decoder_index, struct decoder *decoder) {
    lua_createtable(L, RSC_LUA_CACHE_SIZE, 0);
    struct workspace *workspace = lua_newuserdata(L, sizeof *workspace);
    memset(workspace, 0, sizeof *workspace);
    luaL_getmetatable(L, WORKSPACE_TYPE);
    lua_setmetatable(L, -2);
    rsc_buffer_init(&workspace->scratch, (size_t)decoder->max_size + RSC_SCAN_ROOM);
    lua_rawseti(L, -2, RSC_LUA_CACHE_WORKSPACE);
    luaL_getmetatable(L, EMPTY_ARRAY_TYPE);
    lua_rawseti(L, -2, RSC_LUA_CACHE_EMPTY_ARRAY);
    lua_pushvalue(L, -1);
    rsc_lua_set_uservalue(L, decoder_index);
    decoder->workspace = workspace;
}

/* Takes the workspace for one call and pushes the table of strings that owns it. */
static struct workspace *take_workspace(lua_State *L, int decoder_index, struct decoder *decoder) {
    if (decoder->busy || decoder->workspace == NULL) {
        renew_workspace(L, decoder_index, decoder);
    } else {
        rsc_lua_get_uservalue(L, decoder_index);
    }
    decoder->busy = true;
    return decoder->workspace;
}

static void return_workspace(struct decoder *decoder, struct workspace *workspace) {
    if (workspace->scratch.capacity > SCRATCH_KEPT_MAX) {
        rsc_buffer_free(&workspace->scratch);
    }
    if (decoder->workspace == workspace) {
        decoder->busy = false;
    }
}

static int push_failure(lua_State *L, int top, const struct rsc_error *error) {
    lua_settop(L, top);
    lua_pushnil(L);
    lua_pushstring(L, error->message);
    lua_pushinteger(L, (lua_Integer)error->position);
    return 3;
}

int rsc_decoder_push(lua_State *L, int decoder_index, const char *text, size_t length) {
    decoder_index = lua_absindex(L, decoder_index);
    struct decoder *decoder = lua_touserdata(L, decoder_index);
    struct rsc_error error;
    int top = lua_gettop(L);
    luaL_checkstack(L, LUA_MINSTACK, "decoding");
    if (length > (size_t)decoder->max_size) {
        rsc_error_set(&error, RSC_ERROR_LIMIT, (size_t)decoder->max_size + 1, "the text is longer than %zu bytes",
                      (size_t)decoder->max_size);
        return push_failure(L, top, &error);
    }
    struct workspace *workspace = take_workspace(L, decoder_index, decoder);
    struct rsc_builder builder = {
        .L = L,
        .input = {text, text + length, &workspace->scratch, &error},
        .numbers = &workspace->numbers,
        .cache = &workspace->cache,
        .lua_cache = top + 1,
        .max_depth = (int)decoder->max_depth,
        .values_left = (size_t)decoder->max_values,
        .keep_null = decoder->keep_null,
    };
    bool built = rsc_builder_run(&builder);
    return_workspace(decoder, workspace);
    if (!built) {
        return push_failure(L, top, &error);
    }
    lua_replace(L, builder.lua_cache);
    return 1;
}

static void set_limit(lua_State *L, struct decoder *decoder, size_t i) {
    int64_t number = 0;
    if (!rsc_lua_to_int64(L, -1, &number) || number < limits[i].least || number > limits[i].most) {
        luaL_error(L, "%s must be an integer from %d to %d (got %s)", limits[i].name, (int)limits[i].least,
                   (int)limits[i].most, lua_type(L, -1) == LUA_TNUMBER ? lua_tostring(L, -1) : luaL_typename(L, -1));
    }
    *limit_of(decoder, i) = number;
}

static void set_null(lua_State *L, struct decoder *decoder) {
    const char *choice = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    decoder->keep_null = strcmp(choice, "keep") == 0;
    if (!decoder->keep_null && strcmp(choice, "drop") != 0) {
        luaL_error(L, "null must be 'drop' or 'keep'");
    }
}

/* Sets the option whose name is below its value at the top. */
static void set_option(lua_State *L, struct decoder *decoder) {
    const char *name = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : luaL_typename(L, -2);
    if (strcmp(name, "null") == 0) {
        set_null(L, decoder);
        return;
    }
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        if (strcmp(name, limits[i].name) == 0) {
            set_limit(L, decoder, i);
            return;
        }
    }
    luaL_error(L, "unknown decoder option '%s' (there are null, max_depth, max_size and max_values)", name);
}

/* core.decoder(options) */
static int decoder_new(lua_State *L) {
    bool has_options = !lua_isnoneornil(L, 1);
    if (has_options) {
        luaL_checktype(L, 1, LUA_TTABLE);
    }
    lua_settop(L, 1);
    struct decoder *decoder = lua_newuserdata(L, sizeof *decoder);
    memset(decoder, 0, sizeof *decoder);
    luaL_getmetatable(L, DECODER_TYPE);
    lua_setmetatable(L, -2);
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        *limit_of(decoder, i) = limits[i].initial;
    }
    if (has_options) {
        for (lua_pushnil(L); lua_next(L, 1) != 0; lua_pop(L, 1)) {
            set_option(L, decoder);
        }
    }
    return 1;
}

/* decoder:decode(text) */
static int decoder_decode(lua_State *L) {
    size_t length;
    luaL_checkudata(L, 1, DECODER_TYPE);
    luaL_checktype(L, 2, LUA_TSTRING);
    const char *text = lua_tolstring(L, 2, &length);
    return rsc_decoder_push(L, 1, text, length);
}

/* core.decode(text), with the state's own decoder as upvalue */
static int decode(lua_State *L) {
    size_t length;
    luaL_checktype(L, 1, LUA_TSTRING);
    const char *text = lua_tolstring(L, 1, &length);
    return rsc_decoder_push(L, lua_upvalueindex(1), text, length);
}

void rsc_decoder_check(lua_State *L, int index) {
    luaL_checkudata(L, index, DECODER_TYPE);
}

void rsc_decoder_register(lua_State *L) {
    static const luaL_Reg methods[] = {{"decode", decoder_decode}, {NULL, NULL}};
    if (luaL_newmetatable(L, DECODER_TYPE)) {
        lua_createtable(L, 0, 1);
        rsc_lua_set_functions(L, methods);
        lua_setfield(L, -2, "__index");
    }
    if (luaL_newmetatable(L, WORKSPACE_TYPE)) {
        lua_pushcfunction(L, workspace_close);
        lua_setfield(L, -2, "__gc");
    }
    lua_pop(L, 2);

    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    luaL_newmetatable(L, EMPTY_ARRAY_TYPE);
    lua_setfield(L, -2, "empty_array_mt");
    lua_pushcfunction(L, decoder_new);
    lua_setfield(L, -2, "decoder");
    lua_pushcfunction(L, decoder_new);
    lua_call(L, 0, 1);
    lua_pushcclosure(L, decode, 1);
    lua_setfield(L, -2, "decode");
}
