#include "lists/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lists/format.h"

#define BUCKET_ENTRIES  64 /* entries of the index for each bucket, on average */
#define BUCKET_BITS_MAX 24

#if defined(__GNUC__)
#    define PREFETCH(pointer) __builtin_prefetch(pointer)
#else
#    define PREFETCH(pointer) (void)(pointer)
#endif

static int damaged(struct rsc_error *error, uint64_t position, const char *what) {
    return rsc_error_set(error, RSC_ERROR_SYNTAX, (size_t)position, "the list is damaged: %s", what);
}

static void identity_of(const struct stat *status, struct rsc_list_identity *identity) {
    *identity = (struct rsc_list_identity){
        .device = (uint64_t)status->st_dev,
        .inode = (uint64_t)status->st_ino,
        .size = (uint64_t)status->st_size,
        .changed_s = (int64_t)status->st_mtim.tv_sec,
        .changed_ns = (int64_t)status->st_mtim.tv_nsec,
        .status_s = (int64_t)status->st_ctim.tv_sec,
        .status_ns = (int64_t)status->st_ctim.tv_nsec,
    };
}

/* Refuses a file that any user of the machine may write: that is no list of the operator's. */
static int check_permissions(const struct stat *status, struct rsc_error *error) {
    if (!S_ISREG(status->st_mode)) {
        return rsc_error_set(error, RSC_ERROR_SYSTEM, 0, "it is not a regular file");
    }
    if ((status->st_mode & S_IWOTH) != 0) {
        return rsc_error_set(error, RSC_ERROR_SYSTEM, 0, "any user may write it; take the permission away (chmod o-w)");
    }
    return RSC_OK;
}

int rsc_list_identify(const char *path, struct rsc_list_identity *identity, struct rsc_error *error) {
    struct stat status;
    if (stat(path, &status) != 0) {
        return rsc_system_error(error, "cannot read it");
    }
    int result = check_permissions(&status, error);
    if (result == RSC_OK) {
        identity_of(&status, identity);
    }
    return result;
}

/* Reads `size` bytes at an offset. A file that has become shorter is an error. */
static int read_at(int file, unsigned char *bytes, uint64_t size, uint64_t offset, struct rsc_error *error) {
    while (size > 0) {
        ssize_t got = pread(file, bytes, (size_t)size, (off_t)offset);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return rsc_system_error(error, "cannot read it");
        }
        if (got == 0) {
            return damaged(error, offset, "it ends too early");
        }
        bytes += got;
        offset += (uint64_t)got;
        size -= (uint64_t)got;
    }
    return RSC_OK;
}

static int read_header(struct rsc_list *list, const unsigned char *header, struct rsc_error *error) {
    struct rsc_crc32c *crc = &list->check->crc;
    if (memcmp(header, RSC_LIST_MAGIC, RSC_LIST_MAGIC_SIZE) != 0) {
        return rsc_error_set(error, RSC_ERROR_SYNTAX, 1, "it is not a compiled list");
    }
    uint64_t version = rsc_list_load(header + RSC_LIST_AT_VERSION, 4);
    if (version != RSC_LIST_VERSION) {
        return rsc_error_set(error, RSC_ERROR_SYNTAX, RSC_LIST_AT_VERSION + 1,
                             "its format has version %llu, and this library reads version %d",
                             (unsigned long long)version, RSC_LIST_VERSION);
    }
    rsc_crc32c_add(crc, header + RSC_LIST_AT_FILE_SIZE, RSC_LIST_HEADER_SIZE - RSC_LIST_AT_FILE_SIZE);
    if (crc->value != rsc_list_load(header + RSC_LIST_AT_HEADER_CRC, 4)) {
        return damaged(error, 1, "the checksum of its header is wrong");
    }
    crc->value = 0;
    list->count = rsc_list_load(header + RSC_LIST_AT_COUNT, 8);
    list->records_size = rsc_list_load(header + RSC_LIST_AT_RECORDS_SIZE, 8);
    list->built_at = rsc_list_load(header + RSC_LIST_AT_BUILT_AT, 8);
    list->body_crc = (uint32_t)rsc_list_load(header + RSC_LIST_AT_BODY_CRC, 4);
    uint64_t file_size = rsc_list_load(header + RSC_LIST_AT_FILE_SIZE, 8);
    if (file_size != list->identity.size) {
        return rsc_error_set(error, RSC_ERROR_SYNTAX, 0, "the list is damaged: it has %llu bytes instead of %llu",
                             (unsigned long long)list->identity.size, (unsigned long long)file_size);
    }
    uint64_t body = file_size - RSC_LIST_HEADER_SIZE;
    if (list->count > RSC_LIST_COUNT_MAX || list->records_size > body ||
        rsc_list_padded(list->records_size) + list->count * RSC_LIST_INDEX_ENTRY != body ||
        rsc_list_load(header + RSC_LIST_AT_TITLE_LENGTH, 2) > RSC_LIST_TITLE_MAX) {
        return damaged(error, 1, "the sizes in its header contradict each other");
    }
    return RSC_OK;
}

/* Copies or maps the file. */
static int get_bytes(struct rsc_list *list, struct rsc_error *error) {
    uint64_t size = list->identity.size;
    if (size > SIZE_MAX) {
        return rsc_error_set(error, RSC_ERROR_LIMIT, 0, "it is too long for this machine");
    }
    if (size > RSC_LIST_COPIED_MAX) {
        void *mapping = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, list->file, 0);
        if (mapping == MAP_FAILED) {
            return rsc_system_error(error, "cannot map it");
        }
        list->bytes = mapping;
        list->is_mapped = true;
        return RSC_OK;
    }
    unsigned char *copy = malloc((size_t)size);
    if (copy == NULL) {
        return rsc_error_set(error, RSC_ERROR_MEMORY, 0, "not enough memory");
    }
    list->bytes = copy;
    return read_at(list->file, copy, size, 0, error);
}

static int new_buckets(struct rsc_list *list, struct rsc_error *error) {
    unsigned bits = 0;
    while (bits < BUCKET_BITS_MAX && list->count >> bits > BUCKET_ENTRIES) {
        bits++;
    }
    list->bucket_shift = 64 - bits;
    list->buckets = calloc(((size_t)1 << bits) + 1, sizeof *list->buckets);
    list->check->slice = malloc(RSC_LIST_SLICE);
    if (list->buckets == NULL || list->check->slice == NULL) {
        return rsc_error_set(error, RSC_ERROR_MEMORY, 0, "not enough memory");
    }
    return RSC_OK;
}

static uint64_t bucket_of(const struct rsc_list *list, uint64_t hash) {
    return list->bucket_shift == 64 ? 0 : hash >> list->bucket_shift;
}

static int open_file(struct rsc_list *list, const char *path, struct rsc_error *error) {
    struct stat status;
    list->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (list->file < 0) {
        return rsc_system_error(error, "cannot open it");
    }
    if (fstat(list->file, &status) != 0) {
        return rsc_system_error(error, "cannot read it");
    }
    identity_of(&status, &list->identity);
    return check_permissions(&status, error);
}

int rsc_list_open(struct rsc_list *list, const char *path, struct rsc_error *error) {
    unsigned char header[RSC_LIST_HEADER_SIZE];
    *list = (struct rsc_list){.file = -1};
    int result = open_file(list, path, error);
    if (result != RSC_OK) {
        return result;
    }
    list->check = calloc(1, sizeof *list->check);
    if (list->check == NULL) {
        return rsc_error_set(error, RSC_ERROR_MEMORY, 0, "not enough memory");
    }
    rsc_crc32c_init(&list->check->crc);
    if (list->identity.size < RSC_LIST_HEADER_SIZE) {
        return damaged(error, 1, "it is shorter than a header");
    }
    if ((result = read_at(list->file, header, sizeof header, 0, error)) != RSC_OK ||
        (result = read_header(list, header, error)) != RSC_OK || (result = get_bytes(list, error)) != RSC_OK ||
        (result = new_buckets(list, error)) != RSC_OK) {
        return result;
    }
    list->title.bytes = (const char *)list->bytes + RSC_LIST_AT_TITLE;
    list->title.length = (size_t)rsc_list_load(header + RSC_LIST_AT_TITLE_LENGTH, 2);
    list->records = list->bytes + RSC_LIST_HEADER_SIZE;
    list->index = list->records + rsc_list_padded(list->records_size);
    list->check->position = RSC_LIST_HEADER_SIZE;
    return RSC_OK;
}

/* Notes where the buckets begin, up to the bucket of a hash. */
static void fill_buckets(struct rsc_list *list, uint64_t bucket) {
    struct rsc_list_check *check = list->check;
    while (check->bucket <= bucket) {
        list->buckets[check->bucket++] = (uint32_t)check->entry;
    }
}

/* Checks the order of the index entries in a slice. */
static int check_index(struct rsc_list *list, const unsigned char *bytes, const unsigned char *end,
                       struct rsc_error *error) {
    struct rsc_list_check *check = list->check;
    for (; bytes < end; bytes += RSC_LIST_INDEX_ENTRY) {
        uint64_t hash = rsc_list_load(bytes, 8);
        if (hash < check->last_hash || rsc_list_load(bytes + 8, 8) >= list->records_size) {
            return damaged(error, check->position, "its index is out of order");
        }
        check->last_hash = hash;
        fill_buckets(list, bucket_of(list, hash));
        check->entry++;
    }
    return RSC_OK;
}

/* Reads the next slice. A slice begins and ends at a multiple of 16 bytes, and so does every entry of the index. */
static int verify_slice(struct rsc_list *list, struct rsc_error *error) {
    struct rsc_list_check *check = list->check;
    uint64_t left = list->identity.size - check->position;
    uint64_t size = left < RSC_LIST_SLICE ? left : RSC_LIST_SLICE;
    uint64_t index_at = RSC_LIST_HEADER_SIZE + rsc_list_padded(list->records_size);
    const unsigned char *slice = check->slice;
    if (list->is_mapped) {
        int result = read_at(list->file, check->slice, size, check->position, error);
        if (result != RSC_OK) {
            return result;
        }
    } else {
        slice = list->bytes + check->position;
    }
    rsc_crc32c_add(&check->crc, slice, (size_t)size);
    uint64_t skipped = index_at > check->position ? index_at - check->position : 0;
    check->position += size;
    return skipped < size ? check_index(list, slice + skipped, slice + size, error) : RSC_OK;
}

static void free_check(struct rsc_list *list) {
    if (list->check != NULL) {
        free(list->check->slice);
        free(list->check);
        list->check = NULL;
    }
}

int rsc_list_verify(struct rsc_list *list, uint64_t bytes, bool *done, struct rsc_error *error) {
    struct rsc_list_check *check = list->check;
    uint64_t start = check == NULL ? 0 : check->position;
    while (check != NULL && check->position < list->identity.size && check->position - start < bytes) {
        int result = verify_slice(list, error);
        if (result != RSC_OK) {
            return result;
        }
    }
    if (check != NULL && check->position == list->identity.size) {
        if (check->crc.value != list->body_crc) {
            return damaged(error, 0, "its checksum is wrong");
        }
        fill_buckets(list, bucket_of(list, UINT64_MAX) + 1);
        free_check(list);
        list->is_verified = true;
    }
    *done = list->is_verified;
    return RSC_OK;
}

/* A mapped file must be the same as when it was verified: a page that is cut off would raise SIGBUS. */
static int check_unchanged(const struct rsc_list *list, struct rsc_error *error) {
    struct stat status;
    struct rsc_list_identity identity;
    if (!list->is_mapped) {
        return RSC_OK;
    }
    if (fstat(list->file, &status) != 0) {
        return rsc_system_error(error, "cannot read it");
    }
    identity_of(&status, &identity);
    if (identity.size != list->identity.size || identity.changed_s != list->identity.changed_s ||
        identity.changed_ns != list->identity.changed_ns) {
        return rsc_error_set(error, RSC_ERROR_SYSTEM, 0, "it was changed in place; replace it by renaming a new file");
    }
    return RSC_OK;
}

static uint64_t hash_at(const struct rsc_list *list, uint64_t entry) {
    return rsc_list_load(list->index + entry * RSC_LIST_INDEX_ENTRY, 8);
}

/* Returns where the hash would stand if the hashes of its bucket were evenly spread, as they nearly are. */
static uint64_t guess(const struct rsc_list *list, uint64_t hash, uint64_t start, uint64_t end) {
    uint64_t within = list->bucket_shift == 64 ? hash : hash & ((UINT64_C(1) << list->bucket_shift) - 1);
    uint64_t share = list->bucket_shift > 32 ? within >> (list->bucket_shift - 32) : within; /* of 2^32 */
    return start + ((end - start) * share >> 32);
}

/* Returns the first entry whose hash is not below `hash`, from `start` up to `end`. It searches in growing steps away
 * from the guess `at`, then by halves. The steps stay within a cache line or two (`./dev bench lists`). */
static uint64_t lower_bound(const struct rsc_list *list, uint64_t hash, uint64_t start, uint64_t at, uint64_t end) {
    uint64_t step = 1;
    if (at < end && hash_at(list, at) < hash) {
        for (start = at + 1; at + step < end && hash_at(list, at + step) < hash; step *= 2) {
            start = at + step + 1;
        }
        end = at + step < end ? at + step : end;
    } else {
        for (end = at; at >= start + step && hash_at(list, at - step) >= hash; step *= 2) {
            end = at - step;
        }
        start = at >= start + step ? at - step + 1 : start;
    }
    while (start < end) {
        uint64_t middle = start + (end - start) / 2;
        if (hash_at(list, middle) < hash) {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    return start;
}

/* Fills the hit if the record at an offset is about the address on the network. */
static int read_record(const struct rsc_list *list, uint64_t offset, struct rsc_text address, struct rsc_text network,
                       uint64_t now, struct rsc_list_hit *hit, struct rsc_error *error) {
    const unsigned char *record = list->records + offset;
    if (offset >= list->records_size || list->records_size - offset < RSC_LIST_RECORD_HEAD) {
        return damaged(error, offset, "a record lies outside");
    }
    uint64_t scope_length = record[0], address_length = record[1], note_length = rsc_list_load(record + 2, 2);
    if (list->records_size - offset - RSC_LIST_RECORD_HEAD < scope_length + address_length + note_length) {
        return damaged(error, offset, "a record ends outside");
    }
    const unsigned char *scope = record + RSC_LIST_RECORD_HEAD;
    bool any_network = scope_length == 1 && *scope == RSC_LIST_ANY_NETWORK;
    if (address_length != address.length || memcmp(scope + scope_length, address.bytes, address.length) != 0 ||
        (!any_network && (scope_length != network.length || memcmp(scope, network.bytes, network.length) != 0))) {
        return RSC_OK;
    }
    uint64_t expires = rsc_list_load(record + 4, 8);
    if (expires == 0 || expires > now) {
        *hit = (struct rsc_list_hit){
            .found = true,
            .any_network = any_network,
            .expires = expires,
            .note = {(const char *)scope + scope_length + address_length, (size_t)note_length},
        };
    }
    return RSC_OK;
}

int rsc_list_find(const struct rsc_list *list, struct rsc_text address, struct rsc_text network, uint64_t now,
                  struct rsc_list_hit *hit, struct rsc_error *error) {
    uint64_t hash = rsc_list_hash(address.bytes, address.length);
    uint64_t bucket = bucket_of(list, hash), start = list->buckets[bucket], end = list->buckets[bucket + 1];
    uint64_t at = start < end ? guess(list, hash, start, end) : end;
    *hit = (struct rsc_list_hit){.found = false};
    /* The memory is fetched while the system looks at the file. A prefetch never faults. */
    PREFETCH(list->index + at * RSC_LIST_INDEX_ENTRY);
    int result = check_unchanged(list, error);
    if (result != RSC_OK) {
        return result;
    }
    uint64_t entry = lower_bound(list, hash, start, at, end);
    for (; entry < end && !hit->found && hash_at(list, entry) == hash; entry++) {
        uint64_t offset = rsc_list_load(list->index + entry * RSC_LIST_INDEX_ENTRY + 8, 8);
        result = read_record(list, offset, address, network, now, hit, error);
        if (result != RSC_OK) {
            return result;
        }
    }
    return RSC_OK;
}

void rsc_list_close(struct rsc_list *list) {
    free_check(list);
    if (list->is_mapped) {
        (void)munmap((void *)list->bytes, (size_t)list->identity.size);
    } else {
        free((void *)list->bytes);
    }
    free(list->buckets);
    if (list->file >= 0) {
        (void)close(list->file);
    }
    *list = (struct rsc_list){.file = -1};
}
