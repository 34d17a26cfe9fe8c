/* The head of a response, line by line. It is as strict as runtime/nginx/http/head.lua: two readers must not be able to
 * read one head in two ways. libcurl is more lenient: it takes "5, 6" for the length 5 and ignores a length that
 * overflows. */
#ifndef RSC_HEAD_H
#define RSC_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define RSC_HEAD_LENGTH_HUGE UINT64_MAX /* a length of more than 15 digits */
#define RSC_ENCODING         "gzip"     /* of compressed responses; JSON needs no other */

enum rsc_encoding { RSC_ENCODING_NONE, RSC_ENCODING_IDENTITY, RSC_ENCODING_ASKED, RSC_ENCODING_OTHER };

struct rsc_head {
    int status;
    const char *http_version; /* "1.0", "1.1", "2" or "3" */
    bool complete;            /* the empty line has arrived */
    bool has_length;          /* Content-Length was given */
    bool chunked;
    size_t digits;   /* of the length, for the comparison with a second one */
    uint64_t length; /* bytes of the body */
    enum rsc_encoding encoding;
};

/* Whether the line begins a new head. */
bool rsc_head_begins(struct rsc_text line);

/* Reads the next line with its line end, and writes the name of its field in lower case. A status line begins the head
 * again. Returns NULL, or the fault as a static text. */
const char *rsc_head_read(struct rsc_head *head, char *line, size_t length);

#endif
