/* The options of libcurl that are the same for every transfer to an origin: TLS, proxy, compression, HTTP version.
 * Those of one transfer are in transfer_request.c. */
#ifndef RSC_CURL_OPTIONS_H
#define RSC_CURL_OPTIONS_H

#include "http/origin.h"

/* The value of CURLOPT_HTTP_VERSION for the transfers of an origin. */
long rsc_curl_http_version(const struct rsc_origin *origin, const struct rsc_origin_options *options);

/* Makes the origin's model handle, whose copies its transfers use. The origin closes it, also after a failure. */
int rsc_curl_options_set(struct rsc_origin *origin, const struct rsc_origin_options *options, struct rsc_error *error);

#endif
