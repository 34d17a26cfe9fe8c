#include "http/failure.h"

#include <string.h>

#include "http/libcurl.h"

#define NAME(id, name) name,
static const char *const kind_names[] = {RSC_FAILURE_KINDS(NAME)};
static const char *const phase_names[] = {RSC_PHASES(NAME)};
#undef NAME

/* The first row that applies counts. The last row applies to every other code: libcurl has more for options that nobody
 * sets. */
static const struct rsc_failure_row rows[] = {
    {CURLE_OPERATION_TIMEDOUT, NULL, RSC_TIMEOUT, "timed out connecting to"},
    {CURLE_COULDNT_RESOLVE_HOST, NULL, RSC_NETWORK, "could not find the address of"},
    {CURLE_COULDNT_RESOLVE_PROXY, NULL, RSC_NETWORK, "could not find the address of the proxy to"},
    {CURLE_COULDNT_CONNECT, NULL, RSC_NETWORK, "could not connect to"},
    {CURLE_PROXY, NULL, RSC_NETWORK, "could not connect through the proxy to"},
    {CURLE_SEND_ERROR, NULL, RSC_NETWORK, "lost the connection while sending to"},
    {CURLE_RECV_ERROR, "chunk", RSC_PROTOCOL, "bad chunked encoding from"},
    {CURLE_RECV_ERROR, "CONNECT", RSC_NETWORK, "the proxy refused a tunnel to"},
    {CURLE_RECV_ERROR, NULL, RSC_NETWORK, "lost the connection while receiving from"},
    {CURLE_GOT_NOTHING, NULL, RSC_NETWORK, "no answer before the connection was closed by"},
    {CURLE_PARTIAL_FILE, NULL, RSC_NETWORK, "incomplete answer from"},
    {CURLE_HTTP2, NULL, RSC_NETWORK, "HTTP/2 connection failed to"},
    {CURLE_HTTP2_STREAM, NULL, RSC_NETWORK, "HTTP/2 stream failed to"},
    {CURLE_OUT_OF_MEMORY, NULL, RSC_PROTOCOL, "not enough memory, or a header line above libcurl's limit, for"},
    /* libcurl uses one code for a refused handshake and for a connection lost during it. */
    {CURLE_SSL_CONNECT_ERROR, " in connection to ", RSC_NETWORK, "lost the connection during the TLS handshake with"},
    {CURLE_SSL_CONNECT_ERROR, "Recv failure", RSC_NETWORK, "lost the connection during the TLS handshake with"},
    {CURLE_SSL_CONNECT_ERROR, "Send failure", RSC_NETWORK, "lost the connection during the TLS handshake with"},
    {CURLE_SSL_CONNECT_ERROR, "unexpected eof", RSC_NETWORK, "lost the connection during the TLS handshake with"},
    {CURLE_SSL_CONNECT_ERROR, NULL, RSC_TLS, "TLS handshake failed with"},
    {CURLE_PEER_FAILED_VERIFICATION, NULL, RSC_TLS, "could not verify the certificate of"},
    {CURLE_SSL_CACERT_BADFILE, NULL, RSC_TLS, "could not read the CA file for"},
    {CURLE_SSL_CERTPROBLEM, NULL, RSC_TLS, "could not use the client certificate for"},
    {RSC_CURLE_SSL_CLIENTCERT, NULL, RSC_TLS, "a client certificate is required by"},
    {CURLE_SSL_CIPHER, NULL, RSC_TLS, "no common cipher with"},
    {CURLE_UNSUPPORTED_PROTOCOL, NULL, RSC_PROTOCOL, "not HTTP, from"},
    {CURLE_WEIRD_SERVER_REPLY, NULL, RSC_PROTOCOL, "malformed answer from"},
    {CURLE_BAD_CONTENT_ENCODING, NULL, RSC_PROTOCOL, "the body could not be decompressed, from"},
    {RSC_CURLE_TOO_LARGE, NULL, RSC_PROTOCOL, "too large an answer from"},
    {CURLE_OK, NULL, RSC_PROTOCOL, "transfer failed with"},
};

const char *rsc_failure_kind_name(enum rsc_failure_kind kind) {
    return kind_names[kind];
}

const char *rsc_phase_name(enum rsc_phase phase) {
    return phase_names[phase];
}

const struct rsc_failure_row *rsc_failure_find(CURLcode code, const char *detail) {
    const struct rsc_failure_row *last = rows + sizeof rows / sizeof *rows - 1;
    const struct rsc_failure_row *row = rows;
    while (row < last && !(row->code == code && (row->hint == NULL || strstr(detail, row->hint) != NULL))) {
        row++;
    }
    return row;
}
