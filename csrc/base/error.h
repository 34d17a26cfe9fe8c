/* Errors of the parts without Lua. They return a status and fill the caller's error struct. They never print, abort or
 * raise. */
#ifndef RSC_ERROR_H
#define RSC_ERROR_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum rsc_status {
    RSC_OK = 0,
    RSC_ERROR_SYNTAX, /* the input violates its grammar */
    RSC_ERROR_RANGE,  /* a valid value that cannot be represented */
    RSC_ERROR_LIMIT,  /* over a configured maximum */
    RSC_ERROR_MEMORY, /* an allocation failed */
    RSC_ERROR_SYSTEM, /* a call of the system failed */
};

#define RSC_ERROR_MESSAGE_MAX 256 /* bytes, with the final NUL */

struct rsc_error {
    int code;        /* an enum rsc_status, or a code of the part that failed */
    size_t position; /* 1-based byte in the input; 0 without a position */
    char message[RSC_ERROR_MESSAGE_MAX];
};

#if defined(__GNUC__)
#    define RSC_PRINTF(format_index, first_index) __attribute__((format(printf, format_index, first_index)))
#else
#    define RSC_PRINTF(format_index, first_index)
#endif

/* Fills `error` and returns `code`. Truncates a long message. */
RSC_PRINTF(4, 5)
static inline int rsc_error_set(struct rsc_error *error, int code, size_t position, const char *format, ...) {
    va_list arguments;
    error->code = code;
    error->position = position;
    va_start(arguments, format);
    (void)vsnprintf(error->message, sizeof error->message, format, arguments);
    va_end(arguments);
    return code;
}

/* A thread-safe strerror. Returns a static string or `text`, a buffer of `size` bytes. */
static inline const char *rsc_strerror(int number, char *text, size_t size) {
#if defined(__GLIBC__)
    return strerror_r(number, text, size);
#else
    return strerror_r(number, text, size) == 0 ? text : "unknown error";
#endif
}

/* Sets RSC_ERROR_SYSTEM with a message from `problem` and errno. */
static inline int rsc_system_error(struct rsc_error *error, const char *problem) {
    char text[128];
    return rsc_error_set(error, RSC_ERROR_SYSTEM, 0, "%s: %s", problem, rsc_strerror(errno, text, sizeof text));
}

#endif
