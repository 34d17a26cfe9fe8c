/* A block of SHA-256 by the instructions that most x86-64 processors have for it. RSC_SHA256_X86 is not defined
 * elsewhere, or if RSC_PORTABLE is. */
#ifndef RSC_SHA256_X86_H
#define RSC_SHA256_X86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(RSC_PORTABLE)
#    define RSC_SHA256_X86 1

/* Whether this processor has the instructions. */
bool rsc_sha256_x86_is_there(void);

/* Adds 64 bytes to the state. */
void rsc_sha256_x86(uint32_t state[8], const unsigned char *block, const uint32_t constants[64]);
#endif

#endif
