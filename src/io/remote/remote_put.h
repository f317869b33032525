/* remote_put.h - a whole file to a place behind a URI.
 *
 *     s3://BUCKET/KEY  gs://BUCKET/KEY           one PUT, or parts put together: never half there
 *     webhdfs://HOST:PORT/PATH  swebhdfs://..    a hidden file beside, which is renamed
 *
 *     TN_TRY(tn_remote_check_target("s3://models/a/dict.tnd", err));       without asking anybody
 *     TN_TRY(tn_remote_open(&r, data->secrets, err));
 *     TN_TRY(tn_remote_put(r, "/tmp/dict.tnd", "s3://models/a/dict.tnd", stop, err));
 *
 * What is promised: when this returns TN_OK the bytes of the file lie there, by size and by the
 * version that the store has named; what lay there before is replaced at once. After a failure or
 * a stop nothing has changed under that name, but by HttpFS, whose older file may be gone. Bytes
 * are compared on their way: by S3 with the SHA-256 that is signed, by HDFS with its own sums.
 *
 * Attempts, pauses, silences, secrets and redirects are those of reading (remote.h). A kill leaves
 * a hidden file, which the next attempt with the same bytes uses up, or parts of an upload, which
 * stores remove by a rule of the bucket (AbortIncompleteMultipartUpload). Any thread; memory: 256
 * KiB.
 */
#pragma once

#include "base/core/error.h"

#include <stdatomic.h>

typedef struct tn_remote tn_remote; /* remote.h */

/* Of a folder that files go into, and of a file. TN_E_CONFIG: no URI, or of a store that is not
 * written to, with a secret, or a pattern; no name of a file. */
tn_status tn_remote_check_target(const char *uri, tn_error *err) TN_MUST_USE;
tn_status tn_remote_check_file(const char *uri, tn_error *err) TN_MUST_USE;

/* The file at `path` must not change meanwhile. TN_E_IO: it cannot be read, or the store refuses it
 * or cannot be reached, as of a disk; TN_E_CONFIG as above; TN_E_STOPPED when *stop (NULL: the
 * process's) turns true, within 50 ms and the one request that takes back what was sent, which a
 * silent server gets 3 s for. */
tn_status tn_remote_put(tn_remote *r, const char *path, const char *uri, const atomic_bool *stop,
                        tn_error *err) TN_MUST_USE;
