/* The floor of bench/decode.lua: builds the tables of a text again without parsing. record(value) notes how to build a
 * value, and build() builds it. Tables get their exact size, and keys and short strings come from a table, so that they
 * need no hashing. One recording at a time. */
#include <lauxlib.h>
#include <lua.h>
#include <stdlib.h>
#include <string.h>

#if LUA_VERSION_NUM == 501
#    define lua_rawlen(L, index) lua_objlen(L, index)
#endif

#define SHORT_STRING_MAX 31 /* bytes */
#define DEPTH_MAX        64
#define SLOTS            3 /* of the stack, for each level */

enum kind { BOOLEAN, INTEGER, REAL, STRING, INTERNED, NIL, OBJECT, ARRAY };

struct step {
    enum kind kind;
    int number; /* a boolean, a slot of the interned strings, or a count of members or elements */
    size_t length;
    union {
        lua_Integer integer;
        lua_Number real;
        char *bytes;
    } of;
};

static struct step *steps;
static size_t count, capacity;

static struct step *add(enum kind kind) {
    if (count == capacity) {
        capacity = capacity * 2 + 1024;
        steps = realloc(steps, capacity * sizeof *steps);
        if (steps == NULL) {
            abort();
        }
    }
    steps[count] = (struct step){.kind = kind};
    return &steps[count++];
}

static void record_number(lua_State *L) {
#if LUA_VERSION_NUM >= 503
    if (lua_isinteger(L, -1)) {
        add(INTEGER)->of.integer = lua_tointeger(L, -1);
        return;
    }
#endif
    add(REAL)->of.real = lua_tonumber(L, -1);
}

/* The table of interned strings is at index 2: each string has its slot, and each slot its string. */
static void record_string(lua_State *L) {
    size_t length;
    const char *bytes = lua_tolstring(L, -1, &length);
    if (length > SHORT_STRING_MAX) {
        struct step *step = add(STRING);
        step->length = length;
        step->of.bytes = malloc(length);
        if (step->of.bytes == NULL) {
            abort();
        }
        memcpy(step->of.bytes, bytes, length);
        return;
    }
    lua_pushvalue(L, -1);
    lua_rawget(L, 2);
    int slot = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    if (slot == 0) {
        slot = (int)lua_rawlen(L, 2) + 1;
        lua_pushvalue(L, -1);
        lua_pushinteger(L, slot);
        lua_rawset(L, 2);
        lua_pushvalue(L, -1);
        lua_rawseti(L, 2, slot);
    }
    add(INTERNED)->number = slot;
}

static void record_value(lua_State *L);

static void record_table(lua_State *L) {
    int length = (int)lua_rawlen(L, -1);
    size_t at = count;
    int members = 0;
    luaL_checkstack(L, SLOTS, "recording");
    add(length > 0 ? ARRAY : OBJECT);
    if (length > 0) {
        for (int i = 1; i <= length; i++) {
            lua_rawgeti(L, -1, i);
            record_value(L);
            lua_pop(L, 1);
        }
        steps[at].number = length;
        return;
    }
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1), members++) {
        lua_pushvalue(L, -2);
        record_string(L);
        lua_pop(L, 1);
        record_value(L);
    }
    steps[at].number = members;
}

static void record_value(lua_State *L) {
    switch (lua_type(L, -1)) {
    case LUA_TBOOLEAN:
        add(BOOLEAN)->number = lua_toboolean(L, -1);
        break;
    case LUA_TNUMBER:
        record_number(L);
        break;
    case LUA_TSTRING:
        record_string(L);
        break;
    case LUA_TTABLE:
        record_table(L);
        break;
    default:
        add(NIL);
    }
}

static int record(lua_State *L) {
    lua_settop(L, 1);
    for (size_t i = 0; i < count; i++) {
        if (steps[i].kind == STRING) {
            free(steps[i].of.bytes);
        }
    }
    count = 0;
    lua_newtable(L);
    lua_pushvalue(L, 1);
    record_value(L);
    lua_pushvalue(L, 2);
    lua_setfield(L, LUA_REGISTRYINDEX, "decode_floor");
    return 0;
}

static const struct step *build_value(lua_State *L, const struct step *step) {
    const struct step *next = step + 1;
    switch (step->kind) {
    case BOOLEAN:
        lua_pushboolean(L, step->number);
        break;
    case INTEGER:
        lua_pushinteger(L, step->of.integer);
        break;
    case REAL:
        lua_pushnumber(L, step->of.real);
        break;
    case STRING:
        lua_pushlstring(L, step->of.bytes, step->length);
        break;
    case INTERNED:
        lua_rawgeti(L, 1, step->number);
        break;
    case NIL:
        lua_pushnil(L);
        break;
    case OBJECT:
        lua_createtable(L, 0, step->number);
        for (int i = 0; i < step->number; i++) {
            lua_rawgeti(L, 1, next->number);
            next = build_value(L, next + 1);
            lua_rawset(L, -3);
        }
        break;
    case ARRAY:
        lua_createtable(L, step->number, 0);
        for (int i = 1; i <= step->number; i++) {
            next = build_value(L, next);
            lua_rawseti(L, -2, i);
        }
        break;
    }
    return next;
}

static int build(lua_State *L) {
    lua_settop(L, 0);
    luaL_checkstack(L, DEPTH_MAX * SLOTS, "building");
    lua_getfield(L, LUA_REGISTRYINDEX, "decode_floor");
    build_value(L, steps);
    return 1;
}

int luaopen_decode_floor(lua_State *L) {
    lua_newtable(L);
    lua_pushcfunction(L, record);
    lua_setfield(L, -2, "record");
    lua_pushcfunction(L, build);
    lua_setfield(L, -2, "build");
    return 1;
}
