#include "http/curl_options.h"

#include <unistd.h>

#include "http/libcurl.h"

static const struct {
    CURLoption option;
    long value;
} fixed_options[] = {
    {CURLOPT_NOSIGNAL, 1},
    {CURLOPT_NOPROGRESS, 1},
    {CURLOPT_FOLLOWLOCATION, 0},
    {CURLOPT_NETRC, CURL_NETRC_IGNORED},
    {CURLOPT_SSL_VERIFYPEER, 1},
    {CURLOPT_SSL_VERIFYHOST, 2},
    /* A minimum: OpenSSL's configuration might allow older versions. */
    {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
    {CURLOPT_PROXY_SSLVERSION, CURL_SSLVERSION_TLSv1_2},
    {CURLOPT_TCP_KEEPALIVE, 1},
    {CURLOPT_TCP_NODELAY, 1},
    {CURLOPT_SUPPRESS_CONNECT_HEADERS, 1},
    /* Plain http uses a tunnel too, so that the request target is the same with and without a proxy. */
    {CURLOPT_HTTPPROXYTUNNEL, 1},
};

static CURLcode set_fixed(CURL *easy) {
    CURLcode code = CURLE_OK;
    for (size_t i = 0; code == CURLE_OK && i < sizeof fixed_options / sizeof *fixed_options; i++) {
        code = curl_easy_setopt(easy, fixed_options[i].option, fixed_options[i].value);
    }
    /* Without it, cancelling a name lookup waits for the resolver's thread. A libcurl before 7.87 does not know it. */
    (void)curl_easy_setopt(easy, RSC_CURLOPT_QUICK_EXIT, 1L);
    if (code == CURLE_OK) {
        code = curl_easy_setopt(easy, RSC_CURLOPT_PROTOCOLS_STR, "http,https");
    }
    if (code == CURLE_UNKNOWN_OPTION) {
        code = curl_easy_setopt(easy, RSC_CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    }
    return code;
}

long rsc_curl_http_version(const struct rsc_origin *origin, const struct rsc_origin_options *options) {
    int wanted = options->http_version;
    if (wanted == RSC_HTTP_1_1 || (origin->tls ? !rsc_libcurl_tells_http_2() : wanted == RSC_HTTP_AUTO)) {
        return CURL_HTTP_VERSION_1_1;
    }
    return origin->tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
}

/* Unsets the CA path that some distributions set by default. With it, libcurl does not cache the parsed CA file, and
 * every new connection would parse the whole file again. */
static CURLcode set_authorities(CURL *easy, const char *ca_file) {
    if (ca_file == NULL) {
        const struct rsc_libcurl *libcurl = rsc_libcurl();
        if (libcurl->number < 0x075700 || libcurl->ca_bundle == NULL || access(libcurl->ca_bundle, R_OK) != 0) {
            return CURLE_OK;
        }
        ca_file = libcurl->ca_bundle;
    }
    CURLcode code = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
    return code != CURLE_OK ? code : curl_easy_setopt(easy, CURLOPT_CAINFO, ca_file);
}

static CURLcode set_strings(CURL *easy, const struct rsc_origin_options *options) {
    const struct {
        CURLoption option;
        const char *value;
    } strings[] = {
        /* With an empty string, libcurl ignores the proxies of the environment. */
        {CURLOPT_PROXY, options->proxy != NULL ? options->proxy : ""},
        {CURLOPT_NOPROXY, options->proxy != NULL ? "" : "*"},
        {CURLOPT_SSLCERT, options->client_cert},
        {CURLOPT_SSLKEY, options->client_key != NULL ? options->client_key : options->client_cert},
        /* OpenSSL would ask at the terminal for the pass phrase of a key, and block the program. */
        {CURLOPT_KEYPASSWD, options->client_cert != NULL ? "" : NULL},
        {CURLOPT_UNIX_SOCKET_PATH, options->unix_socket},
        {CURLOPT_ACCEPT_ENCODING, options->compression ? RSC_ENCODING : NULL},
    };
    CURLcode code = set_authorities(easy, options->ca_file);
    for (size_t i = 0; code == CURLE_OK && i < sizeof strings / sizeof *strings; i++) {
        if (strings[i].value != NULL) {
            code = curl_easy_setopt(easy, strings[i].option, strings[i].value);
        }
    }
    return code;
}

int rsc_curl_options_set(struct rsc_origin *origin, const struct rsc_origin_options *options, struct rsc_error *error) {
    if (rsc_libcurl()->number < RSC_LIBCURL_OLDEST) {
        return rsc_error_set(error, RSC_ERROR_RANGE, 0, "riskscreen needs libcurl 7.74 or later (this is %s)",
                             rsc_libcurl()->version);
    }
    origin->model = curl_easy_init();
    if (origin->model == NULL) {
        return rsc_error_set(error, RSC_ERROR_MEMORY, 0, "libcurl could not make a handle");
    }
    const CURLcode codes[] = {
        set_fixed(origin->model),
        set_strings(origin->model, options),
        curl_easy_setopt(origin->model, CURLOPT_CURLU, origin->url),
        curl_easy_setopt(origin->model, CURLOPT_HTTP_VERSION, rsc_curl_http_version(origin, options)),
        /* Parallel transfers first wait whether the new connection supports HTTP/2 and can carry them all. */
        curl_easy_setopt(origin->model, CURLOPT_PIPEWAIT, origin->tls && !origin->http_1 ? 1L : 0L),
    };
    CURLcode code = rsc_libcurl_first_error(codes, sizeof codes / sizeof *codes);
    if (code == CURLE_OK) {
        return RSC_OK;
    }
    return rsc_error_set(error, code == CURLE_OUT_OF_MEMORY ? RSC_ERROR_MEMORY : RSC_ERROR_RANGE, 0,
                         "an option is not supported by this libcurl (%s)", curl_easy_strerror(code));
}
