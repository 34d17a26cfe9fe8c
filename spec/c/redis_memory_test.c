/* Memory sweep of the connection to Redis: in each run one more allocation of Lua or the library fails. The
 * program may get an error. Nothing may crash or leak, and the same Lua state must then run the program.
 *
 * The allocation functions in this file replace glibc's. */
#include <errno.h>
#include <fcntl.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "riskscreen.h"

#define FAILURES_MAX 100000
#define STEPS        "20"

/* The answers come in pieces, and an error leaves a connection that is not closed. */
static const char program[] =
    "local core, path, accept, say, hang_up = ...\n"
    "local connection = core.redis { path = path, max_reply = 100000 }\n"
    "if not connection then return end\n"
    "accept()\n"
    "for _ = 1, " STEPS " do\n"
    "  local state = connection:step()\n"
    "  if state ~= 'connecting' then break end\n"
    "end\n"
    "connection:watch()\n"
    "for _ = 1, 4 do connection:send('*2\\r\\n$3\\r\\nGET\\r\\n$1000\\r\\n' .. ('x'):rep(1000) .. '\\r\\n', 1) end\n"
    "local replies = '*4\\r\\n$3\\r\\nabc\\r\\n:42\\r\\n*1\\r\\n+OK\\r\\n$-1\\r\\n-ERR "
    "wrong\\r\\n$5000\\r\\n' .. ('y'):rep(5000)\n"
    "  .. '\\r\\n*-1\\r\\n'\n"
    "for at = 1, #replies, 1000 do\n"
    "  say(replies:sub(at, at + 999))\n"
    "  for _ = 1, 2 do\n"
    "    if connection:step() == 'closed' then connection:close() return end\n"
    "    local ok, reply\n"
    "    repeat\n"
    "      ok, reply = pcall(connection.next, connection)\n"
    "      if not ok then\n"
    "        if connection:next() ~= nil or connection:step() ~= 'closed' then error 'a reply is lost' end\n"
    "        error(reply)\n"
    "      end\n"
    "    until reply == nil\n"
    "  end\n"
    "end\n"
    "connection:send('*1\\r\\n$4\\r\\nPING\\r\\n', 1)\n"
    "say '*100000000\\r\\n'\n"
    "for _ = 1, " STEPS " do connection:step() end\n"
    "local second = core.redis { path = path }\n"
    "hang_up()\n"
    "local refused, kind, message = core.redis { path = path .. 'x' }\n"
    "connection:close()\n"
    "connection:close()\n";

static long allocations, fail_at = -1, outstanding;
static int listener = -1, client = -1;
static char path[64];

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

/* Lua requires that shrinking a block never fails. */
static void *allocate(void *context, void *block, size_t old_size, size_t new_size) {
    (void)context;
    if (new_size == 0) {
        free(block);
        return NULL;
    }
    return block != NULL && new_size <= old_size ? __libc_realloc(block, new_size) : realloc(block, new_size);
}

/* The server: plain sockets, which allocate nothing. */

static void open_listener(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(path, sizeof path, "/tmp/redis-memory-test-%ld", (long)getpid());
    memcpy(address.sun_path, path, strlen(path) + 1);
    (void)unlink(path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0, "cannot bind %s", path);
    CHECK(listen(listener, 64) == 0, "cannot listen");
}

static int hang_up(lua_State *L) {
    (void)L;
    if (client >= 0) {
        (void)close(client);
        client = -1;
    }
    return 0;
}

/* Takes the last connection; earlier ones were given up by their program. */
static int accept_client(lua_State *L) {
    (void)hang_up(L);
    client = accept(listener, NULL, NULL);
    CHECK(client >= 0, "no connection");
    return 0;
}

static int say(lua_State *L) {
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    CHECK(send(client, text, length, MSG_NOSIGNAL) == (ssize_t)length, "could not send");
    return 0;
}

static int run_program(lua_State *L) {
    luaL_requiref(L, "_G", luaopen_base, 1);
    luaL_requiref(L, "string", luaopen_string, 1);
    lua_settop(L, 0);
    if (luaL_loadstring(L, program) != LUA_OK) {
        return lua_error(L);
    }
    lua_pushcfunction(L, luaopen_riskscreen_core);
    lua_call(L, 0, 1);
    lua_pushstring(L, path);
    lua_pushcfunction(L, accept_client);
    lua_pushcfunction(L, say);
    lua_pushcfunction(L, hang_up);
    lua_call(L, 5, 0);
    return 0;
}

/* Drops connections that nobody has accepted. */
static void empty_listener(void) {
    int waiting;
    while ((waiting = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        (void)close(waiting);
    }
}

static int run(lua_State *L) {
    lua_pushcfunction(L, run_program);
    int status = lua_pcall(L, 0, 0, 0);
    (void)hang_up(L);
    lua_gc(L, LUA_GCCOLLECT);
    (void)fcntl(listener, F_SETFL, O_NONBLOCK);
    empty_listener();
    (void)fcntl(listener, F_SETFL, 0);
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
        CHECK(strstr(lua_tostring(L, -1), "a reply is lost") == NULL, "allocation %ld failed: a reply is lost", n);
    }
    lua_settop(L, 0);
    CHECK(run(L) == LUA_OK, "allocation %ld failed, and later the program: %s", n, lua_tostring(L, -1));
    lua_close(L);
    return reached;
}

int main(void) {
    open_listener();
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
    (void)unlink(path);
    CHECK(n > 100, "only %ld allocations", n);
    printf("%ld allocations failed, one in each run\n", n - 1);
    return 0;
}
