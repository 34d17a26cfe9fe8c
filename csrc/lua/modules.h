/* The Lua modules of the library as they are embedded in the static library; cmake/embed.cmake writes the table. */
#ifndef RSC_LUA_MODULES_H
#define RSC_LUA_MODULES_H

#include <stddef.h>

struct rsc_module {
    const char *name;          /* as `require` takes it; NULL ends the table */
    const char *chunk;         /* its name in messages */
    const unsigned char *text; /* Lua source, for the life of the program */
    size_t length;             /* bytes */
};

extern const struct rsc_module rsc_modules[];

#endif
