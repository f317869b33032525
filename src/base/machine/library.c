/* library.c - dlopen and dlsym that report failures in words. */
#include "base/machine/library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

/* Returns whether the sentence of glibc means that there is no memory to map the library to. errno
 * says nothing: it is 0 after a mapping that failed. */
static bool is_short_of_memory(const char *why)
{
    static const char *const words[] = {"failed to map segment", "Cannot allocate memory",
                                        "out of memory"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strstr(why, words[i]) != NULL) {
            return true;
        }
    }
    return false;
}

tn_status tn_library_load(void **out, const tn_library_name *name, tn_error *err)
{
    TN_ASSERT(name->file != NULL && name->subject != NULL && name->hint != NULL);
    void *library = dlopen(name->file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        const char *why = dlerror(); // NOLINT(concurrency-mt-unsafe): glibc keeps one per thread
        if (why == NULL || is_short_of_memory(why)) {
            return tn_fail(err, TN_E_MEMORY,
                           "%s cannot be loaded for want of memory: %s\n"
                           "hint: raise ulimit -v or what memory there is; a library on a file "
                           "system that is mounted noexec fails with the same words",
                           name->subject, why != NULL ? why : "out of memory");
        }
        return tn_fail(err, TN_E_CONFIG, "%s cannot be loaded: %s\nhint: %s", name->subject, why,
                       name->hint);
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
