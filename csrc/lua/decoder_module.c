/* riskscreen.decoder: the decoder alone, for programs that do not want libcurl. riskscreen.core contains it, too. */
#include "lua/compat.h"

#include "lua/decoder.h"
#include "riskscreen.h"

RISKSCREEN_API int luaopen_riskscreen_decoder(lua_State *L);

int luaopen_riskscreen_decoder(lua_State *L) {
    lua_createtable(L, 0, 5);
    lua_pushliteral(L, RISKSCREEN_VERSION);
    lua_setfield(L, -2, "version");
    rsc_decoder_register(L);
    return 1;
}
