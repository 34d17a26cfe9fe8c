/* The permissions that a file of a list may have. */
#ifndef RSC_LIST_PERMISSIONS_H
#define RSC_LIST_PERMISSIONS_H

#include <sys/stat.h>

#include "base/error.h"

/* Refuses a file that is not regular. Also refuses a file that any user of the machine may write: that is no list of
 * the operator's. */
int rsc_list_check_permissions(const struct stat *status, struct rsc_error *error);

#endif
