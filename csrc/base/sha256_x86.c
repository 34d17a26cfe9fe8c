#include "base/sha256_x86.h"

#if defined(RSC_SHA256_X86)

#    include <cpuid.h>
#    include <immintrin.h>

#    define SSSE3_BIT  (1U << 9)  /* of ECX, leaf 1 */
#    define SSE4_1_BIT (1U << 19) /* of ECX, leaf 1 */
#    define SHA_BIT    (1U << 29) /* of EBX, leaf 7 */
#    define TARGET     __attribute__((target("sha,ssse3,sse4.1")))

static bool is_there;

/* Runs when the module is loaded, because a virtual machine takes long to answer. */
__attribute__((constructor)) static void look(void) {
    unsigned a, b, c, d;
    bool has_shuffles =
        __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & (SSSE3_BIT | SSE4_1_BIT)) == (SSSE3_BIT | SSE4_1_BIT);
    is_there = has_shuffles && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & SHA_BIT) != 0;
}

bool rsc_sha256_x86_is_there(void) {
    return is_there;
}

/* The next four words of the message from the sixteen before them, oldest first. */
TARGET static __m128i next_words(__m128i a, __m128i b, __m128i c, __m128i d) {
    __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(a, b), _mm_alignr_epi8(d, c, 4));
    return _mm_sha256msg2_epu32(sum, d);
}

TARGET void rsc_sha256_x86(uint32_t state[8], const unsigned char *block, const uint32_t constants[64]) {
    const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i *stored = (__m128i *)(void *)state;
    /* The instructions take the words as ABEF and CDGH, highest first. */
    __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(stored), 0xB1);
    __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(stored + 1), 0x1B);
    __m128i abef = _mm_alignr_epi8(badc, hgfe, 8);
    __m128i cdgh = _mm_blend_epi16(hgfe, badc, 0xF0);
    const __m128i abef_before = abef;
    const __m128i cdgh_before = cdgh;
    __m128i words[4];
    for (size_t i = 0; i < 4; i++) {
        words[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(block + 16 * i)), swap);
    }
    for (size_t i = 0; i < 16; i++) {
        __m128i sum = _mm_add_epi32(words[0], _mm_loadu_si128((const __m128i *)(const void *)(constants + 4 * i)));
        cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
        abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
        __m128i next = next_words(words[0], words[1], words[2], words[3]);
        words[0] = words[1];
        words[1] = words[2];
        words[2] = words[3];
        words[3] = next;
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
    __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
    __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128(stored, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128(stored + 1, _mm_alignr_epi8(dchg, feba, 8));
}

#endif
