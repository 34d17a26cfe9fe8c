/* libcurl's version information and its initialization. Both happen once per process, because libcurl's functions for
 * them are not safe to call from two threads. (Initialization is safe since 7.84.) */
#ifndef RSC_LIBCURL_H
#define RSC_LIBCURL_H

#include <curl/curl.h>
#include <signal.h>
#include <stdbool.h>

#define RSC_LIBCURL_OLDEST 0x074A00 /* 7.74.0 */

/* From this version on, libcurl calls CURLOPT_PREREQFUNCTION before each request, which stops it from sending one
 * again.
 */
#define RSC_LIBCURL_PREREQ 0x075000 /* 7.80.0 */

/* From this version on, libcurl itself leaves a kept connection with unread bytes. */
#define RSC_LIBCURL_CHECKS_INPUT 0x080000 /* 8.0.0 */

/* From this version on, CURLINFO_ACTIVESOCKET and curl_easy_recv find a connection that is in a share. */
#define RSC_LIBCURL_FINDS_SHARED 0x075300 /* 7.83.0 */

/* From this version on, rsc_libcurl_spoke_http_2 tells. It also needs its headers. */
#define RSC_LIBCURL_TELLS_HTTP_2 0x075400 /* 7.84.0 */

/* Codes and options that the oldest libcurl lacks, by their numbers. Headers of any version do, and an older libcurl at
 * run time answers CURLE_UNKNOWN_OPTION. */
#define RSC_CURLE_SSL_CLIENTCERT ((CURLcode)98)
#define RSC_CURLE_TOO_LARGE      ((CURLcode)100)

#define RSC_CURLOPT_PROTOCOLS      ((CURLoption)(CURLOPTTYPE_LONG + 181)) /* deprecated by the next one */
#define RSC_CURLOPT_PROTOCOLS_STR  ((CURLoption)(CURLOPTTYPE_OBJECTPOINT + 318))
#define RSC_CURLOPT_QUICK_EXIT     ((CURLoption)(CURLOPTTYPE_LONG + 322))
#define RSC_CURLOPT_PREREQFUNCTION ((CURLoption)(CURLOPTTYPE_FUNCTIONPOINT + 312))
#define RSC_CURLOPT_PREREQDATA     ((CURLoption)(CURLOPTTYPE_OBJECTPOINT + 313))

struct rsc_libcurl {
    char version[256];     /* for display, such as "libcurl/7.88.1 OpenSSL/3.0.19" */
    unsigned number;       /* such as 0x075801 */
    const char *ca_bundle; /* its built-in path of the CA file, or NULL */
};

/* Any thread may call this. The result is static. */
const struct rsc_libcurl *rsc_libcurl(void);

/* Returns the first code that is no CURLE_OK, or CURLE_OK. */
CURLcode rsc_libcurl_first_error(const CURLcode *codes, size_t count);

/* Any thread may call this. Call it before the first handle. */
void rsc_libcurl_initialize(void);

/* Whether libcurl can tell if an answer came by HTTP/2. It writes such a status line itself, but a server of HTTP/1 may
 * write the same one. */
bool rsc_libcurl_tells_http_2(void);

/* Whether the answer whose head this handle receives came by HTTP/2. */
bool rsc_libcurl_spoke_http_2(CURL *easy);

/* Before 7.87, libcurl lets OpenSSL write to a connection that the peer has closed, and SIGPIPE would end the program.
 * Between rsc_sigpipe_hold and rsc_sigpipe_release this thread ignores it. Both do nothing with a newer libcurl. */
struct rsc_sigpipe {
    bool held, pending;
    sigset_t before;
};

void rsc_sigpipe_hold(struct rsc_sigpipe *sigpipe);
void rsc_sigpipe_release(const struct rsc_sigpipe *sigpipe);

#endif
