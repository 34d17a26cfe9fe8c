#include "http/origin.h"

#include <stdlib.h>
#include <string.h>

#include "http/curl_options.h"
#include "http/libcurl.h"
#include "http/transfer.h"

/* The base URL */

/* Returns a part of the URL, or NULL. The caller frees it with curl_free. */
static char *part_of(CURLU *url, CURLUPart what, unsigned flags) {
    char *part = NULL;
    return curl_url_get(url, what, &part, flags) == CURLUE_OK ? part : NULL;
}

static int open_url(struct rsc_origin *origin, const struct rsc_origin_options *options, struct rsc_error *error) {
    origin->url = curl_url();
    if (origin->url == NULL) {
        return rsc_error_set(error, RSC_ERROR_MEMORY, 0, "libcurl could not make a URL");
    }
    CURLUcode code = curl_url_set(origin->url, CURLUPART_URL, options->base_url, 0);
    if (code != CURLUE_OK) {
        return rsc_error_set(error, code == CURLUE_OUT_OF_MEMORY ? RSC_ERROR_MEMORY : RSC_ERROR_SYNTAX, 0,
                             "base_url is not a URL (libcurl: CURLUcode %d)", (int)code);
    }
    origin->tls = strncmp(options->base_url, "https://", 8) == 0;
    char *host = part_of(origin->url, CURLUPART_HOST, 0);
    char *port = part_of(origin->url, CURLUPART_PORT, CURLU_DEFAULT_PORT);
    bool is_http = origin->tls || strncmp(options->base_url, "http://", 7) == 0;
    const char *rest = options->base_url + (origin->tls ? 8 : 7);
    if (is_http && host != NULL && port != NULL && rest[strcspn(rest, "/?#@")] == '\0') {
        (void)snprintf(origin->name, sizeof origin->name, "%s:%s%s%s", host, port, origin->local ? " at " : "",
                       origin->local ? options->unix_socket : "");
    } else {
        is_http = false;
        (void)rsc_error_set(error, RSC_ERROR_SYNTAX, 0,
                            "base_url must be http:// or https://, a host and maybe a port, and nothing else");
    }
    curl_free(host);
    curl_free(port);
    return is_http ? RSC_OK : error->code;
}

/* Opening and closing */

static int open_origin(struct rsc_origin *origin, struct rsc_loop *loop, const struct rsc_origin_options *options,
                       struct rsc_error *error) {
    origin->loop = loop;
    origin->references = 1;
    rsc_link_init(&origin->link);
    rsc_link_init(&origin->handles);
    rsc_link_init(&origin->shards);
    rsc_link_init(&origin->queue);
    origin->concurrency = (long)options->concurrency;
    origin->connect_timeout = rsc_seconds_to_ms(options->connect_timeout);
    origin->max_body = (size_t)options->max_body;
    origin->max_headers = (size_t)options->max_headers;
    origin->local = options->unix_socket != NULL;
    origin->compression = options->compression;
    rsc_list_append(&loop->origins, &origin->link);
    rsc_loop_adjust(loop, origin->concurrency);
    int status = open_url(origin, options, error);
    if (status == RSC_OK) {
        origin->proxied = options->proxy != NULL;
        origin->direct = !origin->tls && !origin->proxied;
        origin->http_1 = rsc_curl_http_version(origin, options) == CURL_HTTP_VERSION_1_1;
        bool sharded = origin->http_1 && rsc_libcurl()->number >= RSC_LIBCURL_FINDS_SHARED;
        origin->shard_handles = sharded ? RSC_SHARD_HANDLES : SIZE_MAX;
        status = rsc_curl_options_set(origin, options, error);
    }
    return status;
}

struct rsc_origin *rsc_origin_new(struct rsc_loop *loop, const struct rsc_origin_options *options,
                                  struct rsc_error *error) {
    struct rsc_origin *origin = calloc(1, sizeof *origin);
    if (origin == NULL) {
        (void)rsc_error_set(error, RSC_ERROR_MEMORY, 0, "not enough memory");
    } else if (open_origin(origin, loop, options, error) != RSC_OK) {
        rsc_origin_drop(origin);
        return NULL;
    }
    return origin;
}

static void free_handle(struct rsc_handle *handle) {
    rsc_list_remove(&handle->handles);
    curl_easy_cleanup(handle->easy);
    rsc_headers_refer(&handle->headers, NULL);
    free(handle);
}

/* Frees a shard without transfers, and closes its connections. */
static void free_shard(struct rsc_origin *origin, struct rsc_shard *shard) {
    rsc_list_remove(&shard->link);
    for (struct rsc_handle *handle = shard->idle, *next; handle != NULL; handle = next) {
        next = handle->next_idle;
        free_handle(handle);
        origin->idle_count--;
    }
    if (shard->cache != NULL) {
        struct rsc_sigpipe sigpipe;
        rsc_sigpipe_hold(&sigpipe);
        (void)curl_share_cleanup(shard->cache);
        rsc_sigpipe_release(&sigpipe);
    }
    free(shard);
}

void rsc_origin_close(struct rsc_origin *origin) {
    if (rsc_loop_inherited(origin->loop)) {
        rsc_loop_close(origin->loop); /* which closes its origins, or is doing so */
    }
    if (origin->closed) {
        return;
    }
    origin->closed = true;
    while (!rsc_list_empty(&origin->shards)) {
        free_shard(origin, RSC_CONTAINER(origin->shards.next, struct rsc_shard, link));
    }
    rsc_headers_refer(&origin->headers, NULL);
    curl_easy_cleanup(origin->model);
    curl_url_cleanup(origin->url);
    origin->model = NULL;
    origin->url = NULL;
    rsc_loop_adjust(origin->loop, -origin->concurrency);
    rsc_list_remove(&origin->link);
}

void rsc_origin_drop(struct rsc_origin *origin) {
    if (--origin->references == 0) {
        rsc_origin_close(origin);
        free(origin);
    }
}

/* The pool of easy handles */

static struct rsc_shard *new_shard(struct rsc_origin *origin) {
    struct rsc_shard *shard = calloc(1, sizeof *shard);
    if (shard == NULL) {
        return NULL;
    }
    rsc_link_init(&shard->link);
    if (origin->shard_handles == RSC_SHARD_HANDLES) {
        shard->cache = curl_share_init();
        if (shard->cache == NULL ||
            curl_share_setopt(shard->cache, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT) != CURLSHE_OK) {
            free_shard(origin, shard);
            return NULL;
        }
    }
    rsc_list_prepend(&origin->shards, &shard->link);
    return shard;
}

static struct rsc_handle *new_handle(struct rsc_origin *origin, struct rsc_shard *shard) {
    struct rsc_handle *handle = calloc(1, sizeof *handle);
    if (handle == NULL) {
        return NULL;
    }
    handle->origin = origin;
    handle->shard = shard;
    handle->connect_timeout = -1;
    handle->easy = curl_easy_duphandle(origin->model);
    if (handle->easy == NULL || curl_easy_setopt(handle->easy, CURLOPT_SHARE, shard->cache) != CURLE_OK ||
        rsc_transfer_set_callbacks(handle->easy, handle) != CURLE_OK) {
        curl_easy_cleanup(handle->easy);
        free(handle);
        return NULL;
    }
    rsc_list_append(&origin->handles, &handle->handles);
    shard->handle_count++;
    return handle;
}

struct rsc_handle *rsc_origin_acquire(struct rsc_origin *origin) {
    struct rsc_shard *shard = rsc_list_empty(&origin->shards)
                                  ? new_shard(origin)
                                  : RSC_CONTAINER(origin->shards.next, struct rsc_shard, link);
    if (shard == NULL) {
        return NULL;
    }
    struct rsc_handle *handle = shard->idle;
    if (handle != NULL) {
        shard->idle = handle->next_idle;
        origin->idle_count--;
    } else {
        handle = new_handle(origin, shard);
    }
    if (handle != NULL) {
        shard->active_count++;
    }
    if (shard->idle == NULL && shard->handle_count == origin->shard_handles) {
        rsc_list_remove(&shard->link);
    }
    return handle;
}

/* Frees the shard whose last transfer ended the longest ago, if that is long enough. */
static void shrink(struct rsc_origin *origin, uint64_t now) {
    struct rsc_shard *last = RSC_CONTAINER(origin->shards.previous, struct rsc_shard, link);
    if (last->active_count == 0 && now - last->released_at > RSC_SHARD_IDLE_MAX) {
        free_shard(origin, last);
    }
}

void rsc_origin_release(struct rsc_handle *handle) {
    struct rsc_origin *origin = handle->origin;
    struct rsc_shard *shard = handle->shard;
    struct rsc_sigpipe sigpipe;
    rsc_sigpipe_hold(&sigpipe); /* libcurl may close the connection */
    (void)curl_multi_remove_handle(origin->loop->multi, handle->easy);
    rsc_sigpipe_release(&sigpipe);
    handle->transfer = NULL;
    handle->next_idle = shard->idle;
    shard->idle = handle;
    shard->active_count--;
    origin->idle_count++;
    rsc_list_remove(&shard->link);
    rsc_list_prepend(&origin->shards, &shard->link);
    shard->released_at = rsc_now();
    shrink(origin, shard->released_at);
}

bool rsc_origin_start_next(struct rsc_origin *origin) {
    if (origin->active >= origin->concurrency || rsc_list_empty(&origin->queue)) {
        return false;
    }
    rsc_transfer_launch((struct rsc_transfer *)RSC_CONTAINER(origin->queue.next, struct rsc_operation, link));
    return true;
}
