/* The pool of an origin after a burst of requests. A Lua program would have to wait for a minute. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "check.h"
#include "http/origin.h"
#include "http/transfer.h"

#define BURST (RSC_SHARD_HANDLES + 1) /* transfers at once, for two shards */

/* Nobody accepts the connections, so the transfers are under way together until they are cancelled. */
static void run(struct rsc_origin *origin, size_t count) {
    struct rsc_text get = {"GET", 3}, root = {"/", 1};
    struct rsc_headers *none = rsc_headers_new(origin, 0, 0);
    CHECK(none != NULL, "no memory");
    uint64_t timeout = UINT64_C(3600) * RSC_NS_PER_S;
    struct rsc_request request = {
        .method = get, .target = root, .headers = none, .timeout = timeout, .connect_timeout = 3600000};
    struct rsc_transfer *transfers[BURST];
    for (size_t i = 0; i < count; i++) {
        CHECK(rsc_transfer_send(origin, &request, &transfers[i]) == RSC_OK, "transfer %zu", i);
    }
    for (size_t i = 0; i < count; i++) {
        CHECK(transfers[i]->operation.state == RSC_ACTIVE, "transfer %zu is not under way", i);
        rsc_operation_cancel(&transfers[i]->operation);
    }
    rsc_headers_refer(&none, NULL);
}

/* The URL of a listener. */
static const char *listen_somewhere(void) {
    static char url[40];
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&place, sizeof place) == 0 && listen(listener, SOMAXCONN) == 0, "listen");
    CHECK(getsockname(listener, (struct sockaddr *)&place, &(socklen_t){sizeof place}) == 0, "getsockname");
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(place.sin_port));
    return url;
}

int main(void) {
    static struct rsc_loop loop;
    struct rsc_error error;
    struct rsc_origin_options options = {.base_url = listen_somewhere(), .concurrency = BURST, .max_headers = 1024};
    CHECK(rsc_loop_open(&loop, &error) == RSC_OK, "%s", error.message);
    struct rsc_origin *origin = rsc_origin_new(&loop, &options, &error);
    CHECK(origin != NULL, "%s", error.message);
    run(origin, BURST);
    run(origin, 1);
    CHECK(origin->idle_count == BURST, "%zu handles after a burst", origin->idle_count);
    struct rsc_shard *unused = RSC_CONTAINER(origin->shards.previous, struct rsc_shard, link);
    size_t unneeded = unused->handle_count;
    unused->released_at -= UINT64_C(50) * RSC_NS_PER_S;
    run(origin, 1);
    CHECK(origin->idle_count == BURST, "%zu handles within a minute", origin->idle_count);
    unused->released_at -= UINT64_C(10) * RSC_NS_PER_S;
    run(origin, 1);
    CHECK(origin->idle_count == BURST - unneeded, "%zu handles a minute later", origin->idle_count);
    run(origin, BURST);
    CHECK(origin->idle_count == BURST, "%zu handles after the next burst", origin->idle_count);
    rsc_loop_close(&loop);
    CHECK(origin->idle_count == 0, "%zu handles of a closed origin", origin->idle_count);
    rsc_origin_drop(origin);
    return 0;
}
