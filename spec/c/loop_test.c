/* The loop under signals, which a Lua program cannot send at a chosen moment, and after a fork. */
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "http/loop.h"

static void on_alarm(int number) {
    (void)number;
}

/* Sends a signal every 5 ms, so that one arrives while the step waits. */
static void start_alarms(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_alarm;
    action.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0, "sigaction");
    struct itimerval often = {{0, 5000}, {0, 5000}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0, "setitimer");
}

/* A child that ends its inherited objects takes nothing from the parent. */
static void test_fork(void) {
    struct rsc_loop loop;
    struct rsc_error error;
    int ends[2], status = -1;
    memset(&loop, 0, sizeof loop);
    CHECK(pipe(ends) == 0 && rsc_loop_open(&loop, &error) == RSC_OK, "no loop");
    struct rsc_operation *watch = rsc_watch_start(&loop, ends[0], RSC_READABLE, &error);
    CHECK(watch != NULL, "%s", error.message);
    int64_t number = watch->number;
    pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) {
        CHECK(rsc_loop_inherited(&loop), "the loop is not inherited");
        rsc_loop_close(&loop);
        CHECK(rsc_operation_find(&loop, number) == NULL, "the watch is left in a closed loop");
        struct rsc_loop own;
        memset(&own, 0, sizeof own);
        CHECK(rsc_loop_open(&own, &error) == RSC_OK && !rsc_loop_inherited(&own), "the child has no loop");
        watch = rsc_watch_start(&own, ends[0], RSC_READABLE, &error);
        CHECK(watch != NULL && watch->number != number, "the child's watch has the number of its parent's");
        rsc_loop_close(&own);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0, "the child failed");
    CHECK(!rsc_loop_inherited(&loop) && write(ends[1], "", 1) == 1, "write");
    CHECK(rsc_loop_step(&loop, UINT64_C(60) * RSC_NS_PER_S, RSC_NEVER) == 1, "the watch is not ready");
    rsc_loop_close(&loop);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(void) {
    test_fork();
    struct rsc_loop loop;
    struct rsc_error error;
    memset(&loop, 0, sizeof loop);
    CHECK(rsc_loop_open(&loop, &error) == RSC_OK, "%s", error.message);
    struct rsc_operation *timer = rsc_timer_start(&loop, UINT64_C(3600) * 1000000000);
    CHECK(timer != NULL, "no timer");
    int64_t number = timer->number;
    start_alarms();
    CHECK(rsc_loop_step(&loop, RSC_NEVER, RSC_NEVER) == 0, "the timer of an hour has finished");
    CHECK(rsc_operation_find(&loop, number) == timer, "the timer is gone");
    rsc_operation_cancel(timer);
    timer = rsc_timer_start(&loop, 0);
    CHECK(timer != NULL && rsc_operation_find(&loop, number) == NULL, "a later timer has the number of the first");
    CHECK(rsc_operation_find(&loop, timer->number) == timer, "the later timer is gone");
    rsc_loop_close(&loop);
    CHECK(rsc_operation_find(&loop, number) == NULL, "the timer is left in a closed loop");
    rsc_loop_close(&loop);
    return 0;
}
