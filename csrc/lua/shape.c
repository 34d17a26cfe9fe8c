#include "lua/shape.h"

#include <math.h>
#include <string.h>

#define DEPTH_MAX     16 /* tables within each other */
#define NODES_MAX     64 /* of a shape */
#define EXACT_INTEGER 9007199254740992.0

enum type { STRING, BOOLEAN, NUMBER, INTEGER, ARRAY, OBJECT };

static const char *const type_names[] = {"string", "boolean", "number", "integer", "array", "object", NULL};

/* A member's name is in the shape's list of names, at the place of its node. The children of an object are its fields,
 * and the child of an array is the shape of its elements. They have nodes in a row. */
struct node {
    enum type type;
    bool required;
    double minimum;
    int first, count; /* children */
};

struct shape {
    int count; /* nodes */
    struct node nodes[NODES_MAX];
};

/* The upvalues of a check. */
enum { SHAPE = 1, NAMES, EMPTY_ARRAY_MT };

/* Compiling */

static bool compile(lua_State *L, struct shape *shape, int names, int index, int depth);

/* Compiles the list at the top into nodes in a row. */
static bool compile_list(lua_State *L, struct shape *shape, int names, struct node *parent, int depth) {
    int count = (int)lua_rawlen(L, -1);
    if (count > NODES_MAX - shape->count) {
        return false;
    }
    parent->first = shape->count;
    parent->count = count;
    shape->count += count;
    bool compiled = true;
    for (int i = 0; compiled && i < count; i++) {
        lua_rawgeti(L, -1, i + 1);
        compiled = compile(L, shape, names, parent->first + i, depth);
        lua_pop(L, 1);
    }
    return compiled;
}

static bool has_field(lua_State *L, const char *name) {
    lua_getfield(L, -1, name);
    bool has = lua_toboolean(L, -1) != 0;
    lua_pop(L, 1);
    return has;
}

/* Compiles the shape at the top. Returns false for a shape that this file does not check. */
static bool compile(lua_State *L, struct shape *shape, int names, int index, int depth) {
    struct node *node = &shape->nodes[index];
    lua_getfield(L, -1, "type");
    const char *type = lua_tostring(L, -1);
    int number = 0;
    while (type_names[number] != NULL && (type == NULL || strcmp(type, type_names[number]) != 0)) {
        number++;
    }
    lua_pop(L, 1);
    if (type_names[number] == NULL || depth == DEPTH_MAX || has_field(L, "decimal") || has_field(L, "any_of")) {
        return false;
    }
    node->type = (enum type)number;
    node->required = has_field(L, "required");
    lua_getfield(L, -1, "minimum");
    node->minimum = lua_isnil(L, -1) ? 1 - EXACT_INTEGER : lua_tonumber(L, -1);
    lua_pop(L, 1);
    lua_getfield(L, -1, "name");
    lua_rawseti(L, names, index + 1);
    bool compiled = true;
    if (node->type == OBJECT) {
        lua_getfield(L, -1, "fields");
        compiled = compile_list(L, shape, names, node, depth + 1);
        lua_pop(L, 1);
    } else if (node->type == ARRAY) {
        lua_createtable(L, 1, 0);
        lua_getfield(L, -2, "items");
        lua_rawseti(L, -2, 1);
        compiled = compile_list(L, shape, names, node, depth + 1);
        lua_pop(L, 1);
    }
    return compiled;
}

/* Checking */

static bool conforms(lua_State *L, const struct shape *shape, const struct node *node);

static bool is_integer(lua_State *L, const struct node *node) {
    double number = lua_tonumber(L, -1);
    return floor(number) == number && number < EXACT_INTEGER && number >= node->minimum;
}

/* Whether a table is an empty array that the decoder has marked. */
static bool is_empty_array(lua_State *L) {
    lua_pushnil(L);
    if (lua_next(L, -2) != 0) {
        lua_pop(L, 2);
        return false;
    }
    lua_getmetatable(L, -1);
    bool is_marked = lua_rawequal(L, -1, lua_upvalueindex(EMPTY_ARRAY_MT)) != 0;
    lua_pop(L, 1);
    return is_marked;
}

static bool has_metatable(lua_State *L) {
    if (!lua_getmetatable(L, -1)) {
        return false;
    }
    lua_pop(L, 1);
    return true;
}

static bool is_array(lua_State *L, const struct shape *shape, const struct node *node) {
    if (has_metatable(L)) {
        return is_empty_array(L);
    }
    int count = (int)lua_rawlen(L, -1);
    bool good = count > 0;
    for (int i = 1; good && i <= count; i++) {
        lua_rawgeti(L, -1, i);
        good = conforms(L, shape, &shape->nodes[node->first]);
        lua_pop(L, 1);
    }
    return good;
}

static bool is_object(lua_State *L, const struct shape *shape, const struct node *node) {
    if (has_metatable(L)) {
        return false;
    }
    lua_rawgeti(L, -1, 1);
    bool good = lua_isnil(L, -1);
    lua_pop(L, 1);
    for (int i = node->first; good && i < node->first + node->count; i++) {
        lua_rawgeti(L, lua_upvalueindex(NAMES), i + 1);
        lua_rawget(L, -2);
        good = lua_isnil(L, -1) ? !shape->nodes[i].required : conforms(L, shape, &shape->nodes[i]);
        lua_pop(L, 1);
    }
    return good;
}

/* Whether the value at the top has a shape. */
static bool conforms(lua_State *L, const struct shape *shape, const struct node *node) {
    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        return node->type == STRING;
    case LUA_TBOOLEAN:
        return node->type == BOOLEAN;
    case LUA_TNUMBER:
        return node->type == NUMBER || (node->type == INTEGER && is_integer(L, node));
    case LUA_TTABLE:
        return node->type == OBJECT ? is_object(L, shape, node) : node->type == ARRAY && is_array(L, shape, node);
    default:
        return false;
    }
}

static int check(lua_State *L) {
    const struct shape *shape = lua_touserdata(L, lua_upvalueindex(SHAPE));
    lua_settop(L, 1);
    luaL_checkstack(L, 3 * DEPTH_MAX, "checking a shape");
    lua_pushboolean(L, conforms(L, shape, &shape->nodes[0]));
    return 1;
}

/* core.shape(description): a function that returns true for a good value. It returns false for a wrong value and for an
 * unusual one, such as a table with a metatable. riskscreen.interface.shape checks these. Returns nil for a shape with
 * a map, a decimal text or `any_of`. */
static int shape_new(lua_State *L) {
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    struct shape *shape = lua_newuserdata(L, sizeof *shape);
    memset(shape, 0, sizeof *shape);
    shape->count = 1;
    lua_newtable(L);
    lua_pushvalue(L, 1);
    luaL_checkstack(L, 4 * DEPTH_MAX, "compiling a shape");
    if (!compile(L, shape, 3, 0, 0)) {
        return 0;
    }
    lua_settop(L, 3);
    lua_pushvalue(L, lua_upvalueindex(1));
    lua_pushcclosure(L, check, 3);
    return 1;
}

void rsc_shape_register(lua_State *L) {
    lua_getfield(L, -1, "empty_array_mt");
    lua_pushcclosure(L, shape_new, 1);
    lua_setfield(L, -2, "shape");
}
