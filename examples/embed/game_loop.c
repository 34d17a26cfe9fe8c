/* A game at 60 frames a second. Scripts of its players run as tasks and screen addresses; each has its own _ENV. A hook
 * ends a script that runs too long, and the allocator bounds the memory of all. For Lua 5.4. */
#define _POSIX_C_SOURCE 200809L /* clock_gettime, nanosleep */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "riskscreen.h"

#define BUDGET           0.002              /* seconds of a frame for the library and the scripts */
#define COLLECTION       0.0005             /* seconds of a frame for the garbage collector */
#define FRAME            (1.0 / 60)         /* seconds */
#define INSTRUCTIONS     1000000            /* of a script, in all its frames */
#define INSTRUCTIONS_LIB 1000               /* between two looks whether the library's code has ended */
#define MEMORY_MAX       ((size_t)24 << 20) /* bytes of the state */
#define FRAMES_MAX       6000

struct memory {
    size_t used;
};

/* The allocator refuses what is over the limit. Lua then collects its garbage and tries again. */
static void *allocate(void *context, void *block, size_t old_size, size_t new_size) {
    struct memory *memory = context;
    size_t old = block != NULL ? old_size : 0;
    if (new_size == 0) {
        free(block);
        memory->used -= old;
        return NULL;
    }
    if (new_size > old && memory->used - old > MEMORY_MAX - new_size) {
        return NULL;
    }
    void *moved = realloc(block, new_size);
    if (moved != NULL) {
        memory->used += new_size - old;
    }
    return moved;
}

/* The hook of a script that has used up its instructions. It raises again at each further instruction, so that no
 * pcall of the script keeps it alive. */
static void end_script(lua_State *L, lua_Debug *record) {
    (void)record;
    if (!riskscreen_may_interrupt(L)) {
        lua_sethook(L, end_script, LUA_MASKCOUNT, INSTRUCTIONS_LIB);
        return;
    }
    lua_sethook(L, end_script, LUA_MASKCOUNT, 1);
    luaL_error(L, "the script has used up its instructions");
}

/* limit(): bounds the running coroutine. */
static int limit(lua_State *L) {
    lua_sethook(L, end_script, LUA_MASKCOUNT, INSTRUCTIONS);
    return 0;
}

/* The host's own Lua code. A script gets five functions and nothing else. */
static const char host[] =
    "local limit = ...\n"
    "local riskscreen = require 'riskscreen'\n"
    "local server = assert(riskscreen.sandbox.serve {})\n"
    "local client = riskscreen.new { base_url = server.url, access_key = server.access_key }\n"
    "local results, running = {}, 0\n"
    "local function start(name, text)\n"
    "  local env = { name = name, pcall = pcall, rep = string.rep, scenario = riskscreen.sandbox.scenario }\n"
    "  function env.screen(address)\n"
    "    return client:screen({ address = address, network = 'eth' }).action\n"
    "  end\n"
    "  local script = assert(load(text, '=' .. name, 't', env))\n"
    "  running = running + 1\n"
    "  riskscreen.defer(function()\n"
    "    local task = riskscreen.spawn(function()\n"
    "      limit()\n"
    "      return script()\n"
    "    end)\n"
    "    local ok, result = pcall(task.await, task)\n"
    "    results[#results + 1] = name .. ': ' .. tostring(result):match '[^\\n]*'\n"
    "    running = running - 1\n"
    "  end)\n"
    "end\n"
    "local function report()\n"
    "  table.sort(results)\n"
    "  print(table.concat(results, '\\n'))\n"
    "  client:close()\n"
    "  server:close()\n"
    "end\n"
    "return start, function() return running end, report\n";

static const char *const scripts[][2] = {
    {"ada", "local good, bad = scenario 'clean-eth', scenario 'type-hack'\n"
            "return screen(good.address) .. ' and ' .. screen(bad.address)\n"},
    {"bob", "while true do end\n"},
    {"cem", "local function forever() while true do end end\n"
            "while true do pcall(forever) end\n"},
    {"dan", "local list = {}\n"
            "for i = 1, 1e9 do list[i] = rep('x', 1e6) .. i end\n"},
    {"eve", "return os.execute 'true'\n"},
};

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Runs the collector in small steps, once memory has grown by half. */
static void collect(lua_State *L, const struct memory *memory) {
    static size_t kept; /* bytes at the end of the last collection */
    static int collecting;
    double stop = now() + COLLECTION;
    collecting = collecting || memory->used > kept + kept / 2;
    while (collecting && now() < stop) {
        if (lua_gc(L, LUA_GCSTEP, 0)) {
            collecting = 0;
            kept = memory->used;
        }
    }
}

/* Leaves the host's functions at the indices 1, 2 and 3: start, running, report. */
static int start_scripts(lua_State *L) {
    luaL_openlibs(L);
    riskscreen_preload(L);
    if (luaL_loadbuffer(L, host, sizeof host - 1, "=host") != LUA_OK) {
        return lua_error(L);
    }
    lua_pushcfunction(L, limit);
    lua_call(L, 1, 3);
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++) {
        lua_pushvalue(L, 1);
        lua_pushstring(L, scripts[i][0]);
        lua_pushstring(L, scripts[i][1]);
        lua_call(L, 2, 0);
    }
    return 3;
}

/* Returns whether scripts are running. */
static int are_running(lua_State *L) {
    lua_pushvalue(L, 2);
    lua_call(L, 0, 1);
    int count = (int)lua_tointeger(L, -1);
    lua_pop(L, 1);
    return count > 0;
}

static int run_game(lua_State *L, const struct memory *memory) {
    lua_pushcfunction(L, start_scripts);
    int status = lua_pcall(L, 0, LUA_MULTRET, 0);
    lua_gc(L, LUA_GCINC, 0, 20, 8); /* small steps: 20 % of the default work, every 2^8 bytes */
    lua_gc(L, LUA_GCSTOP);          /* the collector runs in `collect` only */
    for (int frame = 0; status == LUA_OK && frame < FRAMES_MAX && are_running(L); frame++) {
        double began = now();
        if (riskscreen_step(L, BUDGET) != LUA_OK) {
            fprintf(stderr, "%s\n", lua_tostring(L, -1));
            lua_pop(L, 1);
        }
        collect(L, memory);
        /* Here the game moves and draws. */
        double left = FRAME - (now() - began);
        if (left > 0) {
            struct timespec rest = {.tv_nsec = (long)(left * 1e9)};
            nanosleep(&rest, NULL);
        }
    }
    return status != LUA_OK ? status : lua_pcall(L, 0, 0, 0);
}

int main(void) {
    struct memory memory = {0};
    lua_State *L = lua_newstate(allocate, &memory);
    int status = run_game(L, &memory);
    if (status != LUA_OK) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
    }
    lua_close(L);
    return status != LUA_OK;
}
