#include "lists/writer.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crc32c.h"
#include "lists/format.h"

#define STREAM_BUFFER (64u << 10) /* bytes */
#define RECORD_MAX    (RSC_LIST_RECORD_HEAD + RSC_LIST_SCOPE_MAX + RSC_LIST_ADDRESS_MAX + RSC_LIST_NOTE_MAX)
#define SUFFIX        ".XXXXXX" /* of a temporary file */

struct rsc_list_sorted {
    uint64_t hash;
    const unsigned char *record;
};

/* A sorted temporary file and its current record. */
struct rsc_list_run {
    FILE *file;
    bool has_record;
    uint64_t hash;
    unsigned char record[RECORD_MAX];
};

/* The file that is written, and what is known of it so far. */
struct output {
    FILE *file, *index; /* the index is copied behind the records */
    char *path;         /* its temporary name */
    struct rsc_crc32c crc;
    uint64_t records_size;
    struct rsc_list_summary summary;
};

static size_t record_size(const unsigned char *record) {
    return RSC_LIST_RECORD_HEAD + (size_t)record[0] + record[1] + (size_t)rsc_list_load(record + 2, 2);
}

static const unsigned char *address_of(const unsigned char *record) {
    return record + RSC_LIST_RECORD_HEAD + record[0];
}

static int compare_bytes(const unsigned char *a, size_t a_length, const unsigned char *b, size_t b_length) {
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order != 0 ? order : (a_length > b_length) - (a_length < b_length);
}

/* The order of the index: hash, address, scope. */
static int compare(uint64_t a_hash, const unsigned char *a, uint64_t b_hash, const unsigned char *b) {
    if (a_hash != b_hash) {
        return a_hash < b_hash ? -1 : 1;
    }
    int order = compare_bytes(address_of(a), a[1], address_of(b), b[1]);
    return order != 0 ? order : compare_bytes(a + RSC_LIST_RECORD_HEAD, a[0], b + RSC_LIST_RECORD_HEAD, b[0]);
}

static int compare_sorted(const void *a, const void *b) {
    const struct rsc_list_sorted *one = a, *other = b;
    int order = compare(one->hash, one->record, other->hash, other->record);
    return order != 0 ? order : (one->record > other->record) - (one->record < other->record);
}

/* Returns the name of a temporary file beside the list, for mkstemp, or NULL. */
static char *new_template(const char *path) {
    size_t size = strlen(path) + sizeof SUFFIX;
    char *template = malloc(size);
    if (template != NULL) {
        (void)snprintf(template, size, "%s%s", path, SUFFIX);
    }
    return template;
}

/* Creates the file of a template, which gets its name. Nobody may write it: a list is replaced, not changed. mkstemp
 * finds a free name; its mode would be no one's but the owner's, whatever the umask says. */
static FILE *create_file(char *template) {
    int descriptor = mkstemp(template);
    if (descriptor >= 0) {
        (void)close(descriptor);
        (void)unlink(template);
        descriptor = open(template, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IRGRP | S_IROTH);
    }
    if (descriptor < 0) {
        return NULL;
    }
    FILE *file = fdopen(descriptor, "w+b");
    if (file == NULL) {
        (void)close(descriptor);
        (void)unlink(template);
        return NULL;
    }
    (void)setvbuf(file, NULL, _IOFBF, STREAM_BUFFER);
    return file;
}

/* Creates a file beside the list that has no name. */
static FILE *create_temporary(const char *path) {
    char *template = new_template(path);
    FILE *file = template == NULL ? NULL : create_file(template);
    if (file != NULL) {
        (void)unlink(template);
    }
    free(template);
    return file;
}

int rsc_list_writer_open(struct rsc_list_writer *writer, const char *path, size_t capacity, struct rsc_error *error) {
    capacity -= capacity % sizeof *writer->sorted; /* of the last one, too, the address is aligned */
    *writer = (struct rsc_list_writer){.capacity = capacity};
    writer->path = strdup(path);
    writer->buffer = malloc(capacity);
    writer->runs = calloc(RSC_LIST_RUNS_MAX, sizeof *writer->runs);
    if (writer->path == NULL || writer->buffer == NULL || writer->runs == NULL) {
        return rsc_error_set(error, RSC_ERROR_MEMORY, 0, "not enough memory");
    }
    writer->sorted = (struct rsc_list_sorted *)(void *)(writer->buffer + capacity);
    return RSC_OK;
}

/* Sorts the buffer into a new run. */
static int spill(struct rsc_list_writer *writer, struct rsc_error *error) {
    if (writer->sorted_count == 0) {
        return RSC_OK;
    }
    if (writer->run_count == RSC_LIST_RUNS_MAX) {
        return rsc_error_set(error, RSC_ERROR_LIMIT, 0, "the list is too long for its buffer of %zu bytes",
                             writer->capacity);
    }
    FILE *file = create_temporary(writer->path);
    if (file == NULL) {
        return rsc_system_error(error, "cannot create a temporary file beside it");
    }
    writer->runs[writer->run_count++].file = file;
    qsort(writer->sorted, writer->sorted_count, sizeof *writer->sorted, compare_sorted);
    for (size_t i = 0; i < writer->sorted_count; i++) {
        const unsigned char *record = writer->sorted[i].record;
        (void)fwrite(record, 1, record_size(record), file);
    }
    if (fflush(file) != 0 || ferror(file)) {
        return rsc_system_error(error, "cannot write a temporary file beside it");
    }
    writer->sorted += writer->sorted_count;
    writer->length = writer->sorted_count = 0;
    return RSC_OK;
}

int rsc_list_writer_add(struct rsc_list_writer *writer, const struct rsc_list_entry *entry, struct rsc_error *error) {
    struct rsc_text scope = entry->scope, address = entry->address, note = entry->note;
    if (scope.length == 0 || scope.length > RSC_LIST_SCOPE_MAX || address.length == 0 ||
        address.length > RSC_LIST_ADDRESS_MAX || note.length > RSC_LIST_NOTE_MAX) {
        return rsc_error_set(error, RSC_ERROR_LIMIT, 0, "a scope, an address or a note is empty or too long");
    }
    size_t size = RSC_LIST_RECORD_HEAD + scope.length + address.length + note.length;
    size_t left = (size_t)((unsigned char *)writer->sorted - writer->buffer) - writer->length;
    int result = left < size + sizeof *writer->sorted ? spill(writer, error) : RSC_OK;
    if (result != RSC_OK) {
        return result;
    }
    unsigned char *record = writer->buffer + writer->length;
    rsc_list_store(record, 1, scope.length);
    rsc_list_store(record + 1, 1, address.length);
    rsc_list_store(record + 2, 2, note.length);
    rsc_list_store(record + 4, 8, entry->expires);
    memcpy(record + RSC_LIST_RECORD_HEAD, scope.bytes, scope.length);
    memcpy(record + RSC_LIST_RECORD_HEAD + scope.length, address.bytes, address.length);
    if (note.length > 0) {
        memcpy(record + RSC_LIST_RECORD_HEAD + scope.length + address.length, note.bytes, note.length);
    }
    *--writer->sorted = (struct rsc_list_sorted){rsc_list_hash(address.bytes, address.length), record};
    writer->sorted_count++;
    writer->length += size;
    return RSC_OK;
}

/* Reads the next record of a run; at the end `has_record` becomes false. */
static int advance(struct rsc_list_run *run, struct rsc_error *error) {
    size_t got = fread(run->record, 1, RSC_LIST_RECORD_HEAD, run->file);
    run->has_record = got == RSC_LIST_RECORD_HEAD;
    size_t rest = run->has_record ? record_size(run->record) - RSC_LIST_RECORD_HEAD : 0;
    if (ferror(run->file) || rest > sizeof run->record - RSC_LIST_RECORD_HEAD ||
        fread(run->record + RSC_LIST_RECORD_HEAD, 1, rest, run->file) != rest) {
        return rsc_system_error(error, "cannot read a temporary file");
    }
    run->hash = rest > 0 ? rsc_list_hash((const char *)address_of(run->record), run->record[1]) : 0;
    return RSC_OK;
}

/* Returns the run with the lowest record, the first of several, or NULL at the end of all. There are few runs. */
static struct rsc_list_run *lowest(const struct rsc_list_writer *writer) {
    struct rsc_list_run *found = NULL;
    for (struct rsc_list_run *run = writer->runs; run < writer->runs + writer->run_count; run++) {
        if (run->has_record && (found == NULL || compare(run->hash, run->record, found->hash, found->record) < 0)) {
            found = run;
        }
    }
    return found;
}

static int rewind_all(struct rsc_list_writer *writer, struct rsc_error *error) {
    int result = RSC_OK;
    for (size_t i = 0; result == RSC_OK && i < writer->run_count; i++) {
        rewind(writer->runs[i].file);
        result = advance(&writer->runs[i], error);
    }
    return result;
}

static void put(struct output *output, const void *bytes, size_t size) {
    rsc_crc32c_add(&output->crc, bytes, size);
    (void)fwrite(bytes, 1, size, output->file); /* errors are found by ferror */
}

static void put_record(struct output *output, const unsigned char *record, uint64_t hash) {
    unsigned char entry[RSC_LIST_INDEX_ENTRY];
    rsc_list_store(entry, 8, hash);
    rsc_list_store(entry + 8, 8, output->records_size);
    (void)fwrite(entry, 1, sizeof entry, output->index);
    put(output, record, record_size(record));
    output->records_size += record_size(record);
    output->summary.count++;
}

static uint64_t expiry(const unsigned char *record) {
    uint64_t expires = rsc_list_load(record + 4, 8);
    return expires == 0 ? UINT64_MAX : expires;
}

/* Writes the records of all runs in order, each address and scope once. */
static int merge(struct rsc_list_writer *writer, struct output *output, struct rsc_error *error) {
    unsigned char kept[RECORD_MAX];
    uint64_t kept_hash = 0;
    bool has_kept = false;
    int result = rewind_all(writer, error);
    for (struct rsc_list_run *run; result == RSC_OK && (run = lowest(writer)) != NULL; result = advance(run, error)) {
        bool is_other = !has_kept || compare(kept_hash, kept, run->hash, run->record) != 0;
        if (!is_other) {
            output->summary.repeated++;
        } else if (has_kept) {
            put_record(output, kept, kept_hash);
        }
        if (is_other || expiry(run->record) > expiry(kept)) {
            memcpy(kept, run->record, record_size(run->record));
            kept_hash = run->hash;
        }
        has_kept = true;
    }
    if (has_kept) {
        put_record(output, kept, kept_hash);
    }
    if (result == RSC_OK && output->summary.count > RSC_LIST_COUNT_MAX) {
        return rsc_error_set(error, RSC_ERROR_LIMIT, 0, "the list has more than %u entries", RSC_LIST_COUNT_MAX);
    }
    return result;
}

static int append_index(struct output *output, struct rsc_error *error) {
    unsigned char bytes[8192];
    const unsigned char zeros[16] = {0};
    size_t got;
    put(output, zeros, (size_t)(rsc_list_padded(output->records_size) - output->records_size));
    rewind(output->index);
    while ((got = fread(bytes, 1, sizeof bytes, output->index)) > 0) {
        put(output, bytes, got);
    }
    if (ferror(output->index) || fflush(output->file) != 0 || ferror(output->file)) {
        return rsc_system_error(error, "cannot write it");
    }
    return RSC_OK;
}

static int write_header(struct output *output, uint64_t built_at, struct rsc_text title, struct rsc_error *error) {
    static const char magic[RSC_LIST_MAGIC_SIZE] = RSC_LIST_MAGIC;
    unsigned char header[RSC_LIST_HEADER_SIZE] = {0};
    struct rsc_list_summary *summary = &output->summary;
    summary->size =
        RSC_LIST_HEADER_SIZE + rsc_list_padded(output->records_size) + summary->count * RSC_LIST_INDEX_ENTRY;
    size_t title_length = title.length < RSC_LIST_TITLE_MAX ? title.length : RSC_LIST_TITLE_MAX;
    memcpy(header, magic, sizeof magic);
    rsc_list_store(header + RSC_LIST_AT_VERSION, 4, RSC_LIST_VERSION);
    rsc_list_store(header + RSC_LIST_AT_FILE_SIZE, 8, summary->size);
    rsc_list_store(header + RSC_LIST_AT_COUNT, 8, summary->count);
    rsc_list_store(header + RSC_LIST_AT_RECORDS_SIZE, 8, output->records_size);
    rsc_list_store(header + RSC_LIST_AT_BUILT_AT, 8, built_at);
    rsc_list_store(header + RSC_LIST_AT_BODY_CRC, 4, output->crc.value);
    rsc_list_store(header + RSC_LIST_AT_TITLE_LENGTH, 2, title_length);
    if (title_length > 0) {
        memcpy(header + RSC_LIST_AT_TITLE, title.bytes, title_length);
    }
    output->crc.value = 0;
    rsc_crc32c_add(&output->crc, header + RSC_LIST_AT_FILE_SIZE, RSC_LIST_HEADER_SIZE - RSC_LIST_AT_FILE_SIZE);
    rsc_list_store(header + RSC_LIST_AT_HEADER_CRC, 4, output->crc.value);
    if (fseeko(output->file, 0, SEEK_SET) != 0 || fwrite(header, 1, sizeof header, output->file) != sizeof header ||
        fflush(output->file) != 0) {
        return rsc_system_error(error, "cannot write it");
    }
    return RSC_OK;
}

/* Makes the rename itself last over a power cut. */
static void sync_directory(const char *path) {
    char *copy = strdup(path);
    int descriptor = copy == NULL ? -1 : open(dirname(copy), O_RDONLY | O_CLOEXEC | O_DIRECTORY);
    if (descriptor >= 0) {
        (void)fsync(descriptor);
        (void)close(descriptor);
    }
    free(copy);
}

/* Gives the finished file its name. */
static int publish(struct output *output, const char *path, struct rsc_error *error) {
    int descriptor = fileno(output->file);
    if (fsync(descriptor) != 0) {
        return rsc_system_error(error, "cannot write it");
    }
    if (rename(output->path, path) != 0) {
        return rsc_system_error(error, "cannot give it its name");
    }
    free(output->path);
    output->path = NULL;
    sync_directory(path);
    return RSC_OK;
}

static int write_list(struct rsc_list_writer *writer, struct output *output, uint64_t built_at, struct rsc_text title,
                      struct rsc_error *error) {
    const unsigned char blank[RSC_LIST_HEADER_SIZE] = {0};
    output->path = new_template(writer->path);
    output->file = output->path == NULL ? NULL : create_file(output->path);
    output->index = create_temporary(writer->path);
    if (output->file == NULL || output->index == NULL) {
        return rsc_system_error(error, "cannot create a file beside it");
    }
    (void)fwrite(blank, 1, sizeof blank, output->file);
    rsc_crc32c_init(&output->crc);
    int result = merge(writer, output, error);
    if (result != RSC_OK || (result = append_index(output, error)) != RSC_OK ||
        (result = write_header(output, built_at, title, error)) != RSC_OK) {
        return result;
    }
    return publish(output, writer->path, error);
}

int rsc_list_writer_finish(struct rsc_list_writer *writer, uint64_t built_at, struct rsc_text title,
                           struct rsc_list_summary *summary, struct rsc_error *error) {
    struct output output = {0};
    int result = spill(writer, error);
    if (result == RSC_OK) {
        result = write_list(writer, &output, built_at, title, error);
    }
    *summary = output.summary;
    if (output.file != NULL) {
        if (output.path != NULL) {
            (void)unlink(output.path);
        }
        (void)fclose(output.file);
    }
    if (output.index != NULL) {
        (void)fclose(output.index);
    }
    free(output.path);
    return result;
}

void rsc_list_writer_close(struct rsc_list_writer *writer) {
    for (size_t i = 0; i < writer->run_count; i++) {
        (void)fclose(writer->runs[i].file);
    }
    free(writer->runs);
    free(writer->buffer);
    free(writer->path);
    *writer = (struct rsc_list_writer){.path = NULL};
}
