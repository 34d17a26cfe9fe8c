#include "lua/reader.h"

#include <math.h>
#include <string.h>

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

/* Making a reader. The list of names, at a stack index, has the name of each node at its place, and after them the
 * literals. */

/* A number of the node at the top of the stack. */
static lua_Number number_of(lua_State *L, const char *field, lua_Number otherwise) {
    lua_getfield(L, -1, field);
    lua_Number number = lua_isnil(L, -1) ? otherwise : lua_tonumber(L, -1);
    lua_pop(L, 1);
    return number;
}

/* A place or a count within a list of nodes; for any other number one that is too great. */
static int place_of(lua_Number number) {
    return number >= 0 && number <= NODES_MAX ? (int)number : NODES_MAX + 1;
}

/* Keeps a text of the node at the top of the stack in the list of names. Returns NULL if there is none. */
static const char *keep_text(lua_State *L, const char *field, int names, int place, size_t *size) {
    lua_getfield(L, -1, field);
    const char *text = lua_type(L, -1) == LUA_TSTRING ? lua_tolstring(L, -1, size) : NULL;
    lua_rawseti(L, names, place);
    return text;
}

/* Reads the node at the top of the stack. Returns whether the reader can have it. */
static bool read_node(lua_State *L, struct reader *reader, int names, int index) {
    struct node *node = &reader->nodes[index];
    size_t size = 0;
    lua_getfield(L, -1, "type");
    const char *type = lua_tostring(L, -1);
    while (type_names[node->type] != NULL && (type == NULL || strcmp(type, type_names[node->type]) != 0)) {
        node->type++;
    }
    lua_pop(L, 1);
    lua_getfield(L, -1, "required");
    node->required = lua_toboolean(L, -1) != 0;
    lua_pop(L, 1);
    node->minimum = number_of(L, "minimum", 1 - EXACT_INTEGER);
    node->literal = keep_text(L, "literal", names, NODES_MAX + index + 1, &node->literal_size);
    node->first = place_of(number_of(L, "first", 0));
    node->count = place_of(number_of(L, "count", 0));
    const char *name = keep_text(L, "name", names, index + 1, &size);
    if (name != NULL && size <= RSC_KEY_LENGTH_MAX && rsc_scan_plain(name, name + size) == name + size) {
        rsc_key_set(&node->name, name, size);
        node->name.text[size] = '"';
    }
    bool has_place = node->count == 0 || (node->first > index && node->first + node->count <= reader->count);
    bool has_items = node->count == 1 || (node->type != ARRAY && node->type != MAP);
    return type_names[node->type] != NULL && has_place && has_items && (name == NULL || node->name.size > 0);
}

/* Notes which fields of an object are required, and which of the outermost one are results. */
static bool read_fields(struct reader *reader, struct node *node) {
    bool has_names = true;
    for (int i = 0; i < node->count; i++) {
        struct node *field = &reader->nodes[node->first + i];
        node->required_fields |= (uint64_t)field->required << i;
        has_names = has_names && field->name.size > 0;
        if (node == reader->nodes && field->literal == NULL) {
            field->result = ++reader->results;
        }
    }
    return has_names;
}

bool rsc_reader_new(lua_State *L, int nodes) {
    struct reader *reader = lua_newuserdata(L, sizeof *reader);
    memset(reader, 0, sizeof *reader);
    lua_newtable(L);
    int names = lua_gettop(L), count = (int)lua_rawlen(L, nodes);
    bool is_readable = count > 0 && count <= NODES_MAX;
    reader->count = count;
    for (int i = 0; is_readable && i < count; i++) {
        lua_rawgeti(L, nodes, i + 1);
        is_readable = read_node(L, reader, names, i);
        lua_pop(L, 1);
    }
    for (int i = 0; is_readable && i < count; i++) {
        is_readable = reader->nodes[i].type == OBJECT ? read_fields(reader, &reader->nodes[i]) : i > 0;
    }
    return is_readable;
}

/* Reading. Each function returns the byte after the value that it has read, or NULL. */

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
