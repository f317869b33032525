/* cells.h - rows of typed cells as bytes: the records of io/arrow/cells_format.h, as
 * io/arrow/arrow_cells.h makes them of the arrays of a program.
 *
 *     stream    head, row, row, ..
 *     head      "TNCELLS1"  u32 columns  { u32 size  name  u32 size  reason } for each
 *     row       u32 bytes after this one  u64 number of the row, from 0  { cell } for each column
 *     cell      u8 kind, and
 *                 none     -
 *                 text     u32 size, bytes
 *                 int      i64
 *                 real     f64
 *                 single   f32
 *                 list     u32 items, u32 bytes of all, { cell that is no list } for each
 *
 * A column whose type is not read has a reason, a fault where something reads the column, and cells
 * that are none; of any other the reason is empty. Little-endian, without padding. These bytes live
 * within one process and are no file format.
 */
#pragma once

#include "base/core/bytes.h"

#define TN_CELLS_MAGIC "TNCELLS1"

enum { TN_CELLS_MAGIC_BYTES = 8, TN_CELLS_ROW_HEAD = 12 };

typedef enum tn_arrow_cell_kind {
    TN_CELL_NONE, /* there is no value */
    TN_CELL_TEXT,
    TN_CELL_INT,
    TN_CELL_REAL,
    TN_CELL_SINGLE,
    TN_CELL_LIST
} tn_arrow_cell_kind;

typedef struct tn_arrow_cell {
    tn_arrow_cell_kind kind;
    tn_bytes bytes; /* text; or the items of a list, cell after cell */
    int64_t whole;  /* int */
    double real;    /* real, single */
} tn_arrow_cell;

/* Takes a cell off the front of `in`, which is `failed` where there is none. */
static inline tn_arrow_cell tn_arrow_cell_take(tn_bytes *in)
{
    tn_arrow_cell cell = {.kind = (tn_arrow_cell_kind)tn_get_u8(in)};
    uint32_t size = 0;
    switch (cell.kind) {
    case TN_CELL_NONE:
        break;
    case TN_CELL_LIST:
        (void)tn_get_u32(in);
        size = tn_get_u32(in);
        cell.bytes = (tn_bytes){tn_get(in, size), size, false};
        break;
    case TN_CELL_TEXT:
        size = tn_get_u32(in);
        cell.bytes = (tn_bytes){tn_get(in, size), size, false};
        break;
    case TN_CELL_INT:
        cell.whole = (int64_t)tn_get_u64(in);
        break;
    case TN_CELL_REAL:
        cell.real = tn_get_f64(in);
        break;
    case TN_CELL_SINGLE:
        cell.real = (double)tn_get_f32(in);
        break;
    default:
        in->failed = true;
    }
    cell.kind = in->failed ? TN_CELL_NONE : cell.kind;
    return cell;
}
