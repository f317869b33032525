/* zmqcalls.c - libzmq is loaded, and refused if it is too old. */
#include "cluster/security/zmqcalls.h"

#include "base/machine/library.h"

#include <stddef.h>

#define LIBRARY "libzmq.so.5"

#define NAME_AND_PLACE(name) {#name, offsetof(tn_zmq, name)},

static const struct {
    const char *name;
    size_t at; /* in a tn_zmq */
} calls[] = {TN_ZMQ_CALLS(NAME_AND_PLACE)};

static tn_status check_version(const tn_zmq *z, tn_error *err)
{
    int major = 0;
    int minor = 0;
    int patch = 0;
    z->zmq_version(&major, &minor, &patch);
    if (ZMQ_MAKE_VERSION(major, minor, patch) < ZMQ_MAKE_VERSION(4, 3, 3)) {
        return tn_fail(err, TN_E_CONFIG, "libzmq %d.%d.%d is not safe, 4.3.3 is the oldest that is",
                       major, minor, patch);
    }
    return TN_OK;
}

tn_status tn_zmq_load_from(tn_zmq *out, const char *file, tn_error *err)
{
    const tn_library_name name = {file, "peers need ZeroMQ, which", "install libzmq5"};
    void *library = NULL;
    tn_zmq z = {0};
    TN_TRY(tn_library_load(&library, &name, err));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        TN_TRY(tn_library_find(library, &name, calls[i].name, (char *)&z + calls[i].at, err));
    }
    TN_TRY(check_version(&z, err));
    *out = z;
    return TN_OK;
}

tn_status tn_zmq_load(tn_zmq *out, tn_error *err)
{
    return tn_zmq_load_from(out, LIBRARY, err);
}
