/* What libcurl says of itself, and its initialization. libcurl answers in memory of its own that each call writes anew,
 * and versions before 7.84 may not be initialized by two threads at once: here both happen once in the process. */
#ifndef RSC_LIBCURL_H
#define RSC_LIBCURL_H

struct rsc_libcurl {
    char version[256];     /* for people: "libcurl/7.88.1 OpenSSL/3.0.19", cut where it is longer */
    unsigned number;       /* such as 0x075801 */
    const char *ca_bundle; /* the CA file it was built to use, or NULL */
};

/* Any thread; lives as long as the process. */
const struct rsc_libcurl *rsc_libcurl(void);

/* Any thread; before the first handle. */
void rsc_libcurl_initialize(void);

#endif
