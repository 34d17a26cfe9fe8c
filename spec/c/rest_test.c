/* A connection whose response is there before libcurl waits for it. It rests before its next request, like any other.
 */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "http/origin.h"
#include "http/transfer.h"

#define ANSWER(text) "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" text
#define PATIENCE     60000 /* ms */

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int listener, unasked[2]; /* a pipe that ends when the unsolicited answer is sent */

/* When libcurl has sent a request, it returns to it after the response has come. */
ssize_t send(int fd, const void *bytes, size_t size, int flags) {
    ssize_t sent = syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    if (memcmp(bytes, "GET", size < 3 ? size : 3) == 0) { /* not what an old libcurl sends to itself */
        CHECK(poll(&answer, 1, PATIENCE) == 1, "no answer");
    }
    return sent;
}

static void say(int fd, const char *text) {
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text), "write");
}

static int accept_request(void) {
    char request[4096];
    int fd = accept(listener, NULL, NULL);
    CHECK(fd >= 0 && read(fd, request, sizeof request) > 0, "no request");
    return fd;
}

/* Answers once on each of two connections. The first gets one more answer. */
static void *serve(void *go_on) {
    char byte;
    int first = accept_request();
    say(first, ANSWER("first"));
    CHECK(read(*(int *)go_on, &byte, 1) == 1, "read");
    say(first, ANSWER("stale"));
    (void)close(unasked[1]);
    int second = accept_request();
    say(second, ANSWER("right"));
    CHECK(read(*(int *)go_on, &byte, 1) == 0, "read");
    (void)close(first);
    (void)close(second);
    return NULL;
}

static void expect(struct rsc_loop *loop, struct rsc_origin *origin, const char *body) {
    struct rsc_request request = {.method = {"GET", 3},
                                  .target = {"/", 1},
                                  .headers = rsc_headers_new(0, 0),
                                  .timeout = UINT64_C(60) * RSC_NS_PER_S,
                                  .connect_timeout = PATIENCE};
    struct rsc_transfer *transfer = calloc(1, rsc_request_size(&request));
    CHECK(transfer != NULL && request.headers != NULL, "no memory");
    rsc_transfer_init(transfer, origin, &request);
    CHECK(rsc_transfer_send(transfer) == RSC_OK, "not sent");
    while (transfer->operation.state == RSC_ACTIVE) {
        (void)rsc_loop_step(loop, RSC_NEVER, RSC_NEVER);
    }
    CHECK(!transfer->failed, "%s", transfer->outcome.failure.message);
    CHECK(strcmp(rsc_transfer_body(transfer).bytes, body) == 0, "%s", rsc_transfer_body(transfer).bytes);
    rsc_operation_take(&transfer->operation);
    rsc_transfer_close(transfer);
    rsc_headers_refer(&request.headers, NULL);
    free(transfer);
}

int main(void) {
    struct rsc_loop loop;
    struct rsc_origin origin;
    struct rsc_error error;
    pthread_t server;
    int go_on[2];
    char byte;
    memset(&loop, 0, sizeof loop);
    memset(&origin, 0, sizeof origin);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "/tmp/rest_test.%d", (int)getpid());
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 2) == 0, "listen");
    CHECK(pipe(unasked) == 0 && pipe(go_on) == 0, "pipe");
    CHECK(pthread_create(&server, NULL, serve, &go_on[0]) == 0, "pthread_create");

    struct rsc_origin_options options = {.base_url = "http://localhost",
                                         .concurrency = 1,
                                         .connect_timeout = PATIENCE,
                                         .max_body = 1000,
                                         .max_headers = 1000,
                                         .unix_socket = address.sun_path};
    CHECK(rsc_loop_open(&loop, 0, &error) == RSC_OK, "%s", error.message);
    CHECK(rsc_origin_open(&origin, &loop, &options, &error) == RSC_OK, "%s", error.message);
    expect(&loop, &origin, "first");
    say(go_on[1], "x");
    CHECK(read(unasked[0], &byte, 1) == 0, "read");
    (void)rsc_loop_step(&loop, 0, RSC_NEVER);
    expect(&loop, &origin, "right");

    rsc_loop_close(&loop);
    (void)close(go_on[1]);
    CHECK(pthread_join(server, NULL) == 0, "pthread_join");
    (void)unlink(address.sun_path);
    return 0;
}
