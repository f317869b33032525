/* scheme_webhdfs.h - what a NameNode says of one path: an item of LISTSTATUS, or GETFILESTATUS; and
 * how a file is sent (webhdfs_put.c).
 *
 * {"pathSuffix":"part-0","type":"FILE","length":12,"modificationTime":1320171722771}
 *
 * Any thread.
 */
#pragma once

#include "extra/remote/scheme.h"

typedef struct tn_json tn_json; /* base/codec/json.h */

typedef struct tn_webhdfs_status {
    const char *name; /* lent by the tree; "": the path itself */
    bool folder;
    uint64_t size, changed;
} tn_webhdfs_status;

/* Reads an item. Returns false when a member is missing or wrong, or the name is a path. `one` may
 * be NULL. */
bool tn_webhdfs_read(const tn_json *one, tn_webhdfs_status *out);

/* Is tn_scheme.put: writes a hidden file beside, ".NAME.<crc32c of the bytes>.tmp", and renames
 * it. */
tn_status tn_webhdfs_put(tn_remote *client, const tn_request *request, const tn_infile *file,
                         bool *lost, tn_error *err) TN_MUST_USE;
