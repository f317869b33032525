/* held_rows.h - the rows of data.train that data.valid holds back, to judge the model by.
 *
 *     valid: {share: 10%}    every row by chance, the same ones in every epoch and for every seed
 *     valid: {last: 10%}     those that begin in the last tenth of the bytes, in the order of files
 *
 * Which these are is a function of the place of a row: its file's number and its first byte. So
 * training, evaluation and every process of a group agree on it.
 */
#pragma once

#include "base/core/error.h"
#include "base/math/rng.h"
#include "io/schema/dataopts.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_fileset tn_fileset; /* io/read/blocks.h */

typedef struct tn_held_rows {
    uint32_t kind;   /* TN_HELD_x */
    double part;     /* SHARE */
    uint32_t source; /* LAST: the first file that has such rows */
    uint64_t from;   /* the byte of it from which on rows are held, in later files all */
} tn_held_rows;

/* Reads "share 10%" or "last 0.1" into data->held and held_part. False: `text` is no such word;
 * TN_E_CONFIG: it is, and the part is not between 0 and 1. */
tn_status tn_held_rows_read(const char *text, tn_data_opts *data, bool *is_word,
                            tn_error *err) TN_MUST_USE;

/* Finds them in these files, those of data.train. TN_E_DATA: LAST, and a file's bytes cannot be
 * counted. */
tn_status tn_held_rows_find(tn_held_rows *out, const tn_data_opts *data, const tn_fileset *files,
                            tn_error *err) TN_MUST_USE;

static inline bool tn_held_rows_has(const tn_held_rows *h, uint32_t source, uint64_t at)
{
    if (h->kind == TN_HELD_LAST) {
        return source > h->source || (source == h->source && at >= h->from);
    }
    return h->kind == TN_HELD_SHARE &&
           tn_unit(tn_draw(tn_stream2(0, TN_RNG_HELD, source), at)) < h->part;
}
