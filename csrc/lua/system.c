/* riskscreen.system: what a command-line program needs of the system and Lua lacks. Every function that can fail
 * returns nil and a message. */
#include "lua/compat.h"

#include <lualib.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __APPLE__
#    include <sys/random.h>
#endif

#include "riskscreen.h"

#ifndef _GNU_SOURCE /* there unistd.h declares it */
extern char **environ;
#endif

#define UNKNOWN_WIDTH 80    /* columns of a terminal that does not tell */
#define LINKS_MAX     40    /* links that lead to links, as Linux follows */
#define PIECE         16384 /* bytes that are taken from a pipe at a time */

/* The stream of the open Lua file at index 1. */
static FILE *check_file(lua_State *L) {
    /* In every Lua the userdata begins with the stream. */
    FILE **stream = luaL_checkudata(L, 1, LUA_FILEHANDLE);
#if LUA_VERSION_NUM >= 502
    bool is_open = ((luaL_Stream *)stream)->closef != NULL;
#else
    bool is_open = *stream != NULL;
#endif
    luaL_argcheck(L, is_open, 1, "the file is closed");
    return *stream;
}

static int push_result(lua_State *L, bool is_done) {
    if (is_done) {
        lua_pushboolean(L, 1);
        return 1;
    }
    int code = errno;
    lua_pushnil(L);
    lua_pushstring(L, strerror(code));
    return 2;
}

/* system.columns(file): the width of the terminal behind a file; nil where it is no terminal. */
static int system_columns(lua_State *L) {
    int descriptor = fileno(check_file(L));
    struct winsize size;
    if (!isatty(descriptor)) {
        lua_pushnil(L);
        return 1;
    }
    bool is_known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    lua_pushinteger(L, is_known ? size.ws_col : UNKNOWN_WIDTH);
    return 1;
}

/* system.sync(file): returns when everything that was written is on the disk. */
static int system_sync(lua_State *L) {
    FILE *stream = check_file(L);
    return push_result(L, fflush(stream) == 0 && fdatasync(fileno(stream)) == 0);
}

/* system.truncate(file, size): cuts a file to `size` bytes. */
static int system_truncate(lua_State *L) {
    FILE *stream = check_file(L);
    int64_t size;
    if (!rsc_lua_to_int64(L, 2, &size) || size < 0) {
        return luaL_argerror(L, 2, "expected a size in bytes");
    }
    return push_result(L, fflush(stream) == 0 && ftruncate(fileno(stream), (off_t)size) == 0);
}

/* system.lock(file): locks a file for this process until it is closed or the process ends. Does not wait. */
static int system_lock(lua_State *L) {
    return push_result(L, flock(fileno(check_file(L)), LOCK_EX | LOCK_NB) == 0);
}

/* system.restrict(file): takes from a file all permissions but those of 0640. A daemon may have no umask. */
static int system_restrict(lua_State *L) {
    int descriptor = fileno(check_file(L));
    struct stat status;
    return push_result(L, fstat(descriptor, &status) == 0 && fchmod(descriptor, status.st_mode & 0640) == 0);
}

/* system.stat(path_or_file): its kind, also behind a link, which is "file", "directory", "pipe", or "device" for all
 * others; its permission bits; and of a file its identity, a text that all of its names share. */
static int system_stat(lua_State *L) {
    struct stat status;
    bool is_path = lua_type(L, 1) == LUA_TSTRING;
    int result = is_path ? stat(lua_tostring(L, 1), &status) : fstat(fileno(check_file(L)), &status);
    if (result != 0) {
        return push_result(L, false);
    }
    lua_pushstring(L, S_ISREG(status.st_mode)    ? "file"
                      : S_ISDIR(status.st_mode)  ? "directory"
                      : S_ISFIFO(status.st_mode) ? "pipe"
                                                 : "device");
    lua_pushinteger(L, (lua_Integer)(status.st_mode & 07777));
    if (!S_ISREG(status.st_mode)) {
        return 2;
    }
    char text[64];
    (void)snprintf(text, sizeof text, "%llx:%llx", (unsigned long long)status.st_dev,
                   (unsigned long long)status.st_ino);
    lua_pushstring(L, text);
    return 3;
}

/* system.version(file): the size of an open file, and a text that changes with its content; nil for what is no file of
 * bytes. The time of its last change of status is left out once it has no name: its replacement is no change of it. */
static int system_version(lua_State *L) {
    struct stat status;
    if (fstat(fileno(check_file(L)), &status) != 0 || !S_ISREG(status.st_mode)) {
        lua_pushnil(L);
        return 1;
    }
    char text[96];
    int length = snprintf(text, sizeof text, "%lld.%09ld ", (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    if (status.st_nlink > 0) {
        (void)snprintf(text + length, sizeof text - (size_t)length, "%lld.%09ld", (long long)status.st_ctim.tv_sec,
                       status.st_ctim.tv_nsec);
    }
    lua_pushnumber(L, (lua_Number)status.st_size);
    lua_pushstring(L, text);
    return 2;
}

/* Puts the path that a link leads to in the place of its own. */
static bool follow(char *path) {
    char target[PATH_MAX], joined[PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0) {
        return false;
    }
    target[length] = '\0';
    const char *slash = target[0] == '/' ? NULL : strrchr(path, '/');
    int parent = slash == NULL ? 0 : (int)(slash - path) + 1;
    int size = snprintf(joined, sizeof joined, "%.*s%s", parent, path, target);
    if (size < 0 || (size_t)size >= sizeof joined) {
        return false;
    }
    memcpy(path, joined, (size_t)size + 1);
    return true;
}

/* system.link_target(path): the path of the file behind a link, also of one that is not there yet; nil for all others.
 */
static int system_link_target(lua_State *L) {
    const char *name = luaL_checkstring(L, 1);
    char path[PATH_MAX], buffer[PATH_MAX];
    struct stat status;
    bool is_link = false;
    size_t size = strlen(name) + 1;
    if (size <= sizeof path) {
        memcpy(path, name, size);
        for (int links = 0; links < LINKS_MAX && lstat(path, &status) == 0 && S_ISLNK(status.st_mode); links++) {
            is_link = follow(path);
        }
    }
    bool is_there = is_link && stat(path, &status) == 0;
    if (!is_link || (is_there && (!S_ISREG(status.st_mode) || realpath(path, buffer) == NULL))) {
        lua_pushnil(L);
    } else {
        lua_pushstring(L, is_there ? buffer : path);
    }
    return 1;
}

/* system.real_path(path): the absolute path without links of what is there; nil where nothing is. */
static int system_real_path(lua_State *L) {
    char path[PATH_MAX];
    lua_pushstring(L, realpath(luaL_checkstring(L, 1), path));
    return 1;
}

/* system.make_like(path, model): an empty new file; nothing may have its name yet, no link either. It has the
 * permissions and, where that is allowed, the owner of `model`; or those of any new file, where that is not there. */
static int system_make_like(lua_State *L) {
    const char *path = luaL_checkstring(L, 1);
    struct stat status;
    bool has_model = stat(luaL_checkstring(L, 2), &status) == 0;
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, has_model ? S_IRUSR | S_IWUSR : 0666);
    if (descriptor < 0) {
        return push_result(L, false);
    }
    bool is_done = true;
    if (has_model) {
        bool has_owner = fchown(descriptor, status.st_uid, status.st_gid) == 0;
        /* Bits that change who a program runs as belong to the owner. */
        is_done = fchmod(descriptor, (status.st_mode & (has_owner ? 07777 : 0777)) | S_IWUSR) == 0;
    }
    int result = push_result(L, is_done);
    (void)close(descriptor);
    return result;
}

/* system.hold_streams(): gives each standard stream that the program was started without a descriptor that refuses its
 * use. A file that is opened later would have the stream's number, and its messages. */
static int system_hold_streams(lua_State *L) {
    bool is_held = true;
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++) {
        if (fcntl(stream, F_GETFD) < 0) { /* the lowest number that is free is this one */
            is_held = open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) == stream && is_held;
        }
    }
    return push_result(L, is_held);
}

#define SAME_WISH 500 /* milliseconds: timeout(1) sends its signal twice, to the program and to its group */

/* The signal that asked the program to end; 0: none yet. */
static volatile sig_atomic_t ending_signal, noted_at;

static void note_signal(int number) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    sig_atomic_t milliseconds = (sig_atomic_t)(now.tv_sec % 1000000 * 1000 + now.tv_nsec / 1000000);
    if (ending_signal == 0) {
        ending_signal = number;
        noted_at = milliseconds;
    } else if (milliseconds < noted_at || milliseconds - noted_at > SAME_WISH) {
        (void)signal(number, SIG_DFL);
        (void)raise(number); /* it ends the program when this function returns */
    }
}

/* system.catch_end(): from now on the first SIGINT or SIGTERM is only noted; a later one ends the program. */
static int system_catch_end(lua_State *L) {
    struct sigaction action = {.sa_handler = note_signal};
    ending_signal = 0;
    return push_result(L, sigaction(SIGINT, &action, NULL) == 0 && sigaction(SIGTERM, &action, NULL) == 0);
}

/* system.ending(): the number of the noted signal, or nil. */
static int system_ending(lua_State *L) {
    if (ending_signal == 0) {
        return 0;
    }
    lua_pushinteger(L, ending_signal);
    return 1;
}

/* system.take(file): what has come through a pipe, past the file's buffer: a text, which is empty at the end; false if
 * nothing has come yet. */
static int system_take(lua_State *L) {
    char bytes[PIECE];
    struct pollfd wish = {.fd = fileno(check_file(L)), .events = POLLIN};
    int ready = poll(&wish, 1, 0);
    ssize_t count = ready > 0 ? read(wish.fd, bytes, sizeof bytes) : -1;
    if (ready == 0 || (count < 0 && (errno == EINTR || errno == EAGAIN))) {
        lua_pushboolean(L, 0);
        return 1;
    }
    if (count < 0) {
        return push_result(L, false);
    }
    lua_pushlstring(L, bytes, (size_t)count);
    return 1;
}

/* system.process(): the number of this process. A forked child has another one than its parent. */
static int system_process(lua_State *L) {
    lua_pushinteger(L, (lua_Integer)getpid());
    return 1;
}

/* system.random(bytes): a text from the system's random source, which needs no descriptor. */
static int system_random(lua_State *L) {
    char bytes[256]; /* as much as getentropy gives at once */
    size_t count = (size_t)luaL_checkinteger(L, 1);
    luaL_argcheck(L, count <= sizeof bytes, 1, "at most 256 bytes");
    if (getentropy(bytes, count) != 0) {
        return push_result(L, false);
    }
    lua_pushlstring(L, bytes, count);
    return 1;
}

/* system.variables(): the names of the environment's variables. */
static int system_variables(lua_State *L) {
    lua_newtable(L);
    for (int count = 0; environ != NULL && environ[count] != NULL; count++) {
        lua_pushlstring(L, environ[count], strcspn(environ[count], "="));
        lua_rawseti(L, -2, count + 1);
    }
    return 1;
}

int luaopen_riskscreen_system(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"columns", system_columns},
        {"sync", system_sync},
        {"truncate", system_truncate},
        {"lock", system_lock},
        {"restrict", system_restrict},
        {"stat", system_stat},
        {"version", system_version},
        {"link_target", system_link_target},
        {"real_path", system_real_path},
        {"make_like", system_make_like},
        {"hold_streams", system_hold_streams},
        {"catch_end", system_catch_end},
        {"ending", system_ending},
        {"process", system_process},
        {"random", system_random},
        {"variables", system_variables},
        {"take", system_take},
        {NULL, NULL},
    };
    luaL_checkversion(L);
    lua_newtable(L);
    rsc_lua_set_functions(L, functions);
    return 1;
}
