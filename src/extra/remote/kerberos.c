/* kerberos.c - libcurl's word for Negotiate, and what it says when GSS-API fails.
 *
 * libcurl goes on without a token then, and names the reason in its trace alone.
 */
#include "extra/remote/kerberos.h"

#include "base/core/failpoint.h"

#include <stdio.h>
#include <string.h>

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
