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

/* Returns a byte of a token, such as a header's name, in lower case, or a space for a byte that a token must not have.
 */
static inline char rsc_token_byte(char byte) {
    static const char bytes[] =
        "! #$%&'  *+ -. 0123456789       abcdefghijklmnopqrstuvwxyz   ^_`abcdefghijklmnopqrstuvwxyz | ~";
    size_t index = (size_t)(unsigned char)byte - '!';
    return index < sizeof bytes - 1 ? bytes[index] : ' ';
}

/* Returns the text without spaces and tabs at its ends. */
static inline struct rsc_text rsc_text_trim(struct rsc_text text) {
    while (text.length > 0 && (*text.bytes == ' ' || *text.bytes == '\t')) {
        text.bytes++;
        text.length--;
    }
    while (text.length > 0 && (text.bytes[text.length - 1] == ' ' || text.bytes[text.length - 1] == '\t')) {
        text.length--;
    }
    return text;
}

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
