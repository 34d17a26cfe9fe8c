#include "lua/parts.h"

#include <string.h>

#include "base/text.h"
#include "lua/binding.h"
#include "lua/builder.h"
#include "lua/options.h"
#include "lua/reader.h"

/* A program may load the decoder alone beside a core of another release. */
#define DECODER_TYPE     "riskscreen.decoder " RISKSCREEN_VERSION
#define WORKSPACE_TYPE   "riskscreen.decoder.workspace " RISKSCREEN_VERSION
#define EMPTY_ARRAY_TYPE "riskscreen.empty_array"

#define SCRATCH_KEPT_MAX 65536 /* bytes of scratch memory that stay with an idle decoder */

#define MAX_DEPTH_DEFAULT  512
#define MAX_SIZE_DEFAULT   (1 << 26) /* bytes */
#define MAX_VALUES_DEFAULT (1 << 22)

enum { NULL_DROP, NULL_KEEP };
enum { DUPLICATES_KEEP, DUPLICATES_REFUSE };

/* The memory one decode works in. The decoder owns it between calls. */
struct workspace {
    struct rsc_key_cache cache;
    struct rsc_buffer scratch;
    struct rsc_numbers numbers;
};

struct decoder {
    int64_t max_depth;  /* arrays and objects within each other */
    int64_t max_size;   /* bytes of text */
    int64_t max_values; /* values in a text, arrays and objects included */
    int null;
    int duplicates;
    /* True while a call uses the workspace. A call that finds it true takes a new workspace. This happens after an
     * error in an earlier call, or in a finalizer that runs during a call. */
    bool busy;
    struct workspace *workspace; /* kept alive by the decoder's user value */
};

static const char *const null_choices[] = {[NULL_DROP] = "drop", [NULL_KEEP] = "keep", NULL};
static const char *const duplicates_choices[] = {[DUPLICATES_KEEP] = "keep", [DUPLICATES_REFUSE] = "refuse", NULL};

static const struct rsc_option options[] = {
    {"null", RSC_OPTION_CHOICE, offsetof(struct decoder, null), 0, 0, null_choices},
    {"duplicates", RSC_OPTION_CHOICE, offsetof(struct decoder, duplicates), 0, 0, duplicates_choices},
    {"max_depth", RSC_OPTION_COUNT, offsetof(struct decoder, max_depth), 1, 2048, NULL},
    {"max_size", RSC_OPTION_COUNT, offsetof(struct decoder, max_size), 1, 1 << 30, NULL},
    {"max_values", RSC_OPTION_COUNT, offsetof(struct decoder, max_values), 1, 1 << 30, NULL},
};

static int workspace_gc(lua_State *L) {
    struct workspace *workspace = rsc_lua_check_self(L, WORKSPACE_TYPE);
    rsc_buffer_free(&workspace->scratch);
    rsc_numbers_free(&workspace->numbers);
    return 0;
}

/* Gives the decoder a new workspace and pushes the Lua cache that owns it. */
static void renew_workspace(lua_State *L, int decoder_index, struct decoder *decoder) {
    lua_createtable(L, RSC_LUA_CACHE_SIZE, 0);
    struct workspace *workspace = rsc_lua_new_object(L, sizeof *workspace, WORKSPACE_TYPE);
    rsc_buffer_init(&workspace->scratch, (size_t)decoder->max_size + RSC_SCAN_ROOM);
    lua_rawseti(L, -2, RSC_LUA_CACHE_WORKSPACE);
    luaL_getmetatable(L, EMPTY_ARRAY_TYPE);
    lua_rawseti(L, -2, RSC_LUA_CACHE_EMPTY_ARRAY);
    lua_pushvalue(L, -1);
    rsc_lua_set_uservalue(L, decoder_index);
    decoder->workspace = workspace;
}

/* Takes the workspace for one call and pushes the Lua cache that owns it. */
static struct workspace *take_workspace(lua_State *L, int decoder_index, struct decoder *decoder) {
    if (decoder->busy || decoder->workspace == NULL || decoder->workspace->cache.unknown > RSC_KEYS_RELEARN) {
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

static struct rsc_builder new_builder(lua_State *L, const struct decoder *decoder, struct workspace *workspace,
                                      struct rsc_text text, struct rsc_error *error) {
    return (struct rsc_builder){
        .L = L,
        .input = {text.bytes, text.bytes + text.length, &workspace->scratch, error},
        .numbers = &workspace->numbers,
        .cache = &workspace->cache,
        .lua_cache = lua_gettop(L),
        .max_depth = (int)decoder->max_depth,
        .values_left = (size_t)decoder->max_values,
        .keep_null = decoder->null == NULL_KEEP,
        .refuse_duplicates = decoder->duplicates == DUPLICATES_REFUSE,
    };
}

int rsc_decoder_push(lua_State *L, int decoder_index, struct rsc_text text) {
    decoder_index = lua_absindex(L, decoder_index);
    struct decoder *decoder = lua_touserdata(L, decoder_index);
    struct rsc_error error;
    int top = lua_gettop(L);
    if (text.length > (size_t)decoder->max_size) {
        rsc_error_set(&error, RSC_ERROR_LIMIT, (size_t)decoder->max_size + 1, "the text is longer than %zu bytes",
                      (size_t)decoder->max_size);
        return push_failure(L, top, &error);
    }
    struct workspace *workspace = take_workspace(L, decoder_index, decoder);
    struct rsc_builder builder = new_builder(L, decoder, workspace, text, &error);
    bool built = rsc_builder_run(&builder);
    return_workspace(decoder, workspace);
    if (!built) {
        return push_failure(L, top, &error);
    }
    lua_replace(L, builder.lua_cache);
    return 1;
}

/* core.decoder(options) */
static int decoder_new(lua_State *L) {
    lua_settop(L, 1);
    struct decoder *decoder = rsc_lua_new_object(L, sizeof *decoder, DECODER_TYPE);
    decoder->max_depth = MAX_DEPTH_DEFAULT;
    decoder->max_size = MAX_SIZE_DEFAULT;
    decoder->max_values = MAX_VALUES_DEFAULT;
    rsc_options_read(L, 1, "decoder", options, sizeof options / sizeof *options, decoder);
    return 1;
}

/* decoder:decode(text) */
static int decoder_decode(lua_State *L) {
    (void)rsc_lua_check_self(L, DECODER_TYPE);
    return rsc_decoder_push(L, 1, rsc_lua_check_text(L, 2));
}

/* core.decode(text); its upvalue is the state's own decoder. */
static int decode(lua_State *L) {
    return rsc_decoder_push(L, lua_upvalueindex(1), rsc_lua_check_text(L, 1));
}

/* The upvalues of a reader's function. */
enum { READER_DECODER = 1, READER_SELF, READER_NAMES };

static int read_by_shape(lua_State *L) {
    struct rsc_text text = rsc_lua_check_text(L, 1);
    struct decoder *decoder = lua_touserdata(L, lua_upvalueindex(READER_DECODER));
    struct rsc_error error;
    if (text.length > (size_t)decoder->max_size) {
        return 0;
    }
    lua_settop(L, 1);
    struct workspace *workspace = take_workspace(L, lua_upvalueindex(READER_DECODER), decoder);
    struct rsc_builder builder = new_builder(L, decoder, workspace, text, &error);
    void *reader = lua_touserdata(L, lua_upvalueindex(READER_SELF));
    int count = rsc_reader_run(&builder, reader, lua_upvalueindex(READER_NAMES));
    return_workspace(decoder, workspace);
    lua_settop(L, builder.lua_cache + count);
    return count;
}

/* decoder:reader(nodes): a function that gives the values of a text's fields, or nothing for a text that is unusual or
 * has another shape. nil for nodes that it does not read. See reader.h. */
static int decoder_reader(lua_State *L) {
    (void)rsc_lua_check_self(L, DECODER_TYPE);
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    lua_pushvalue(L, 1);
    if (!rsc_reader_new(L, 2)) {
        return 0;
    }
    lua_pushcclosure(L, read_by_shape, 3);
    return 1;
}

void rsc_decoder_register(lua_State *L) {
    static const luaL_Reg methods[] = {{"decode", decoder_decode}, {"reader", decoder_reader}, {NULL, NULL}};
    rsc_lua_new_type(L, DECODER_TYPE, methods, NULL);
    rsc_lua_new_type(L, WORKSPACE_TYPE, NULL, workspace_gc);

    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    /* Lua 5.3 and later would print __name in place of "table". */
    luaL_newmetatable(L, EMPTY_ARRAY_TYPE);
    lua_pushnil(L);
    lua_setfield(L, -2, "__name");
    lua_setfield(L, -2, "empty_array_mt");
    lua_pushcfunction(L, decoder_new);
    lua_setfield(L, -2, "decoder");
    lua_pushcfunction(L, decoder_new);
    lua_call(L, 0, 1);
    lua_pushcclosure(L, decode, 1);
    lua_setfield(L, -2, "decode");
}
