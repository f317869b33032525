/* arrow_cells.h - from Arrow's arrays to rows of cells (io/arrow/cells.h), which
 * io/arrow/cells_format.h reads as other formats read lines.
 *
 *     schema    struct { user: utf8, tags: list<utf8>, price: double }
 *     batch     a struct array of n rows, its columns side by side
 *     cells     row after row: text, list of texts, real
 *
 * Which types are read, and as what:
 *
 *     utf8, large_utf8, utf8_view, binary, large_binary, binary_view, fixed_size_binary    text
 *     int8 .. int64, uint8 .. uint64 (beyond int64: text)                                  int
 *     float16, float32                                                                     single
 *     float64                                                                              real
 *     bool                                                                   text: True or False
 *     decimal32 .. decimal256                                                text: 12.50
 *     date32, date64                                                         text: 2026-11-30
 *     timestamp of any unit, in UTC or a time zone +hh:mm       text: 2026-11-30 07:15:00
 *     time32, time64                                                         text: 07:15:00
 *     null, and a value that is null                                         none
 *     dictionary of any of these                                      its value, not its code
 *     list, large_list, list_view, large_list_view, fixed_size_list of these list
 *     run_end_encoded of these                                               its value
 *
 * Any other type (struct within a row, union, map, interval, duration) is an error that names the
 * column, unless the column is left out. A time zone by name (Europe/Rome) is one, too: the program
 * is to cast, since the hour that counts cannot be guessed. Names of columns may hold all bytes but
 * NUL.
 *
 * Arrays come from other people's code: every size, offset and index that can be checked without
 * knowing the sizes of buffers is checked, and buffers are read within what offsets and lengths
 * allow. Texts need not be UTF-8.
 *
 * Nothing is kept of an array after the call. One thread at a time; an instance holds scratch
 * memory and what the schema says.
 */
#pragma once

#include "base/core/error.h"
#include "base/core/text.h"

#include <stdint.h>

struct ArrowArray;
struct ArrowSchema;

typedef struct tn_arrow_cells tn_arrow_cells;

/* Reads the schema of a stream or of a batch: a struct, whose members are the columns. `name` is
 * that of the source, for messages, and is copied. The schema stays the caller's. TN_E_DATA: it is
 * no struct of columns. */
tn_status tn_arrow_cells_new(tn_arrow_cells **out, const struct ArrowSchema *schema,
                             const char *name, tn_error *err) TN_MUST_USE;
void tn_arrow_cells_free(tn_arrow_cells *cells); /* NULL is fine */

/* Leaves columns out whose names `wants` is false of: their cells are neither made nor named in the
 * head. To be called before the head is made. */
void tn_arrow_cells_choose(tn_arrow_cells *cells,
                           bool (*wants)(void *arg, const char *name, size_t size), void *arg);

/* Appends the head of the stream, which has the reason beside a column whose type is not read: a
 * fault only where something reads it. TN_E_MEMORY. */
tn_status tn_arrow_cells_head(const tn_arrow_cells *cells, tn_text *out, tn_error *err) TN_MUST_USE;

/* Rows from .. to - 1 of a batch, the first of which is row `number` of the stream. */
typedef struct tn_arrow_rows {
    uint64_t from, to;
    uint64_t number;
} tn_arrow_rows;

/* Appends rows of a batch of this schema. TN_E_DATA: the batch does not fit the schema, or is
 * inconsistent; TN_E_LIMIT: `out` would become larger than it may; nothing was appended. */
tn_status tn_arrow_cells_rows(tn_arrow_cells *cells, const struct ArrowArray *batch,
                              tn_arrow_rows rows, tn_text *out, tn_error *err) TN_MUST_USE;
