/* SHA-256 (FIPS 180-4), and HMAC (RFC 2104) with it. Any thread may call them; they allocate nothing. Where bytes have
 * the length 0, their pointer may be NULL. */
#ifndef RSC_SHA256_H
#define RSC_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define RSC_SHA256_SIZE  32 /* bytes of a digest */
#define RSC_SHA256_BLOCK 64 /* bytes */

/* A hash of bytes that come one after the other. It may be copied. */
struct rsc_sha256 {
    uint32_t state[8];
    uint64_t length;                      /* bytes so far */
    unsigned char rest[RSC_SHA256_BLOCK]; /* those that fill no block yet */
};

void rsc_sha256_begin(struct rsc_sha256 *hash);
void rsc_sha256_add(struct rsc_sha256 *hash, const void *bytes, size_t length);
/* Ends the hash, which must not be used afterwards. */
void rsc_sha256_end(struct rsc_sha256 *hash, unsigned char digest[RSC_SHA256_SIZE]);

/* Writes the digest of `length` bytes. */
void rsc_sha256(const void *bytes, size_t length, unsigned char digest[RSC_SHA256_SIZE]);

/* The two hashes of a key, from which those of each message go on. */
struct rsc_hmac {
    struct rsc_sha256 inner, outer;
};

void rsc_hmac_init(struct rsc_hmac *hmac, const void *key, size_t length);
/* Writes the code of a message that was added to `hash`, a copy of `inner`. */
void rsc_hmac_end(const struct rsc_hmac *hmac, struct rsc_sha256 *hash, unsigned char code[RSC_SHA256_SIZE]);

#endif
