/* Fuzzes the decoder inside a Lua state. Beside memory errors it checks four properties. A used decoder, with keys and
 * sizes in its cache, gives the same result as a new one. The bytes before a fault begin a valid text. Decoding a text
 * again gives the same value. A decoder that refuses duplicate names refuses exactly the texts that have some, and
 * decodes the others to the same value. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lua/compat.h"
#include "lua/parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TEXTS_PER_STATE 20000 /* then a new state, with an empty cache */

static lua_State *L;
static int texts;

static __attribute__((noinline)) void demand(bool condition) {
    if (!condition) {
        abort();
    }
}

/* Stack indexes. The used decoders keep their cache from one text to the next. */
enum { NEW_DECODER = 1, USED, USED_DROP, USED_REFUSE, NEW, FIRST };

static void push_decoder(const char *null, const char *duplicates) {
    lua_pushvalue(L, NEW_DECODER);
    lua_newtable(L);
    lua_pushinteger(L, 64);
    lua_setfield(L, -2, "max_depth");
    lua_pushstring(L, null);
    lua_setfield(L, -2, "null");
    lua_pushstring(L, duplicates);
    lua_setfield(L, -2, "duplicates");
    lua_call(L, 1, 1);
}

/* Leaves core.decoder and the used decoders on the stack. */
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
    push_decoder("keep", "keep");
    push_decoder("drop", "keep");
    push_decoder("drop", "refuse");
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

/* Decodes a copy in an allocation that ends with the NUL, so that the sanitizer finds a read past it. */
static int decode_exactly(int decoder, const uint8_t *data, size_t size) {
    char *copy = malloc(size + 1);
    demand(copy != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    copy[size] = '\0';
    int results = rsc_decoder_push(L, decoder, (struct rsc_text){copy, size});
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
    int results = decode_exactly(USED, data, position - 1);
    demand(results == 1 || fault_position() == position);
}

/* Returns the number of members in a valid text: the colons outside strings. */
static size_t count_colons(const uint8_t *data, size_t size) {
    size_t count = 0;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        if (in_string && data[i] == '\\') {
            i++;
        } else if (data[i] == '"') {
            in_string = !in_string;
        } else if (!in_string && data[i] == ':') {
            count++;
        }
    }
    return count;
}

/* Returns the number of members in the objects of the value at the index. */
static size_t count_members(int value) {
    size_t count = 0;
    if (lua_type(L, value) != LUA_TTABLE) {
        return 0;
    }
    luaL_checkstack(L, 8, "counting");
    for (lua_pushnil(L); lua_next(L, value) != 0; lua_pop(L, 1)) {
        count += lua_type(L, -2) == LUA_TSTRING;
        count += count_members(lua_gettop(L));
    }
    return count;
}

/* The value of the text, with null members and the last of duplicate names, is at FIRST. It has fewer members than the
 * text exactly if the text has duplicate names. */
static void check_duplicates(const uint8_t *data, size_t size) {
    bool has_duplicates = count_members(FIRST) != count_colons(data, size);
    int results = decode_exactly(USED_REFUSE, data, size);
    demand(results == (has_duplicates ? 3 : 1));
    if (has_duplicates) {
        demand(strncmp(lua_tostring(L, -2), "duplicate name", 14) == 0);
        check_fault(data, size, fault_position());
    } else {
        demand(decode_exactly(USED_DROP, data, size) == 1 && equal(lua_gettop(L) - 1, lua_gettop(L)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (L == NULL || texts++ == TEXTS_PER_STATE) {
        open_state();
    }
    push_decoder("keep", "keep");
    int fresh = decode_exactly(NEW, data, size);
    int known = decode_exactly(USED, data, size);
    demand(known == fresh);
    if (known == 3) {
        size_t position = fault_position();
        demand(lua_tonumber(L, FIRST + 2) == lua_tonumber(L, -1));
        demand(lua_rawequal(L, FIRST + 1, -2));
        check_fault(data, size, position);
        demand(decode_exactly(USED_REFUSE, data, size) == 3 && fault_position() <= position);
    } else {
        demand(equal(FIRST, FIRST + 1));
        lua_settop(L, FIRST);
        demand(decode_exactly(NEW, data, size) == 1 && equal(FIRST, FIRST + 1));
        check_duplicates(data, size);
    }
    lua_settop(L, USED_REFUSE);
    return 0;
}
