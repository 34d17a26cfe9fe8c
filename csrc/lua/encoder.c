#include "lua/parts.h"

#include <math.h>

#include "base/buffer.h"
#include "json/write.h"
#include "lua/binding.h"

#define ENCODER_TYPE "riskscreen.encoder"

#define TEXT_MAX  ((size_t)1 << 30) /* bytes */
#define TEXT_KEPT 65536             /* bytes of memory that stay with an idle encoder */

#define DEPTH_MAX       100 /* tables within each other */
#define SLOTS_PER_TABLE 3   /* of the stack: a key, a value, and a metatable */

/* A list may have holes, which become null. It is refused if it is longer than SPARSE_LENGTH and has less than one
 * element in SPARSE_SHARE. */
#define SPARSE_LENGTH 10
#define SPARSE_SHARE  2

struct writer {
    lua_State *L;
    struct rsc_buffer *buffer;
    int empty_array_mt; /* stack index */
    int depth;
    struct rsc_error error;
};

static int encoder_gc(lua_State *L) {
    rsc_buffer_free(rsc_lua_check_self(L, ENCODER_TYPE));
    return 0;
}

/* The functions below return false with the error set. */

/* Whether a status of the buffer is none of a failure. */
static bool check(struct writer *writer, int status) {
    if (status == RSC_ERROR_LIMIT) {
        rsc_error_set(&writer->error, status, 0, "the text is longer than %zu bytes", TEXT_MAX);
    } else if (status == RSC_ERROR_RANGE) {
        rsc_error_set(&writer->error, status, 0, "NaN and infinity are not JSON");
    } else {
        writer->error.code = status;
    }
    return status == RSC_OK;
}

static bool write_bytes(struct writer *writer, const char *bytes, size_t length) {
    return check(writer, rsc_buffer_append(writer->buffer, bytes, length));
}

static bool write_number(struct writer *writer, int index) {
#if LUA_VERSION_NUM >= 503
    if (lua_isinteger(writer->L, index)) {
        return check(writer, rsc_write_integer(writer->buffer, lua_tointeger(writer->L, index)));
    }
#endif
    return check(writer, rsc_write_real(writer->buffer, lua_tonumber(writer->L, index)));
}

static bool write_string(struct writer *writer, int index) {
    size_t length;
    const char *bytes = lua_tolstring(writer->L, index, &length);
    return check(writer, rsc_write_string(writer->buffer, bytes, length));
}

static bool write_value(struct writer *writer);

/* Returns whether the table at the top of the stack is a list: it has elements, and its keys are whole numbers above 0.
 * Sets their count and the greatest. */
static bool is_list(lua_State *L, lua_Number *count, lua_Number *length) {
    *count = *length = 0;
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        lua_Number key = lua_type(L, -2) == LUA_TNUMBER ? lua_tonumber(L, -2) : 0;
        if (!(key >= 1) || floor(key) != key) {
            lua_pop(L, 2);
            return false;
        }
        ++*count;
        *length = key > *length ? key : *length;
    }
    return *count > 0;
}

static bool write_list(struct writer *writer, lua_Number count, lua_Number length) {
    if (length > SPARSE_LENGTH && length > count * SPARSE_SHARE) {
        rsc_error_set(&writer->error, RSC_ERROR_SYNTAX, 0,
                      "a list has great gaps: %.0f elements, and the last one is number %.0f", count, length);
        return false;
    }
    for (int i = 1; i <= length; i++) {
        lua_rawgeti(writer->L, -1, i);
        if (!write_bytes(writer, i == 1 ? "[" : ",", 1) || !write_value(writer)) {
            return false;
        }
        lua_pop(writer->L, 1);
    }
    return write_bytes(writer, "]", 1);
}

/* Writes the key below the top of the stack. lua_tolstring would turn a number into a string, and confuse lua_next. */
static bool write_key(struct writer *writer) {
    int type = lua_type(writer->L, -2);
    if (type == LUA_TSTRING) {
        return write_string(writer, -2);
    } else if (type != LUA_TNUMBER) {
        rsc_error_set(&writer->error, RSC_ERROR_SYNTAX, 0, "a key must be a string or a number (got a %s)",
                      lua_typename(writer->L, type));
        return false;
    }
    return write_bytes(writer, "\"", 1) && write_number(writer, -2) && write_bytes(writer, "\"", 1);
}

static bool write_object(struct writer *writer) {
    size_t comma = 0; /* bytes before a member */
    if (!write_bytes(writer, "{", 1)) {
        return false;
    }
    for (lua_pushnil(writer->L); lua_next(writer->L, -2) != 0; lua_pop(writer->L, 1)) {
        if (!write_bytes(writer, ",", comma) || !write_key(writer) || !write_bytes(writer, ":", 1) ||
            !write_value(writer)) {
            return false;
        }
        comma = 1;
    }
    return write_bytes(writer, "}", 1);
}

static bool is_empty_array(struct writer *writer) {
    lua_State *L = writer->L;
    int table = lua_gettop(L);
    bool is_marked = lua_getmetatable(L, table) && lua_rawequal(L, -1, writer->empty_array_mt);
    lua_pushnil(L);
    bool is_empty = lua_next(L, table) == 0;
    lua_settop(L, table);
    return is_marked && is_empty;
}

static bool write_table(struct writer *writer) {
    if (writer->depth == DEPTH_MAX) {
        rsc_error_set(&writer->error, RSC_ERROR_LIMIT, 0, "tables are nested deeper than %d (or one contains itself)",
                      DEPTH_MAX);
        return false;
    }
    lua_Number count, length;
    writer->depth++;
    bool written = is_list(writer->L, &count, &length) ? write_list(writer, count, length)
                   : is_empty_array(writer)            ? write_bytes(writer, "[]", 2)
                                                       : write_object(writer);
    writer->depth--;
    return written;
}

/* Writes the value at the top of the stack and leaves it there. On a failure other values may stand above it. */
static bool write_value(struct writer *writer) {
    lua_State *L = writer->L;
    int type = lua_type(L, -1);
    if (type == LUA_TSTRING) {
        return write_string(writer, -1);
    } else if (type == LUA_TNUMBER) {
        return write_number(writer, -1);
    } else if (type == LUA_TTABLE) {
        return write_table(writer);
    } else if (type == LUA_TBOOLEAN) {
        return lua_toboolean(L, -1) ? write_bytes(writer, "true", 4) : write_bytes(writer, "false", 5);
    } else if (type == LUA_TNIL || (type == LUA_TLIGHTUSERDATA && lua_touserdata(L, -1) == NULL)) {
        return write_bytes(writer, "null", 4);
    }
    rsc_error_set(&writer->error, RSC_ERROR_SYNTAX, 0, "a %s is not JSON", lua_typename(L, type));
    return false;
}

/* core.encode(value): the text, or nil and a message. Its upvalues are a buffer and core.empty_array_mt. A call takes
 * the buffer away and puts it back. A call that finds none makes one: either an error ended the earlier call, or a
 * finalizer runs within it. */
static int encode(lua_State *L) {
    lua_settop(L, 1);
    luaL_checkstack(L, DEPTH_MAX * SLOTS_PER_TABLE + LUA_MINSTACK, "encoding");
    lua_pushvalue(L, lua_upvalueindex(2));
    struct rsc_buffer *buffer = lua_touserdata(L, lua_upvalueindex(1));
    if (buffer == NULL) {
        buffer = rsc_lua_new_object(L, sizeof *buffer, ENCODER_TYPE);
        rsc_buffer_init(buffer, TEXT_MAX);
    } else {
        lua_pushvalue(L, lua_upvalueindex(1));
        lua_pushnil(L);
        lua_replace(L, lua_upvalueindex(1));
    }
    rsc_buffer_reset(buffer);
    struct writer writer = {.L = L, .buffer = buffer, .empty_array_mt = 2};
    lua_pushvalue(L, 1);
    bool written = write_value(&writer);
    if (!written && writer.error.code == RSC_ERROR_MEMORY) {
        return rsc_lua_raise(L, &writer.error);
    }
    lua_settop(L, 3);
    if (written) {
        lua_pushlstring(L, buffer->data, buffer->length);
    } else {
        lua_pushnil(L);
        lua_pushstring(L, writer.error.message);
    }
    if (buffer->capacity > TEXT_KEPT) {
        rsc_buffer_free(buffer);
    }
    lua_pushvalue(L, 3);
    lua_replace(L, lua_upvalueindex(1));
    return lua_gettop(L) - 3;
}

void rsc_encoder_register(lua_State *L) {
    rsc_lua_new_type(L, ENCODER_TYPE, NULL, encoder_gc);
    lua_pushnil(L);
    lua_getfield(L, -2, "empty_array_mt");
    lua_pushcclosure(L, encode, 2);
    lua_setfield(L, -2, "encode");
}
