/* kerberos.h - Kerberos on a request, by HTTP's Negotiate (RFC 4559).
 *
 *     Authorization: Negotiate <token>      of libcurl's GSS-API: a ticket for HTTP/<host>
 *
 * Tickets are those of the user's credential cache, which `kinit` fills and KRB5CCNAME names; the
 * first one for a host is asked of the KDC, which may take seconds. A request goes out without a
 * token where there is no ticket: what the server makes of it is seen by its answer. One thread
 * for a handle.
 */
#pragma once

#include "base/core/text.h"
#include "extra/remote/curlcalls.h"

enum { TN_KERBEROS_WHY = 300 };

/* Prepares the next transfer of `easy`, which must not outlive `why`: the reason why GSS-API had no
 * token; "": it had one. TN_E_CONFIG: this libcurl has no GSS-API. */
tn_status tn_kerberos_set(const tn_curl *curl, CURL *easy, char why[TN_KERBEROS_WHY],
                          tn_error *err) TN_MUST_USE;
