/* Preloaded: a resolver that never answers, whatever name it is asked for. */
#include <netdb.h>
#include <unistd.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
    (void)node, (void)service, (void)hints, (void)result;
    for (;;) {
        pause();
    }
}
