/* A growable byte buffer with a maximum.
 *
 * The struct is the caller's; its memory is malloc's and belongs to the buffer until rsc_buffer_free. A zeroed struct
 * is an empty buffer with a limit of 0 bytes. Nothing here is shared: one buffer, one thread at a time. */
#ifndef RSC_BUFFER_H
#define RSC_BUFFER_H

#include <stddef.h>

struct rsc_buffer {
    char *data;      /* not NUL-terminated; NULL while nothing was reserved */
    size_t length;   /* bytes in use */
    size_t capacity; /* bytes allocated */
    size_t limit;    /* most bytes it may ever hold */
};

void rsc_buffer_init(struct rsc_buffer *buffer, size_t limit);

/* Makes room for `more` bytes after the `length` in use. RSC_OK, RSC_ERROR_LIMIT or RSC_ERROR_MEMORY; on a failure the
 * contents are as they were. */
int rsc_buffer_reserve(struct rsc_buffer *buffer, size_t more);

/* Adds a copy of `size` bytes; the statuses of rsc_buffer_reserve. `bytes` must not lie in the buffer. */
int rsc_buffer_append(struct rsc_buffer *buffer, const void *bytes, size_t size);

/* Empties it and keeps the memory. */
void rsc_buffer_reset(struct rsc_buffer *buffer);

/* Empties it and gives the memory back; idempotent. The limit stays. */
void rsc_buffer_free(struct rsc_buffer *buffer);

#endif
