/* Connections on which more comes than the response. Nobody must take that for the answer to the next request. */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "check.h"
#include "http/libcurl.h"
#include "http/origin.h"
#include "http/transfer.h"

#define ANSWER(text) "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n" text
#define PATIENCE     60000 /* ms */
#define CONCURRENCY  2     /* over TCP; 1 over a Unix domain socket */
#define QUEUED       300   /* transfers */

static struct sockaddr_un address = {.sun_family = AF_UNIX};
static int listener, unasked[2]; /* a pipe that ends when the unsolicited answer is sent */
static bool waits = true;        /* send returns to libcurl after the response has come */
static int requests;             /* sent */
static unsigned pause_us;        /* before a transfer is added */
static int late = -1; /* where a byte makes the server send its unsolicited answer, before a transfer is added */

__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes, size_t size, int flags) {
    ssize_t sent = syscall(SYS_sendto, fd, bytes, size, flags, NULL, 0);
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    if (memcmp(bytes, "GET", size < 3 ? size : 3) == 0) { /* not what an old libcurl sends to itself */
        requests++;
        CHECK(!waits || poll(&answer, 1, PATIENCE) == 1, "no answer");
    }
    return sent;
}

__attribute__((visibility("default"))) CURLMcode curl_multi_add_handle(CURLM *multi, CURL *easy) {
    static CURLMcode (*real)(CURLM *, CURL *);
    *(void **)&real = dlsym(RTLD_NEXT, "curl_multi_add_handle");
    (void)usleep(pause_us);
    if (late >= 0) {
        char byte;
        CHECK(write(late, "x", 1) == 1 && read(unasked[0], &byte, 1) == 0, "no unsolicited answer");
        late = -1;
    }
    return real(multi, easy);
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

static struct rsc_transfer *begin(struct rsc_origin *origin, const char *target) {
    struct rsc_request request = {.method = {"GET", 3},
                                  .target = {target, strlen(target)},
                                  .headers = rsc_headers_new(origin, 0, 0),
                                  .timeout = UINT64_C(60) * RSC_NS_PER_S,
                                  .connect_timeout = PATIENCE};
    struct rsc_transfer *transfer;
    CHECK(request.headers != NULL, "no memory");
    CHECK(rsc_transfer_send(origin, &request, &transfer) == RSC_OK, "not sent");
    rsc_headers_refer(&request.headers, NULL);
    return transfer;
}

static void wait_for(struct rsc_loop *loop, const struct rsc_transfer *transfer) {
    while (transfer->operation.state != RSC_FINISHED) {
        (void)rsc_loop_step(loop, RSC_NEVER, RSC_NEVER);
    }
}

/* Waits for a transfer. `body` is the one that it must have if it does not fail. Returns whether it failed. */
static bool end(struct rsc_loop *loop, struct rsc_transfer *transfer, const char *body) {
    wait_for(loop, transfer);
    bool failed = transfer->failed;
    CHECK(failed || strncmp(rsc_transfer_body(transfer).bytes, body, strlen(body)) == 0, "%s",
          rsc_transfer_body(transfer).bytes);
    rsc_operation_cancel(&transfer->operation);
    return failed;
}

/* Runs a test with a server in a thread of its own, which gets an end of the pipe `go_on`. */
static void with_server(void *serve_it(void *), const struct sockaddr *place, socklen_t size,
                        void test(struct rsc_loop *loop, struct rsc_origin *origin, int go_on)) {
    struct rsc_loop loop;
    struct rsc_error error;
    pthread_t server;
    int go_on[2];
    memset(&loop, 0, sizeof loop);
    char url[100] = "http://localhost";
    bool local = place->sa_family == AF_UNIX;
    listener = socket(place->sa_family, SOCK_STREAM, 0);
    CHECK(bind(listener, place, size) == 0 && listen(listener, 2) == 0, "listen");
    if (!local) {
        struct sockaddr_in bound;
        CHECK(getsockname(listener, (struct sockaddr *)&bound, &(socklen_t){sizeof bound}) == 0, "getsockname");
        (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(bound.sin_port));
    }
    CHECK(pipe(unasked) == 0 && pipe(go_on) == 0, "pipe");
    CHECK(pthread_create(&server, NULL, serve_it, &go_on[0]) == 0, "pthread_create");

    struct rsc_origin_options options = {.base_url = url,
                                         .concurrency = local ? 1 : CONCURRENCY,
                                         .connect_timeout = PATIENCE / 1000,
                                         .max_body = 5000,
                                         .max_headers = 1000,
                                         .unix_socket = local ? address.sun_path : NULL};
    CHECK(rsc_loop_open(&loop, &error) == RSC_OK, "%s", error.message);
    struct rsc_origin *origin = rsc_origin_new(&loop, &options, &error);
    CHECK(origin != NULL, "%s", error.message);
    test(&loop, origin, go_on[1]);

    rsc_loop_close(&loop);
    rsc_origin_drop(origin);
    (void)close(go_on[1]);
    CHECK(pthread_join(server, NULL) == 0, "pthread_join");
    (void)close(listener);
}

/* A connection whose response is there before libcurl waits for it rests before its next request, like any other. */
static void test_never_waited(struct rsc_loop *loop, struct rsc_origin *origin, int go_on) {
    char byte;
    CHECK(!end(loop, begin(origin, "/"), "first"), "the first fails");
    say(go_on, "x");
    CHECK(read(unasked[0], &byte, 1) == 0, "read");
    (void)rsc_loop_step(loop, 0, RSC_NEVER);
    CHECK(!end(loop, begin(origin, "/"), "right"), "the second fails");
}

/* The unsolicited answer comes after the loop has looked for one, and before libcurl sends the next request. */
static void test_late(struct rsc_loop *loop, struct rsc_origin *origin, int go_on) {
    CHECK(!end(loop, begin(origin, "/"), "first"), "the first fails");
    late = go_on;
    struct rsc_transfer *second = begin(origin, "/");
    unsigned libcurl = rsc_libcurl()->number;
    if (libcurl >= RSC_LIBCURL_PREREQ && libcurl < RSC_LIBCURL_CHECKS_INPUT) {
        wait_for(loop, second);
        const struct rsc_failure *failure = &second->outcome.failure;
        CHECK(second->failed && failure->dead_connection && !failure->sent, "%s", rsc_transfer_body(second).bytes);
        CHECK(end(loop, second, ""), "the second succeeds");
        second = begin(origin, "/");
    }
    CHECK(!end(loop, second, "right"), "the next one fails");
}

static const char *extra[2]; /* bytes sent with the first answer, and after the next request on its connection */

/* Answers on one or two connections, on the first with what is extra. */
static void *serve_extra(void *go_on) {
    int first = accept_request();
    struct pollfd next[] = {
        {.fd = listener, .events = POLLIN}, {.fd = *(int *)go_on, .events = POLLIN}, {.fd = first, .events = POLLIN}};
    char byte, answers[4000];
    CHECK(read(*(int *)go_on, &byte, 1) == 1, "read");
    /* Of a body that is longer than its buffer, libcurl reads no byte too many. */
    (void)snprintf(answers, sizeof answers, "HTTP/1.1 200 OK\r\nContent-Length: 3000\r\n\r\n%-3000s%s", "first",
                   extra[0]);
    say(first, answers);
    (void)close(unasked[1]);
    CHECK(poll(next, 3, PATIENCE) > 0, "poll");
    if (next[2].revents != 0) {
        CHECK(read(*(int *)go_on, &byte, 1) == 1, "read");
        (void)send(first, extra[1], strlen(extra[1]), MSG_NOSIGNAL);
        CHECK(poll(next, 2, PATIENCE) > 0, "poll");
    }
    if (next[0].revents != 0) {
        int second = accept_request();
        say(second, ANSWER("right"));
        CHECK(poll(&next[1], 1, PATIENCE) == 1, "poll");
        (void)close(second);
    }
    (void)close(first);
    return NULL;
}

/* libcurl has a timer for a new connection. If it ends while the next transfer is added, libcurl reads the response,
 * and the next transfer takes the connection, in one call. */
static void test_taken(struct rsc_loop *loop, struct rsc_origin *origin, int go_on) {
    char byte;
    waits = false;
    requests = 0;
    struct rsc_transfer *first = begin(origin, "/");
    while (requests == 0) {
        (void)rsc_loop_step(loop, 0, RSC_NEVER);
    }
    say(go_on, "x");
    CHECK(read(unasked[0], &byte, 1) == 0, "read");
    pause_us = 300000;
    struct rsc_transfer *second = begin(origin, "/");
    pause_us = 0;
    say(go_on, "x");
    (void)end(loop, second, "right");
    CHECK(!end(loop, first, "first"), "the first fails");
}

/* Answers every request with its target. */
static void *serve_all(void *go_on) {
    struct pollfd all[2 + QUEUED] = {{.fd = *(int *)go_on, .events = POLLIN}, {.fd = listener, .events = POLLIN}};
    nfds_t count = 2;
    while (poll(all, count, PATIENCE) > 0 && all[0].revents == 0) {
        for (nfds_t i = 2; i < count; i++) {
            char request[4096], answer[100];
            if (all[i].revents != 0) {
                if (read(all[i].fd, request, sizeof request) > 0) {
                    (void)snprintf(answer, sizeof answer, ANSWER("%.5s"), request + strlen("GET "));
                    say(all[i].fd, answer);
                } else {
                    (void)close(all[i].fd);
                    all[i].fd = -1;
                }
            }
        }
        if (all[1].revents != 0) {
            CHECK(count < sizeof all / sizeof *all, "too many connections");
            all[count++] = (struct pollfd){.fd = accept(listener, NULL, NULL), .events = POLLIN};
        }
    }
    return NULL;
}

/* Each response comes within the call of libcurl that sends the request. */
static void test_answered_at_once(struct rsc_loop *loop, struct rsc_origin *origin, int go_on) {
    struct rsc_transfer *transfers[QUEUED];
    char targets[QUEUED][sizeof "/0000"];
    (void)go_on;
    waits = true;
    for (int i = 0; i < QUEUED; i++) {
        (void)snprintf(targets[i], sizeof targets[i], "/%04d", i);
        transfers[i] = begin(origin, targets[i]);
    }
    for (int i = 0; i < QUEUED; i++) {
        CHECK(!end(loop, transfers[i], targets[i]), "request %d fails", i);
    }
}

int main(void) {
    (void)snprintf(address.sun_path, sizeof address.sun_path, "/tmp/rest_test.%d", (int)getpid());
    (void)unlink(address.sun_path); /* of a run that failed */
    with_server(serve, (struct sockaddr *)&address, sizeof address, test_never_waited);
    (void)unlink(address.sun_path);
    with_server(serve, (struct sockaddr *)&address, sizeof address, test_late);
    (void)unlink(address.sun_path);
    struct sockaddr_in anywhere = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    with_server(serve, (struct sockaddr *)&anywhere, sizeof anywhere, test_late);
    static const char *const cases[][2] = {{ANSWER("stale"), ""},
                                           {"HTTP/1.1 200 OK\r\n", "Content-Length: 5\r\n\r\nstale"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memcpy(extra, cases[i], sizeof extra);
        with_server(serve_extra, (struct sockaddr *)&anywhere, sizeof anywhere, test_taken);
    }
    with_server(serve_all, (struct sockaddr *)&anywhere, sizeof anywhere, test_answered_at_once);
    return 0;
}
