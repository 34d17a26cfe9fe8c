/* Reads a Lua table of options into a C struct, as a table of options describes it.
 *
 * An unknown name, a wrong type or a value out of range raises an error that names the option. The library's own
 * options (lua/riskscreen/options) have messages with the valid values. Strings may be secret, so no message shows one.
 */
#ifndef RSC_LUA_OPTIONS_H
#define RSC_LUA_OPTIONS_H

#include <stddef.h>

#include "lua/compat.h"

enum rsc_option_type {
    RSC_OPTION_TEXT,    /* const char *, without NUL inside: least to most bytes, or any length if most is 0 */
    RSC_OPTION_FLAG,    /* bool */
    RSC_OPTION_COUNT,   /* int64_t, least to most */
    RSC_OPTION_SECONDS, /* double, least to most */
    RSC_OPTION_CHOICE,  /* int, an index in `choices` */
};

struct rsc_option {
    const char *name;
    enum rsc_option_type type;
    size_t offset; /* of the member in the target struct */
    double least, most;
    const char *const *choices; /* NULL-terminated */
};

/* Reads the table, or nil, at the absolute stack index into `target`. `kind` goes into messages: "unknown <kind>
 * option". An absent option leaves its member as it is. Strings are borrowed from the table, which must outlive their
 * use. */
void rsc_options_read(lua_State *L, int index, const char *kind, const struct rsc_option *options, size_t count,
                      void *target);

#endif
