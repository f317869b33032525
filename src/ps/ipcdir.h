/* ipcdir.h - where the sockets of peers on one host stand: a folder that only their user can enter.
 *
 *     RUN_DIR/sockets/0.sock, 1.sock, ..     where that is short enough for the system
 *     $XDG_RUNTIME_DIR/tnet-<job>/..         else
 *     /tmp/tnet-<uid>-<job>/..               else
 *
 * All peers choose the same folder, since they know the same names.
 */
#ifndef TN_PS_IPCDIR_H
#define TN_PS_IPCDIR_H

#include "ps/endpoint.h"

typedef struct tn_ipc_place {
    const char *run_dir;     /* NULL: none */
    const char *runtime_dir; /* XDG_RUNTIME_DIR; NULL: none */
    uint64_t job;
    uint32_t uid;
} tn_ipc_place;

/* The folder of all peers' sockets; a pure function. */
void tn_ipc_dir(const tn_ipc_place *place, char out[TN_ENDPOINT_PATH]);

/* Makes the folder of an ipc address, mode 0700, and removes a socket that a killed process left
 * there under the same name. Other addresses need nothing. TN_E_IO: it cannot be made, or is not
 * this user's alone. */
tn_status tn_ipc_prepare(const tn_endpoint *e, tn_error *err) TN_MUST_USE;

#endif
