/* library.c - dlopen and dlsym that report failures in words. */
#include "base/machine/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

tn_status tn_library_load(void **out, const tn_library_name *name, tn_error *err)
{
    errno = 0;
    void *library = dlopen(name->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        const tn_status status = errno == ENOMEM ? TN_E_MEMORY : TN_E_CONFIG;
        const char *why = dlerror(); // NOLINT(concurrency-mt-unsafe): glibc keeps one per thread
        return tn_fail(err, status, "%s cannot be loaded: %s\nhint: %s", name->subject,
                       why != NULL ? why : "out of memory", name->hint);
    }
    *out = library;
    return TN_OK;
}

tn_status tn_library_find(void *library, const tn_library_name *name, const char *call, void *out,
                          tn_error *err)
{
    void *at = dlsym(library, call);
    if (at == NULL) {
        return tn_fail(err, TN_E_CONFIG, "'%s' has no '%s'", name->file, call);
    }
    memcpy(out, &at, sizeof at); /* C has no cast from an object's address to a function's */
    return TN_OK;
}
