/* A reply of Redis as a tree. hiredis' reader parses the protocol; the functions here build the tree within a limit.
 *
 * A reply is outside input. One that is larger than the limit is refused before its memory is allocated. */
#ifndef RSC_REDIS_VALUE_H
#define RSC_REDIS_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rsc_redis_type { RSC_REDIS_NIL, RSC_REDIS_INTEGER, RSC_REDIS_TEXT, RSC_REDIS_ERROR, RSC_REDIS_ARRAY };

struct rsc_redis_value {
    struct rsc_redis_value *next; /* the next complete reply of a connection */
    enum rsc_redis_type type;
    int64_t integer;
    size_t length;                     /* bytes of a text or an error, elements of an array */
    struct rsc_redis_value **elements; /* of an array; an element is NULL while the reply is incomplete */
    char text[];                       /* of a text or an error, without a final NUL */
};

/* How much memory one reply may take. */
struct rsc_redis_budget {
    size_t limit, left; /* bytes */
    bool exceeded;
};

struct redisReader;

/* Returns a reader that takes memory from the budget, or NULL. The budget must outlive the reader. Set `left` to
 * `limit` before each reply. */
struct redisReader *rsc_redis_reader_new(struct rsc_redis_budget *budget);

/* Frees a tree. NULL is allowed. */
void rsc_redis_value_free(struct rsc_redis_value *value);

#endif
