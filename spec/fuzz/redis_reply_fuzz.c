/* Fuzzes the replies of Redis, from the socket to Lua values. The first byte is the number of commands, the second the
 * size of the pieces in which the rest arrives. Reading the replies must end without
 * a memory error, with at most one reply for each command. None may be deeper than the parser's limit. */
#include <fcntl.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "riskscreen.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char program[] = "local core, path, accept, say = ...\n"
                              "local function visit(value, depth)\n"
                              "  assert(depth <= 17, 'too deep')\n"
                              "  if type(value) ~= 'table' then\n"
                              "    assert(value == false or type(value) == 'string' or type(value) == 'number')\n"
                              "  elseif value.err then\n"
                              "    assert(type(value.err) == 'string' and next(value, next(value)) == nil)\n"
                              "  else\n"
                              "    for index = 1, #value do visit(value[index], depth + 1) end\n"
                              "  end\n"
                              "end\n"
                              "return function(commands)\n"
                              "  local connection = assert(core.redis { path = path, max_reply = 65536 })\n"
                              "  accept()\n"
                              "  for _ = 1, commands do connection:send('PING\\r\\n', 1) end\n"
                              "  local replies, state = 0, nil\n"
                              "  repeat\n"
                              "    say()\n"
                              "    state = connection:step()\n"
                              "    local value = connection:next()\n"
                              "    while value ~= nil do\n"
                              "      replies = replies + 1\n"
                              "      visit(value, 1)\n"
                              "      value = connection:next()\n"
                              "    end\n"
                              "  until state == 'closed'\n"
                              "  assert(replies <= commands)\n"
                              "  connection:close()\n"
                              "end\n";

static lua_State *L;
static int listener, client = -1;
static char path[64];
static const uint8_t *rest;
static size_t rest_size, piece;

static void demand(bool condition, const char *message) {
    if (!condition) {
        (void)fprintf(stderr, "%s\n", message);
        abort();
    }
}

static int accept_client(lua_State *state) {
    (void)state;
    client = accept(listener, NULL, NULL);
    demand(client >= 0, "no connection");
    return 0;
}

/* Sends the next piece, or ends the connection. */
static int say(lua_State *state) {
    size_t size = rest_size < piece ? rest_size : piece;
    (void)state;
    if (size == 0) {
        (void)shutdown(client, SHUT_WR);
        return 0;
    }
    ssize_t sent = send(client, rest, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
        rest += sent;
        rest_size -= (size_t)sent;
    }
    return 0;
}

static void remove_path(void) {
    (void)unlink(path);
}

static void initialize(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(path, sizeof path, "/tmp/redis-reply-fuzz-%ld", (long)getpid());
    memcpy(address.sun_path, path, strlen(path) + 1);
    (void)unlink(path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    demand(bind(listener, (struct sockaddr *)&address, sizeof address) == 0, "cannot bind");
    demand(listen(listener, 8) == 0, "cannot listen");
    (void)atexit(remove_path);
    L = luaL_newstate();
    luaL_openlibs(L);
    demand(luaL_loadstring(L, program) == 0, "the program does not compile");
    lua_pushcfunction(L, luaopen_riskscreen_core);
    lua_call(L, 0, 1);
    lua_pushstring(L, path);
    lua_pushcfunction(L, accept_client);
    lua_pushcfunction(L, say);
    lua_call(L, 4, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (L == NULL) {
        initialize();
    }
    if (size < 2) {
        return 0;
    }
    piece = data[1] == 0 ? SIZE_MAX : data[1];
    rest = data + 2;
    rest_size = size - 2;
    lua_pushvalue(L, 1);
    lua_pushinteger(L, data[0] % 16);
    if (lua_pcall(L, 1, 0, 0) != 0) {
        demand(false, lua_tostring(L, -1));
    }
    (void)close(client);
    client = -1;
    return 0;
}
