/* The Lua modules that the static library contains. cmake/embed.cmake generates the table. */
#ifndef RSC_LUA_MODULES_H
#define RSC_LUA_MODULES_H

#include <stddef.h>

struct rsc_module {
    const char *name;          /* as passed to `require`; NULL ends the table */
    const char *chunk;         /* the chunk name in messages */
    const unsigned char *text; /* Lua source, static */
    size_t length;             /* bytes */
};

extern const struct rsc_module rsc_modules[];

#endif
