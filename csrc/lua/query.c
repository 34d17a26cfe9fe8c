#include "lua/query.h"

#include <stdint.h>

#include "base/query.h"
#include "lua/binding.h"

#define READER_TYPE "riskscreen.core.query_reader"

static struct rsc_text check_text(lua_State *L, int index) {
    struct rsc_text text;
    text.bytes = luaL_checklstring(L, index, &text.length);
    return text;
}

/* core.query_reader(address, network, prefix) --> reader | nil for names that it does not read */
static int reader_new(lua_State *L) {
    struct rsc_text address = check_text(L, 1), network = check_text(L, 2), prefix = check_text(L, 3);
    struct rsc_query_reader *reader = rsc_lua_new_object(L, sizeof *reader, READER_TYPE);
    if (!rsc_query_init(reader, address, network, prefix)) {
        lua_pushnil(L);
    }
    return 1;
}

/* reader:add_network(name, canonical) --> whether there was room */
static int reader_add_network(lua_State *L) {
    struct rsc_query_reader *reader = rsc_lua_check_self(L, READER_TYPE);
    lua_pushboolean(L, rsc_query_add_network(reader, check_text(L, 2), check_text(L, 3)));
    return 1;
}

/* reader:read(query) --> number of the network, key | 0 */
static int reader_read(lua_State *L) {
    char key[RSC_QUERY_KEY_MAX];
    const struct rsc_query_reader *reader = rsc_lua_check_self(L, READER_TYPE);
    struct rsc_text query = check_text(L, 2);
    int number = rsc_query_read(reader, query.bytes, query.length, key);
    lua_pushinteger(L, number);
    if (number == 0) {
        return 1;
    }
    lua_pushlstring(L, key, rsc_query_key_length(reader, number));
    return 2;
}

/* core.query_read: rsc_query_read as a light userdata, which LuaJIT's FFI calls without leaving compiled code. Its
 * first argument is a reader. */
void rsc_query_register(lua_State *L) {
    static const luaL_Reg methods[] = {
        {"add_network", reader_add_network},
        {"read", reader_read},
        {NULL, NULL},
    };
    static const luaL_Reg functions[] = {
        {"query_reader", reader_new},
        {NULL, NULL},
    };
    rsc_lua_new_type(L, READER_TYPE, methods, NULL);
    rsc_lua_set_functions(L, functions);
    lua_pushlightuserdata(L, (void *)(uintptr_t)&rsc_query_read);
    lua_setfield(L, -2, "query_read");
}
