/* keygen.c - see keygen.h. */
#include "cluster/security/keygen.h"

#include "cluster/security/curvekeys.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX_BYTES = 64 };

static const char allowed[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";

static tn_status check_name(const char *name, tn_error *err)
{
    size_t size = strlen(name);
    if (size == 0 || size > NAME_MAX_BYTES || strspn(name, allowed) != size || name[0] == '.' ||
        name[0] == '-') {
        return tn_fail(err, TN_E_USAGE,
                       "'%.80s' cannot name a key: 1 to %d letters, digits, '.', '_' and '-', no "
                       "'.' or '-' first",
                       name, NAME_MAX_BYTES);
    }
    return TN_OK;
}

static tn_status path_of(const char *dir, const char *name, const char *ending,
                         char out[TN_PATH_SIZE], tn_error *err)
{
    char file[NAME_MAX_BYTES + 8];
    (void)snprintf(file, sizeof file, "%s.%s", name, ending);
    TN_TRY(tn_path_join(dir, file, out, err));
    if (tn_path_exists(out)) {
        return tn_fail(err, TN_E_IO, "'%s' is there already\nhint: keys are never overwritten",
                       out);
    }
    return TN_OK;
}

tn_status tn_keygen(const char *dir, const char *name, tn_keygen_paths *out, tn_error *err)
{
    tn_zmq z;
    tn_curve_pair pair;
    tn_keygen_paths paths;
    TN_TRY(check_name(name, err));
    TN_TRY(path_of(dir, name, "key", paths.secret, err));
    TN_TRY(path_of(dir, name, "pub", paths.open, err));
    TN_TRY(tn_zmq_load(&z, err));
    TN_TRY(tn_curve_make(&z, &pair, err));
    tn_status status = tn_dir_make(dir, err);
    if (status == TN_OK) {
        status = tn_curve_write(&z, &pair, paths.secret, paths.open, err);
    }
    tn_curve_forget(&pair);
    TN_TRY(status);
    *out = paths;
    return tn_dir_sync(dir, err);
}
