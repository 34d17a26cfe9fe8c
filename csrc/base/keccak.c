#include "base/keccak.h"

#include <stdint.h>
#include <string.h>

#define LANES  25
#define RATE   136 /* bytes of input per permutation: 200 bytes of state less twice the digest */
#define ROUNDS 24

static const uint64_t round_constants[ROUNDS] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000, 0x000000000000808b,
    0x0000000080000001, 0x8000000080008081, 0x8000000000008009, 0x000000000000008a, 0x0000000000000088,
    0x0000000080008009, 0x000000008000000a, 0x000000008000808b, 0x800000000000008b, 0x8000000000008089,
    0x8000000000008003, 0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008};

/* The steps rho and pi move lane after lane: each to the next of these places, rotated by these bits. */
static const unsigned char places[LANES - 1] = {10, 7,  11, 17, 18, 3, 5,  16, 8,  21, 24, 4,
                                                15, 23, 19, 13, 12, 2, 20, 14, 22, 9,  6,  1};
static const unsigned char rotations[LANES - 1] = {1,  3,  6,  10, 15, 21, 28, 36, 45, 55, 2,  14,
                                                   27, 41, 56, 8,  25, 43, 62, 18, 39, 61, 20, 44};

static uint64_t rotate_left(uint64_t lane, unsigned bits) {
    return lane << bits | lane >> (64 - bits);
}

static uint64_t column_parity(const uint64_t *column) {
    return column[0] ^ column[5] ^ column[10] ^ column[15] ^ column[20];
}

static void mix_column(uint64_t *column, uint64_t left, uint64_t right) {
    uint64_t mix = left ^ rotate_left(right, 1);
    column[0] ^= mix;
    column[5] ^= mix;
    column[10] ^= mix;
    column[15] ^= mix;
    column[20] ^= mix;
}

/* FIPS 202, section 3.2.1: mixes each column with the parities of its neighbours. Columns and rows are written out,
 * because loops with an index modulo 5 take twice as long. */
static void theta(uint64_t state[LANES]) {
    const uint64_t parity[5] = {column_parity(state), column_parity(state + 1), column_parity(state + 2),
                                column_parity(state + 3), column_parity(state + 4)};
    mix_column(state, parity[4], parity[1]);
    mix_column(state + 1, parity[0], parity[2]);
    mix_column(state + 2, parity[1], parity[3]);
    mix_column(state + 3, parity[2], parity[4]);
    mix_column(state + 4, parity[3], parity[0]);
}

/* FIPS 202, sections 3.2.2 and 3.2.3: rotates the lanes and moves them. */
static void rho_and_pi(uint64_t state[LANES]) {
    uint64_t lane = state[1];
    for (size_t i = 0; i < LANES - 1; i++) {
        uint64_t next = state[places[i]];
        state[places[i]] = rotate_left(lane, rotations[i]);
        lane = next;
    }
}

/* FIPS 202, section 3.2.4: the non-linear step, on each row. */
static void chi(uint64_t state[LANES]) {
    for (uint64_t *row = state; row < state + LANES; row += 5) {
        uint64_t a = row[0], b = row[1], c = row[2], d = row[3], e = row[4];
        row[0] = a ^ (~b & c);
        row[1] = b ^ (~c & d);
        row[2] = c ^ (~d & e);
        row[3] = d ^ (~e & a);
        row[4] = e ^ (~a & b);
    }
}

static void permute(uint64_t state[LANES]) {
    for (size_t round = 0; round < ROUNDS; round++) {
        theta(state);
        rho_and_pi(state);
        chi(state);
        state[0] ^= round_constants[round];
    }
}

static uint64_t load_little_endian(const unsigned char *bytes) {
    uint64_t lane = 0;
    for (int i = 7; i >= 0; i--) {
        lane = lane << 8 | bytes[i];
    }
    return lane;
}

static void absorb_block(uint64_t state[LANES], const unsigned char *block) {
    for (size_t i = 0; i < RATE / 8; i++) {
        state[i] ^= load_little_endian(block + 8 * i);
    }
    permute(state);
}

void rsc_keccak256(const void *bytes, size_t length, unsigned char digest[RSC_KECCAK256_SIZE]) {
    uint64_t state[LANES] = {0};
    const unsigned char *p = bytes;
    for (; length >= RATE; length -= RATE, p += RATE) {
        absorb_block(state, p);
    }
    unsigned char tail[RATE] = {0};
    if (length > 0) {
        memcpy(tail, p, length);
    }
    /* The padding 10…01. SHA3-256 would begin it with 0x06. */
    tail[length] = 0x01;
    tail[RATE - 1] |= 0x80;
    absorb_block(state, tail);
    for (size_t i = 0; i < RSC_KECCAK256_SIZE; i++) {
        digest[i] = (unsigned char)(state[i / 8] >> (8 * (i % 8)));
    }
}
