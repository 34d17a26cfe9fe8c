/* The interface for C and C++ programs that embed Lua and link libriskscreen.a (CMake option RISKSCREEN_STATIC).
 *
 * Such a program also links libcurl, and libmicrohttpd if the server was built.
 *
 * Threads: several Lua states may use the library at once, on several threads. One thread at a time may use a state.
 * Errors: the functions raise Lua errors where their comment says so, as Lua's own functions do. Like all of Lua, a
 * raised error jumps over C++ frames: call such functions from lua_pcall, and hold no C++ objects there. */
#ifndef RISKSCREEN_H
#define RISKSCREEN_H

#define RISKSCREEN_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Inside extern "C", as in lua.hpp: lua.h itself has no C++ linkage guard. */
#include <lua.h>

/* Registers every module of the library in package.preload, so that `require "riskscreen"` needs no file on disk. Call
 * it once for each Lua state, after opening the standard libraries. Opens nothing: what `require` returns belongs to
 * the state, and lua_close releases it, with all connections and requests under way. Raises if Lua runs out of memory,
 * and where the standard libraries are not open. */
RISKSCREEN_API void riskscreen_preload(lua_State *L);

/* Lets requests and tasks of the state go on, for about `budget` seconds. Never waits. It does what
 * `riskscreen.loop:step { budget = budget }` does, and nothing before the first `require "riskscreen"`. `L` must be the
 * state's main thread or a coroutine that no task runs in.
 *
 * Returns LUA_OK (0), or another status of lua_pcall with the message at the top of the stack: memory has run out, or
 * an attached object raised. The next step then goes on. An error of a task is not one of the step. */
RISKSCREEN_API int riskscreen_step(lua_State *L, double budget);

/* For a hook of the host that ends scripts: returns whether it may raise an error now. It may while the script's own
 * Lua code runs. It may not inside a Lua function of the library, whose work other tasks share. There the hook returns,
 * and tries again after a few instructions. Call it from the hook only, with the hook's state. Raises nothing. */
RISKSCREEN_API int riskscreen_may_interrupt(lua_State *L);

/* The C modules alone, for hosts that have the Lua files on disk. Each leaves its table on the stack, as luaopen
 * functions do. */
RISKSCREEN_API int luaopen_riskscreen_core(lua_State *L);
RISKSCREEN_API int luaopen_riskscreen_system(lua_State *L);
RISKSCREEN_API int luaopen_riskscreen_server(lua_State *L); /* absent if the library was built without libmicrohttpd */

#ifdef __cplusplus
}
#endif

#endif
