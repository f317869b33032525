/* row_sample.h - some of the records of some files, as they are.
 *
 * Copies the bytes of whole records, those of crb into new blocks.
 */
#pragma once

#include "base/core/error.h"

#include <stdint.h>

typedef struct tn_dataset tn_dataset;                 /* io/read/dataset.h */
typedef struct tn_row_scan_counts tn_row_scan_counts; /* io/read/row_scan.h */
typedef struct tn_sink tn_sink;                       /* io/write/write_sink.h */
typedef struct tn_strs tn_strs;                       /* config/values.h */
typedef struct tn_team tn_team;                       /* base/thread/team.h */

typedef struct tn_sample_in {
    const tn_dataset *from;
    const tn_strs *paths;
    uint64_t rows; /* how many, each set of rows equally likely; used when `share` is NAN */
    double share;  /* probability of each row; NAN: take `rows` */
    uint64_t seed;
    tn_team *team;
    tn_sink *sample; /* takes the rows; both sinks stay open */
    tn_sink *rest;   /* takes all other rows; NULL: they are not written */
} tn_sample_in;

/* Rows in the order of the files, with the header of the first file. *taken: how many. Which ones
 * depends on the seed and on the number of each row alone. With `rest` and `rows` files are read
 * twice. */
tn_status tn_sample_rows(const tn_sample_in *in, uint64_t *taken, tn_row_scan_counts *out,
                         tn_error *err) TN_MUST_USE;
