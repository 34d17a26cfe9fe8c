#include "lua/reader.h"

#include <math.h>
#include <string.h>

#define DEPTH_MAX     16 /* tables within each other */
#define NODES_MAX     64 /* of a reader */
#define EXACT_INTEGER 9007199254740992.0

enum type { STRING, BOOLEAN, NUMBER, INTEGER, ARRAY, MAP, OBJECT };

static const char *const type_names[] = {"string", "boolean", "number", "integer", "array", "map", "object", NULL};

/* The children of an object are its fields, and the child of an array or a map is the shape of its elements. They have
 * nodes in a row. */
struct node {
    enum type type;
    bool required;
    int first, count;         /* children */
    uint64_t required_fields; /* bits of an object's fields, in order */
    double minimum;
    const char *literal; /* the text that it must be, or NULL */
    size_t literal_size;
    int result;          /* of an outermost field: its number among the results; else 0 */
    struct rsc_key name; /* and the usual size of its table */
};

struct reader {
    int count;   /* nodes */
    int results; /* of a run */
    struct node nodes[NODES_MAX];
};

/* Compiling. The list of names, at a stack index, has the name of each node at its place, and after them the literals.
 */

static bool compile(lua_State *L, struct reader *reader, int names, int index, int depth);

/* Compiles the list at the top into nodes in a row. */
static bool compile_list(lua_State *L, struct reader *reader, int names, struct node *parent, int depth) {
    int count = (int)lua_rawlen(L, -1);
    if (count > NODES_MAX - reader->count) {
        return false;
    }
    parent->first = reader->count;
    parent->count = count;
    reader->count += count;
    bool compiled = true;
    for (int i = 0; compiled && i < count; i++) {
        struct node *child = &reader->nodes[parent->first + i];
        lua_rawgeti(L, -1, i + 1);
        compiled =
            compile(L, reader, names, parent->first + i, depth) && (parent->type != OBJECT || child->name.size > 0);
        lua_pop(L, 1);
        if (child->required) {
            parent->required_fields |= UINT64_C(1) << i;
        }
        if (depth == 1 && child->literal == NULL) {
            child->result = ++reader->results;
        }
    }
    return compiled;
}

static bool has_field(lua_State *L, const char *name) {
    lua_getfield(L, -1, name);
    bool has = lua_toboolean(L, -1) != 0;
    lua_pop(L, 1);
    return has;
}

/* Keeps a text of the shape at the top in the list of names. Returns NULL if there is none. */
static const char *keep_text(lua_State *L, const char *field, int names, int place, size_t *size) {
    lua_getfield(L, -1, field);
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, size) : NULL;
    lua_rawseti(L, names, place);
    return text;
}

static bool set_name(lua_State *L, struct node *node, int names, int index) {
    size_t size = 0;
    const char *name = keep_text(L, "name", names, index + 1, &size);
    if (name == NULL) {
        return true; /* the outermost object and an element have no name */
    }
    bool is_plain = size <= RSC_KEY_LENGTH_MAX && rsc_scan_plain(name, name + size) == name + size;
    if (is_plain) {
        rsc_key_set(&node->name, name, size);
        node->name.text[size] = '"';
    }
    return is_plain;
}

/* Compiles the shape at the top. */
static bool compile(lua_State *L, struct reader *reader, int names, int index, int depth) {
    struct node *node = &reader->nodes[index];
    lua_getfield(L, -1, "type");
    const char *type = lua_tostring(L, -1);
    int number = 0;
    while (type_names[number] != NULL && (type == NULL || strcmp(type, type_names[number]) != 0)) {
        number++;
    }
    lua_pop(L, 1);
    if (type_names[number] == NULL || depth == DEPTH_MAX || has_field(L, "decimal") || has_field(L, "any_of") ||
        !set_name(L, node, names, index)) {
        return false;
    }
    node->type = (enum type)number;
    node->required = has_field(L, "required");
    node->literal = keep_text(L, "literal", names, NODES_MAX + index + 1, &node->literal_size);
    lua_getfield(L, -1, "minimum");
    node->minimum = lua_isnil(L, -1) ? 1 - EXACT_INTEGER : lua_tonumber(L, -1);
    lua_pop(L, 1);
    if (node->type < ARRAY) {
        return true;
    }
    lua_getfield(L, -1, node->type == OBJECT ? "fields" : "items");
    if (node->type != OBJECT) {
        lua_createtable(L, 1, 0);
        lua_insert(L, -2);
        lua_rawseti(L, -2, 1);
    }
    bool compiled = compile_list(L, reader, names, node, depth + 1);
    lua_pop(L, 1);
    return compiled;
}

bool rsc_reader_new(lua_State *L, int shape) {
    struct reader *reader = lua_newuserdata(L, sizeof *reader);
    memset(reader, 0, sizeof *reader);
    reader->count = 1;
    lua_newtable(L);
    int names = lua_gettop(L);
    luaL_checkstack(L, 4 * DEPTH_MAX, "compiling a shape");
    lua_pushvalue(L, shape);
    bool compiled = compile(L, reader, names, 0, 0) && reader->nodes[0].type == OBJECT;
    lua_pop(L, 1);
    return compiled;
}

/* Reading. Each function returns the byte after what it has read, or NULL. */

struct reading {
    struct rsc_builder *builder;
    struct node *nodes;
    int names; /* the stack index of the list of names */
};

static const char *read_value(const struct reading *r, const char *p, struct node *node);

static const char *read_literal(struct rsc_builder *b, const char *p, const char *literal, size_t size) {
    bool is_there = (size_t)(b->input.end - p) >= size && memcmp(p, literal, size) == 0;
    return is_there && b->values_left-- > 0 ? p + size : NULL;
}

/* Reads the value of a field, and adds the member to the table at the top. */
static const char *read_field(const struct reading *r, const char *p, struct node *field) {
    struct rsc_builder *b = r->builder;
    if (field->literal != NULL) {
        return read_literal(b, p, field->literal, field->literal_size);
    }
    if (*p == 'n') {
        return field->required || b->keep_null ? NULL : read_literal(b, p, "null", 4);
    }
    if (field->result > 0) {
        p = read_value(r, p, field);
        if (p != NULL) {
            lua_replace(b->L, b->lua_cache + field->result);
        }
        return p;
    }
    lua_rawgeti(b->L, r->names, (int)(field - r->nodes) + 1);
    p = read_value(r, p, field);
    if (p != NULL) {
        lua_rawset(b->L, -3);
    }
    return p;
}

static const char *read_colon(const char *p) {
    p = rsc_skip_space(p);
    return *p == ':' ? rsc_skip_space(p + 1) : NULL;
}

/* Reads a member that is no field, and adds it to the table at the top. The outermost object has none before its first
 * such member. An escape may make a name that of a field. */
static const char *read_other(const struct reading *r, const char *p, const struct node *node) {
    struct rsc_builder *b = r->builder;
    const char *name = p;
    if (lua_isnil(b->L, -1)) {
        lua_pop(b->L, 1);
        lua_newtable(b->L);
    }
    p = rsc_builder_value(b, p);
    if (p == NULL || memchr(name, '\\', (size_t)(p - name)) != NULL) {
        return NULL;
    }
    lua_pushvalue(b->L, -1);
    lua_rawget(b->L, -3);
    bool is_new = lua_isnil(b->L, -1) != 0;
    lua_pop(b->L, 1);
    p = is_new ? read_colon(p) : NULL;
    if (p == NULL || *p == 'n') {
        return NULL;
    }
    p = node->type == MAP ? read_value(r, p, &r->nodes[node->first]) : rsc_builder_value(b, p);
    if (p != NULL) {
        lua_rawset(b->L, -3);
    }
    return p;
}

/* Returns the number of the field whose name is at `p`, or their count. The expected one is tried first. */
static int find_field(const struct reading *r, const struct node *node, int expected, const char *p) {
    const struct node *fields = &r->nodes[node->first];
    int count = node->type == OBJECT ? node->count : 0;
    const char *end = r->builder->input.end;
    if (expected < count && rsc_key_is_at(&fields[expected].name, p, end)) {
        return expected;
    }
    int field = 0;
    while (field < count && !rsc_key_is_at(&fields[field].name, p, end)) {
        field++;
    }
    return field == count ? node->count : field;
}

/* Reads the members of an object or a map from its opening brace on, into the table at the top. */
static const char *read_members(const struct reading *r, const char *p, struct node *node) {
    uint64_t seen = 0;
    int field = -1;
    p = rsc_skip_space(p + 1);
    for (bool more = *p != '}'; more;) {
        if (*p != '"') {
            return NULL;
        }
        field = find_field(r, node, field + 1, p + 1);
        if (field == node->count) {
            p = read_other(r, p, node);
        } else {
            struct node *child = &r->nodes[node->first + field];
            uint64_t bit = UINT64_C(1) << field;
            p = (seen & bit) == 0 ? read_colon(p + 1 + child->name.size) : NULL;
            p = p != NULL ? read_field(r, p, child) : NULL;
            seen |= bit;
        }
        if (p == NULL) {
            return NULL;
        }
        p = rsc_skip_space(p);
        more = *p == ',';
        if (more) {
            p = rsc_skip_space(p + 1);
        } else if (*p != '}') {
            return NULL;
        }
    }
    return (node->required_fields & ~seen) == 0 ? p + 1 : NULL;
}

static const char *read_elements(const struct reading *r, const char *p, struct node *node) {
    struct rsc_builder *b = r->builder;
    struct rsc_shape *shape = &node->name.shape;
    p = rsc_skip_space(p + 1);
    if (*p == ']') {
        rsc_builder_empty_array(b);
        return p + 1;
    }
    lua_createtable(b->L, rsc_builder_elements(b, p, shape), 0);
    int count = 0;
    for (bool more = true; more;) {
        p = read_value(r, p, &r->nodes[node->first]);
        if (p == NULL) {
            return NULL;
        }
        lua_rawseti(b->L, -2, ++count);
        p = rsc_skip_space(p);
        more = *p == ',';
        if (more) {
            p = rsc_skip_space(p + 1);
        } else if (*p != ']') {
            return NULL;
        }
    }
    shape->elements = rsc_shape_learn(shape->elements, (size_t)count);
    return p + 1;
}

/* Reads an array, an object or a map. */
static const char *read_table(const struct reading *r, const char *p, struct node *node) {
    struct rsc_builder *b = r->builder;
    if (*p != (node->type == ARRAY ? '[' : '{') || b->values_left-- == 0 || !rsc_builder_enter(b, p)) {
        return NULL;
    }
    if (node->type == ARRAY) {
        p = read_elements(r, p, node);
    } else {
        lua_createtable(b->L, 0, node->type == OBJECT ? node->count : 0);
        p = read_members(r, p, node);
    }
    b->depth--;
    return p;
}

/* Whether the number at the top is a whole one that a double holds exactly. */
static bool is_integer(lua_State *L, const struct node *node) {
    double number = lua_tonumber(L, -1);
    return floor(number) == number && number < EXACT_INTEGER && number >= node->minimum;
}

static const char *read_value(const struct reading *r, const char *p, struct node *node) {
    struct rsc_builder *b = r->builder;
    if (node->type >= ARRAY) {
        return read_table(r, p, node);
    }
    bool is_string = *p == '"', is_boolean = *p == 't' || *p == 'f';
    bool is_number = *p == '-' || (*p >= '0' && *p <= '9');
    if (!(node->type == STRING ? is_string : node->type == BOOLEAN ? is_boolean : is_number)) {
        return NULL;
    }
    p = rsc_builder_value(b, p);
    return p != NULL && (!is_number || node->type == NUMBER || is_integer(b->L, node)) ? p : NULL;
}

int rsc_reader_run(struct rsc_builder *b, void *userdata, int names) {
    struct reader *reader = userdata;
    const struct reading r = {b, reader->nodes, names};
    luaL_checkstack(b->L, reader->results + 1, "reading");
    lua_settop(b->L, b->lua_cache + reader->results + 1);
    const char *p = rsc_skip_space(b->input.text);
    if (*p != '{' || b->values_left-- == 0 || !rsc_builder_enter(b, p)) {
        return 0;
    }
    p = read_members(&r, p, &reader->nodes[0]);
    return p != NULL && rsc_skip_space(p) == b->input.end ? reader->results : 0;
}
