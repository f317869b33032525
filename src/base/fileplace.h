/* fileplace.h - where the name of an output leads, and whether it may be written there.
 *
 *     pred.tsv -> /data/pred.tsv         TN_PLACE_FILE, "/data/pred.tsv", there or not
 *     pipe                               TN_PLACE_FIFO, "pipe"
 *     /dev/stdout -> /proc/self/fd/1     TN_PLACE_DESCRIPTOR, 1
 *
 * Links are followed one by one, so that the last one may lead to what is not there yet. Only
 * fileout.c needs this.
 */
#ifndef TN_BASE_FILEPLACE_H
#define TN_BASE_FILEPLACE_H

#include "base/file.h"
#include "base/fileout.h"

typedef enum tn_place_kind {
    TN_PLACE_FILE,
    TN_PLACE_DEVICE,
    TN_PLACE_FIFO,
    TN_PLACE_SOCKET,
    TN_PLACE_DESCRIPTOR, /* that this process has open */
} tn_place_kind;

typedef struct tn_place {
    tn_place_kind kind;
    int fd; /* of TN_PLACE_DESCRIPTOR */
    char path[TN_PATH_SIZE];
} tn_place;

/* TN_E_USAGE: an output may not be there. TN_E_IO: it cannot be looked at, or is a folder. */
tn_status tn_place_find(tn_place *out, const char *path, const tn_inputs *inputs,
                        tn_error *err) TN_MUST_USE;

#endif
