#include "base/crc32c.h"

#include <string.h>

#define POLYNOMIAL UINT32_C(0x82f63b78) /* 0x1edc6f41 with its bits reversed */

void rsc_crc32c_init(struct rsc_crc32c *crc) {
    crc->value = 0;
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t rest = byte;
        for (int bit = 0; bit < 8; bit++) {
            rest = (rest >> 1) ^ (POLYNOMIAL & (0u - (rest & 1u)));
        }
        crc->table[0][byte] = rest;
    }
    for (int slice = 1; slice < 8; slice++) {
        for (uint32_t byte = 0; byte < 256; byte++) {
            uint32_t before = crc->table[slice - 1][byte];
            crc->table[slice][byte] = (before >> 8) ^ crc->table[0][before & 0xff];
        }
    }
}

static uint32_t load_u32(const unsigned char *bytes) {
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

void rsc_crc32c_add(struct rsc_crc32c *crc, const void *bytes, size_t length) {
    const unsigned char *at = bytes;
    uint32_t(*table)[256] = crc->table;
    uint32_t value = ~crc->value;
    for (; length >= 8; length -= 8, at += 8) {
        uint32_t low = load_u32(at) ^ value, high = load_u32(at + 4);
        value = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^ table[4][low >> 24] ^
                table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^ table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
    }
    for (; length > 0; length--, at++) {
        value = (value >> 8) ^ table[0][(value ^ *at) & 0xff];
    }
    crc->value = ~value;
}
