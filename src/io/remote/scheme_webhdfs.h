/* scheme_webhdfs.h - what a NameNode says of one path: an item of LISTSTATUS, or GETFILESTATUS.
 *
 * {"pathSuffix":"part-0","type":"FILE","length":12,"modificationTime":1320171722771}
 *
 * A pure function: any thread.
 */
#ifndef TN_IO_SCHEME_WEBHDFS_H
#define TN_IO_SCHEME_WEBHDFS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_json tn_json; /* base/codec/json.h */

typedef struct tn_webhdfs_status {
    const char *name; /* lent by the tree; "": the path itself */
    bool folder;
    uint64_t size, changed;
} tn_webhdfs_status;

/* False: a member is missing or wrong, or the name is a path. `one` may be NULL. */
bool tn_webhdfs_read(const tn_json *one, tn_webhdfs_status *out);

#endif
