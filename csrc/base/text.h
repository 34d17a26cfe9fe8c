/* A borrowed run of bytes: not NUL-terminated, and valid only while its owner keeps it. */
#ifndef RSC_TEXT_H
#define RSC_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct rsc_text {
    const char *bytes;
    size_t length;
};

/* Returns a number other than 0 if one of eight bytes is DEL or below `least`, which is at most 0x80. */
static inline uint64_t rsc_text_controls(uint64_t bytes, unsigned char least) {
    const uint64_t ones = UINT64_MAX / 0xff;
    uint64_t others = bytes ^ (ones * 0x7f); /* has a 0 for each DEL */
    return (((bytes - ones * least) & ~bytes) | ((others - ones) & ~others)) & (ones * 0x80);
}

/* Returns whether no byte is DEL or below `least`, which is at most 0x7e. */
static inline bool rsc_text_printable(struct rsc_text text, unsigned char least) {
    uint64_t bytes, found = 0;
    while (text.length >= sizeof bytes) {
        memcpy(&bytes, text.bytes, sizeof bytes);
        found |= rsc_text_controls(bytes, least);
        text.bytes += sizeof bytes;
        text.length -= sizeof bytes;
    }
    memset(&bytes, 0x7e, sizeof bytes);
    memcpy(&bytes, text.bytes, text.length);
    return (found | rsc_text_controls(bytes, least)) == 0;
}

#endif
