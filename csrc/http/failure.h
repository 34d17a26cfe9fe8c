/* Failures of a transfer: their kinds and phases, and the table that maps libcurl's codes to them. */
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
    X(RSC_PROTOCOL, "protocol")

/* How far the transfer got, in order. */
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

#define RSC_FAILURE_MESSAGE_MAX 512 /* bytes, with the final NUL */

struct rsc_failure {
    enum rsc_failure_kind kind;
    enum rsc_phase phase;
    bool sent;            /* part of the request may have been sent */
    bool dead_connection; /* a kept-alive connection was lost before anything of a response came */
    char *message;        /* malloc'ed and owned by the struct; NULL if memory ran out */
};

struct rsc_failure_row {
    CURLcode code;
    const char *hint; /* the row applies only if libcurl's message contains this; NULL for always */
    enum rsc_failure_kind kind;
    const char *problem; /* precedes the peer's name in messages */
};

const char *rsc_failure_kind_name(enum rsc_failure_kind kind);
const char *rsc_phase_name(enum rsc_phase phase);

/* Returns the row for a code, never NULL. `detail` is libcurl's message, which may be empty. */
const struct rsc_failure_row *rsc_failure_find(CURLcode code, const char *detail);

#endif
