/* Memory sweep of the server: in each run one more allocation of Lua, the library or libmicrohttpd fails. The program
 * may get an error and a client may be dropped. Nothing may crash or leak, and the same Lua state must then run the
 * program.
 *
 * The allocation functions in this file replace glibc's. */
#include <arpa/inet.h>
#include <errno.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "riskscreen.h"

#define FAILURES_MAX 100000
#define CLIENTS_MAX  16

/* The program sees a dropped client by its closed connection. The limit on steps finds a client that hangs. */
static const char program[] =
    "local riskscreen_server, connect, is_closed, disconnect = ...\n"
    "local server = assert(riskscreen_server.new { max_body = 64, max_headers = 4096, idle_timeout = 5 })\n"
    "local function request(text)\n"
    "  local client = connect(server:port(), text)\n"
    "  for _ = 1, 1000 do\n"
    "    server:step(0.001)\n"
    "    local request = server:next()\n"
    "    if request or is_closed(client) then return request, client end\n"
    "  end\n"
    "  error 'a client waits for ever'\n"
    "end\n"
    "local function finish(client)\n"
    "  for _ = 1, 20 do\n"
    "    if server:step(0) == nil or server:timeout() ~= 0 or is_closed(client) then break end\n"
    "  end\n"
    "  disconnect(client)\n"
    "end\n"
    "local get = 'GET /a?b=c HTTP/1.1\\r\\nHost: x\\r\\nX-A: 1\\r\\nX-A: 2\\r\\n\\r\\n'\n"
    "local post = 'POST / HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 5\\r\\n\\r\\nhello'\n"
    "local answers = {\n"
    "  function(r) return r:respond(200, { ['X-B'] = { 'c', 'd' }, ['X-E'] = 1 }, 'body') end,\n"
    "  function(r) return r:truncate(200, nil, ('x'):rep(100), 50) end,\n"
    "  function(r) return r:drip(200, {}, 'abc', 1, 0) end,\n"
    "  function(r) r:reset() end,\n"
    "  function(r) r:stall() end,\n"
    "  function() collectgarbage() end,\n"
    "}\n"
    "for i, answer in ipairs(answers) do\n"
    "  local request, client = request(i % 2 == 0 and post or get)\n"
    "  if request then\n"
    "    local _ = request.method .. request.path .. request.body .. request.remote .. (request.query or '')\n"
    "    _ = request.headers.host\n"
    "    answer(request)\n"
    "  end\n"
    "  request = nil\n"
    "  finish(client)\n"
    "end\n"
    "local large = connect(server:port(), 'POST / HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 99\\r\\n\\r\\n')\n"
    "server:step(0.001)\n"
    "finish(large)\n"
    "server:stats()\n"
    "server:close()\n";

static long allocations, fail_at = -1, outstanding;
static int clients[CLIENTS_MAX];
static size_t client_count;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

static bool fails(void) {
    bool now = allocations++ == fail_at;
    errno = now ? ENOMEM : errno;
    return now;
}

void *malloc(size_t size) {
    void *block = fails() ? NULL : __libc_malloc(size);
    outstanding += block != NULL;
    return block;
}

void *calloc(size_t count, size_t size) {
    void *block = fails() ? NULL : __libc_calloc(count, size);
    outstanding += block != NULL;
    return block;
}

void *realloc(void *block, size_t size) {
    void *moved = fails() ? NULL : __libc_realloc(block, size);
    outstanding += block == NULL && moved != NULL;
    outstanding -= block != NULL && size == 0;
    return moved;
}

void free(void *block) {
    outstanding -= block != NULL;
    __libc_free(block);
}

char *strdup(const char *text) {
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy == NULL ? NULL : memcpy(copy, text, size);
}

/* Lua requires that shrinking a block never fails. */
static void *allocate(void *context, void *block, size_t old_size, size_t new_size) {
    (void)context;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    return block != NULL && new_size <= old_size ? __libc_realloc(block, new_size) : realloc(block, new_size);
}

/* The program's clients: plain sockets, which allocate nothing. */

static int connect_client(lua_State *L) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    size_t length;
    const char *text = luaL_checklstring(L, 2, &length);
    address.sin_port = htons((uint16_t)luaL_checkinteger(L, 1));
    int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(client_count < CLIENTS_MAX, "too many clients");
    clients[client_count++] = client;
    CHECK(connect(client, (struct sockaddr *)&address, sizeof address) == 0, "no connection");
    CHECK(send(client, text, length, MSG_NOSIGNAL) == (ssize_t)length, "could not send");
    lua_pushinteger(L, client);
    return 1;
}

/* Reads all available bytes and returns whether the connection is closed. */
static int is_closed(lua_State *L) {
    char text[1024];
    ssize_t count;
    do {
        count = recv((int)luaL_checkinteger(L, 1), text, sizeof text, MSG_DONTWAIT);
    } while (count > 0);
    lua_pushboolean(L, count == 0 || (errno != EAGAIN && errno != EWOULDBLOCK));
    return 1;
}

static int disconnect(lua_State *L) {
    for (size_t i = 0; i < client_count; i++) {
        if (clients[i] == luaL_checkinteger(L, 1)) {
            (void)close(clients[i]);
            clients[i] = clients[--client_count];
        }
    }
    return 0;
}

static int run_program(lua_State *L) {
    luaL_requiref(L, "_G", luaopen_base, 1);
    luaL_requiref(L, "string", luaopen_string, 1);
    lua_settop(L, 0);
    if (luaL_loadstring(L, program) != LUA_OK) {
        return lua_error(L);
    }
    lua_pushcfunction(L, luaopen_riskscreen_server);
    lua_call(L, 0, 1);
    lua_pushcfunction(L, connect_client);
    lua_pushcfunction(L, is_closed);
    lua_pushcfunction(L, disconnect);
    lua_call(L, 4, 0);
    return 0;
}

static int run(lua_State *L) {
    lua_pushcfunction(L, run_program);
    int status = lua_pcall(L, 0, 0, 0);
    while (client_count > 0) {
        (void)close(clients[--client_count]);
    }
    return status;
}

/* Runs the program in a new state with allocation `n` failing, and then without a failure. Returns whether the program
 * reached that allocation. */
static bool sweep_once(long n) {
    lua_State *L = lua_newstate(allocate, NULL);
    CHECK(L != NULL, "no state");
    allocations = 0;
    fail_at = n;
    int status = run(L);
    fail_at = -1;
    bool reached = allocations > n;
    CHECK(reached || status == LUA_OK, "an error without a failure: %s", lua_tostring(L, -1));
    if (status != LUA_OK) {
        CHECK(strstr(lua_tostring(L, -1), "waits for ever") == NULL, "allocation %ld failed: a client hangs", n);
    }
    lua_settop(L, 0);
    CHECK(run(L) == LUA_OK, "allocation %ld failed, and later the program: %s", n, lua_tostring(L, -1));
    lua_close(L);
    return reached;
}

int main(void) {
    (void)sweep_once(FAILURES_MAX);
    (void)sweep_once(FAILURES_MAX);
    long kept = outstanding;
    int open = count_descriptors();
    long n = 0;
    for (bool reached = true; reached && n < FAILURES_MAX; n++) {
        reached = sweep_once(n);
        CHECK(outstanding == kept, "allocation %ld failed: %ld blocks are lost", n, outstanding - kept);
        CHECK(count_descriptors() == open, "allocation %ld failed: descriptors are lost", n);
    }
    CHECK(n > 100, "only %ld allocations", n);
    printf("%ld allocations failed, one in each run\n", n - 1);
    return 0;
}
