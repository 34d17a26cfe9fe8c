/* The loop under signals, which a Lua program cannot send at a chosen moment. */
#include <signal.h>
#include <string.h>
#include <sys/time.h>

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

int main(void) {
    struct rsc_loop loop;
    struct rsc_operation timer;
    struct rsc_error error;
    memset(&loop, 0, sizeof loop);
    memset(&timer, 0, sizeof timer);
    CHECK(rsc_loop_open(&loop, 0, &error) == RSC_OK, "%s", error.message);
    rsc_operation_init(&timer, &loop, RSC_TIMER);
    CHECK(rsc_timer_start(&timer, UINT64_C(3600) * 1000000000) == RSC_OK, "no timer");
    start_alarms();
    CHECK(rsc_loop_step(&loop, RSC_NEVER, RSC_NEVER) == 0, "the timer of an hour has finished");
    CHECK(timer.state == RSC_ACTIVE, "the timer is gone");
    rsc_loop_close(&loop);
    CHECK(timer.state == RSC_CANCELLED, "the timer is left in a closed loop");
    rsc_loop_close(&loop);
    return 0;
}
