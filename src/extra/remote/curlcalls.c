/* curlcalls.c - dlopen, one dlsym per function, and a check of the version. */
#include "extra/remote/curlcalls.h"

#include "base/core/failpoint.h"
#include "base/machine/library.h"

#include <stdbool.h>
#include <stddef.h>

#define LIBRARY "libcurl.so.4"

#define NAME_AND_PLACE(name) {#name, offsetof(tn_curl, name)},

static const struct {
    const char *name;
    size_t at; /* offset in a tn_curl */
} calls[] = {TN_CURL_CALLS(NAME_AND_PLACE)};

tn_status tn_curl_load(tn_curl *out, tn_error *err)
{
    const bool missing = tn_failpoint("library.curl") > 0;
    const tn_library_name name = {missing ? "libcurl.so.missing" : LIBRARY,
                                  "data behind a URI need libcurl, which", "install libcurl4"};
    void *library = NULL;
    tn_curl c = {0};
    TN_TRY(tn_library_load(&library, &name, err));
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        TN_TRY(tn_library_find(library, &name, calls[i].name, (char *)&c + calls[i].at, err));
    }
    const curl_version_info_data *version = c.curl_version_info(CURLVERSION_NOW);
    if (version->version_num < 0x075500) {
        return tn_fail(err, TN_E_CONFIG, "libcurl %s is too old, 7.85 is the oldest that is taken",
                       version->version);
    }
    if (c.curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return tn_fail(err, TN_E_MEMORY, "libcurl cannot be made ready");
    }
    *out = c;
    return TN_OK;
}
