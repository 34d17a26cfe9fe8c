/* The Lua object of a request that riskscreen.server received. */
#ifndef RSC_LUA_SERVER_REQUEST_H
#define RSC_LUA_SERVER_REQUEST_H

#include "lua/compat.h"

#include "server/server.h"

/* Creates the metatable. */
void rsc_server_request_register(lua_State *L);

/* Pushes the server's oldest waiting request, or nil. */
void rsc_server_request_push_next(lua_State *L, struct rsc_server *server);

#endif
