/* SHA-256 (FIPS 180-4). Any thread may call it; it allocates nothing. */
#ifndef RSC_SHA256_H
#define RSC_SHA256_H

#include <stddef.h>

#define RSC_SHA256_SIZE 32 /* bytes of a digest */

/* Writes the digest of `length` bytes. `bytes` may be NULL if `length` is 0. */
void rsc_sha256(const void *bytes, size_t length, unsigned char digest[RSC_SHA256_SIZE]);

#endif
