/* Four threads, each with a Lua state of its own, screen addresses at the same time. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <stdio.h>

#include "riskscreen.h"

#define THREADS 4

static const char script[] = "local riskscreen = require 'riskscreen'\n"
                             "local server = assert(riskscreen.sandbox.serve {})\n"
                             "local client = riskscreen.new { base_url = server.url, access_key = server.access_key }\n"
                             "local blocked, bad = 0, riskscreen.sandbox.scenario 'type-hack'\n"
                             "riskscreen.run(function()\n"
                             "  for _ = 1, 25 do\n"
                             "    riskscreen.spawn(function()\n"
                             "      local decision = client:screen { address = bad.address, network = bad.network }\n"
                             "      blocked = blocked + (decision.action == 'block' and 1 or 0)\n"
                             "    end)\n"
                             "  end\n"
                             "end)\n"
                             "client:close()\n"
                             "server:close()\n"
                             "return blocked\n";

static int count_blocked(lua_State *L) {
    luaL_openlibs(L);
    riskscreen_preload(L);
    if (luaL_loadstring(L, script) != 0) {
        return lua_error(L);
    }
    lua_call(L, 0, 1);
    return 1;
}

static void *run(void *result) {
    lua_State *L = luaL_newstate();
    if (L != NULL) {
        lua_pushcfunction(L, count_blocked);
        if (lua_pcall(L, 0, 1, 0) == 0) {
            *(int *)result = (int)lua_tointeger(L, -1);
        } else {
            fprintf(stderr, "%s\n", lua_tostring(L, -1));
        }
        lua_close(L);
    }
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    int results[THREADS] = {0}, started = 0, blocked = 0;
    while (started < THREADS && pthread_create(&threads[started], NULL, run, &results[started]) == 0) {
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
        blocked += results[i];
    }
    printf("%d addresses are blocked\n", blocked);
    return blocked != 25 * THREADS;
}
