/* Writes compiled lists (format.h). Entries are collected in a buffer. A full buffer is sorted and written to a
 * temporary file. The files are merged at the end. The memory does not grow with the list, but for 64 KiB for each
 * such file.
 *
 * The new file appears under its name at once, by renaming. One struct belongs to one thread at a time. */
#ifndef RSC_LIST_WRITER_H
#define RSC_LIST_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"

#define RSC_LIST_BUFFER_MIN 4096u /* bytes of what is sorted at a time */
#define RSC_LIST_BUFFER_MAX (1u << 30)
#define RSC_LIST_RUNS_MAX   512 /* temporary files; each is open until the end */

struct rsc_list_run;
struct rsc_list_sorted;

struct rsc_list_entry {
    struct rsc_text scope, address, note;
    uint64_t expires; /* Unix seconds, or 0 for never */
};

struct rsc_list_writer {
    char *path;
    unsigned char *buffer;          /* records, as they came; behind them, from its end down: */
    struct rsc_list_sorted *sorted; /* where the records begin, with their hashes; the last one first */
    size_t length, sorted_count, capacity;
    struct rsc_list_run *runs;
    size_t run_count;
};

struct rsc_list_summary {
    uint64_t count;    /* entries written */
    uint64_t repeated; /* entries left out, because another one is about the same address and network */
    uint64_t size;     /* bytes of the file */
};

/* Starts a list. `capacity` is the size of the buffer in bytes. The caller owns the struct and closes it, also after a
 * failure. */
int rsc_list_writer_open(struct rsc_list_writer *writer, const char *path, size_t capacity, struct rsc_error *error);

/* Adds an entry. Of two entries about one address and scope, the one that holds longer is kept, or else the first. */
int rsc_list_writer_add(struct rsc_list_writer *writer, const struct rsc_list_entry *entry, struct rsc_error *error);

/* Writes the list and gives it its name. The writer can only be closed then. */
int rsc_list_writer_finish(struct rsc_list_writer *writer, uint64_t built_at, struct rsc_text title,
                           struct rsc_list_summary *summary, struct rsc_error *error);

/* Frees everything and removes an unfinished file. Idempotent. */
void rsc_list_writer_close(struct rsc_list_writer *writer);

#endif
