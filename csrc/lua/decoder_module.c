/* riskscreen.decoder: the decoder and the encoder alone, for programs that do not want libcurl. riskscreen.core
 * contains them, too. */
#include "lua/compat.h"

#include "lua/parts.h"
#include "riskscreen.h"

RISKSCREEN_API int luaopen_riskscreen_decoder(lua_State *L);

int luaopen_riskscreen_decoder(lua_State *L) {
    luaL_checkversion(L);
    lua_createtable(L, 0, 6);
    lua_pushliteral(L, RISKSCREEN_VERSION);
    lua_setfield(L, -2, "version");
    rsc_decoder_register(L);
    rsc_encoder_register(L);
    return 1;
}
