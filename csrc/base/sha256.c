#include "base/sha256.h"

#include <string.h>

#define BLOCK_SIZE  RSC_SHA256_BLOCK
#define LENGTH_SIZE 8 /* bytes of the length that ends the message */
#define ROUNDS      64

static const uint32_t round_constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate_right(uint32_t word, unsigned bits) {
    return word >> bits | word << (32 - bits);
}

static uint32_t load_big_endian(const unsigned char *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void store_big_endian(unsigned char *bytes, uint32_t word) {
    bytes[0] = (unsigned char)(word >> 24);
    bytes[1] = (unsigned char)(word >> 16);
    bytes[2] = (unsigned char)(word >> 8);
    bytes[3] = (unsigned char)word;
}

static void expand_block(const unsigned char *block, uint32_t words[ROUNDS]) {
    for (size_t i = 0; i < 16; i++) {
        words[i] = load_big_endian(block + 4 * i);
    }
    for (size_t i = 16; i < ROUNDS; i++) {
        uint32_t a = words[i - 15];
        uint32_t b = words[i - 2];
        uint32_t sigma0 = rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3;
        uint32_t sigma1 = rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10;
        words[i] = words[i - 16] + sigma0 + words[i - 7] + sigma1;
    }
}

/* FIPS 180-4, section 6.2.2; the names are those of the standard. */
static void process_block(uint32_t state[8], const unsigned char *block) {
    uint32_t words[ROUNDS] = {0}; /* zero is for gcc's analyzer, which gives up on the loops */
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    expand_block(block, words);
    for (size_t i = 0; i < ROUNDS; i++) {
        uint32_t sum1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
        uint32_t choice = (e & f) ^ (~e & g);
        uint32_t t1 = h + sum1 + choice + round_constants[i] + words[i];
        uint32_t sum0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
        uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
        uint32_t t2 = sum0 + majority;
        h = g;
        g = f;
        f = e;
        e = d + t1;
        d = c;
        c = b;
        b = a;
        a = t1 + t2;
    }
    const uint32_t sums[8] = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; i++) {
        state[i] += sums[i];
    }
}

void rsc_sha256_begin(struct rsc_sha256 *hash) {
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, start, sizeof start);
    hash->length = 0;
}

void rsc_sha256_add(struct rsc_sha256 *hash, const void *bytes, size_t length) {
    const unsigned char *p = bytes;
    size_t kept = hash->length % BLOCK_SIZE;
    hash->length += length;
    if (kept > 0 && length >= BLOCK_SIZE - kept) {
        memcpy(hash->rest + kept, p, BLOCK_SIZE - kept);
        process_block(hash->state, hash->rest);
        p += BLOCK_SIZE - kept;
        length -= BLOCK_SIZE - kept;
        kept = 0;
    }
    for (; kept == 0 && length >= BLOCK_SIZE; length -= BLOCK_SIZE, p += BLOCK_SIZE) {
        process_block(hash->state, p);
    }
    if (length > 0) {
        memcpy(hash->rest + kept, p, length);
    }
}

void rsc_sha256_end(struct rsc_sha256 *hash, unsigned char digest[RSC_SHA256_SIZE]) {
    /* The rest, a set bit and the length need one block, or two if they do not fit one. */
    unsigned char tail[2 * BLOCK_SIZE] = {0};
    size_t left = hash->length % BLOCK_SIZE;
    size_t tail_size = left + 1 + LENGTH_SIZE <= BLOCK_SIZE ? BLOCK_SIZE : 2 * BLOCK_SIZE;
    memcpy(tail, hash->rest, left);
    tail[left] = 0x80;
    /* The length counts bits. Its high word takes the three bits that the low word cannot hold. */
    store_big_endian(tail + tail_size - 8, (uint32_t)(hash->length >> 29));
    store_big_endian(tail + tail_size - 4, (uint32_t)(hash->length << 3));
    for (size_t at = 0; at < tail_size; at += BLOCK_SIZE) {
        process_block(hash->state, tail + at);
    }
    for (size_t i = 0; i < 8; i++) {
        store_big_endian(digest + 4 * i, hash->state[i]);
    }
}

void rsc_sha256(const void *bytes, size_t length, unsigned char digest[RSC_SHA256_SIZE]) {
    struct rsc_sha256 hash;
    rsc_sha256_begin(&hash);
    rsc_sha256_add(&hash, bytes, length);
    rsc_sha256_end(&hash, digest);
}

static void begin_with_key(struct rsc_sha256 *hash, const unsigned char key[BLOCK_SIZE], unsigned char mask) {
    unsigned char block[BLOCK_SIZE];
    for (size_t i = 0; i < BLOCK_SIZE; i++) {
        block[i] = key[i] ^ mask;
    }
    rsc_sha256_begin(hash);
    rsc_sha256_add(hash, block, sizeof block);
}

void rsc_hmac_init(struct rsc_hmac *hmac, const void *key, size_t length) {
    unsigned char block[BLOCK_SIZE] = {0};
    if (length > BLOCK_SIZE) {
        rsc_sha256(key, length, block);
    } else if (length > 0) {
        memcpy(block, key, length);
    }
    begin_with_key(&hmac->inner, block, 0x36);
    begin_with_key(&hmac->outer, block, 0x5c);
}

void rsc_hmac_end(const struct rsc_hmac *hmac, struct rsc_sha256 *hash, unsigned char code[RSC_SHA256_SIZE]) {
    struct rsc_sha256 outer = hmac->outer;
    rsc_sha256_end(hash, code);
    rsc_sha256_add(&outer, code, RSC_SHA256_SIZE);
    rsc_sha256_end(&outer, code);
}
