#include "http/libcurl.h"

#include <curl/curl.h>
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

void rsc_libcurl_initialize(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, initialize);
}
