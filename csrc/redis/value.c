#include "redis/value.h"

#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

/* The type of the number of elements differs between the versions of hiredis. */
#if HIREDIS_MAJOR >= 1
typedef size_t element_count;
#else
typedef int element_count;
#endif

/* Takes `size` and `extra` bytes from the budget of the reply. Returns zeroed memory of `size` bytes or more, or NULL,
 * after which the reader reports an error. */
static struct rsc_redis_value *new_value(const redisReadTask *task, enum rsc_redis_type type, size_t text,
                                         size_t extra) {
    struct rsc_redis_budget *budget = task->privdata;
    const size_t head = sizeof(struct rsc_redis_value);
    if (budget->left < head || text > budget->left - head || extra > budget->left - head - text) {
        budget->exceeded = true;
        return NULL;
    }
    struct rsc_redis_value *value = malloc(head + text);
    if (value == NULL) {
        return NULL;
    }
    budget->left -= head + text + extra;
    *value = (struct rsc_redis_value){.type = type};
    return value;
}

static void *add_to_parent(const redisReadTask *task, struct rsc_redis_value *value) {
    if (value != NULL && task->parent != NULL) {
        struct rsc_redis_value *parent = task->parent->obj;
        parent->elements[task->idx] = value;
    }
    return value;
}

static void *create_text(const redisReadTask *task, char *text, size_t length) {
    enum rsc_redis_type type = task->type == REDIS_REPLY_ERROR ? RSC_REDIS_ERROR : RSC_REDIS_TEXT;
    struct rsc_redis_value *value = new_value(task, type, length, 0);
    if (value != NULL) {
        value->length = length;
        memcpy(value->text, text, length);
    }
    return add_to_parent(task, value);
}

static void *create_array(const redisReadTask *task, element_count count) {
    size_t length = (size_t)count;
    if (length > SIZE_MAX / sizeof(void *)) {
        return NULL;
    }
    struct rsc_redis_value *value = new_value(task, RSC_REDIS_ARRAY, 0, length * sizeof(void *));
    if (value != NULL && length > 0) {
        value->elements = calloc(length, sizeof(void *));
        if (value->elements == NULL) {
            free(value);
            return NULL;
        }
        value->length = length;
    }
    return add_to_parent(task, value);
}

static void *create_integer(const redisReadTask *task, long long integer) {
    struct rsc_redis_value *value = new_value(task, RSC_REDIS_INTEGER, 0, 0);
    if (value != NULL) {
        value->integer = integer;
    }
    return add_to_parent(task, value);
}

static void *create_nil(const redisReadTask *task) {
    return add_to_parent(task, new_value(task, RSC_REDIS_NIL, 0, 0));
}

static void free_object(void *object) {
    rsc_redis_value_free(object);
}

void rsc_redis_value_free(struct rsc_redis_value *value) {
    if (value == NULL) {
        return;
    }
    /* hiredis bounds the depth of a reply: 7 levels before version 1, 9 in later ones. */
    for (size_t i = 0; value->elements != NULL && i < value->length; i++) {
        rsc_redis_value_free(value->elements[i]);
    }
    free(value->elements);
    free(value);
}

#if HIREDIS_MAJOR >= 1
/* The types of RESP3, which no connection asks for. Without these functions the reader would store no pointers. */
static void *refuse_double(const redisReadTask *task, double number, char *text, size_t length) {
    (void)task, (void)number, (void)text, (void)length;
    return NULL;
}

static void *refuse_bool(const redisReadTask *task, int boolean) {
    (void)task, (void)boolean;
    return NULL;
}
#endif

static redisReplyObjectFunctions functions = {
    .createString = create_text,
    .createArray = create_array,
    .createInteger = create_integer,
    .createNil = create_nil,
#if HIREDIS_MAJOR >= 1
    .createDouble = refuse_double,
    .createBool = refuse_bool,
#endif
    .freeObject = free_object,
};

struct redisReader *rsc_redis_reader_new(struct rsc_redis_budget *budget) {
    redisReader *reader = redisReaderCreateWithFunctions(&functions);
    if (reader != NULL) {
        reader->privdata = budget;
    }
    return reader;
}
