#include "base/buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define RSC_BUFFER_FIRST_CAPACITY 256 /* bytes */

void rsc_buffer_init(struct rsc_buffer *buffer, size_t limit) {
    *buffer = (struct rsc_buffer){.limit = limit};
}

int rsc_buffer_reserve(struct rsc_buffer *buffer, size_t more) {
    if (more <= buffer->capacity - buffer->length) {
        return RSC_OK;
    }
    if (buffer->length > buffer->limit || more > buffer->limit - buffer->length) {
        return RSC_ERROR_LIMIT;
    }
    size_t needed = buffer->length + more;
    size_t capacity = buffer->capacity < RSC_BUFFER_FIRST_CAPACITY ? RSC_BUFFER_FIRST_CAPACITY : buffer->capacity;
    while (capacity < needed) {
        capacity = capacity > buffer->limit / 2 ? buffer->limit : capacity * 2;
    }
    if (capacity > buffer->limit) {
        capacity = buffer->limit;
    }
    char *data = realloc(buffer->data, capacity + 1);
    if (data == NULL) {
        return RSC_ERROR_MEMORY;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return RSC_OK;
}

int rsc_buffer_append(struct rsc_buffer *buffer, const void *bytes, size_t size) {
    int status = rsc_buffer_reserve(buffer, size);
    if (status == RSC_OK && size > 0) {
        memcpy(buffer->data + buffer->length, bytes, size);
        buffer->length += size;
        buffer->data[buffer->length] = '\0';
    }
    return status;
}

void rsc_buffer_reset(struct rsc_buffer *buffer) {
    buffer->length = 0;
}

void rsc_buffer_free(struct rsc_buffer *buffer) {
    free(buffer->data);
    buffer->data = NULL;
    buffer->length = 0;
    buffer->capacity = 0;
}
