/* curlcalls.c - dlopen, one dlsym per function, and a check of the version; libcurl's word for
 * Negotiate, and what it says when GSS-API fails: it goes on without a token then, and names the
 * reason in its trace alone.
 */
#include "extra/remote/curlcalls.h"

#include "base/core/failpoint.h"
#include "base/machine/library.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

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

/* Keeps the reason in "gss_init_sec_context() failed: Ticket expired. ". */
static int on_trace(CURL *easy, curl_infotype type, char *data, size_t size, void *arg)
{
    static const char mark[] = "gss_init_sec_context() failed: ";
    char *why = arg;
    (void)easy;
    if (type != CURLINFO_TEXT || size < sizeof mark || memcmp(data, mark, sizeof mark - 1) != 0) {
        return 0;
    }
    const char *text = data + sizeof mark - 1;
    size_t n = size - (sizeof mark - 1);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == ' ' || text[n - 1] == '.')) {
        n--;
    }
    (void)snprintf(why, TN_KERBEROS_WHY, "%.*s", (int)n, text);
    return 0;
}

tn_status tn_kerberos_set(const tn_curl *curl, CURL *easy, char why[TN_KERBEROS_WHY], tn_error *err)
{
    const bool missing = tn_failpoint("library.gssapi") > 0;
    why[0] = '\0';
    if (missing ||
        curl->curl_easy_setopt(easy, CURLOPT_HTTPAUTH, (long)CURLAUTH_NEGOTIATE) != CURLE_OK) {
        return tn_fail(err, TN_E_CONFIG,
                       "this libcurl (%s) has no GSS-API, which webhdfs_kerberos needs\n"
                       "hint: install the libcurl4 of your distribution",
                       curl->curl_version_info(CURLVERSION_NOW)->version);
    }
    (void)curl->curl_easy_setopt(easy, CURLOPT_USERPWD, ":"); /* the user of the ticket */
    (void)curl->curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, on_trace);
    (void)curl->curl_easy_setopt(easy, CURLOPT_DEBUGDATA, (void *)why);
    (void)curl->curl_easy_setopt(easy, CURLOPT_VERBOSE, 1L);
    return TN_OK;
}
