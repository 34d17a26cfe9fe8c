/* The cost of libcurl in a C program that does nothing else: the floor for bench/http.lua.
 *
 *   floor easy PORT REQUESTS             one easy handle, the same request again and again
 *   floor call PORT REQUESTS             one easy handle; target, headers and timeout set for each request
 *   floor multi PORT REQUESTS IN_FLIGHT  curl_multi_socket_action over epoll, set for each request likewise
 *   floor perform PORT REQUESTS IN_FLIGHT  curl_multi_perform and curl_multi_poll, likewise
 *
 * With two more arguments the requests differ: the number of each, in 40 hexadecimal digits, comes between the two.
 *
 * Prints the CPU seconds and the wall-clock seconds it took, connecting excluded. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

#define IN_FLIGHT_MAX 1024
#define BODY_MAX      65536 /* bytes */
#define TARGET_MAX    256   /* bytes */

struct slot {
    CURL *easy;
    struct curl_slist *headers;
    size_t length;
    char body[BODY_MAX];
};

static CURLU *base;
static struct slot *slots;
static int epoll;
static CURLM *multi;
static long timeout_ms = -1;
static const char *before_number, *after_number;
static unsigned long number;

static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context) {
    struct slot *slot = context;
    if (slot->length + size * count > BODY_MAX) {
        return 0;
    }
    memcpy(slot->body + slot->length, bytes, size * count);
    slot->length += size * count;
    return size * count;
}

static void check(int code, const char *what) {
    if (code != 0) {
        fprintf(stderr, "floor: %s failed (%d)\n", what, code);
        exit(1);
    }
}

static void open_slot(struct slot *slot) {
    slot->easy = curl_easy_init();
    curl_easy_setopt(slot->easy, CURLOPT_CURLU, base);
    curl_easy_setopt(slot->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(slot->easy, CURLOPT_ACCEPT_ENCODING, "");
    curl_easy_setopt(slot->easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(slot->easy, CURLOPT_WRITEDATA, slot);
    curl_easy_setopt(slot->easy, CURLOPT_PRIVATE, slot);
}

static void set_request(struct slot *slot) {
    curl_slist_free_all(slot->headers);
    slot->headers = curl_slist_append(NULL, "X-Access-Key: 0123456789abcdef0123456789abcdef");
    slot->headers = curl_slist_append(slot->headers, "Accept: application/json");
    slot->length = 0;
    curl_easy_setopt(slot->easy, CURLOPT_HTTPHEADER, slot->headers);
    if (before_number != NULL) {
        char target[TARGET_MAX];
        snprintf(target, sizeof target, "%s%040lx%s", before_number, ++number, after_number);
        curl_easy_setopt(slot->easy, CURLOPT_REQUEST_TARGET, target);
    } else {
        curl_easy_setopt(slot->easy, CURLOPT_REQUEST_TARGET, "/api/v1/entity?network=eth");
    }
    curl_easy_setopt(slot->easy, CURLOPT_TIMEOUT_MS, 10000L);
}

static void run_easy(long requests, int set_each) {
    set_request(&slots[0]);
    for (long i = 0; i < requests; i++) {
        if (set_each) {
            set_request(&slots[0]);
        }
        slots[0].length = 0;
        check(curl_easy_perform(slots[0].easy), "curl_easy_perform");
    }
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *known) {
    struct epoll_event event = {.data.fd = fd};
    (void)easy;
    (void)context;
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    event.events = ((what & CURL_POLL_IN) ? EPOLLIN : 0u) | ((what & CURL_POLL_OUT) ? EPOLLOUT : 0u);
    epoll_ctl(epoll, known != NULL ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event);
    curl_multi_assign(multi, fd, &epoll);
    return 0;
}

static int on_timer(CURLM *handle, long milliseconds, void *context) {
    (void)handle;
    (void)context;
    timeout_ms = milliseconds;
    return 0;
}

static void wait_perform(void) {
    int running;
    check(curl_multi_poll(multi, NULL, 0, 1000, NULL), "curl_multi_poll");
    check(curl_multi_perform(multi, &running), "curl_multi_perform");
}

static void wait_sockets(void) {
    int running;
    struct epoll_event events[128];
    int count = epoll_wait(epoll, events, 128, (int)timeout_ms);
    if (count == 0) {
        curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
    for (int i = 0; i < count; i++) {
        int mask = ((events[i].events & EPOLLIN) ? CURL_CSELECT_IN : 0) |
                   ((events[i].events & EPOLLOUT) ? CURL_CSELECT_OUT : 0);
        curl_multi_socket_action(multi, events[i].data.fd, mask, &running);
    }
}

static void run_multi(long requests, int in_flight, void (*wait)(void)) {
    long started = 0, done = 0;
    int left;
    for (; started < in_flight && started < requests; started++) {
        set_request(&slots[started]);
        check(curl_multi_add_handle(multi, slots[started].easy), "curl_multi_add_handle");
    }
    while (done < requests) {
        wait();
        for (CURLMsg *message; (message = curl_multi_info_read(multi, &left)) != NULL;) {
            CURL *easy = message->easy_handle;
            struct slot *slot;
            check(message->data.result, "a transfer");
            curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&slot);
            curl_multi_remove_handle(multi, easy);
            done++;
            if (started < requests) {
                started++;
                set_request(slot);
                check(curl_multi_add_handle(multi, easy), "curl_multi_add_handle");
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 4) {
        return 2;
    }
    const char *mode = argv[1];
    long requests = atol(argv[3]);
    int in_flight = argc > 4 ? atoi(argv[4]) : 1;
    if (argc > 6) {
        before_number = argv[5];
        after_number = argv[6];
    }
    char url[64];
    snprintf(url, sizeof url, "http://127.0.0.1:%s", argv[2]);
    curl_global_init(CURL_GLOBAL_ALL);
    base = curl_url();
    check(curl_url_set(base, CURLUPART_URL, url, 0), "curl_url_set");
    slots = calloc(IN_FLIGHT_MAX, sizeof *slots);
    if (slots == NULL || in_flight > IN_FLIGHT_MAX) {
        return 2;
    }
    for (int i = 0; i < in_flight; i++) {
        open_slot(&slots[i]);
    }
    epoll = epoll_create1(0);
    multi = curl_multi_init();
    int performs = strcmp(mode, "perform") == 0;
    if (!performs) {
        curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_socket);
        curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    }
    curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)IN_FLIGHT_MAX);
    for (int round = 0; round < 2; round++) {
        long count = round == 0 ? in_flight * 2L : requests;
        double cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
        if (performs || strcmp(mode, "multi") == 0) {
            run_multi(count, in_flight, performs ? wait_perform : wait_sockets);
        } else {
            run_easy(count, strcmp(mode, "call") == 0);
        }
        if (round == 1) {
            printf("%.6f %.6f\n", now(CLOCK_PROCESS_CPUTIME_ID) - cpu, now(CLOCK_MONOTONIC) - wall);
        }
    }
    return 0;
}
