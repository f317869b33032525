/* ipcdir.h - the folder of sockets of peers on one host, which only their user can enter.
 *
 *     RUN_DIR/sockets/0.sock, 1.sock, ..     where that is short enough for the system
 *     $XDG_RUNTIME_DIR/tnet-<job>/..         else
 *     /tmp/tnet-<uid>-<job>/..               else
 *
 * All peers choose the same folder, since they know the same names.
 */
#pragma once

#include "base/file/file.h"
#include "cluster/launch/endpoint.h"

typedef struct tn_ipc_place {
    const char *run_dir;     /* NULL: none */
    const char *runtime_dir; /* XDG_RUNTIME_DIR; NULL: none */
    uint64_t job;
    uint32_t uid;
} tn_ipc_place;

/* Writes the folder of all peers' sockets; a pure function. */
void tn_ipc_dir(const tn_ipc_place *place, char out[TN_ENDPOINT_PATH]);

/* Makes the folder of an ipc address, mode 0700, takes the address by a lock on a file beside it
 * (N.lock), and removes a socket that a killed process left there under the same name. ZeroMQ would
 * replace a socket without asking, and remove its own when it hangs up: so *lock is held until the
 * socket is closed for good. Other addresses need nothing, and *lock is NULL. TN_E_CKPT: a process
 * that is alive has the address; TN_E_IO: the folder cannot be made, or others may use it. */
tn_status tn_ipc_take(const tn_endpoint *e, tn_lock **lock, tn_error *err) TN_MUST_USE;

/* Fails with TN_E_CKPT when a rank of another group lives in run_dir/sockets now. Where that path
 * is too long, two groups never meet. */
tn_status tn_ipc_check(const char *run_dir, tn_error *err) TN_MUST_USE;
