/* A transfer: one request to an origin and its answer.
 *
 * The struct lies in one block of the caller's memory together with a copy of its request (rsc_request_size says how
 * much), so that nothing has to be allocated or kept alive beside it. Only the receive buffer is malloc's; it belongs
 * to the transfer until rsc_transfer_close. */
#ifndef RSC_TRANSFER_H
#define RSC_TRANSFER_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/text.h"
#include "http/failure.h"
#include "http/loop.h"
#include "http/origin.h"

#define RSC_REQUEST_HEADERS_MAX 256          /* lines */
#define RSC_REQUEST_TEXT_MAX    (256u << 10) /* bytes of method, target and headers */
#define RSC_REQUEST_BODY_MAX    (256u << 20) /* bytes */

/* Borrowed until rsc_transfer_init and rsc_transfer_add_header have copied it. */
struct rsc_request {
    struct rsc_text method, target, body;
    bool has_body;
    bool replay;          /* libcurl may repeat it when a kept-alive connection turns out to be dead */
    size_t header_count;  /* lines that will be added */
    size_t header_bytes;  /* … and their bytes together */
    uint64_t timeout;     /* ns */
    long connect_timeout; /* ms */
};

struct rsc_response {
    long status;
    long http_version; /* CURL_HTTP_VERSION_* */
    /* Seconds since rsc_transfer_send. */
    double name_lookup, connect, tls, first_byte, total;
};

struct rsc_transfer {
    struct rsc_operation operation;
    struct rsc_origin *origin;
    struct rsc_handle *handle; /* while in flight */

    const char *method, *target, *body;
    size_t body_length;
    bool has_body, replay;
    uint64_t timeout;     /* ns */
    long connect_timeout; /* ms */
    struct curl_slist *headers;
    size_t header_count;
    char *end; /* of the copied request so far */

    uint64_t sent_at, launched_at; /* ns */
    struct rsc_buffer received;    /* the header lines of the final answer, names in lower case, then the body */
    size_t head_size;              /* bytes of header lines in it */
    bool head_complete;            /* the empty line after the headers was there */
    bool in_body;
    const char *limit; /* the name of the limit that was passed, or NULL */
    size_t limit_size;
    bool failed;
    union {
        struct rsc_response response;
        struct rsc_failure failure;
    } outcome;
};

/* The bytes of memory for a transfer with this request; 0 when the request is above a maximum. */
size_t rsc_request_size(const struct rsc_request *request);

/* The checks of last resort against a request that would be read as two. */
bool rsc_request_method_valid(struct rsc_text method);
bool rsc_request_target_valid(struct rsc_text target);
bool rsc_request_header_valid(struct rsc_text line);

/* `transfer` is zeroed memory of rsc_request_size bytes. */
void rsc_transfer_init(struct rsc_transfer *transfer, struct rsc_origin *origin, const struct rsc_request *request);

/* Copies one valid line "Name: value"; exactly request.header_count of them, header_bytes long together. */
void rsc_transfer_add_header(struct rsc_transfer *transfer, struct rsc_text line);

/* Adds the lines that keep libcurl from sending headers of its own making. */
void rsc_transfer_add_defaults(struct rsc_transfer *transfer);

/* Starts or queues it. RSC_OK, RSC_ERROR_LIMIT or RSC_ERROR_MEMORY; every other failure is the transfer's own. */
int rsc_transfer_send(struct rsc_transfer *transfer);

/* Aborts it in any state before RSC_TAKEN; idempotent, and harmless after the origin or the loop was closed. */
void rsc_transfer_cancel(struct rsc_transfer *transfer);

/* Cancels it and frees its buffer; idempotent. */
void rsc_transfer_close(struct rsc_transfer *transfer);

/* Its body, while it is not closed. */
struct rsc_text rsc_transfer_body(const struct rsc_transfer *transfer);

/* For transfer.c: sets what differs from the handle's last request. */
CURLcode rsc_transfer_apply(struct rsc_handle *handle, struct rsc_transfer *transfer);

/* For origin.c: sets the options of a new pooled handle that point at it. */
CURLcode rsc_transfer_set_callbacks(CURL *easy, struct rsc_handle *handle);

/* For origin.c: takes a queued transfer out of the queue and into the multi handle. */
void rsc_transfer_launch(struct rsc_transfer *transfer);

/* For loop.c, called by libcurl: its connection is made, though maybe not its TLS session. */
void rsc_transfer_connected(CURL *easy);

/* For loop.c: libcurl is done with it; its time is over; its socket cannot be polled (called by libcurl: only noted),
 * and, after libcurl has returned, what was noted. */
void rsc_transfer_complete(CURL *easy, CURLcode code);
void rsc_transfer_expire(struct rsc_operation *operation);
void rsc_transfer_fail_later(CURL *easy, int error_number);
void rsc_transfer_finish_failing(struct rsc_operation *operation);

#endif
