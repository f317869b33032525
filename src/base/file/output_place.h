/* output_place.h - where the name of an output leads, and whether it may be written there.
 *
 *     pred.tsv -> /data/pred.tsv         TN_OUT_FILE, "/data/pred.tsv", there or not
 *     pipe                               TN_OUT_FIFO, "pipe"
 *     /dev/stdout -> /proc/self/fd/1     TN_OUT_DESCRIPTOR, 1
 *
 * Links are followed one by one, so that the last one may lead to what is not there yet. Only
 * output_file.c needs this.
 */
#ifndef TN_BASE_OUTPUT_PLACE_H
#define TN_BASE_OUTPUT_PLACE_H

#include "base/file/file.h"
#include "base/file/output_file.h"

typedef enum tn_out_kind {
    TN_OUT_FILE,
    TN_OUT_DEVICE,
    TN_OUT_FIFO,
    TN_OUT_SOCKET,
    TN_OUT_DESCRIPTOR, /* that this process has open */
} tn_out_kind;

typedef struct tn_out_place {
    tn_out_kind kind;
    int fd; /* of TN_OUT_DESCRIPTOR */
    char path[TN_PATH_SIZE];
} tn_out_place;

/* TN_E_USAGE: an output may not be there. TN_E_IO: it cannot be looked at, or is a folder. */
tn_status tn_out_place_find(tn_out_place *out, const char *path, const tn_inputs *inputs,
                            tn_error *err) TN_MUST_USE;

#endif
