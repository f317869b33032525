/* text_tables.h - tables for people, or as JSON: any, and that of metrics.
 *
 *     metric      valid      test
 *     rows      5000000   5000000
 *     auc      0.807112  0.806801
 *     gauc          n/a       n/a
 *
 * The owner of the terminal prints it. What is not defined is n/a.
 */
#pragma once

#include "base/core/text.h"
#include "config/values.h"
#include "metrics/metrics.h"

/* A table that is filled cell by cell, row by row; the first row has the names.
 *
 *     tn_sheet s = {.cols = 2, .cell_max = TN_CELL_MAX};
 *     tn_text_addf(&s.cells, "%u", 7);          appends to a cell, as often as needed
 *     tn_sheet_next(&s);                        ends the cell
 *     tn_sheet_end(&s, NULL, out);              appends the table; empties `s`
 *     tn_sheet_end(&s, "deciles", out);         or: as a member {"columns":[..],"rows":[[..],..]}
 *
 * Columns of numbers are set to the right, others to the left. Lines end in a newline, without
 * blanks before it. */
enum { TN_CELL_MAX = 31 };

typedef struct tn_sheet {
    tn_text cells; /* each ended by a NUL */
    uint32_t cols, n;
    size_t cell_max; /* bytes that are kept of a cell */
    size_t begin;    /* begin of the open cell */
    bool full;       /* metrics have all digits of a float, not six after the point */
} tn_sheet;
void tn_sheet_next(tn_sheet *s);
void tn_sheet_word(tn_sheet *s, const char *word); /* a cell; NULL: empty */
void tn_sheet_metric(tn_sheet *s, double value);   /* the same; NAN: n/a */
/* `key` NULL: as text. Else as JSON, where the first column are strings, and others that hold a
 * word; n/a is null. */
void tn_sheet_end(tn_sheet *s, const char *key, tn_text *out);

enum { TN_RESULTS_MAX = 32 };

typedef struct tn_result {
    const char *data; /* heading: valid, test */
    const tn_metrics *metrics;
} tn_result;

/* One column per result, one row per metric; names must exist. auc from a histogram is followed by
 * its error bound, gauc by the share it skipped, bucket_error by what it judged. */
void tn_results_text(const tn_result *results, uint32_t n, const tn_strs *metrics, tn_text *out);
