/* Reads compiled lists (format.h). A short list is copied into memory. A long one is mapped, so that all processes
 * share one copy in the page cache.
 *
 * A mapped file that is cut in place would kill the process at the next access. Programs replace lists by renaming, and
 * every search first compares the file's size and time of change with those at the start. One struct belongs to one
 * thread at a time. */
#ifndef RSC_LIST_READER_H
#define RSC_LIST_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/text.h"

#define RSC_LIST_COPIED_MAX (1u << 20)   /* bytes of a list that is copied */
#define RSC_LIST_SLICE      (256u << 10) /* bytes that are verified at a time */

/* The identity of a file, which changes with its content. */
struct rsc_list_identity {
    uint64_t device, inode, size;
    int64_t changed_s, changed_ns; /* of the content; a program can set it */
    int64_t status_s, status_ns;   /* of the content or the status, such as the links */
};

/* The progress of the verification. */
struct rsc_list_check {
    struct rsc_crc32c crc;
    unsigned char *slice;
    uint64_t position;  /* bytes of the file */
    uint64_t last_hash; /* of the index */
    uint64_t entry;     /* entries of the index seen */
    uint64_t bucket;    /* buckets whose start is known */
};

struct rsc_list {
    int file;         /* -1 when closed */
    bool is_mapped;   /* else `bytes` is allocated */
    bool is_verified; /* searches need it */
    const unsigned char *bytes;
    struct rsc_list_identity identity;
    uint64_t count;
    uint64_t records_size;
    uint64_t built_at; /* Unix seconds */
    struct rsc_text title;
    uint32_t body_crc;
    const unsigned char *records, *index;
    unsigned bucket_shift;
    uint32_t *buckets; /* the first entry of the index for each value of a hash's first bits, and the end */
    struct rsc_list_check *check;
};

struct rsc_list_hit {
    bool found;
    bool any_network;
    uint64_t expires; /* Unix seconds, or 0 */
    struct rsc_text note;
};

/* Opens a file and reads its header. The caller owns the struct and closes it, also after a failure. */
int rsc_list_open(struct rsc_list *list, const char *path, struct rsc_error *error);

/* Verifies the next `bytes` bytes at least. *done says whether the list is complete and may be searched. */
int rsc_list_verify(struct rsc_list *list, uint64_t bytes, bool *done, struct rsc_error *error);

/* Finds the entry of an address on a network or on every network that has not expired. The hit's note is valid until
 * the list is closed. Fails if the file was changed in place or its content is malformed. */
int rsc_list_find(const struct rsc_list *list, struct rsc_text address, struct rsc_text network, uint64_t now,
                  struct rsc_list_hit *hit, struct rsc_error *error);

/* Closes the file and frees everything. Idempotent. */
void rsc_list_close(struct rsc_list *list);

/* The identity of a file that must not be opened for this. Also refuses a file that anybody may write. */
int rsc_list_identify(const char *path, struct rsc_list_identity *identity, struct rsc_error *error);

#endif
