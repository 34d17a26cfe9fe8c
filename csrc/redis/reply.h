/* Replies of Redis, by its protocol RESP2. A reply is outside input: it is refused as soon as it is above the limit. */
#ifndef RSC_REDIS_REPLY_H
#define RSC_REDIS_REPLY_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

#define RSC_REDIS_DEPTH_MAX 16    /* arrays within each other */
#define RSC_REDIS_LINE_MAX  65536 /* bytes of a line */
#define RSC_REDIS_VALUE     48    /* bytes that each value counts towards the limit, besides those of its text */

enum rsc_redis_type { RSC_REDIS_NIL, RSC_REDIS_INTEGER, RSC_REDIS_TEXT, RSC_REDIS_ERROR, RSC_REDIS_ARRAY };

/* One value. Those of an array follow it. */
struct rsc_redis_value {
    enum rsc_redis_type type;
    int64_t number;       /* an integer, or how many values an array has */
    struct rsc_text text; /* of a text or an error, within the bytes that were read */
};

/* The search for the end of a reply that comes in parts. A zeroed struct is its beginning. */
struct rsc_redis_scan {
    size_t start, at;                      /* of the reply, and of the next value */
    size_t size;                           /* what counts towards the limit so far */
    int depth;                             /* arrays around the next value */
    int64_t left[RSC_REDIS_DEPTH_MAX + 1]; /* values to come of each of them */
};

/* The result in place of a value or a reply. */
enum {
    RSC_REDIS_INCOMPLETE = 110, /* its end has not come */
    RSC_REDIS_MALFORMED,
};

/* Reads the value at *at, and moves *at behind it. Returns RSC_OK or one of the codes above. The size of a text is
 * known before its end has come. */
int rsc_redis_read(struct rsc_text bytes, size_t *at, struct rsc_redis_value *value);

/* Goes on to the end of the reply. Returns RSC_OK, with `start` and `at` at the next one, or one of the codes above, or
 * RSC_ERROR_LIMIT. */
int rsc_redis_find_end(struct rsc_redis_scan *scan, struct rsc_text bytes, size_t limit);

#endif
