/* Fuzzes Lua code: calls the function that spec/fuzz/targets/NAME.lua returns with each input, where the program is
 * called NAME_fuzz. A finding is an error that the function raises.
 *
 * libFuzzer does not see Lua. A line hook therefore counts each step from one line to another, for the library's own
 * Lua files. libFuzzer reads these counters like those of C code. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "riskscreen.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int __lsan_is_turned_off(void);

#define COUNTERS_BITS         15
#define FILES_MAX             256
#define INPUTS_PER_COLLECTION 64 /* so that memory left by one input is not blamed on a later one */

__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[1 << COUNTERS_BITS];

static lua_State *L;
static const char *program_name;
static const char *files[FILES_MAX]; /* chunk names by address; Lua keeps one copy per file */
static size_t file_count;
static uint32_t last_place;

/* Returns 0 for a file outside the library. */
static uint32_t file_number(const char *source) {
    for (size_t i = 0; i < file_count; i++) {
        if (files[i] == source) {
            return (uint32_t)i + 1;
        }
    }
    if (strncmp(source, "=riskscreen/", 12) != 0 || file_count == FILES_MAX) {
        return 0;
    }
    files[file_count++] = source;
    return (uint32_t)file_count;
}

static void count_line(lua_State *state, lua_Debug *record) {
    (void)lua_getinfo(state, "S", record);
    uint32_t file = file_number(record->source);
    if (file == 0) {
        return;
    }
    uint32_t place = (file * 4096 + (uint32_t)record->currentline) * UINT32_C(2654435761);
    uint8_t *counter = &counters[(place ^ last_place >> 1) >> (32 - COUNTERS_BITS)];
    *counter = (uint8_t)(*counter + (*counter < UINT8_MAX));
    last_place = place;
}

static int traceback(lua_State *state) {
    luaL_traceback(state, state, luaL_tolstring(state, 1, NULL), 1);
    return 1;
}

static void demand(int status) {
    if (status != LUA_OK) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
        abort();
    }
}

/* Leaves the error handler at index 1 and the target's function at index 2. */
static void open_state(void) {
    L = luaL_newstate();
    luaL_openlibs(L);
    riskscreen_preload(L);
    lua_pushcfunction(L, traceback);
    demand(luaL_loadstring(L, "local root, target = ...\n"
                              "package.path = root .. '/?.lua;' .. package.path\n"
                              "return require('spec.fuzz.targets.' .. target:match '([%w_]+)_fuzz$')"));
    lua_pushstring(L, FUZZ_ROOT);
    lua_pushstring(L, program_name);
    demand(lua_pcall(L, 2, 1, 1));
    lua_sethook(L, count_line, LUA_MASKLINE, 0);
}

/* Turns leak detection off. Uncollected garbage would make libFuzzer search for leaks after each input, which takes
 * most of the time. The decoder's fuzzer, the memory sweeps and valgrind find leaks. */
int __lsan_is_turned_off(void) {
    return 1;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    program_name = (*argv)[0];
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static unsigned inputs;
    if (L == NULL) {
        open_state();
    }
    last_place = 0;
    lua_pushvalue(L, 2);
    lua_pushlstring(L, (const char *)data, size);
    demand(lua_pcall(L, 1, 0, 1));
    if (++inputs % INPUTS_PER_COLLECTION == 0) {
        lua_gc(L, LUA_GCCOLLECT);
    }
    return 0;
}
