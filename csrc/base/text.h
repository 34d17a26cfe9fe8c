/* A borrowed run of bytes: not NUL-terminated, and valid only while its owner keeps it. */
#ifndef RSC_TEXT_H
#define RSC_TEXT_H

#include <stddef.h>

struct rsc_text {
    const char *bytes;
    size_t length;
};

#endif
