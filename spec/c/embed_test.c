/* A host may refuse a state memory, end its scripts by a hook, and close it at any time. Nothing may crash or leak,
 * no failure may become `allow`, and the state must stay usable. */
#include <lauxlib.h>
#include <lualib.h>
#include <string.h>

#include "check.h"
#include "riskscreen.h"

#define POINTS                                                                                                         \
    100 /* allocations that fail, one in each run, spread over the program; argument 1 sets another number             \
         */
#define INSTRUCTIONS 1400

static long allocations, fail_from = -1, fail_count;

/* Lua collects its garbage and tries a failed allocation once more, so one failure alone would do nothing. */
static void *allocate(void *context, void *block, size_t old_size, size_t new_size) {
    (void)context;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    if (block == NULL || new_size > old_size) {
        long number = allocations++;
        if (fail_from >= 0 && number >= fail_from && number < fail_from + fail_count) {
            return NULL;
        }
    }
    return realloc(block, new_size);
}

/* A server and clients over HTTP and without. The functions are globals. */
static const char program[] =
    "local riskscreen = require 'riskscreen'\n"
    "local bad = riskscreen.sandbox.scenario 'type-hack'\n"
    "local function action_of(client)\n"
    "  local action = client:screen({ address = bad.address, network = bad.network, timeout = 1 }).action\n"
    "  if action == 'allow' then wrong = true end\n"
    "  return action\n"
    "end\n"
    "function open()\n"
    "  server = assert(riskscreen.sandbox.serve {})\n"
    "  client = riskscreen.new { base_url = server.url, access_key = server.access_key, timeout = 1, concurrency = 2 "
    "}\n"
    "end\n"
    "function use()\n"
    "  local actions, ended = {}, 0\n"
    "  for i = 1, 4 do\n"
    "    riskscreen.spawn(function()\n"
    "      actions[i] = action_of(client)\n"
    "      ended = ended + 1\n"
    "    end)\n"
    "  end\n"
    "  local deadline = os.time() + 3\n"
    "  while ended < 4 and os.time() < deadline do riskscreen.loop:step(0.05) end\n"
    "  return table.concat(actions, ' ')\n"
    "end\n"
    "function close()\n"
    "  client:close()\n"
    "  server:close()\n"
    "end\n"
    "function alone() return action_of(riskscreen.sandbox.client {}) end\n";

static int load_program(lua_State *L) {
    luaL_openlibs(L);
    riskscreen_preload(L);
    if (luaL_loadbuffer(L, program, sizeof program - 1, "=program") != LUA_OK) {
        return lua_error(L);
    }
    lua_call(L, 0, 0);
    return 0;
}

/* Calls a global function. Returns the status; the text of its result, or the message, is at the top of the stack. */
static int call_global(lua_State *L, const char *name) {
    lua_settop(L, 0);
    lua_getglobal(L, name);
    return lua_pcall(L, 0, 1, 0);
}

static void demand(lua_State *L, const char *name, const char *expected, long failing) {
    int status = call_global(L, name);
    const char *text = lua_tostring(L, -1);
    CHECK(status == LUA_OK && (expected == NULL || (text != NULL && strcmp(text, expected) == 0)),
          "%s after the failure of allocation %ld: %s", name, failing, text);
}

static lua_State *open_state(void) {
    lua_State *L = lua_newstate(allocate, NULL);
    CHECK(L != NULL, "no state");
    return L;
}

/* Runs the whole program while allocations fail. Later everything works in the same state. */
static void run_short_of_memory(long failing, long count) {
    static const char *const functions[] = {"open", "use", "close", "alone"};
    allocations = 0;
    lua_State *L = open_state();
    fail_from = failing;
    fail_count = count;
    lua_pushcfunction(L, load_program);
    int status = lua_pcall(L, 0, 0, 0);
    for (size_t i = 0; status == LUA_OK && i < sizeof functions / sizeof *functions; i++) {
        status = call_global(L, functions[i]);
    }
    fail_from = -1;
    lua_settop(L, 0);
    lua_getglobal(L, "wrong");
    CHECK(!lua_toboolean(L, -1), "allocation %ld failed, and the decision was allow", failing);
    lua_pushcfunction(L, load_program);
    CHECK(lua_pcall(L, 0, 0, 0) == LUA_OK, "allocation %ld failed: %s", failing, lua_tostring(L, -1));
    demand(L, "open", NULL, failing);
    demand(L, "use", "block block block block", failing);
    demand(L, "alone", "block", failing);
    demand(L, "close", NULL, failing);
    lua_close(L);
}

static void test_memory(long points) {
    run_short_of_memory(-1, 0);
    long total = allocations / 2;
    for (long i = 0; i < points; i++) {
        long failing = total * i / points;
        run_short_of_memory(failing, 2);
        if (i % 8 == 0) {
            run_short_of_memory(failing, 50);
        }
    }
}

/* The state is closed while requests are under way, tasks wait, and the server runs. */
static void test_close(void) {
    static const char *const scripts[] = {
        "open()",
        "open() use()",
        "open() for i = 1, 8 do spawn() end",
        "open() for i = 1, 8 do spawn() end step(0)",
        "open() for i = 1, 8 do spawn() end step(0) step(0) step(0)",
        "open() for i = 1, 8 do spawn() end step(0) client:close() step(0)",
        "open() for i = 1, 8 do spawn() end step(0) server:close()",
        "open() for i = 1, 8 do spawn() end for i = 1, 20 do step(0.001) end collectgarbage()",
        "riskscreen.spawn(riskscreen.sleep, 60) step(0)",
    };
    static const char helpers[] =
        "riskscreen = require 'riskscreen'\n"
        "local bad = { address = riskscreen.sandbox.scenario('type-hack').address, network = 'eth' }\n"
        "function spawn()\n"
        "  riskscreen.spawn(function() return client:screen(bad) end)\n"
        "end\n"
        "function step(seconds) riskscreen.loop:step(seconds) end\n";
    int descriptors = count_descriptors();
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        lua_State *L = open_state();
        lua_pushcfunction(L, load_program);
        CHECK(lua_pcall(L, 0, 0, 0) == LUA_OK, "%s", lua_tostring(L, -1));
        CHECK(luaL_dostring(L, helpers) == LUA_OK && luaL_dostring(L, scripts[i]) == LUA_OK, "%s: %s", scripts[i],
              lua_tostring(L, -1));
        lua_close(L);
        CHECK(count_descriptors() <= descriptors, "%s: descriptors are lost", scripts[i]);
    }
}

static void end_script(lua_State *L, lua_Debug *record) {
    (void)record;
    int may = riskscreen_may_interrupt(L);
    lua_sethook(L, end_script, LUA_MASKCOUNT, 1);
    if (may) {
        luaL_error(L, "ended");
    }
}

static int limit(lua_State *L) {
    lua_sethook(L, end_script, LUA_MASKCOUNT, (int)luaL_checkinteger(L, 1));
    return 0;
}

/* Scripts that the hook ends at each of their instructions. Other tasks go on, and the client stays usable. */
static const char victims[] =
    "local riskscreen = require 'riskscreen'\n"
    "local limit, most, stride = ...\n"
    "local bad = riskscreen.sandbox.scenario 'type-hack'\n"
    "local options = { base_url = server.url, access_key = server.access_key, timeout = 5, concurrency = 1 }\n"
    "options.hedge, options.breaker, options.rate_limit = true, true, { rate = 1e5, burst = 1e5 }\n"
    "local shared = riskscreen.new(options)\n"
    "local function screen()\n"
    "  return shared:screen({ address = bad.address, network = bad.network, include = { 'entity' } }).action\n"
    "end\n"
    "local ended, survived = 0, 0\n"
    "for count = 1, most, stride do\n"
    "  local victim = riskscreen.spawn(function()\n"
    "    limit(count)\n"
    "    while true do\n"
    "      for _ = 1, 10 do pcall(screen) end\n"
    "    end\n"
    "  end)\n"
    "  local other = riskscreen.spawn(screen)\n"
    "  local ok, message = pcall(victim.await, victim, 5)\n"
    "  assert(not ok and tostring(message):find 'ended', tostring(message))\n"
    "  assert(other:await(5) == 'block', 'the other task is stuck after ' .. count)\n"
    "  assert(screen() == 'block', 'the client is stuck after ' .. count)\n"
    "end\n"
    "shared:close()\n";

static void test_hook(long points) {
    lua_State *L = open_state();
    lua_pushcfunction(L, load_program);
    CHECK(lua_pcall(L, 0, 0, 0) == LUA_OK, "%s", lua_tostring(L, -1));
    demand(L, "open", NULL, 0);
    CHECK(luaL_loadstring(L, victims) == LUA_OK, "%s", lua_tostring(L, -1));
    lua_pushcfunction(L, limit);
    lua_pushinteger(L, INSTRUCTIONS);
    lua_pushinteger(L, points < POINTS ? INSTRUCTIONS / points : 3);
    CHECK(lua_pcall(L, 3, 0, 0) == LUA_OK, "%s", lua_tostring(L, -1));
    demand(L, "use", "block block block block", 0);
    demand(L, "close", NULL, 0);
    lua_close(L);
}

/* Tasks and coroutines that nothing refers to while they wait. */
static const char dropped[] =
    "local riskscreen = require 'riskscreen'\n"
    "local bad = { address = riskscreen.sandbox.scenario('type-hack').address, network = 'eth' }\n"
    "local done = 0\n"
    "local function count() done = done + 1 end\n"
    "local function screen() client:screen(bad) count() end\n"
    "riskscreen.run(function()\n"
    "  for _ = 1, 5 do riskscreen.spawn(screen) end\n"
    "  riskscreen.sleep(0)\n"
    "  collectgarbage()\n"
    "end)\n"
    "assert(done == 5, done)\n"
    "-- A coroutine of the script takes a decision of a run and is dropped.\n"
    "local function addresses() return bad.address end\n"
    "local taken = 0\n"
    "for _ = 1, 5 do\n"
    "  local generator = coroutine.wrap(function()\n"
    "    for decision in client:screen_all { source = addresses, network = bad.network, concurrency = 4 } do\n"
    "      taken = taken + 1\n"
    "      coroutine.yield(decision)\n"
    "    end\n"
    "  end)\n"
    "  assert(generator().action == 'block')\n"
    "  generator = nil\n"
    "  collectgarbage()\n"
    "end\n"
    "collectgarbage() collectgarbage()\n"
    "assert(client:screen(bad).action == 'block')\n";

static void test_dropped(void) {
    lua_State *L = open_state();
    lua_pushcfunction(L, load_program);
    CHECK(lua_pcall(L, 0, 0, 0) == LUA_OK, "%s", lua_tostring(L, -1));
    demand(L, "open", NULL, 0);
    CHECK(luaL_dostring(L, dropped) == LUA_OK, "%s", lua_tostring(L, -1));
    demand(L, "use", "block block block block", 0);
    lua_close(L);
}

/* riskscreen_step does nothing before the library is loaded, and then moves tasks. */
static void test_step(void) {
    lua_State *L = open_state();
    CHECK(riskscreen_step(L, 0.001) == LUA_OK && lua_gettop(L) == 0, "a step without the library fails");
    lua_pushcfunction(L, load_program);
    CHECK(lua_pcall(L, 0, 0, 0) == LUA_OK, "%s", lua_tostring(L, -1));
    CHECK(luaL_dostring(L, "require('riskscreen').spawn(function() moved = true end)") == LUA_OK, "%s",
          lua_tostring(L, -1));
    CHECK(riskscreen_step(L, 0) == LUA_OK && lua_gettop(L) == 0, "the step fails");
    lua_getglobal(L, "moved");
    CHECK(lua_toboolean(L, -1), "the task has not run");
    lua_settop(L, 0);
    CHECK(riskscreen_step(L, -1) != LUA_OK && lua_gettop(L) == 1, "a negative budget is taken");
    lua_close(L);
}

int main(int argc, char **argv) {
    test_step();
    test_close();
    test_dropped();
    long points = argc > 1 ? strtol(argv[1], NULL, 10) : POINTS;
    test_hook(points);
    test_memory(points);
    return 0;
}
