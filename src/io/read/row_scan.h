/* row_scan.h - one look at every record of some files, or an estimate of how many they have.
 *
 *     block reader: blocks of records -> 8 at a time, parsed in parallel -> handed on in order
 *
 * A visitor sees the same blocks in the same order for any number of threads. A record at fault is
 * shown to `fault` and left out. Memory does not grow with the data.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_bytes tn_bytes;   /* base/core/bytes.h */
typedef struct tn_rows tn_rows;     /* io/rows/rows.h */
typedef struct tn_schema tn_schema; /* io/schema/schema.h */
typedef struct tn_strs tn_strs;     /* config/values.h */
typedef struct tn_team tn_team;     /* base/thread/team.h */

enum { TN_ROW_SCAN_PIECES = 8 };

/* Rows of one piece, lent for the call. */
typedef struct tn_row_scan_block {
    uint32_t piece;     /* 0 .. TN_ROW_SCAN_PIECES - 1 */
    const char *source; /* the file they stem from */
    const tn_rows *rows;
    const tn_bytes *raw; /* rows->n: the records as they are in the file, without framing */
} tn_row_scan_block;

typedef struct tn_row_scan_visitor {
    void *ctx;
    /* A piece, from any thread; all pieces of a round before the first call of `block`. May be
     * NULL. */
    tn_status (*piece)(void *ctx, const tn_row_scan_block *block, tn_error *err);
    /* The same pieces, in order, from the calling thread. May be NULL. */
    tn_status (*block)(void *ctx, const tn_row_scan_block *block, tn_error *err);
    /* A record that does not follow its format; `text` names file, place and fault. Those of a
     * piece come in order and before its rows. TN_OK: go on. NULL: the first fault ends the pass
     * with TN_E_DATA. */
    tn_status (*fault)(void *ctx, const char *text, tn_error *err);
} tn_row_scan_visitor;

typedef struct tn_row_scan_counts {
    uint32_t sources;
    uint64_t bytes; /* bytes of records, after decompression */
    uint64_t rows, blank, bad, duplicate_key;
} tn_row_scan_counts;

typedef struct tn_row_scan_in {
    const tn_schema *schema;
    const tn_strs *paths; /* files, globs, folders, "-" */
    uint32_t keep;        /* as for tn_rows_new */
    tn_team *team;        /* NULL: the calling thread alone */
} tn_row_scan_in;

/* *out counts also when the pass fails. TN_E_DATA: no such file, or a fault; TN_E_IO; or what a
 * visitor returned. */
tn_status tn_row_scan_run(const tn_row_scan_in *in, const tn_row_scan_visitor *visitor,
                          tn_row_scan_counts *out, tn_error *err) TN_MUST_USE;

/* Estimates for all data, from a sample of blocks; tn_row_scan_sample makes them. */
typedef struct tn_row_sample {
    double rows;      /* rows that training keeps; negative: not known */
    double all;       /* rows, also those that training leaves out */
    double row_bytes; /* mean size of a parsed row */
    double values;    /* mean number of keys in a row; an x_j below 1 counts as its value */
    double order;     /* share of the variance of labels between blocks of neighbouring rows: about
                       * 0 for mixed rows, 1 for rows that are sorted by label */
} tn_row_sample;

/* About how many rows of some files training keeps, without reading all of them.
 *
 * Short data are counted. Of longer ones some blocks of up to eight parts, at equal distances, are
 * parsed, and the share of rows in them is taken for all bytes. Either way the number depends on
 * the data and the options alone, not on threads or time. */

enum { TN_ROW_SCAN_ESTIMATE_BLOCKS = 128 }; /* blocks of 256 KiB that are looked at, at most */

tn_status tn_row_scan_sample(const tn_strs *paths, const tn_schema *schema, uint32_t blocks_max,
                             tn_row_sample *out, tn_error *err) TN_MUST_USE;
/* Its rows alone. *out is negative when what `paths` names comes once, or has no size: a pipe,
 * standard input. */
tn_status tn_row_scan_estimate(const tn_strs *paths, const tn_schema *schema, uint32_t blocks_max,
                               double *out, tn_error *err) TN_MUST_USE;
