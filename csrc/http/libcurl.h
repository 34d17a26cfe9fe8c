/* libcurl's version information and its initialization. Both happen once per process, because libcurl's functions for
 * them are not safe to call from two threads. (Initialization is safe since 7.84.) */
#ifndef RSC_LIBCURL_H
#define RSC_LIBCURL_H

struct rsc_libcurl {
    char version[256];     /* for display, such as "libcurl/7.88.1 OpenSSL/3.0.19" */
    unsigned number;       /* such as 0x075801 */
    const char *ca_bundle; /* its built-in path of the CA file, or NULL */
};

/* Any thread may call this. The result is static. */
const struct rsc_libcurl *rsc_libcurl(void);

/* Any thread may call this. Call it before the first handle. */
void rsc_libcurl_initialize(void);

#endif
