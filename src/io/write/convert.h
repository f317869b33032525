/* convert.h - records of some files into one file of another format.
 *
 * Reads every row and writes it again (io/write/writer.h): order, labels, weights, values, x_j,
 * groups and record ids are kept, or it is an error that says what cannot be.
 */
#pragma once

#include "base/core/error.h"

#include <stdint.h>

typedef struct tn_dataset tn_dataset;                 /* io/read/dataset.h */
typedef struct tn_row_scan_counts tn_row_scan_counts; /* io/read/row_scan.h */
typedef struct tn_sink tn_sink;                       /* io/write/write_sink.h */
typedef struct tn_strs tn_strs;                       /* config/values.h */
typedef struct tn_team tn_team;                       /* base/thread/team.h */
typedef struct tn_text tn_text;                       /* base/core/text.h */

typedef struct tn_convert_in {
    const tn_dataset *from; /* bound with TN_DATASET_AS_READ */
    const tn_dataset *to;
    const tn_strs *paths;
    uint32_t flags; /* TN_WRITE_SIGNS or 0 */
    tn_team *team;
} tn_convert_in;

/* Into `sink`, which stays open. TN_E_DATA: a record at fault beyond data.bad_records_max, or a row
 * that the other format has no words for. `columns` (may be NULL) gets tn_writer_columns. */
tn_status tn_convert(const tn_convert_in *in, tn_sink *sink, tn_text *columns,
                     tn_row_scan_counts *out, tn_error *err) TN_MUST_USE;
