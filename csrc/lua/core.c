#include "compat.h"

#include "decoder.h"
#include "riskscreen.h"

int luaopen_riskscreen_core(lua_State *L) {
    lua_createtable(L, 0, 8);
    lua_pushliteral(L, RISKSCREEN_VERSION);
    lua_setfield(L, -2, "version");
    rsc_decoder_register(L);
    return 1;
}
