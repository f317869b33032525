/* ipcdir.c - the folder of sockets: which one, who may enter, and locks on the addresses in it. */
#include "cluster/launch/ipcdir.h"

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

/* Writes "N.lock" for "N.sock", or for any other name. */
static void name_lock(const char *socket, char out[TN_ENDPOINT_PATH])
{
    const char *dot = strrchr(socket, '.');
    const size_t size = dot != NULL ? (size_t)(dot - socket) : strlen(socket);
    int length = snprintf(out, TN_ENDPOINT_PATH, "%.*s.lock", (int)size, socket);
    TN_ASSERT(length > 0);
}

static tn_status take(const char *dir, const tn_endpoint *e, tn_lock **lock, tn_error *err)
{
    TN_ASSERT(strncmp(e->path, dir, strlen(dir)) == 0 && e->path[strlen(dir)] == '/');
    char name[TN_ENDPOINT_PATH];
    name_lock(e->path + strlen(dir) + 1, name);
    tn_status status = tn_lock_name(lock, dir, name, err);
    if (status == TN_E_CKPT) {
        return tn_fail(err, TN_E_CKPT,
                       "'ipc://%s' is in use by another process\n"
                       "hint: a group that runs in this folder already, or the same rank twice?",
                       e->path);
    }
    TN_TRY(status);
    status = tn_remove_file(e->path, err);
    if (status != TN_OK) {
        tn_lock_release(*lock);
        *lock = NULL;
    }
    return status;
}

tn_status tn_ipc_take(const tn_endpoint *e, tn_lock **lock, tn_error *err)
{
    *lock = NULL;
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
    return take(dir, e, lock, err);
}

static bool is_lock(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL && strcmp(dot, ".lock") == 0;
}

tn_status tn_ipc_check(const char *run_dir, tn_error *err)
{
    char dir[TN_ENDPOINT_PATH];
    if (!fits(snprintf(dir, sizeof dir, "%s/sockets", run_dir)) || !tn_path_is_dir(dir)) {
        return TN_OK;
    }
    uint32_t n = 0;
    tn_text names = {0};
    tn_status status = tn_dir_list(dir, &names, &n, err);
    const char *name = status == TN_OK ? tn_text_str(&names) : "";
    for (uint32_t i = 0; i < n && status == TN_OK; i++, name += strlen(name) + 1) {
        if (is_lock(name) && tn_lock_is_held(dir, name)) {
            status =
                tn_fail(err, TN_E_CKPT,
                        "'%s' is in use by another group of processes: '%s' is locked", dir, name);
        }
    }
    tn_text_done(&names);
    return status;
}
