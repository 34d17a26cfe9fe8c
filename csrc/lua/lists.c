#include "lua/parts.h"

#include "lists/reader.h"
#include "lists/writer.h"
#include "lua/binding.h"

#define LIST_TYPE   "riskscreen.core.list"
#define WRITER_TYPE "riskscreen.core.list_writer"

static uint64_t check_seconds(lua_State *L, int index) {
    lua_Number seconds = luaL_checknumber(L, index);
    return seconds >= 1 && seconds < 9007199254740992.0 ? (uint64_t)seconds : 0;
}

static struct rsc_list *check_list(lua_State *L) {
    struct rsc_list *list = rsc_lua_check_self(L, LIST_TYPE);
    if (list->file < 0) {
        luaL_error(L, "the list is closed");
    }
    return list;
}

/* core.list(path) --> list | nil, message. It must be verified before it is searched. */
static int list_open(lua_State *L) {
    struct rsc_error error;
    const char *path = luaL_checkstring(L, 1);
    struct rsc_list *list = rsc_lua_new_object(L, sizeof *list, LIST_TYPE);
    list->file = -1;
    if (rsc_list_open(list, path, &error) != RSC_OK) {
        return rsc_lua_push_error(L, &error);
    }
    return 1;
}

/* list:verify(bytes) --> true at the end, false before it | nil, message */
static int list_verify(lua_State *L) {
    struct rsc_error error;
    struct rsc_list *list = check_list(L);
    bool done;
    if (rsc_list_verify(list, check_seconds(L, 2), &done, &error) != RSC_OK) {
        return rsc_lua_push_error(L, &error);
    }
    lua_pushboolean(L, done);
    return 1;
}

/* list:find(address, network, now) --> note, any_network, expires | false | nil, message */
static int list_find(lua_State *L) {
    struct rsc_error error;
    struct rsc_list_hit hit;
    const struct rsc_list *list = check_list(L);
    struct rsc_text address = rsc_lua_check_text(L, 2), network = rsc_lua_check_text(L, 3);
    if (!list->is_verified) {
        return luaL_error(L, "the list is not verified");
    }
    if (rsc_list_find(list, address, network, check_seconds(L, 4), &hit, &error) != RSC_OK) {
        return rsc_lua_push_error(L, &error);
    }
    if (!hit.found) {
        lua_pushboolean(L, 0);
        return 1;
    }
    lua_pushlstring(L, hit.note.bytes, hit.note.length);
    lua_pushboolean(L, hit.any_network);
    lua_pushnumber(L, (lua_Number)hit.expires);
    return 3;
}

/* list:facts() --> { entries, built_at, size, title } */
static int list_facts(lua_State *L) {
    const struct rsc_list *list = check_list(L);
    lua_createtable(L, 0, 4);
    rsc_lua_set_count(L, "entries", list->count);
    rsc_lua_set_count(L, "built_at", list->built_at);
    rsc_lua_set_count(L, "size", list->identity.size);
    lua_pushlstring(L, list->title.bytes, list->title.length);
    lua_setfield(L, -2, "title");
    return 1;
}

static int list_close(lua_State *L) {
    rsc_list_close(rsc_lua_check_self(L, LIST_TYPE));
    return 0;
}

/* core.list_identity(path) --> a text that changes with the file | nil, message */
static int list_identity(lua_State *L) {
    struct rsc_error error;
    struct rsc_list_identity identity;
    char text[128];
    if (rsc_list_identify(luaL_checkstring(L, 1), &identity, &error) != RSC_OK) {
        return rsc_lua_push_error(L, &error);
    }
    (void)snprintf(text, sizeof text, "%llx:%llx:%llu:%lld.%09lld:%lld.%09lld", (unsigned long long)identity.device,
                   (unsigned long long)identity.inode, (unsigned long long)identity.size, (long long)identity.changed_s,
                   (long long)identity.changed_ns, (long long)identity.status_s, (long long)identity.status_ns);
    lua_pushstring(L, text);
    lua_pushnumber(L, (lua_Number)identity.changed_s);
    lua_pushnumber(L, (lua_Number)identity.size);
    return 3;
}

static struct rsc_list_writer *check_writer(lua_State *L) {
    struct rsc_list_writer *writer = rsc_lua_check_self(L, WRITER_TYPE);
    if (writer->path == NULL) {
        luaL_error(L, "the writer is closed");
    }
    return writer;
}

/* core.list_writer(path, buffer_bytes) --> writer | nil, message */
static int writer_open(lua_State *L) {
    struct rsc_error error;
    const char *path = luaL_checkstring(L, 1);
    lua_Number capacity = luaL_checknumber(L, 2);
    luaL_argcheck(L, capacity >= RSC_LIST_BUFFER_MIN && capacity <= RSC_LIST_BUFFER_MAX, 2, "out of range");
    struct rsc_list_writer *writer = rsc_lua_new_object(L, sizeof *writer, WRITER_TYPE);
    if (rsc_list_writer_open(writer, path, (size_t)capacity, &error) != RSC_OK) {
        return rsc_lua_push_error(L, &error);
    }
    return 1;
}

/* writer:add(scope, address, note, expires) --> true | nil, message */
static int writer_add(lua_State *L) {
    struct rsc_error error;
    struct rsc_list_writer *writer = check_writer(L);
    struct rsc_list_entry entry = {
        .scope = rsc_lua_check_text(L, 2),
        .address = rsc_lua_check_text(L, 3),
        .note = rsc_lua_check_text(L, 4),
        .expires = check_seconds(L, 5),
    };
    if (rsc_list_writer_add(writer, &entry, &error) != RSC_OK) {
        return rsc_lua_push_error(L, &error);
    }
    lua_pushboolean(L, 1);
    return 1;
}

/* writer:finish(built_at, title) --> { entries, repeated, size } | nil, message */
static int writer_finish(lua_State *L) {
    struct rsc_error error;
    struct rsc_list_summary summary;
    struct rsc_list_writer *writer = check_writer(L);
    uint64_t built_at = check_seconds(L, 2);
    struct rsc_text title = rsc_lua_check_text(L, 3);
    int result = rsc_list_writer_finish(writer, built_at, title, &summary, &error);
    rsc_list_writer_close(writer);
    if (result != RSC_OK) {
        return rsc_lua_push_error(L, &error);
    }
    lua_createtable(L, 0, 3);
    rsc_lua_set_count(L, "entries", summary.count);
    rsc_lua_set_count(L, "repeated", summary.repeated);
    rsc_lua_set_count(L, "size", summary.size);
    return 1;
}

static int writer_close(lua_State *L) {
    rsc_list_writer_close(rsc_lua_check_self(L, WRITER_TYPE));
    return 0;
}

void rsc_lists_register(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"list", list_open},
        {"list_identity", list_identity},
        {"list_writer", writer_open},
        {NULL, NULL},
    };
    static const luaL_Reg list_methods[] = {
        {"verify", list_verify}, {"find", list_find}, {"facts", list_facts}, {"close", list_close}, {NULL, NULL}};
    static const luaL_Reg writer_methods[] = {
        {"add", writer_add}, {"finish", writer_finish}, {"close", writer_close}, {NULL, NULL}};
    rsc_lua_new_type(L, LIST_TYPE, list_methods, list_close);
    rsc_lua_new_type(L, WRITER_TYPE, writer_methods, writer_close);
    rsc_lua_set_functions(L, functions);
}
