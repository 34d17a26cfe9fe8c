/* Hints to the compiler. Each stands only where a benchmark shows that it pays. */
#ifndef RSC_COMPILER_H
#define RSC_COMPILER_H

#define RSC_ALWAYS_INLINE static inline __attribute__((always_inline))

#define RSC_LIKELY(condition) __builtin_expect(!!(condition), 1)

#endif
