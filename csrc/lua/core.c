#include "compat.h"

#include <curl/curl.h>

#include "decoder.h"
#include "binding.h"
#include "riskscreen.h"

static int core_now(lua_State *L) {
    lua_pushnumber(L, (lua_Number)rsc_now() / 1e9);
    return 1;
}

int luaopen_riskscreen_core(lua_State *L) {
    lua_createtable(L, 0, 8);
    lua_pushliteral(L, RISKSCREEN_VERSION);
    lua_setfield(L, -2, "version");
    /* curl_version() would also ask the LDAP library, which looks up this machine's name. */
    const curl_version_info_data *curl = curl_version_info(CURLVERSION_NOW);
    lua_pushfstring(L, "libcurl/%s %s", curl->version, curl->ssl_version != NULL ? curl->ssl_version : "without TLS");
    lua_setfield(L, -2, "curl_version");
    lua_pushcfunction(L, core_now);
    lua_setfield(L, -2, "now");
    rsc_decoder_register(L);
    rsc_loop_register(L);
    return 1;
}
