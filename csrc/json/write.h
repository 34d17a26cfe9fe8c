/* Writes JSON text: strings and numbers, at the end of a buffer. Independent of the process's locale.
 *
 * Each function returns RSC_OK or a status of rsc_buffer_reserve. After a failure the buffer may hold a part. */
#ifndef RSC_WRITE_H
#define RSC_WRITE_H

#include <stdint.h>

#include "base/buffer.h"

#define RSC_WRITE_NUMBER_MAX 32 /* bytes of a number */

/* Writes a string with its quotes. Escapes quotes, backslashes, slashes, control characters and DEL. Other bytes are
 * copied, also those that are not UTF-8. */
int rsc_write_string(struct rsc_buffer *buffer, const char *bytes, size_t length);

int rsc_write_integer(struct rsc_buffer *buffer, int64_t integer);

/* Writes 14 digits if they suffice to read the same number again, else 17. Also returns RSC_ERROR_RANGE: JSON has no
 * NaN and no infinity. */
int rsc_write_real(struct rsc_buffer *buffer, double real);

#endif
