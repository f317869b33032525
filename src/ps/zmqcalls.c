/* zmqcalls.c - see zmqcalls.h. */
#include "ps/zmqcalls.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define LIBRARY "libzmq.so.5"

#define NAME_AND_PLACE(name) {#name, offsetof(tn_zmq, name)},

static const struct {
    const char *name;
    size_t at; /* in a tn_zmq */
} calls[] = {TN_ZMQ_CALLS(NAME_AND_PLACE)};

/* An address out of an object's, which C has no cast for. */
static bool find(void *library, const char *name, void *out)
{
    void *at = dlsym(library, name);
    memcpy(out, &at, sizeof at);
    return at != NULL;
}

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

/* It stays loaded to the end of the process: its threads may be running. */
tn_status tn_zmq_load_from(tn_zmq *out, const char *file, tn_error *err)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        return tn_fail(err, TN_E_CONFIG,
                       "peers need ZeroMQ, which cannot be loaded: %s\n"
                       "hint: install libzmq5",
                       dlerror()); // NOLINT(concurrency-mt-unsafe): glibc keeps one per thread
    }
    tn_zmq z = {0};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (!find(library, calls[i].name, (char *)&z + calls[i].at)) {
            return tn_fail(err, TN_E_CONFIG, "'%s' has no '%s'", file, calls[i].name);
        }
    }
    TN_TRY(check_version(&z, err));
    *out = z;
    return TN_OK;
}

tn_status tn_zmq_load(tn_zmq *out, tn_error *err)
{
    return tn_zmq_load_from(out, LIBRARY, err);
}
