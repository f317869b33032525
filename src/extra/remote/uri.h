/* uri.h - a URI taken apart, and texts encoded for one.
 *
 *     s3://logs/day=1/part-*.tsv       scheme "s3", host "logs", path "day=1/part-*.tsv"
 *     http://h:80/a/b.tsv?v=3          scheme "http", host "h:80", path "a/b.tsv", query "v=3"
 *     abfs://c@a.dfs.core.windows.net/x              host "c@a.dfs.core.windows.net", path "x"
 *
 * Only http(s) has a query; elsewhere '?' is a pattern. Secrets in a URI are refused, because it
 * is in configurations, checkpoints and messages: a user, a password, and parameters that sign
 * or grant (sig, X-Amz-Signature, token ..). Pure functions on bytes: any thread.
 */
#pragma once

#include "base/core/bytes.h"
#include "base/core/error.h"
#include "base/core/text.h"

typedef struct tn_uri {
    tn_bytes scheme, host, path, query; /* lent by the text */
} tn_uri;

/* TN_E_DATA: not a URI, or with a secret in it, which the message does not show. */
tn_status tn_uri_read(tn_uri *out, const char *text, tn_error *err) TN_MUST_USE;

/* Appends bytes, all but A-Za-z0-9-._~ as %XX; `slashes` stay as they are if asked. */
void tn_uri_encode(tn_text *out, tn_bytes bytes, bool slashes);
/* Appends what is encoded already, and encodes only what no URI may hold: blanks, controls, bytes
 * above 7E, and quotes. */
void tn_uri_mend(tn_text *out, tn_bytes bytes);

/* Bytes in front of the first of "*?[". */
size_t tn_uri_plain(tn_bytes path);
