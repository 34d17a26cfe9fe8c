/* What went wrong in a part that knows nothing of Lua.
 *
 * Such a part returns a status and fills the caller's struct; it never prints, aborts or raises. */
#ifndef RSC_ERROR_H
#define RSC_ERROR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

enum rsc_status {
    RSC_OK = 0,
    RSC_ERROR_SYNTAX, /* the input breaks its grammar */
    RSC_ERROR_RANGE,  /* well formed, but a value that cannot be represented */
    RSC_ERROR_LIMIT,  /* a configured maximum was passed */
    RSC_ERROR_MEMORY, /* an allocation failed */
};

#define RSC_ERROR_MESSAGE_MAX 256 /* bytes, with the final NUL */

struct rsc_error {
    int code;        /* an enum rsc_status, or a code of the module that set it */
    size_t position; /* 1-based byte in the input; 0 where there is none */
    char message[RSC_ERROR_MESSAGE_MAX];
};

#if defined(__GNUC__)
#    define RSC_PRINTF(format_index, first_index) __attribute__((format(printf, format_index, first_index)))
#else
#    define RSC_PRINTF(format_index, first_index)
#endif

/* Fills `error` (a longer message is cut) and returns `code`. */
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

#endif
