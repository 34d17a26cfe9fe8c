/* fork and wait for the Lua that has no luaposix in Debian 12. */
#include <sys/wait.h>
#include <unistd.h>

#include <lauxlib.h>

static int do_fork(lua_State *L) {
    lua_pushinteger(L, fork());
    return 1;
}

static int do_wait(lua_State *L) {
    int status = -1;
    (void)waitpid((pid_t)luaL_checkinteger(L, 1), &status, 0);
    lua_pushinteger(L, status);
    return 1;
}

int luaopen_fork(lua_State *L) {
    lua_newtable(L);
    lua_pushcfunction(L, do_fork);
    lua_setfield(L, -2, "fork");
    lua_pushcfunction(L, do_wait);
    lua_setfield(L, -2, "wait");
    return 1;
}
