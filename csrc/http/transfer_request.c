/* Checks a request, copies it into the transfer's memory and passes it to an easy handle. */
#include "http/transfer.h"

#include <string.h>
#include <strings.h>

#include "http/libcurl.h"

/* libcurl adds defaults for these headers. A line without a value suppresses the header. */
static const char no_expect[] = "Expect:";
static const char no_content_type[] = "Content-Type:";
#define ADDED_HEADERS 2

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

size_t rsc_request_size(const struct rsc_request *request) {
    if (request->header_count > RSC_REQUEST_HEADERS_MAX || request->header_bytes > RSC_REQUEST_TEXT_MAX ||
        request->target.length > RSC_REQUEST_TEXT_MAX || request->method.length >= RSC_METHOD_MAX ||
        request->body.length > RSC_REQUEST_BODY_MAX) {
        return 0;
    }
    size_t lines = request->header_count + ADDED_HEADERS;
    return sizeof(struct rsc_transfer) + lines * sizeof(struct curl_slist) + request->header_bytes +
           request->header_count + request->method.length + 1 + request->target.length + 1 + request->body.length;
}

/* Copies the text and adds the NUL that libcurl needs. */
static char *copy(struct rsc_transfer *transfer, struct rsc_text text) {
    char *to = transfer->end;
    memcpy(to, text.bytes, text.length);
    to[text.length] = '\0';
    transfer->end += text.length + 1;
    return to;
}

void rsc_transfer_init(struct rsc_transfer *transfer, struct rsc_origin *origin, const struct rsc_request *request) {
    rsc_operation_init(&transfer->operation, origin->loop, RSC_TRANSFER);
    transfer->origin = origin;
    rsc_buffer_init(&transfer->received, origin->max_headers + origin->max_body);
    transfer->fresh = request->fresh;
    transfer->timeout = request->timeout;
    transfer->connect_timeout = request->connect_timeout;
    transfer->headers = (struct curl_slist *)(void *)(transfer + 1);
    transfer->end = (char *)(transfer->headers + request->header_count + ADDED_HEADERS);
    transfer->method = copy(transfer, request->method);
    transfer->target = copy(transfer, request->target);
    transfer->has_body = request->has_body || strcmp(transfer->method, "POST") == 0 ||
                         strcmp(transfer->method, "PUT") == 0 || strcmp(transfer->method, "PATCH") == 0;
    transfer->body = transfer->end;
    transfer->body_length = request->body.length;
    if (request->body.length > 0) {
        memcpy(transfer->end, request->body.bytes, request->body.length);
        transfer->end += request->body.length;
    }
}

static void link_header(struct rsc_transfer *transfer, char *data) {
    struct curl_slist *line = &transfer->headers[transfer->header_count++];
    line->data = data;
    line->next = NULL;
    if (line != transfer->headers) {
        line[-1].next = line;
    }
}

void rsc_transfer_add_header(struct rsc_transfer *transfer, struct rsc_text line) {
    link_header(transfer, copy(transfer, line));
}

static bool has_header(const struct rsc_transfer *transfer, const char *name, size_t length) {
    for (size_t i = 0; i < transfer->header_count; i++) {
        if (strncasecmp(transfer->headers[i].data, name, length) == 0) {
            return true;
        }
    }
    return false;
}

void rsc_transfer_add_defaults(struct rsc_transfer *transfer) {
    if (!transfer->has_body) {
        return;
    }
    bool typed = has_header(transfer, no_content_type, sizeof no_content_type - 1);
    /* libcurl never writes to the lines. */
    link_header(transfer, (char *)(uintptr_t)no_expect);
    if (!typed) {
        link_header(transfer, (char *)(uintptr_t)no_content_type);
    }
}

/* The easy handle */

static enum rsc_method_kind method_kind_of(const struct rsc_transfer *transfer) {
    if (transfer->has_body) {
        return RSC_METHOD_POST;
    }
    return strcmp(transfer->method, "HEAD") == 0 ? RSC_METHOD_HEAD : RSC_METHOD_GET;
}

static const char *native_method(enum rsc_method_kind method_kind) {
    return method_kind == RSC_METHOD_POST ? "POST" : method_kind == RSC_METHOD_HEAD ? "HEAD" : "GET";
}

/* Skips options that the handle already has, because setting an option is slow. */
static CURLcode set_method(struct rsc_handle *handle, const struct rsc_transfer *transfer) {
    static const CURLoption options[] = {
        [RSC_METHOD_GET] = CURLOPT_HTTPGET, [RSC_METHOD_HEAD] = CURLOPT_NOBODY, [RSC_METHOD_POST] = CURLOPT_POST};
    enum rsc_method_kind method_kind = method_kind_of(transfer);
    CURLcode code = CURLE_OK;
    if (handle->method_kind != method_kind) {
        handle->method_kind = RSC_METHOD_UNSET;
        code = curl_easy_setopt(handle->easy, options[method_kind], 1L);
        if (code != CURLE_OK) {
            return code;
        }
        handle->method_kind = method_kind;
    }
    const char *custom = strcmp(transfer->method, native_method(method_kind)) == 0 ? "" : transfer->method;
    if (strcmp(handle->custom, custom) != 0) {
        code = curl_easy_setopt(handle->easy, CURLOPT_CUSTOMREQUEST, custom[0] != '\0' ? custom : NULL);
        if (code == CURLE_OK) {
            memcpy(handle->custom, custom, strlen(custom) + 1);
        }
    }
    return code;
}

/* Where on_request is not called, libcurl repeats a request whose kept-alive connection was dead. That must not happen
 * to a request that changes something, so it gets a new connection. */
static bool may_be_repeated(const struct rsc_handle *handle) {
    return rsc_libcurl()->number < RSC_LIBCURL_PREREQ &&
           (handle->method_kind == RSC_METHOD_POST || handle->custom[0] != '\0');
}

CURLcode rsc_transfer_apply(struct rsc_handle *handle, struct rsc_transfer *transfer) {
    CURL *easy = handle->easy;
    CURLcode code = set_method(handle, transfer);
    if (code == CURLE_OK) {
        code = curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, transfer->target);
    }
    if (code == CURLE_OK) {
        struct curl_slist *headers = transfer->header_count > 0 ? transfer->headers : NULL;
        code = curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    }
    if (code == CURLE_OK && transfer->has_body) {
        code = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)transfer->body_length);
        if (code == CURLE_OK) {
            code = curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer->body);
        }
    }
    bool fresh = transfer->fresh || may_be_repeated(handle);
    if (code == CURLE_OK && handle->fresh != fresh) {
        code = curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, fresh ? 1L : 0L);
        if (code == CURLE_OK && handle->shard->cache != NULL) {
            /* Each shard would keep as many connections as the loop. Without new ones besides, it has one a handle. */
            code = curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, fresh ? 1L : 0L);
        }
        handle->fresh = code == CURLE_OK ? fresh : !fresh;
    }
    if (code == CURLE_OK && handle->connect_timeout != transfer->connect_timeout) {
        code = curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, transfer->connect_timeout);
        handle->connect_timeout = code == CURLE_OK ? transfer->connect_timeout : -1;
    }
    return code;
}
