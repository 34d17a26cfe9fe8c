/* Memory sweep of the loop: in each run one more allocation of Lua or the library fails. Nothing may crash, and no
 * memory or descriptor may leak.
 *
 * libcurl's allocations are counted, to find lost handles, but they never fail. On such failures libcurl 7.88 leaks
 * memory and may divide by zero. */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <lauxlib.h>
#include <lualib.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "riskscreen.h"

#define FAILURES_MAX 100000

static const char program[] = "local core, url = ...\n"
                              "local loop = core.loop {}\n"
                              "local origin = loop:origin { base_url = url, concurrency = 2 }\n"
                              "local transfers = {}\n"
                              "for i = 1, 4 do\n"
                              "  transfers[i] = origin:send(i % 2 == 0 and 'POST' or 'GET', '/' .. i,\n"
                              "    { 'X-A: b', 'Content-Type: text/plain' }, 1, nil, i % 2 == 0 and 'body' or nil)\n"
                              "end\n"
                              "loop:cancel(transfers[4])\n"
                              "loop:cancel(loop:timer(60))\n"
                              "loop:timer(0)\n"
                              "loop:cancel(loop:watch(core.loop {}:pollfd(), 'r'))\n"
                              "for i = 1, 3 do\n"
                              "  while not loop:done(transfers[i]) do loop:step(1) end\n"
                              "  local status, _, head = loop:take(transfers[i], true)\n"
                              "  if status then core.details(head) end\n"
                              "end\n"
                              "while loop:next() do end\n"
                              "loop:stats()\n";

static long allocations, fail_at = -1, outstanding;

static int fails(void) {
    return allocations++ == fail_at;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
char *__real_strdup(const char *text);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

void *__wrap_malloc(size_t size) {
    void *block = fails() ? NULL : __real_malloc(size);
    outstanding += block != NULL;
    return block;
}

void *__wrap_calloc(size_t count, size_t size) {
    void *block = fails() ? NULL : __real_calloc(count, size);
    outstanding += block != NULL;
    return block;
}

void *__wrap_realloc(void *block, size_t size) {
    void *moved = fails() ? NULL : __real_realloc(block, size);
    outstanding += block == NULL && moved != NULL;
    return moved;
}

char *__wrap_strdup(const char *text) {
    char *copy = fails() ? NULL : __real_strdup(text);
    outstanding += copy != NULL;
    return copy;
}

void __wrap_free(void *block) {
    outstanding -= block != NULL;
    __real_free(block);
}

/* libcurl's allocator */

static void *count_block(void *block) {
    outstanding += block != NULL;
    return block;
}

static void *curl_malloc(size_t size) {
    return count_block(__real_malloc(size));
}

static void *curl_calloc(size_t count, size_t size) {
    return count_block(__real_calloc(count, size));
}

static void *curl_realloc(void *block, size_t size) {
    void *moved = __real_realloc(block, size);
    outstanding += block == NULL && moved != NULL;
    return moved;
}

static char *curl_strdup(const char *text) {
    return count_block(__real_strdup(text));
}

/* Lua requires that shrinking a block never fails. */
static void *allocate(void *context, void *block, size_t old_size, size_t new_size) {
    (void)context;
    if (new_size == 0) {
        __wrap_free(block);
        return NULL;
    }
    return block != NULL && new_size <= old_size ? __real_realloc(block, new_size) : __wrap_realloc(block, new_size);
}

/* The server: answers one connection after the other, without allocating. */
static void *serve(void *context) {
    int listener = *(int *)context;
    static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{\"a\":[1]}";
    for (;;) {
        int connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (connection < 0) {
            return NULL;
        }
        char text[4096];
        size_t length = 0;
        ssize_t count = 1;
        while (count > 0 && (length < 8 || memmem(text, length, "\r\n\r\n", 4) == NULL)) {
            count = read(connection, text + length, sizeof text - length);
            length += count > 0 ? (size_t)count : 0;
        }
        (void)!write(connection, answer, sizeof answer - 1);
        (void)shutdown(connection, SHUT_WR);
        while (read(connection, text, sizeof text) > 0) {
        }
        close(connection);
    }
}

static int run_program(lua_State *L) {
    const char *url = lua_touserdata(L, 1);
    if (luaL_loadstring(L, program) != LUA_OK) {
        return lua_error(L);
    }
    lua_pushcfunction(L, luaopen_riskscreen_core);
    lua_call(L, 0, 1);
    lua_pushstring(L, url);
    lua_call(L, 2, 0);
    return 0;
}

static int run(char *url) {
    lua_State *L = lua_newstate(allocate, NULL);
    if (L == NULL) {
        return LUA_ERRMEM;
    }
    lua_pushcfunction(L, run_program);
    lua_pushlightuserdata(L, url);
    int status = lua_pcall(L, 1, 0, 0);
    if (status != LUA_OK && fail_at < 0) {
        fprintf(stderr, "%s\n", lua_tostring(L, -1));
    }
    lua_close(L);
    return status;
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 64) == 0, "no listener");
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "no port");
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, serve, &listener) == 0, "no thread");
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    CHECK(curl_global_init_mem(CURL_GLOBAL_ALL, curl_malloc, __wrap_free, curl_realloc, curl_strdup, curl_calloc) ==
              CURLE_OK,
          "libcurl");
    CHECK(run(url) == LUA_OK, "the program fails even with enough memory");
    long kept = outstanding;
    int open = count_descriptors();
    for (long n = 0; n < FAILURES_MAX; n++) {
        allocations = 0;
        fail_at = n;
        int status = run(url);
        fail_at = -1;
        CHECK(outstanding == kept, "allocation %ld failed: %ld blocks are lost", n, outstanding - kept);
        if (allocations <= n) {
            CHECK(status == LUA_OK, "no allocation failed, but the program did");
            printf("%ld allocations failed, one in each run\n", n);
            break;
        }
    }
    shutdown(listener, SHUT_RDWR);
    pthread_join(thread, NULL);
    CHECK(count_descriptors() <= open, "descriptors are lost");
    close(listener);
    return 0;
}
