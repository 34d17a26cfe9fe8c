/* Several threads, each with its own Lua state, use the decoder, the loop, the server and the Lua layer at once. Meant
 * for the thread sanitizer. */
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>

#include "check.h"
#include "riskscreen.h"

#define THREADS 4

/* Each state serves its own sandbox and screens addresses against it. */
static const char script[] =
    "local riskscreen = require 'riskscreen'\n"
    "local core = require 'riskscreen.core'\n"
    "local number = ...\n"
    "for _ = 1, 10 do\n"
    "  local server = riskscreen.sandbox.serve { port = 0 }\n"
    "  local client = riskscreen.new { base_url = server.url, access_key = server.access_key, timeout = 30 }\n"
    "  local bad, good = riskscreen.sandbox.scenario 'type-sanction', riskscreen.sandbox.scenario 'clean-eth'\n"
    "  riskscreen.run(function()\n"
    "    local tasks = {}\n"
    "    for i = 1, 8 do\n"
    "      tasks[i] = riskscreen.spawn(function()\n"
    "        local one = i % 2 == 0 and bad or good\n"
    "        return client:screen({ address = one.address, network = one.network }).action\n"
    "      end)\n"
    "    end\n"
    "    for i = 1, 8 do\n"
    "      local action = assert(tasks[i]:await())\n"
    "      assert(action == (i % 2 == 0 and 'block' or 'allow'), action)\n"
    "    end\n"
    "  end)\n"
    "  assert(client:screen({ address = bad.address, network = bad.network }).action == 'block')\n"
    "  local text = '{\"number\":' .. number .. ',\"list\":[1.5,2e300,\"\\\\u00e9\",null]}'\n"
    "  for _ = 1, 200 do\n"
    "    local value = assert(core.decode(text))\n"
    "    assert(value.number == number and value.list[1] == 1.5 and value.list[3] == '\\195\\169')\n"
    "  end\n"
    "  client:close()\n"
    "  server:close()\n"
    "end\n";

static void *run(void *context) {
    lua_State *L = luaL_newstate();
    CHECK(L != NULL, "no state");
    luaL_openlibs(L);
    riskscreen_preload(L);
    int status = luaL_loadstring(L, script);
    lua_pushinteger(L, *(const int *)context);
    status = status != LUA_OK ? status : lua_pcall(L, 1, 0, 0);
    CHECK(status == LUA_OK, "%s", lua_tostring(L, -1));
    lua_close(L);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, run, &numbers[i]) == 0, "no thread");
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0, "no end");
    }
    return 0;
}
