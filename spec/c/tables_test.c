/* Bounded tables that are full: an insertion beside a removal must not make Lua rebuild the whole table. A rebuild
 * allocates the table again, so the test counts the bytes that Lua requests for each insertion. At a limit of 2^k - 1 a
 * table with single removals is rebuilt at nearly every insertion.
 *
 *   tables_test LUA_DIRECTORY */
#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

#include "check.h"
#include "riskscreen.h"

static const char program[] =
    "local core, directory, requested = ...\n"
    "package.path = directory .. '/?.lua;' .. directory .. '/?/init.lua'\n"
    "package.preload['riskscreen.core'] = function() return core end\n"
    "local LIMIT, LIVE = 4095, 1023\n"
    "local scenarios = {}\n"
    "scenarios['a queue of values with a time'] = function()\n"
    "  local queue = require('riskscreen.util.ttl_queue').new(LIMIT, 3600, function() return 1 end)\n"
    "  return function(number) queue:put('key ' .. number, true) end, LIMIT\n"
    "end\n"
    "scenarios['the calls under way of the statistics'] = function()\n"
    "  local stats, calls = require('riskscreen.call.stats').new(), {}\n"
    "  local counts = stats:of('x')\n"
    "  return function(number)\n"
    "    local oldest = calls[number % LIVE]\n"
    "    if oldest then stats:finish(oldest, counts, 'succeeded', 1) end\n"
    "    calls[number % LIVE] = {}\n"
    "    stats:begin(calls[number % LIVE], counts)\n"
    "  end, LIVE\n"
    "end\n"
    "scenarios['the tasks of a task'] = function()\n"
    "  local riskscreen, tasks = require('riskscreen'), {}\n"
    "  return function(number)\n"
    "    local slot = number % LIVE\n"
    "    if tasks[slot] then tasks[slot]:cancel() end\n"
    "    tasks[slot] = riskscreen.spawn(function() riskscreen.sleep(1000) end)\n"
    "    riskscreen.sleep(0)\n"
    "  end, LIVE, function() for _, task in pairs(tasks) do task:cancel() end end\n"
    "end\n"
    "scenarios['the addresses of a run'] = function()\n"
    "  local riskscreen, last = require('riskscreen'), 0\n"
    "  local client = riskscreen.new { base_url = 'https://localhost', access_key = '0123456789abcdef',\n"
    "    transport = function() return nil, { kind = 'tls', message = 'none', sent = false } end }\n"
    "  local run = client:screen_all { remember = LIMIT, network = 'eth', concurrency = 1,\n"
    "    source = function() last = last + 1 return ('0x%040x'):format(last) end }\n"
    "  return function() assert(run()) end, LIMIT\n"
    "end\n"
    "local function bytes_of_insertion(begin)\n"
    "  local insert, live, finish = begin()\n"
    "  for number = 1, 3 * live do insert(number) end\n"
    "  local before = requested()\n"
    "  for number = 3 * live + 1, 5 * live do insert(number) end\n"
    "  local bytes = (requested() - before) / (2 * live)\n"
    "  if finish then finish() end\n"
    "  return bytes\n"
    "end\n"
    "local results = {}\n"
    "for name, begin in pairs(scenarios) do\n"
    "  require('riskscreen').spawn(function() results[name] = bytes_of_insertion(begin) end):await()\n"
    "end\n"
    "return results\n";

static size_t requested_bytes;

static void *allocate(void *context, void *block, size_t old_size, size_t new_size) {
    (void)context;
    (void)old_size;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    requested_bytes += new_size;
    return realloc(block, new_size);
}

static int requested(lua_State *L) {
    lua_pushnumber(L, (lua_Number)requested_bytes);
    return 1;
}

#define BYTES_MAX 20000 /* of one insertion; a screening takes 10,000, a rebuild of 1024 entries 40,000 */

int main(int argc, char **argv) {
    CHECK(argc == 2, "the directory of the Lua modules is missing");
    lua_State *L = lua_newstate(allocate, NULL);
    CHECK(L != NULL, "no memory");
    luaL_openlibs(L);
    CHECK(luaL_loadstring(L, program) == LUA_OK, "%s", lua_tostring(L, -1));
    lua_pushcfunction(L, luaopen_riskscreen_core);
    lua_call(L, 0, 1);
    lua_pushstring(L, argv[1]);
    lua_pushcfunction(L, requested);
    CHECK(lua_pcall(L, 3, 1, 0) == LUA_OK, "%s", lua_tostring(L, -1));
    int slow = 0;
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        double bytes = lua_tonumber(L, -1);
        printf("%s: %.0f bytes for an insertion\n", lua_tostring(L, -2), bytes);
        slow += bytes > BYTES_MAX;
    }
    lua_close(L);
    CHECK(slow == 0, "%d tables are rebuilt again and again", slow);
    return 0;
}
