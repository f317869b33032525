/* curlcalls.h - libcurl, loaded when data have a URI.
 *
 *     tn_curl c;
 *     TN_TRY(tn_curl_load(&c, err));
 *     CURL *easy = c.curl_easy_init();
 *
 * The header is needed to build, the library to read remote data. Functions, arguments and codes
 * are those of curl.h. Libraries before 7.85 are refused: they cannot limit which protocols a
 * URI may have. A tn_curl is a copy of addresses: copy it freely, any thread.
 */
#pragma once

#include "base/core/error.h"

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#define TN_CURL_CALLS(CALL)                                                                        \
    CALL(curl_global_init)                                                                         \
    CALL(curl_version_info)                                                                        \
    CALL(curl_slist_append)                                                                        \
    CALL(curl_slist_free_all)                                                                      \
    CALL(curl_easy_init)                                                                           \
    CALL(curl_easy_cleanup)                                                                        \
    CALL(curl_easy_reset)                                                                          \
    CALL(curl_easy_setopt)                                                                         \
    CALL(curl_easy_getinfo)                                                                        \
    CALL(curl_easy_pause)                                                                          \
    CALL(curl_easy_strerror)                                                                       \
    CALL(curl_multi_init)                                                                          \
    CALL(curl_multi_cleanup)                                                                       \
    CALL(curl_multi_add_handle)                                                                    \
    CALL(curl_multi_remove_handle)                                                                 \
    CALL(curl_multi_perform)                                                                       \
    CALL(curl_multi_poll)                                                                          \
    CALL(curl_multi_info_read)

#define TN_CURL_MEMBER(name) __typeof__ (&(name))(name);

typedef struct tn_curl {
    TN_CURL_CALLS(TN_CURL_MEMBER)
} tn_curl;

/* Loads libcurl. TN_E_CONFIG, with what to install, when there is no library or one that is too
 * old. */
tn_status tn_curl_load(tn_curl *out, tn_error *err) TN_MUST_USE;

/* Kerberos on a request, by HTTP's Negotiate (RFC 4559):
 *
 *     Authorization: Negotiate <token>      of libcurl's GSS-API: a ticket for HTTP/<host>
 *
 * Tickets are those of the user's credential cache, which `kinit` fills and KRB5CCNAME names; the
 * first one for a host is asked of the KDC, which may take seconds. A request goes out without a
 * token where there is no ticket: what the server makes of it is seen by its answer. One thread
 * for a handle.
 */
enum { TN_KERBEROS_WHY = 300 };

/* Prepares the next transfer of `easy`, which must not outlive `why`: the reason why GSS-API had no
 * token; "": it had one. TN_E_CONFIG: this libcurl has no GSS-API. */
tn_status tn_kerberos_set(const tn_curl *curl, CURL *easy, char why[TN_KERBEROS_WHY],
                          tn_error *err) TN_MUST_USE;
