/* Fuzzes the reader of compiled lists. The first byte says whether the header's sizes and checksums are made right, so
 * that inputs get past them; the rest is the file. Opening, verifying and searching it must end without a memory error,
 * and a note must lie inside the file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lists/format.h"
#include "lists/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static __attribute__((noinline)) void demand(bool condition) {
    if (!condition) {
        abort();
    }
}

static uint32_t checksum(const uint8_t *bytes, size_t size) {
    struct rsc_crc32c crc;
    rsc_crc32c_init(&crc);
    rsc_crc32c_add(&crc, bytes, size);
    return crc.value;
}

/* Makes the header agree with the length of the file. The number of entries stays, if the file has room for them. */
static void mend(uint8_t *file, size_t size) {
    uint64_t body = size - RSC_LIST_HEADER_SIZE;
    uint64_t count = rsc_list_load(file + RSC_LIST_AT_COUNT, 8) % (body / RSC_LIST_INDEX_ENTRY + 1);
    uint64_t records = body - count * RSC_LIST_INDEX_ENTRY;
    memcpy(file, RSC_LIST_MAGIC, RSC_LIST_MAGIC_SIZE);
    rsc_list_store(file + RSC_LIST_AT_VERSION, 4, RSC_LIST_VERSION);
    rsc_list_store(file + RSC_LIST_AT_FILE_SIZE, 8, size);
    rsc_list_store(file + RSC_LIST_AT_COUNT, 8, count);
    rsc_list_store(file + RSC_LIST_AT_RECORDS_SIZE, 8, records);
    rsc_list_store(file + RSC_LIST_AT_BODY_CRC, 4, checksum(file + RSC_LIST_HEADER_SIZE, (size_t)body));
    rsc_list_store(file + RSC_LIST_AT_HEADER_CRC, 4,
                   checksum(file + RSC_LIST_AT_FILE_SIZE, RSC_LIST_HEADER_SIZE - RSC_LIST_AT_FILE_SIZE));
}

static void search(const struct rsc_list *list, struct rsc_text address, struct rsc_text network) {
    struct rsc_list_hit hit;
    struct rsc_error error;
    if (rsc_list_find(list, address, network, 1, &hit, &error) == RSC_OK && hit.found) {
        const unsigned char *note = (const unsigned char *)hit.note.bytes;
        demand(note >= list->records && note + hit.note.length <= list->records + list->records_size);
    }
}

/* Gives every entry of the index the hash of an address of its record, sorted or not, and searches for each. */
static void search_all(const struct rsc_list *list) {
    const struct rsc_text network = {"eth", 3};
    for (uint64_t entry = 0; entry < list->count && entry < 64; entry++) {
        uint64_t offset = rsc_list_load(list->index + entry * RSC_LIST_INDEX_ENTRY + 8, 8);
        uint64_t room = list->records_size - offset;
        if (offset < list->records_size && room > RSC_LIST_RECORD_HEAD) {
            const unsigned char *record = list->records + offset;
            uint64_t scope = record[0], length = record[1];
            if (RSC_LIST_RECORD_HEAD + scope + length <= room) {
                const char *address = (const char *)record + RSC_LIST_RECORD_HEAD + scope;
                search(list, (struct rsc_text){address, (size_t)length}, network);
            }
        }
    }
    search(list, network, network);
    search(list, (struct rsc_text){"", 0}, network);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct rsc_list list;
    struct rsc_error error;
    char path[64];
    if (size < 1) {
        return 0;
    }
    bool is_mended = (data[0] & 1) != 0 && size - 1 >= RSC_LIST_HEADER_SIZE;
    uint8_t *copy = malloc(size);
    int file = memfd_create("list", MFD_CLOEXEC);
    demand(copy != NULL && file >= 0 && fchmod(file, S_IRUSR) == 0);
    memcpy(copy, data + 1, size - 1);
    if (is_mended) {
        mend(copy, size - 1);
    }
    demand(write(file, copy, size - 1) == (ssize_t)(size - 1));
    free(copy);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    int result = rsc_list_open(&list, path, &error);
    bool done = false;
    while (result == RSC_OK && !done) {
        result = rsc_list_verify(&list, 1, &done, &error);
    }
    if (result == RSC_OK) {
        search_all(&list);
    }
    rsc_list_close(&list);
    rsc_list_close(&list);
    (void)close(file);
    return 0;
}
