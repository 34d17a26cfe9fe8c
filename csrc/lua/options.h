/* Reads a Lua table of options into a C struct, by a table that says what each option may be.
 *
 * Unknown names, wrong types and values out of range raise an error that names the option; values are not shown where
 * they could be secret. */
#ifndef RSC_LUA_OPTIONS_H
#define RSC_LUA_OPTIONS_H

#include <stddef.h>

#include "compat.h"

enum rsc_option_type {
    RSC_OPTION_TEXT,    /* const char *, borrowed from the Lua string; no NUL inside */
    RSC_OPTION_BYTES,   /* struct rsc_text, borrowed likewise; any bytes */
    RSC_OPTION_FLAG,    /* bool */
    RSC_OPTION_COUNT,   /* int64_t from least to most */
    RSC_OPTION_SECONDS, /* double from least to most */
    RSC_OPTION_CHOICE,  /* int: the index in choices, a NULL-terminated list */
    RSC_OPTION_OTHER,   /* left to the caller */
};

struct rsc_option {
    const char *name;
    enum rsc_option_type type;
    size_t offset; /* of the member */
    double least, most;
    const char *const *choices;
};

/* `what` goes into messages: "unknown <what> option …". Members whose option is absent are left as they are. The table
 * at `index` must outlive the use of borrowed strings. */
void rsc_options_read(lua_State *L, int index, const char *what, const struct rsc_option *options, size_t count,
                      void *target);

/* Seconds, already checked to be in range, in other units; rounded up, so that a wait is never cut to nothing. */
uint64_t rsc_seconds_to_ns(double seconds);
long rsc_seconds_to_ms(double seconds);

#endif
