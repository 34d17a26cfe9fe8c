#include "lists/permissions.h"

int rsc_list_check_permissions(const struct stat *status, struct rsc_error *error) {
    if (!S_ISREG(status->st_mode)) {
        return rsc_error_set(error, RSC_ERROR_FILE, 0, "it is not a regular file");
    }
    if ((status->st_mode & S_IWOTH) != 0) {
        return rsc_error_set(error, RSC_ERROR_FILE, 0, "any user may write it; take the permission away (chmod o-w)");
    }
    return RSC_OK;
}
