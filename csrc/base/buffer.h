/* A growable byte buffer with a maximum size.
 *
 * NUL follows the bytes that rsc_buffer_append has added. It counts neither as length nor as capacity.
 *
 * The caller owns the struct. The buffer owns its malloc'ed memory until rsc_buffer_free. A zeroed struct is an empty
 * buffer with a limit of 0 bytes. One thread at a time may use a buffer. */
#ifndef RSC_BUFFER_H
#define RSC_BUFFER_H

#include <stddef.h>

struct rsc_buffer {
    char *data;      /* NULL before the first reserve */
    size_t length;   /* bytes in use */
    size_t capacity; /* bytes allocated, without the one for NUL */
    size_t limit;    /* maximum bytes, below SIZE_MAX */
};

void rsc_buffer_init(struct rsc_buffer *buffer, size_t limit);

/* Reserves `more` bytes after the `length` in use. Returns RSC_OK, RSC_ERROR_LIMIT or RSC_ERROR_MEMORY. A failure
 * leaves the contents unchanged. */
int rsc_buffer_reserve(struct rsc_buffer *buffer, size_t more);

/* Appends a copy of `size` bytes, which must not lie in the buffer. Returns a status of rsc_buffer_reserve. */
int rsc_buffer_append(struct rsc_buffer *buffer, const void *bytes, size_t size);

/* Empties the buffer and keeps its memory. */
void rsc_buffer_reset(struct rsc_buffer *buffer);

/* Empties the buffer and frees its memory. The limit stays. Idempotent. */
void rsc_buffer_free(struct rsc_buffer *buffer);

#endif
