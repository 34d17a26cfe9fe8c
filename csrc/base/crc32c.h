/* CRC-32C (Castagnoli), the checksum of iSCSI and ext4. Any thread may use its own struct; nothing is allocated. */
#ifndef RSC_CRC32C_H
#define RSC_CRC32C_H

#include <stddef.h>
#include <stdint.h>

struct rsc_crc32c {
    uint32_t value; /* of the bytes added so far */
    uint32_t table[8][256];
};

/* Fills the table and starts with no bytes. */
void rsc_crc32c_init(struct rsc_crc32c *crc);

/* Adds `length` bytes to the value. */
void rsc_crc32c_add(struct rsc_crc32c *crc, const void *bytes, size_t length);

#endif
