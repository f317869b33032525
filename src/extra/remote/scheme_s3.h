/* scheme_s3.h - the parts of S3's requests that are signed, as texts (scheme_s3.c), and how a file
 * is sent (s3_put.c).
 *
 *     https://BUCKET.s3.us-east-1.amazonaws.com/dt%3D1/a.tsv             virtual host
 *     http://10.0.0.5:9000/BUCKET?delimiter=%2F&list-type=2&prefix=dt%3D1%2F        path style
 *
 * Any thread; texts are made by pure functions.
 */
#pragma once

#include "extra/remote/scheme.h"

/* Appends the URL of an object, or of the bucket when `key` is empty; `query` may be NULL. */
void tn_s3_url(const char *endpoint, bool path_style, tn_bytes bucket, tn_bytes key,
               const char *query, tn_text *out);

/* Appends the query of a list: of all keys with a prefix, or (`folder`) of those on its level. */
void tn_s3_list_query(const tn_text *token, bool folder, tn_bytes prefix, tn_text *out);

enum { TN_S3_PART_BYTES = 16 << 20, TN_S3_PARTS_MAX = 10000 };

/* Is tn_scheme.put: sends up to TN_S3_PART_BYTES by one PUT, more in parts, which are removed on
 * failure. */
tn_status tn_s3_put(tn_remote *client, const tn_request *request, const tn_infile *file, bool *lost,
                    tn_error *err) TN_MUST_USE;
