#include "base/poller.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct rsc_poller_kind *choose(void) {
#if defined(__linux__)
    const char *name = getenv("RISKSCREEN_POLLER");
    if (name == NULL || strcmp(name, "poll") != 0) {
        return &rsc_poller_epoll;
    }
#endif
    return &rsc_poller_poll;
}

int rsc_poller_open(struct rsc_poller *poller) {
    poller->kind = choose();
    int status = poller->kind->open(poller);
    if (status != 0) {
        int reason = errno;
        rsc_poller_close(poller);
        errno = reason;
    }
    return status;
}

void rsc_poller_forget(struct rsc_poller *poller) {
    poller->epoll = poller->timerfd = poller->eventfd = -1;
}

void rsc_poller_close(struct rsc_poller *poller) {
    if (poller->kind != NULL) {
        poller->kind->close(poller);
        poller->kind = NULL;
    }
}
