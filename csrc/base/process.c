#include "base/process.h"

#include <pthread.h>

unsigned rsc_forks;

static void count(void) {
    rsc_forks++;
}

static void watch(void) {
    (void)pthread_atfork(NULL, NULL, count);
}

unsigned rsc_process_current(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, watch);
    return rsc_forks;
}
