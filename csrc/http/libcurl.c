#include "http/libcurl.h"

#include <pthread.h>
#include <stdio.h>

static struct rsc_libcurl about;

static void read_version(void) {
    const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
    /* curl_version() would also query the LDAP library, which looks up this machine's host name. */
    (void)snprintf(about.version, sizeof about.version, "libcurl/%s %s", info->version,
                   info->ssl_version != NULL ? info->ssl_version : "without TLS");
    about.number = info->version_num;
    about.ca_bundle = info->age >= CURLVERSION_SEVENTH ? info->cainfo : NULL;
}

static void initialize(void) {
    (void)curl_global_init(CURL_GLOBAL_ALL);
}

const struct rsc_libcurl *rsc_libcurl(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, read_version);
    return &about;
}

CURLcode rsc_libcurl_first_error(const CURLcode *codes, size_t count) {
    size_t i = 0;
    while (i < count - 1 && codes[i] == CURLE_OK) {
        i++;
    }
    return codes[i];
}

void rsc_libcurl_initialize(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, initialize);
}

#if LIBCURL_VERSION_NUM >= RSC_LIBCURL_TELLS_HTTP_2
#    pragma weak curl_easy_header /* the libcurl of the run may be older than these headers */

bool rsc_libcurl_tells_http_2(void) {
    return curl_easy_header != NULL && rsc_libcurl()->number >= RSC_LIBCURL_TELLS_HTTP_2;
}

bool rsc_libcurl_spoke_http_2(CURL *easy) {
    struct curl_header *status;
    return rsc_libcurl_tells_http_2() && curl_easy_header(easy, ":status", 0, CURLH_PSEUDO, -1, &status) == CURLHE_OK;
}
#else
bool rsc_libcurl_tells_http_2(void) {
    return false;
}

bool rsc_libcurl_spoke_http_2(CURL *easy) {
    (void)easy;
    return false;
}
#endif

#define SIGPIPE_FIXED 0x075700 /* 7.87.0 */

static bool is_pending(void) {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

void rsc_sigpipe_hold(struct rsc_sigpipe *sigpipe) {
    sigset_t only;
    sigpipe->held = rsc_libcurl()->number < SIGPIPE_FIXED;
    if (sigpipe->held) {
        (void)sigemptyset(&only);
        (void)sigaddset(&only, SIGPIPE);
        sigpipe->pending = is_pending();
        sigpipe->held = pthread_sigmask(SIG_BLOCK, &only, &sigpipe->before) == 0;
    }
}

void rsc_sigpipe_release(const struct rsc_sigpipe *sigpipe) {
    if (!sigpipe->held) {
        return;
    }
    if (!sigpipe->pending && is_pending()) {
        sigset_t only;
        int number;
        (void)sigemptyset(&only);
        (void)sigaddset(&only, SIGPIPE);
        (void)sigwait(&only, &number); /* returns at once */
    }
    (void)pthread_sigmask(SIG_SETMASK, &sigpipe->before, NULL);
}
