/* Checks a request, copies it into the transfer's memory and passes it to an easy handle. */
#include "http/transfer.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/libcurl.h"

/* The first lines of each list. For a request with a body, libcurl adds defaults for the first two headers. A line
 * without a value suppresses the header. The list of a request begins at that of the first line that it needs. */
static const char *const first_lines[] = {"Content-Type:", "Expect:", "Accept-Encoding:"};
/* Takes the place of the last one. libcurl's own line would cost twice as much. */
static const char encoding_line[] = "Accept-Encoding: " RSC_ENCODING;
enum { FROM_CONTENT_TYPE, FROM_EXPECT, FROM_ENCODING, FROM_ADDED };

bool rsc_request_method_valid(struct rsc_text method) {
    for (size_t i = 0; i < method.length; i++) {
        if (method.bytes[i] < 'A' || method.bytes[i] > 'Z') {
            return false;
        }
    }
    return method.length > 0 && method.length < RSC_METHOD_MAX;
}

bool rsc_request_target_valid(struct rsc_text target) {
    return target.length > 0 && target.bytes[0] == '/' && rsc_text_printable(target, '!');
}

bool rsc_request_header_valid(struct rsc_text line) {
    const char *colon = memchr(line.bytes, ':', line.length);
    if (colon == NULL || colon == line.bytes) {
        return false;
    }
    struct rsc_text name = {line.bytes, (size_t)(colon - line.bytes)};
    if (memchr(line.bytes, '\r', line.length) != NULL || memchr(line.bytes, '\n', line.length) != NULL ||
        memchr(line.bytes, '\0', line.length) != NULL) {
        return false;
    }
    return rsc_text_printable(name, '!');
}

/* Copies the text to `*end` with the NUL that libcurl needs, and moves the end. */
static char *copy(char **end, struct rsc_text text) {
    char *to = *end;
    memcpy(to, text.bytes, text.length);
    to[text.length] = '\0';
    *end += text.length + 1;
    return to;
}

struct rsc_transfer *rsc_transfer_new(struct rsc_origin *origin, const struct rsc_request *request, int *status) {
    if (request->target.length > RSC_REQUEST_TEXT_MAX || request->method.length >= RSC_METHOD_MAX ||
        request->body.length > RSC_REQUEST_BODY_MAX) {
        *status = RSC_ERROR_LIMIT;
        return NULL;
    }
    size_t copied = request->method.length + 1 + request->target.length + 1 + request->body.length;
    struct rsc_transfer *transfer = rsc_operation_new(origin->loop, RSC_TRANSFER, sizeof *transfer + copied);
    if (transfer == NULL) {
        *status = RSC_ERROR_MEMORY;
        return NULL;
    }
    origin->references++;
    transfer->origin = origin;
    rsc_buffer_init(&transfer->received, origin->max_headers + origin->max_body);
    transfer->fresh = request->fresh;
    transfer->timed = request->timed;
    transfer->timeout = request->timeout;
    transfer->connect_timeout = request->connect_timeout;
    rsc_headers_refer(&transfer->headers, request->headers);
    char *end = (char *)(transfer + 1);
    transfer->method = copy(&end, request->method);
    transfer->target = copy(&end, request->target);
    transfer->has_body = request->has_body || strcmp(transfer->method, "POST") == 0 ||
                         strcmp(transfer->method, "PUT") == 0 || strcmp(transfer->method, "PATCH") == 0;
    transfer->body = end;
    transfer->body_length = request->body.length;
    if (request->body.length > 0) {
        memcpy(end, request->body.bytes, request->body.length);
    }
    return transfer;
}

/* The headers */

static void link_line(struct rsc_headers *headers, size_t index, char *data) {
    headers->lines[index] = (struct curl_slist){.data = data};
    if (index > 0) {
        headers->lines[index - 1].next = &headers->lines[index];
    }
}

struct rsc_headers *rsc_headers_new(const struct rsc_origin *origin, size_t count, size_t bytes) {
    size_t lines = FROM_ADDED + count;
    struct rsc_headers *headers = malloc(sizeof *headers + lines * sizeof *headers->lines + bytes + count);
    if (headers == NULL) {
        return NULL;
    }
    *headers = (struct rsc_headers){.references = 1, .end = (char *)(headers->lines + lines)};
    for (size_t i = 0; i < FROM_ADDED; i++) {
        link_line(headers, i, (char *)(uintptr_t)first_lines[i]); /* libcurl never writes to the lines */
    }
    if (origin->compression) {
        headers->lines[FROM_ENCODING].data = (char *)(uintptr_t)encoding_line;
    }
    return headers;
}

void rsc_headers_add(struct rsc_headers *headers, struct rsc_text line) {
    size_t size = strlen(first_lines[FROM_CONTENT_TYPE]);
    headers->typed |= line.length >= size && strncasecmp(line.bytes, first_lines[FROM_CONTENT_TYPE], size) == 0;
    char *data = copy(&headers->end, line);
    char *colon = strchr(data, ':');
    if (colon != NULL && colon[1 + strspn(colon + 1, " \t")] == '\0') {
        memcpy(colon, ";", 2); /* libcurl leaves out a header without a value that is not written so */
    }
    link_line(headers, FROM_ADDED + headers->count++, data);
}

bool rsc_headers_equal(const struct rsc_headers *headers, size_t index, struct rsc_text line) {
    const char *data = headers->lines[FROM_ADDED + index].data;
    return strlen(data) == line.length && memcmp(data, line.bytes, line.length) == 0;
}

void rsc_headers_refer(struct rsc_headers **place, struct rsc_headers *headers) {
    struct rsc_headers *before = *place;
    *place = headers;
    if (headers != NULL) {
        headers->references++;
    }
    if (before != NULL && --before->references == 0) {
        free(before);
    }
}

/* Returns the list for libcurl. */
static struct curl_slist *list_of(const struct rsc_transfer *transfer) {
    struct rsc_headers *headers = transfer->headers;
    if (transfer->has_body) {
        return &headers->lines[headers->typed ? FROM_EXPECT : FROM_CONTENT_TYPE];
    }
    return &headers->lines[FROM_ENCODING];
}

/* The easy handle */

/* Skips options that the handle already has, because setting an option is slow. */
static CURLcode set_method(struct rsc_handle *handle, const struct rsc_transfer *transfer) {
    if (handle->has_body == transfer->has_body && strcmp(handle->method, transfer->method) == 0) {
        return CURLE_OK;
    }
    CURLoption option = transfer->has_body                      ? CURLOPT_POST
                        : strcmp(transfer->method, "HEAD") == 0 ? CURLOPT_NOBODY
                                                                : CURLOPT_HTTPGET;
    handle->method[0] = '\0';
    CURLcode code = curl_easy_setopt(handle->easy, option, 1L);
    if (code == CURLE_OK) {
        code = curl_easy_setopt(handle->easy, CURLOPT_CUSTOMREQUEST, transfer->method);
    }
    if (code == CURLE_OK) {
        memcpy(handle->method, transfer->method, strlen(transfer->method) + 1);
        handle->has_body = transfer->has_body;
    }
    return code;
}

/* Where on_request is not called, libcurl repeats a request whose kept-alive connection was dead. That must not happen
 * to a request that changes something, so it gets a new connection. */
static bool may_be_repeated(const struct rsc_handle *handle) {
    bool is_safe = !handle->has_body && (strcmp(handle->method, "GET") == 0 || strcmp(handle->method, "HEAD") == 0);
    return rsc_libcurl()->number < RSC_LIBCURL_PREREQ && !is_safe;
}

/* Returns the bytes to read at once. libcurl allocates them for each transfer: with its own 16 KB, a small response
 * would cost 3 KB of memory more. */
static long read_size_of(const struct rsc_origin *origin) {
    long size = RSC_READ_SIZE_MIN;
    while (size < CURL_MAX_WRITE_SIZE && (size_t)size < origin->typical_size) {
        size *= 2;
    }
    return size;
}

static CURLcode set_list(struct rsc_handle *handle, const struct rsc_transfer *transfer) {
    struct curl_slist *list = list_of(transfer);
    CURLcode code = handle->list == list ? CURLE_OK : curl_easy_setopt(handle->easy, CURLOPT_HTTPHEADER, list);
    if (code == CURLE_OK && handle->list != list) {
        handle->list = list;
        rsc_headers_refer(&handle->headers, transfer->headers);
    }
    return code;
}

/* `current` is the option's value, or -1. */
static CURLcode set_number(CURL *easy, CURLoption option, long *current, long value) {
    CURLcode code = *current == value ? CURLE_OK : curl_easy_setopt(easy, option, value);
    *current = code == CURLE_OK ? value : -1;
    return code;
}

CURLcode rsc_transfer_apply(struct rsc_handle *handle, struct rsc_transfer *transfer) {
    CURL *easy = handle->easy;
    bool has_body = transfer->has_body;
    CURLcode method = set_method(handle, transfer);
    long fresh = transfer->fresh || may_be_repeated(handle);
    const CURLcode codes[] = {
        method,
        curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, transfer->target),
        set_list(handle, transfer),
        has_body ? curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)transfer->body_length) : CURLE_OK,
        has_body ? curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer->body) : CURLE_OK,
        set_number(easy, CURLOPT_BUFFERSIZE, &handle->read_size, read_size_of(transfer->origin)),
        set_number(easy, CURLOPT_FRESH_CONNECT, &handle->fresh, fresh),
        /* Each shard would keep as many connections as the loop. Without new ones besides, it has one a handle. */
        set_number(easy, CURLOPT_FORBID_REUSE, &handle->forbid_reuse, handle->shard->cache != NULL ? fresh : 0),
        set_number(easy, CURLOPT_CONNECTTIMEOUT_MS, &handle->connect_timeout, transfer->connect_timeout),
    };
    return rsc_libcurl_first_error(codes, sizeof codes / sizeof *codes);
}
