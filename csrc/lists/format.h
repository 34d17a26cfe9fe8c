/* The layout of a compiled list, an .rsl file. All numbers are little-endian. docs/local-lists.md describes it, too.
 *
 *   header   RSC_LIST_HEADER_SIZE bytes: the fields at the offsets below, then zeros
 *   records  one for each entry, in the order of the index; then zeros up to a multiple of 16
 *   index    16 bytes for each record, sorted by hash: the hash of its address, and its offset in the records
 *
 * A record begins with the lengths of scope (1 byte), address (1 byte) and note (2 bytes). The Unix second at which the
 * entry expires follows (8 bytes, 0 for never), and then scope, address and note. The scope is a network, or "*" for
 * every network.
 */
#ifndef RSC_LIST_FORMAT_H
#define RSC_LIST_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RSC_LIST_MAGIC       "\x89RSL\r\n\x1a\n" /* a transfer as text changes it */
#define RSC_LIST_MAGIC_SIZE  8
#define RSC_LIST_VERSION     1
#define RSC_LIST_HEADER_SIZE 256

enum rsc_list_offset {
    RSC_LIST_AT_VERSION = 8,       /* u32 */
    RSC_LIST_AT_HEADER_CRC = 12,   /* u32: of the header from the next field on */
    RSC_LIST_AT_FILE_SIZE = 16,    /* u64 */
    RSC_LIST_AT_COUNT = 24,        /* u64: entries */
    RSC_LIST_AT_RECORDS_SIZE = 32, /* u64: bytes, without the zeros after them */
    RSC_LIST_AT_BUILT_AT = 40,     /* u64: Unix seconds */
    RSC_LIST_AT_BODY_CRC = 48,     /* u32: of everything after the header */
    RSC_LIST_AT_TITLE_LENGTH = 52, /* u16 */
    RSC_LIST_AT_TITLE = 54,
};

#define RSC_LIST_TITLE_MAX   (RSC_LIST_HEADER_SIZE - RSC_LIST_AT_TITLE) /* bytes */
#define RSC_LIST_RECORD_HEAD 12                                         /* bytes before a record's scope */
#define RSC_LIST_INDEX_ENTRY 16                                         /* bytes */
#define RSC_LIST_SCOPE_MAX   255                                        /* bytes, as the next two */
#define RSC_LIST_ADDRESS_MAX 255
#define RSC_LIST_NOTE_MAX    1000
#define RSC_LIST_COUNT_MAX   (UINT32_C(1) << 31) /* entries */

#define RSC_LIST_ANY_NETWORK '*'

static inline uint64_t rsc_list_load(const unsigned char *bytes, unsigned size) {
    uint64_t value = 0;
    for (unsigned i = 0; i < size; i++) {
        value |= (uint64_t)bytes[i] << (8 * i);
    }
    return value;
}

static inline void rsc_list_store(unsigned char *bytes, unsigned size, uint64_t value) {
    for (unsigned i = 0; i < size; i++) {
        bytes[i] = (unsigned char)(value >> (8 * i));
    }
}

/* The records' size with the zeros after them. */
static inline uint64_t rsc_list_padded(uint64_t size) {
    return (size + 15) & ~UINT64_C(15);
}

/* The hash of an address: FNV-1a, mixed so that its first bits depend on every byte. Addresses are compared in full. */
static inline uint64_t rsc_list_hash(const char *address, size_t length) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)address[i]) * UINT64_C(0x100000001b3);
    }
    hash = (hash ^ hash >> 33) * UINT64_C(0xff51afd7ed558ccd);
    hash = (hash ^ hash >> 33) * UINT64_C(0xc4ceb9fe1a85ec53);
    return hash ^ hash >> 33;
}

#endif
