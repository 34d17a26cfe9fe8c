/* Keccak-256 as Ethereum uses it: the original Keccak submission, whose padding differs from SHA3-256. Any thread may
 * call it; it allocates nothing. */
#ifndef RSC_KECCAK_H
#define RSC_KECCAK_H

#include <stddef.h>

#define RSC_KECCAK256_SIZE 32 /* bytes of a digest */

/* Writes the digest of `length` bytes. `bytes` may be NULL if `length` is 0. */
void rsc_keccak256(const void *bytes, size_t length, unsigned char digest[RSC_KECCAK256_SIZE]);

#endif
