/* A transfer: one request to an origin and its response.
 *
 * An operation of the loop (see operation.h) that owns a copy of its request, its receive buffer, and references to its
 * headers and to its origin. */
#ifndef RSC_TRANSFER_H
#define RSC_TRANSFER_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/text.h"
#include "http/failure.h"
#include "http/head.h"
#include "http/loop.h"
#include "http/origin.h"

#define RSC_REQUEST_HEADERS_MAX 256          /* lines */
#define RSC_REQUEST_TEXT_MAX    (256u << 10) /* bytes of method, target and headers */
#define RSC_REQUEST_BODY_MAX    (256u << 20) /* bytes */

/* The header lines of requests. The origin, its transfers and its handles share one block and count their references,
 * because most requests have the same lines. */
struct rsc_headers {
    size_t references;
    size_t count; /* of the lines that were added */
    bool typed;   /* Content-Type is among them */
    char *end;    /* of the copied lines */
    struct curl_slist lines[];
};

/* A request. rsc_transfer_send copies its strings and shares its headers. */
struct rsc_request {
    struct rsc_text method, target, body;
    struct rsc_headers *headers;
    bool has_body;
    bool timed;           /* the times of the response are wanted */
    bool fresh;           /* use a new connection */
    uint64_t timeout;     /* ns */
    long connect_timeout; /* ms */
};

struct rsc_response {
    /* Seconds since rsc_transfer_send. */
    double name_lookup, connect, tls, first_byte, total;
};

struct rsc_transfer {
    struct rsc_operation operation;
    struct rsc_origin *origin;
    struct rsc_handle *handle; /* while in flight */

    const char *method, *target, *body;
    size_t body_length;
    bool has_body, fresh, timed;
    uint64_t timeout;     /* ns */
    long connect_timeout; /* ms */
    struct rsc_headers *headers;

    uint64_t sent_at, launched_at; /* ns */

    struct rsc_buffer received; /* lines with lower-case names, then the body */
    size_t head_size;           /* bytes of complete header lines in `received` */
    struct rsc_head head;
    const char *malformed; /* the fault of the head, or NULL */
    const char *limit;     /* name of the exceeded limit, or NULL */
    size_t limit_size;
    bool failed;
    union {
        struct rsc_response response;
        struct rsc_failure failure;
    } outcome;
};

/* Returns a block for so many lines of so many bytes in total, with one reference, or NULL if memory runs out. */
struct rsc_headers *rsc_headers_new(const struct rsc_origin *origin, size_t count, size_t bytes);

/* Copies a valid line "Name: value". */
void rsc_headers_add(struct rsc_headers *headers, struct rsc_text line);

/* Whether the line at the 0-based index is this one. */
bool rsc_headers_equal(const struct rsc_headers *headers, size_t index, struct rsc_text line);

/* Replaces the reference that `*place` holds, which may be NULL, by one to `headers`, which may be NULL, too. */
void rsc_headers_refer(struct rsc_headers **place, struct rsc_headers *headers);

/* The last checks against request smuggling: no byte that could end a line early. */
bool rsc_request_method_valid(struct rsc_text method);
bool rsc_request_target_valid(struct rsc_text target);
bool rsc_request_header_valid(struct rsc_text line);

/* Starts or queues a transfer. Returns RSC_OK, RSC_ERROR_MEMORY, or RSC_ERROR_LIMIT for a request above a maximum. Any
 * other failure becomes the transfer's outcome. */
int rsc_transfer_send(struct rsc_origin *origin, const struct rsc_request *request, struct rsc_transfer **made);

/* Returns the body, which is valid as long as the transfer. NUL follows it. */
struct rsc_text rsc_transfer_body(const struct rsc_transfer *transfer);

/* For operation.c: aborts the transfer if it is under way, and releases everything that it owns. */
void rsc_transfer_end(struct rsc_transfer *transfer);

/* For transfer.c: returns a copy of a request, which nothing has started, or NULL. Sets the status of a failure. */
struct rsc_transfer *rsc_transfer_new(struct rsc_origin *origin, const struct rsc_request *request, int *status);

/* For transfer.c: sets the options that differ from the handle's last request. */
CURLcode rsc_transfer_apply(struct rsc_handle *handle, struct rsc_transfer *transfer);

/* For origin.c: sets the callbacks of a new pooled handle. */
CURLcode rsc_transfer_set_callbacks(CURL *easy, struct rsc_handle *handle);

/* For origin.c: moves a queued transfer into the multi handle. */
void rsc_transfer_launch(struct rsc_transfer *transfer);

/* For loop.c, callable from libcurl's callbacks: the transfer's TCP connection is open. */
void rsc_transfer_connected(CURL *easy);

/* For loop.c: finishes a transfer that libcurl has completed. */
void rsc_transfer_complete(CURL *easy, CURLcode code);

/* For loop.c: finishes a transfer whose timeout has passed. */
void rsc_transfer_expire(struct rsc_operation *operation);

/* For loop.c, callable from libcurl's callbacks: puts the transfer on the loop's failing list, because its socket
 * cannot be polled. `error_number` is an errno value. */
void rsc_transfer_fail_later(CURL *easy, int error_number);

/* For loop.c: finishes a transfer of the failing list. */
void rsc_transfer_finish_failing(struct rsc_operation *operation);

#endif
