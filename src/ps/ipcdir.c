/* ipcdir.c - see ipcdir.h. */
#include "ps/ipcdir.h"

#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES = sizeof "/4095.sock" }; /* the longest socket in it, and its NUL */

static bool fits(int length)
{
    return length > 0 && length + NAME_BYTES <= TN_ENDPOINT_PATH;
}

void tn_ipc_dir(const tn_ipc_place *p, char out[TN_ENDPOINT_PATH])
{
    if (p->run_dir != NULL && fits(snprintf(out, TN_ENDPOINT_PATH, "%s/sockets", p->run_dir))) {
        return;
    }
    if (p->runtime_dir != NULL &&
        fits(snprintf(out, TN_ENDPOINT_PATH, "%s/tnet-%016" PRIx64, p->runtime_dir, p->job))) {
        return;
    }
    int length = snprintf(out, TN_ENDPOINT_PATH, "/tmp/tnet-%u-%016" PRIx64, p->uid, p->job);
    TN_ASSERT(fits(length));
}

tn_status tn_ipc_prepare(const tn_endpoint *e, tn_error *err)
{
    if (!e->is_ipc) {
        return TN_OK;
    }
    char dir[TN_ENDPOINT_PATH];
    const char *slash = strrchr(e->path, '/');
    if (slash == NULL || slash == e->path) {
        return tn_fail(err, TN_E_CONFIG, "'ipc://%s' is in no folder of its own", e->path);
    }
    memcpy(dir, e->path, sizeof dir);
    dir[slash - e->path] = '\0';
    char *above = strrchr(dir, '/');
    if (above != NULL && above != dir) {
        *above = '\0';
        TN_TRY(tn_dir_make(dir, err));
        *above = '/';
    }
    TN_TRY(tn_dir_make_private(dir, err));
    return tn_remove_file(e->path, err);
}
