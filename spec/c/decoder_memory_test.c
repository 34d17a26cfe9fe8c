/* Memory sweep of the decoder and the encoder: in each run one more allocation fails. Nothing may leak, and afterwards
 * the Lua state, the decoder and the encoder must still work.
 *
 * Lua's allocations come through the state's allocator. The linker redirects the decoder's own with --wrap=realloc,
 * --wrap=free and --wrap=newlocale. */
#include <locale.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "check.h"
#include "lua/compat.h"
#include "lua/parts.h"

void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
locale_t __real_newlocale(int mask, const char *name, locale_t base);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);
locale_t __wrap_newlocale(int mask, const char *name, locale_t base);

static long until_failure;     /* allocations until one fails; negative for none */
static long blocks;            /* allocated and not freed */
static const char *duplicates; /* the decoder option of this sweep */

static bool fails_now(void) {
    return until_failure >= 0 && until_failure-- == 0;
}

void *__wrap_realloc(void *block, size_t size) {
    if (fails_now()) {
        return NULL;
    }
    void *moved = __real_realloc(block, size);
    blocks += block == NULL && moved != NULL;
    return moved;
}

void __wrap_free(void *block) {
    blocks -= block != NULL;
    __real_free(block);
}

locale_t __wrap_newlocale(int mask, const char *name, locale_t base) {
    return fails_now() ? (locale_t)0 : __real_newlocale(mask, name, base);
}

/* Lua requires that shrinking a block never fails. */
static void *allocate(void *data, void *block, size_t old_size, size_t size) {
    (void)data;
    if (size == 0) {
        __wrap_free(block);
        return NULL;
    }
    if (block != NULL && size <= old_size) {
        return __real_realloc(block, size);
    }
    return __wrap_realloc(block, size);
}

/* Texts that need every kind of memory. Escapes use the scratch buffer, and a long number uses the locale. Repeated
 * keys and values fill the cache. Similar objects create plans. Long arrays grow their tables. The last text has a
 * fault. */
static const char *const TEXTS[] = {
    "[{\"key\":\"value\",\"text\":\"\\u0041\\n and more than thirty-one bytes of it\",\"none\":null},"
    "{\"key\":\"value\",\"text\":\"x\",\"none\":[]},{\"key\":\"value\",\"text\":\"\",\"none\":{}},"
    "{\"key\":\"value\",\"list\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20]}]",
    "[1.00000000000000011102230246251565404236316680908203126,[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]",
    "{\"a\":1,\"b\":{\"c\":true},\"a\":null}",
    "[{\"p\":1,\"q\":\"x\"},{\"p\":2,\"q\":\"x\"},{\"p\":3,\"q\":\"x\"},{\"p\":4,\"q\":\"x\"},{\"p\":5,\"q\":\"x\"},{"
    "\"p\":6,\"q\":\"x\"},"
    "{\"p\":7,\"q\":\"x\"},{\"p\":8,\"q\":\"x\"},{\"p\":9,\"q\":\"x\"},{\"p\":10,\"q\":\"x\"},{\"p\":11,\"q\":null},{"
    "\"p\":12,\"q\":[]},"
    "{\"p\":13,\"r\":\"x\"},{\"p\":14},{\"p\":15,\"q\":\"x\",\"r\":1}]",
    "[1,2,{\"key\":tru}]",
};

static int decode(lua_State *L, int decoder, const char *text) {
    return rsc_decoder_push(L, decoder, (struct rsc_text){text, strlen(text)});
}

/* Reads a text by its shape with the decoder at index 1. */
static void read_by_shape(lua_State *L) {
    static const char program[] =
        "local read = (...):reader {\n"
        "  { type = 'object', first = 1, count = 2 },\n"
        "  { name = 'code', type = 'integer', literal = '1' },\n"
        "  { name = 'list', type = 'array', first = 3, count = 1 },\n"
        "  { type = 'object', first = 4, count = 1 },\n"
        "  { name = 'p', type = 'integer', required = true },\n"
        "}\n"
        "local list = read '{\"code\":1,\"list\":[{\"p\":1,\"q\":\"x\"},{\"p\":2.0,\"r\":[1]}]}'\n"
        "return list and list[2].r[1] == 1 and read '{\"list\":[{\"p\":\"x\"}]}' == nil";
    if (luaL_loadstring(L, program) != 0) {
        lua_error(L);
    }
    lua_pushvalue(L, 1);
    lua_call(L, 1, 1);
    CHECK(lua_toboolean(L, -1), "the reader gave another value");
}

/* Decodes all texts with the decoder at index 1. */
static int decode_texts(lua_State *L) {
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        lua_settop(L, 1);
        (void)decode(L, 1, TEXTS[i]);
    }
    read_by_shape(L);
    return 0;
}

/* Registers the module and pushes a new decoder. */
static void push_decoder(lua_State *L) {
    lua_createtable(L, 0, 0);
    rsc_decoder_register(L);
    lua_getfield(L, -1, "decoder");
    lua_createtable(L, 0, 1);
    lua_pushstring(L, duplicates);
    lua_setfield(L, -2, "duplicates");
    lua_call(L, 1, 1);
    lua_remove(L, -2);
}

static int begin_and_decode(lua_State *L) {
    lua_settop(L, 0);
    push_decoder(L);
    return decode_texts(L);
}

/* Checks that the decoder from before the failure still works. */
static int decode_and_check(lua_State *L) {
    lua_getfield(L, LUA_REGISTRYINDEX, "survivor");
    int top = lua_gettop(L);
    int results = decode(L, -1, TEXTS[0]);
    CHECK(results == 1 && lua_gettop(L) == top + 1 && lua_rawlen(L, -1) == 4, "%d results", results);
    lua_rawgeti(L, -1, 1);
    lua_getfield(L, -1, "text");
    CHECK(strcmp(lua_tostring(L, -1), "A\n and more than thirty-one bytes of it") == 0, "%s", lua_tostring(L, -1));
    lua_pop(L, 2);
    lua_rawgeti(L, -1, 4);
    lua_getfield(L, -1, "list");
    CHECK(lua_rawlen(L, -1) == 20, "%d elements", (int)lua_rawlen(L, -1));
    return 0;
}

/* Registers the module and pushes a new core.encode. */
static void push_encode(lua_State *L) {
    lua_createtable(L, 0, 0);
    rsc_decoder_register(L);
    rsc_encoder_register(L);
    lua_getfield(L, -1, "encode");
    lua_remove(L, -2);
}

/* Makes the decoder, the encoder and a value that outlive the failure. */
static int make_survivor(lua_State *L) {
    push_decoder(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, "survivor");
    CHECK(decode(L, -1, TEXTS[0]) == 1, "no value");
    lua_setfield(L, LUA_REGISTRYINDEX, "value");
    push_encode(L);
    lua_setfield(L, LUA_REGISTRYINDEX, "encode");
    return 0;
}

/* Encodes the value by the function at the top of the stack, first within a long list. */
static int encode_value(lua_State *L) {
    int encode = lua_gettop(L);
    lua_createtable(L, 0, 0);
    for (int i = 1; i <= 40; i++) {
        lua_getfield(L, LUA_REGISTRYINDEX, "value");
        lua_rawseti(L, -2, i);
    }
    lua_pushvalue(L, encode);
    lua_insert(L, -2);
    lua_call(L, 1, 1);
    CHECK(lua_rawlen(L, -1) > 1000, "%s", lua_tostring(L, -1));
    lua_pushvalue(L, encode);
    lua_getfield(L, LUA_REGISTRYINDEX, "value");
    lua_call(L, 1, 1);
    CHECK(lua_rawlen(L, -1) > 100, "%s", lua_tostring(L, -1));
    return 0;
}

static int begin_and_encode(lua_State *L) {
    push_encode(L);
    return encode_value(L);
}

static int encode_with_survivor(lua_State *L) {
    lua_getfield(L, LUA_REGISTRYINDEX, "encode");
    return encode_value(L);
}

static int decode_with_survivor(lua_State *L) {
    lua_settop(L, 0);
    lua_getfield(L, LUA_REGISTRYINDEX, "survivor");
    return decode_texts(L);
}

static int call_protected(lua_State *L, lua_CFunction function) {
#if LUA_VERSION_NUM == 501
    int status = lua_cpcall(L, function, NULL);
#else
    lua_pushcfunction(L, function);
    int status = lua_pcall(L, 0, 0, 0);
#endif
    lua_settop(L, 0);
    return status;
}

/* Returns whether the program reached the failing allocation. */
static bool sweep_once(lua_CFunction function, long failing, bool warm) {
    blocks = 0;
    until_failure = -1;
    lua_State *L = lua_newstate(allocate, NULL);
    CHECK(L != NULL, "no state");
    CHECK(call_protected(L, make_survivor) == 0, "could not begin");
    CHECK(!warm || call_protected(L, decode_with_survivor) == 0, "could not decode");
    until_failure = failing;
    int status = call_protected(L, function);
    bool reached = until_failure < 0;
    CHECK(reached || status == 0, "an error without a failure");
    until_failure = -1;
    CHECK(call_protected(L, decode_and_check) == 0, "unusable after the failure of allocation %ld", failing);
    CHECK(call_protected(L, decode_and_check) == 0, "unusable after the failure of allocation %ld", failing);
    CHECK(call_protected(L, encode_with_survivor) == 0, "unusable after the failure of allocation %ld", failing);
    lua_close(L);
    CHECK(blocks == 0, "%ld blocks leaked after the failure of allocation %ld", blocks, failing);
    return reached;
}

static long sweep(lua_CFunction function, bool warm) {
    long failing = 0;
    while (sweep_once(function, failing, warm)) {
        failing++;
    }
    return failing;
}

int main(void) {
    until_failure = -1;
    lua_State *L = lua_newstate(allocate, NULL);
    if (L == NULL) {
        printf("this Lua takes no allocator: skipped\n");
        return 0;
    }
    lua_close(L);
    static const char *const choices[] = {"keep", "refuse"};
    for (size_t i = 0; i < 2; i++) {
        duplicates = choices[i];
        long count = sweep(begin_and_decode, false);
        CHECK(count > 50, "only %ld allocations", count);
        count = sweep(decode_with_survivor, false);
        CHECK(count > 20, "only %ld allocations", count);
        count = sweep(decode_with_survivor, true);
        CHECK(count > 20, "only %ld allocations", count);
    }
    long count = sweep(begin_and_encode, false);
    CHECK(count > 20, "only %ld allocations", count);
    count = sweep(encode_with_survivor, false);
    CHECK(count > 8, "only %ld allocations", count);
    return 0;
}
