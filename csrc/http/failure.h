/* Why a transfer failed: the kinds, the phases and the one table that maps libcurl's codes to them. */
#ifndef RSC_FAILURE_H
#define RSC_FAILURE_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define RSC_FAILURE_KINDS(X)                                                                                           \
    X(RSC_NETWORK, "network")                                                                                          \
    X(RSC_TIMEOUT, "timeout")                                                                                          \
    X(RSC_TLS, "tls")                                                                                                  \
    X(RSC_PROTOCOL, "protocol")                                                                                        \
    X(RSC_CANCELLATION, "cancelled")

/* How far it came, in order. */
#define RSC_PHASES(X)                                                                                                  \
    X(RSC_PHASE_QUEUE, "queue")                                                                                        \
    X(RSC_PHASE_NAME_LOOKUP, "name_lookup")                                                                            \
    X(RSC_PHASE_CONNECT, "connect")                                                                                    \
    X(RSC_PHASE_TLS, "tls")                                                                                            \
    X(RSC_PHASE_FIRST_BYTE, "first_byte")                                                                              \
    X(RSC_PHASE_BODY, "body")

#define RSC_ENUMERATE(id, name) id,
enum rsc_failure_kind { RSC_FAILURE_KINDS(RSC_ENUMERATE) };
enum rsc_phase { RSC_PHASES(RSC_ENUMERATE) };
#undef RSC_ENUMERATE

enum { RSC_ERROR_SYSTEM = 64 /* beside enum rsc_status: the operating system refused */ };

#define RSC_FAILURE_MESSAGE_MAX 512 /* bytes, with the final NUL */

struct rsc_failure {
    enum rsc_failure_kind kind;
    enum rsc_phase phase;
    bool sent;     /* part of the request may have left */
    char *message; /* malloc's; NULL when there was no memory for it */
};

struct rsc_failure_row {
    CURLcode code;
    const char *hint; /* the row applies if libcurl's text contains this; NULL: always */
    enum rsc_failure_kind kind;
    const char *what; /* goes before the name of the peer */
};

const char *rsc_failure_kind_name(enum rsc_failure_kind kind);
const char *rsc_phase_name(enum rsc_phase phase);

/* The row for a code; `detail` is libcurl's text, maybe empty. Never NULL. */
const struct rsc_failure_row *rsc_failure_find(CURLcode code, const char *detail);

/* strerror without shared state; `text` has `size` bytes and may be what is returned. */
const char *rsc_strerror(int number, char *text, size_t size);

/* RSC_ERROR_SYSTEM: what could not be done, and errno's text. */
int rsc_system_error(struct rsc_error *error, const char *what);

#endif
