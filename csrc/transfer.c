#include "transfer.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "timers.h"

#define US_PER_S 1e6
#define NS_PER_S 1e9

/* libcurl sends a default for these unless a header line says otherwise; a line without a value leaves it out. */
static const char no_expect[] = "Expect:";
static const char no_content_type[] = "Content-Type:";
#define ADDED_HEADERS 2

/* The request */

static bool printable(struct rsc_text text, char least) {
    for (size_t i = 0; i < text.length; i++) {
        if ((unsigned char)text.bytes[i] < (unsigned char)least || text.bytes[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

bool rsc_request_method_valid(struct rsc_text method) {
    for (size_t i = 0; i < method.length; i++) {
        if (method.bytes[i] < 'A' || method.bytes[i] > 'Z') {
            return false;
        }
    }
    return method.length > 0 && method.length < RSC_METHOD_MAX;
}

bool rsc_request_target_valid(struct rsc_text target) {
    return target.length > 0 && target.bytes[0] == '/' && printable(target, '!');
}

bool rsc_request_header_valid(struct rsc_text line) {
    const char *colon = memchr(line.bytes, ':', line.length);
    if (colon == NULL || colon == line.bytes) {
        return false;
    }
    struct rsc_text name = {line.bytes, (size_t)(colon - line.bytes)};
    for (size_t i = 0; i < line.length; i++) {
        if (line.bytes[i] == '\r' || line.bytes[i] == '\n' || line.bytes[i] == '\0') {
            return false;
        }
    }
    return printable(name, '!');
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

/* A copy with a NUL, which libcurl wants. */
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
    transfer->replay = request->replay;
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

static void add_defaults(struct rsc_transfer *transfer) {
    if (!transfer->has_body) {
        return;
    }
    bool typed = has_header(transfer, no_content_type, sizeof no_content_type - 1);
    /* libcurl reads the lines and never writes to them. */
    link_header(transfer, (char *)(uintptr_t)no_expect);
    if (!typed) {
        link_header(transfer, (char *)(uintptr_t)no_content_type);
    }
}

/* Outcomes */

static void fail(struct rsc_transfer *transfer, enum rsc_failure_kind kind, enum rsc_phase phase) {
    transfer->failed = true;
    transfer->outcome.failure.kind = kind;
    transfer->outcome.failure.phase = phase;
    transfer->outcome.failure.sent = transfer->handle != NULL && transfer->handle->requested;
    transfer->outcome.failure.message[0] = '\0';
}

RSC_PRINTF(2, 3)
static void explain(struct rsc_transfer *transfer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(transfer->outcome.failure.message, sizeof transfer->outcome.failure.message, format, arguments);
    va_end(arguments);
}

/* libcurl's times count from the start and are 0 for what did not happen; ours count from rsc_transfer_send. */
static double since_sent(double waited, curl_off_t microseconds) {
    return microseconds > 0 ? waited + (double)microseconds / US_PER_S : 0;
}

static curl_off_t time_of(const struct rsc_handle *handle, CURLINFO info) {
    curl_off_t microseconds = 0;
    (void)curl_easy_getinfo(handle->easy, info, &microseconds);
    return microseconds;
}

static enum rsc_phase phase_of(const struct rsc_transfer *transfer) {
    const struct rsc_handle *handle = transfer->handle;
    if (handle == NULL) {
        return RSC_PHASE_QUEUE;
    }
    if (handle->requested) {
        return transfer->received.length > 0 ? RSC_PHASE_BODY : RSC_PHASE_FIRST_BYTE;
    }
    if (!transfer->origin->local && time_of(handle, CURLINFO_NAMELOOKUP_TIME_T) == 0) {
        return RSC_PHASE_NAME_LOOKUP;
    }
    return transfer->origin->tls && time_of(handle, CURLINFO_CONNECT_TIME_T) > 0 ? RSC_PHASE_TLS : RSC_PHASE_CONNECT;
}

/* The transfer leaves the multi handle, or the queue, and is about to be finished or cancelled. */
static void detach(struct rsc_transfer *transfer) {
    struct rsc_loop *loop = transfer->operation.loop;
    rsc_timers_remove(&loop->timers, &transfer->operation.timer);
    rsc_list_remove(&transfer->operation.link);
    if (transfer->operation.state == RSC_QUEUED) {
        loop->queued_count--;
    } else if (transfer->operation.state == RSC_ACTIVE) {
        loop->transfer_count--;
        if (transfer->handle != NULL) {
            struct rsc_handle *handle = transfer->handle;
            transfer->handle = NULL;
            transfer->origin->active--;
            rsc_origin_release(handle);
        }
    }
}

static void finish(struct rsc_transfer *transfer) {
    detach(transfer);
    rsc_loop_finish(&transfer->operation);
    rsc_origin_pump(transfer->origin);
}

static void succeed(struct rsc_transfer *transfer) {
    struct rsc_handle *handle = transfer->handle;
    struct rsc_response *response = &transfer->outcome.response;
    double waited = (double)(transfer->launched_at - transfer->sent_at) / NS_PER_S;
    (void)curl_easy_getinfo(handle->easy, CURLINFO_RESPONSE_CODE, &response->status);
    (void)curl_easy_getinfo(handle->easy, CURLINFO_HTTP_VERSION, &response->http_version);
    response->name_lookup = since_sent(waited, time_of(handle, CURLINFO_NAMELOOKUP_TIME_T));
    response->connect = since_sent(waited, time_of(handle, CURLINFO_CONNECT_TIME_T));
    response->tls = since_sent(waited, time_of(handle, CURLINFO_APPCONNECT_TIME_T));
    response->first_byte = since_sent(waited, time_of(handle, CURLINFO_STARTTRANSFER_TIME_T));
    response->total = (double)(rsc_now() - transfer->sent_at) / NS_PER_S;

    /* The next answer probably needs as much; one large answer is forgotten slowly. */
    size_t *typical = &transfer->origin->typical_size;
    size_t size = transfer->received.length < RSC_TYPICAL_SIZE_MAX ? transfer->received.length : RSC_TYPICAL_SIZE_MAX;
    *typical = size > *typical ? size : *typical - (*typical - size) / 16;
}

static void fail_with_code(struct rsc_transfer *transfer, CURLcode code) {
    struct rsc_handle *handle = transfer->handle;
    const char *peer = transfer->origin->name;
    if (transfer->limit != NULL) {
        fail(transfer, RSC_PROTOCOL, RSC_PHASE_BODY);
        explain(transfer, "the answer from %s is larger than %s (%zu bytes)", peer, transfer->limit,
                transfer->limit_size);
        return;
    }
    if (handle->replay_refused) {
        fail(transfer, RSC_NETWORK, RSC_PHASE_FIRST_BYTE);
        explain(transfer, "the connection to %s was lost before an answer came; the request was not sent again", peer);
        return;
    }
    char text[128];
    const struct rsc_failure_row *row = rsc_failure_find(code, handle->error);
    const char *detail = handle->error[0] != '\0' ? handle->error : curl_easy_strerror(code);
    long number = 0;
    (void)curl_easy_getinfo(handle->easy, CURLINFO_OS_ERRNO, &number);
    if (code == CURLE_COULDNT_CONNECT && number != 0) {
        detail = rsc_strerror((int)number, text, sizeof text);
    }
    fail(transfer, row->kind, phase_of(transfer));
    explain(transfer, "%s %s (%s)", row->what, peer, detail);
}

/* libcurl's callbacks. The context is the pooled handle. */

/* Whether `size` more bytes stay within the limit; if not, the transfer remembers which limit it was. */
static bool admit(struct rsc_transfer *transfer, size_t used, size_t size, const char *name, size_t limit) {
    if (size <= limit && used <= limit - size) {
        return true;
    }
    transfer->limit = name;
    transfer->limit_size = limit;
    return false;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *context) {
    struct rsc_transfer *transfer = ((struct rsc_handle *)context)->transfer;
    size_t length = size * count;
    if (transfer->in_body) {
        return length; /* a trailer: nothing here reads those */
    }
    if (length > 5 && memcmp(bytes, "HTTP/", 5) == 0) {
        /* Of several answers to one request (100, 103 …) the last counts. */
        rsc_buffer_reset(&transfer->received);
        transfer->head_size = 0;
        if (rsc_buffer_reserve(&transfer->received, transfer->origin->typical_size) != RSC_OK) {
            return 0;
        }
    }
    if (!admit(transfer, transfer->head_size, length, "max_headers", transfer->origin->max_headers) ||
        rsc_buffer_append(&transfer->received, bytes, length) != RSC_OK) {
        return 0;
    }
    transfer->head_size += length;
    return length;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context) {
    struct rsc_handle *handle = context;
    struct rsc_transfer *transfer = handle->transfer;
    size_t length = size * count;
    if (!admit(transfer, transfer->received.length - transfer->head_size, length, "max_body",
               transfer->origin->max_body)) {
        return 0;
    }
    if (!transfer->in_body) {
        transfer->in_body = true;
        curl_off_t announced = -1;
        (void)curl_easy_getinfo(handle->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
        if (announced > (curl_off_t)length && announced <= (curl_off_t)transfer->origin->max_body &&
            rsc_buffer_reserve(&transfer->received, (size_t)announced) != RSC_OK) {
            return 0;
        }
    }
    return rsc_buffer_append(&transfer->received, bytes, length) == RSC_OK ? length : 0;
}

/* libcurl is about to give the request to a connection. It may come here again with the same request, when a connection
 * that was kept alive turns out to be dead: that is the only place where a second sending can be stopped whatever the
 * method and the size of the body are. */
static int on_request(void *context, char *remote_ip, char *local_ip, int remote_port, int local_port) {
    struct rsc_handle *handle = context;
    (void)remote_ip;
    (void)local_ip;
    (void)remote_port;
    (void)local_port;
    if (handle->requested && !handle->transfer->replay) {
        handle->replay_refused = true;
        return CURL_PREREQFUNC_ABORT;
    }
    handle->requested = true;
    return CURL_PREREQFUNC_OK;
}

static curl_socket_t on_open(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    struct rsc_loop *loop = context;
    (void)purpose;
    return rsc_sockets_open(&loop->sockets, address->family, address->socktype, address->protocol);
}

static int on_close(void *context, curl_socket_t fd) {
    struct rsc_loop *loop = context;
    return rsc_sockets_close(&loop->sockets, fd);
}

CURLcode rsc_transfer_set_callbacks(CURL *easy, struct rsc_handle *handle) {
    struct rsc_loop *loop = handle->origin->loop;
    CURLcode codes[] = {
        curl_easy_setopt(easy, CURLOPT_PRIVATE, handle),
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, handle->error),
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header),
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, handle),
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body),
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, handle),
        curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_request),
        curl_easy_setopt(easy, CURLOPT_PREREQDATA, handle),
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open),
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, loop),
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close),
        /* The connection outlives the handle; the loop outlives both. */
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, loop),
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i] != CURLE_OK) {
            return codes[i];
        }
    }
    return CURLE_OK;
}

/* Starting */

static enum rsc_shape shape_of(const struct rsc_transfer *transfer) {
    if (transfer->has_body) {
        return RSC_SHAPE_FIELDS;
    }
    return strcmp(transfer->method, "HEAD") == 0 ? RSC_SHAPE_HEAD : RSC_SHAPE_GET;
}

static const char *native_method(enum rsc_shape shape) {
    return shape == RSC_SHAPE_FIELDS ? "POST" : shape == RSC_SHAPE_HEAD ? "HEAD" : "GET";
}

/* Setting an option costs, so the method's are left alone where the handle's last transfer had the same. */
static CURLcode set_method(struct rsc_handle *handle, const struct rsc_transfer *transfer) {
    static const CURLoption options[] = {
        [RSC_SHAPE_GET] = CURLOPT_HTTPGET, [RSC_SHAPE_HEAD] = CURLOPT_NOBODY, [RSC_SHAPE_FIELDS] = CURLOPT_POST};
    enum rsc_shape shape = shape_of(transfer);
    CURLcode code = CURLE_OK;
    if (handle->shape != shape) {
        handle->shape = RSC_SHAPE_NONE;
        code = curl_easy_setopt(handle->easy, options[shape], 1L);
        if (code != CURLE_OK) {
            return code;
        }
        handle->shape = shape;
    }
    const char *custom = strcmp(transfer->method, native_method(shape)) == 0 ? "" : transfer->method;
    if (strcmp(handle->custom, custom) != 0) {
        code = curl_easy_setopt(handle->easy, CURLOPT_CUSTOMREQUEST, custom[0] != '\0' ? custom : NULL);
        if (code == CURLE_OK) {
            memcpy(handle->custom, custom, strlen(custom) + 1);
        }
    }
    return code;
}

static CURLcode set_request(struct rsc_handle *handle, struct rsc_transfer *transfer) {
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
    if (code == CURLE_OK && handle->connect_timeout != transfer->connect_timeout) {
        code = curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, transfer->connect_timeout);
        handle->connect_timeout = code == CURLE_OK ? transfer->connect_timeout : -1;
    }
    return code;
}

void rsc_transfer_launch(struct rsc_transfer *transfer) {
    struct rsc_loop *loop = transfer->operation.loop;
    struct rsc_origin *origin = transfer->origin;
    if (transfer->operation.state == RSC_QUEUED) {
        loop->queued_count--;
        rsc_list_remove(&transfer->operation.link);
    }
    transfer->operation.state = RSC_ACTIVE;
    transfer->launched_at = rsc_now();
    loop->transfer_count++;
    struct rsc_handle *handle = rsc_origin_acquire(origin);
    CURLcode code = CURLE_OUT_OF_MEMORY;
    if (handle != NULL) {
        handle->requested = handle->replay_refused = false;
        handle->error[0] = '\0';
        handle->transfer = transfer;
        transfer->handle = handle;
        origin->active++;
        code = set_request(handle, transfer);
        if (code == CURLE_OK && curl_multi_add_handle(loop->multi, handle->easy) == CURLM_OK) {
            return;
        }
    }
    fail(transfer, RSC_NETWORK, RSC_PHASE_QUEUE);
    explain(transfer, "the request to %s could not be started (%s)", origin->name,
            curl_easy_strerror(code == CURLE_OK ? CURLE_OUT_OF_MEMORY : code));
    detach(transfer);
    rsc_loop_finish(&transfer->operation);
}

int rsc_transfer_send(struct rsc_transfer *transfer) {
    struct rsc_loop *loop = transfer->operation.loop;
    struct rsc_origin *origin = transfer->origin;
    uint64_t now = rsc_now();
    int status = rsc_timers_add(&loop->timers, &transfer->operation.timer, now + transfer->timeout);
    if (status != RSC_OK) {
        return status;
    }
    transfer->sent_at = now;
    add_defaults(transfer);
    transfer->operation.state = RSC_QUEUED;
    loop->queued_count++;
    rsc_list_append(&origin->queue, &transfer->operation.link);
    rsc_origin_pump(origin);
    rsc_loop_advance(loop);
    rsc_loop_sync(loop);
    return RSC_OK;
}

/* Ending */

static struct rsc_transfer *transfer_of(CURL *easy) {
    struct rsc_handle *handle = NULL;
    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&handle);
    return handle != NULL ? handle->transfer : NULL;
}

void rsc_transfer_complete(CURL *easy, CURLcode code) {
    struct rsc_transfer *transfer = transfer_of(easy);
    if (transfer == NULL) {
        return;
    }
    if (code == CURLE_OK) {
        succeed(transfer);
    } else {
        fail_with_code(transfer, code);
    }
    finish(transfer);
}

void rsc_transfer_expire(struct rsc_operation *operation) {
    struct rsc_transfer *transfer = (struct rsc_transfer *)operation;
    static const char *const doing[] = {
        [RSC_PHASE_QUEUE] = "waiting for its turn to ask",
        [RSC_PHASE_NAME_LOOKUP] = "looking up the address of",
        [RSC_PHASE_CONNECT] = "connecting to",
        [RSC_PHASE_TLS] = "in the TLS handshake with",
        [RSC_PHASE_FIRST_BYTE] = "waiting for an answer from",
        [RSC_PHASE_BODY] = "receiving the answer from",
    };
    fail(transfer, RSC_TIMEOUT, phase_of(transfer));
    explain(transfer, "timed out after %g s %s %s", (double)transfer->timeout / NS_PER_S,
            doing[transfer->outcome.failure.phase], transfer->origin->name);
    finish(transfer);
}

void rsc_transfer_doom(CURL *easy, int error_number) {
    char text[128];
    struct rsc_transfer *transfer = transfer_of(easy);
    if (transfer == NULL) {
        return;
    }
    fail(transfer, RSC_NETWORK, phase_of(transfer));
    explain(transfer, "the connection to %s cannot be waited for (%s)", transfer->origin->name,
            rsc_strerror(error_number, text, sizeof text));
    rsc_list_remove(&transfer->operation.link);
    rsc_list_append(&transfer->operation.loop->doomed, &transfer->operation.link);
}

void rsc_transfer_abandon(struct rsc_operation *operation) {
    struct rsc_transfer *transfer = (struct rsc_transfer *)operation;
    transfer->outcome.failure.sent = transfer->handle != NULL && transfer->handle->requested;
    finish(transfer);
}

void rsc_transfer_cancel(struct rsc_transfer *transfer) {
    unsigned char state = transfer->operation.state;
    struct rsc_loop *loop = transfer->operation.loop;
    if (state != RSC_QUEUED && state != RSC_ACTIVE && state != RSC_FINISHED) {
        return;
    }
    if (state == RSC_FINISHED) {
        bool sent = !transfer->failed || transfer->outcome.failure.sent;
        rsc_operation_cancel(&transfer->operation);
        fail(transfer, RSC_CANCELLATION, RSC_PHASE_BODY);
        transfer->outcome.failure.sent = sent;
    } else {
        fail(transfer, RSC_CANCELLATION, phase_of(transfer));
        detach(transfer);
        transfer->operation.state = RSC_CANCELLED;
        rsc_origin_pump(transfer->origin);
        if (!loop->closed) {
            rsc_loop_advance(loop);
            rsc_loop_sync(loop);
        }
    }
    explain(transfer, "the request to %s was cancelled", transfer->origin->name);
}

void rsc_transfer_close(struct rsc_transfer *transfer) {
    rsc_transfer_cancel(transfer);
    rsc_buffer_free(&transfer->received);
    transfer->head_size = 0;
}

struct rsc_text rsc_transfer_body(const struct rsc_transfer *transfer) {
    if (transfer->received.data == NULL) {
        return (struct rsc_text){"", 0};
    }
    return (struct rsc_text){transfer->received.data + transfer->head_size,
                             transfer->received.length - transfer->head_size};
}
