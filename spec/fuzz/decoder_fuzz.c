/* Fuzzes the decoder inside a Lua state. Beside memory errors it checks three properties. A used decoder, with keys and
 * sizes in its cache, gives the same result as a new one. The bytes before a fault begin a valid text. Decoding a text
 * again gives the same value. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lua/compat.h"
#include "lua/decoder.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXTS_PER_STATE 20000 /* then a new state, with an empty cache */

static lua_State *L;
static int texts;

static __attribute__((noinline)) void demand(bool condition) {
    if (!condition) {
        abort();
    }
}

/* Pushes a new decoder from the function at index 1. */
static void push_new_decoder(void) {
    lua_pushvalue(L, 1);
    lua_newtable(L);
    lua_pushinteger(L, 64);
    lua_setfield(L, -2, "max_depth");
    lua_pushliteral(L, "keep");
    lua_setfield(L, -2, "null");
    lua_call(L, 1, 1);
}

/* Leaves core.decoder at index 1 and the used decoder at index 2. */
static void open_state(void) {
    if (L != NULL) {
        lua_close(L);
    }
    L = luaL_newstate();
    demand(L != NULL);
    lua_newtable(L);
    rsc_decoder_register(L);
    lua_getfield(L, 1, "decoder");
    lua_replace(L, 1);
    push_new_decoder();
    texts = 0;
}

static bool equal(int a, int b);

/* Returns whether the table at `b` has every member of the table at `a`. */
static bool contains(int b, int a) {
    luaL_checkstack(L, 8, "comparing");
    lua_pushnil(L);
    while (lua_next(L, a) != 0) {
        lua_pushvalue(L, -2);
        lua_rawget(L, b);
        if (!equal(lua_gettop(L) - 1, lua_gettop(L))) {
            return false;
        }
        lua_pop(L, 2);
    }
    return true;
}

static bool equal(int a, int b) {
    if (lua_type(L, a) != LUA_TTABLE || lua_type(L, b) != LUA_TTABLE) {
        return lua_rawequal(L, a, b) != 0;
    }
    int top = lua_gettop(L);
    bool alike = lua_getmetatable(L, a) == lua_getmetatable(L, b);
    lua_settop(L, top);
    return alike && contains(b, a) && contains(a, b);
}

/* Decodes a copy in an allocation of the exact size, so that the sanitizer finds a read past the end. */
static int decode_exactly(int decoder, const uint8_t *data, size_t size) {
    char *copy = malloc(size > 0 ? size : 1);
    demand(copy != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    int results = rsc_decoder_push(L, decoder, copy, size);
    free(copy);
    return results;
}

static size_t fault_position(void) {
    demand(lua_isnil(L, -3) && lua_type(L, -2) == LUA_TSTRING);
    return (size_t)lua_tonumber(L, -1);
}

/* Checks that the bytes before a fault are a valid text or the beginning of one. */
static void check_fault(const uint8_t *data, size_t size, size_t position) {
    demand(position >= 1 && position <= size + 1);
    int results = decode_exactly(2, data, position - 1);
    demand(results == 1 || fault_position() == position);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (L == NULL || texts++ == TEXTS_PER_STATE) {
        open_state();
    }
    push_new_decoder();
    int fresh = decode_exactly(3, data, size);
    int first = 4;
    int known = decode_exactly(2, data, size);
    demand(known == fresh);
    if (known == 3) {
        size_t position = fault_position();
        demand(lua_tonumber(L, first + 2) == lua_tonumber(L, -1));
        demand(lua_rawequal(L, first + 1, -2));
        check_fault(data, size, position);
    } else {
        demand(equal(first, first + 1));
        lua_settop(L, first);
        demand(decode_exactly(3, data, size) == 1 && equal(first, first + 1));
    }
    lua_settop(L, 2);
    return 0;
}
