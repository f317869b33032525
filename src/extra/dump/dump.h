/* dump.h - a sparse table as text: dict.tsv.
 *
 *     #tnet-dump 1
 *     #model_id 000102030405060708090a0b0c0d0e0f
 *     #columns  group  sign  show  click  last_seen  wide  deep         (tabs)
 *     user      1      3     1     20089  0.5       1 -2
 *
 * Rows in key order; signs in decimal, so a reader needs no hash; values %.9g and counts %.17g,
 * which bring back every bit. Blanks inside a column, nothing in the column of an absent segment.
 * Columns after `last_seen` are values: weights, and with `state: true` each state after its
 * segment (`wide.z`); states that count are whole numbers. Readers go by the names.
 * A reader belongs to one thread.
 */
#pragma once

#include "base/core/error.h"
#include "base/core/text.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_file tn_file; /* base/file/file.h */

enum {
    TN_DUMP_COLUMNS_MAX = 256,  /* value columns */
    TN_DUMP_VALUES_MAX = 65536, /* values in one row */
    TN_DUMP_LINE_MAX = 4 << 20
};

typedef struct tn_dump_column {
    const char *name;
    bool whole; /* 4-byte counts where floats would be */
} tn_dump_column;

typedef struct tn_dump_head {
    const char *model_id; /* 32 hex digits */
    uint32_t n;
    const tn_dump_column *column; /* columns of values */
} tn_dump_head;

/* A column's values in one row; n 0: absent. */
typedef struct tn_dump_value {
    const float *at;
    uint32_t n;
} tn_dump_value;

typedef struct tn_dump_row {
    const char *group;
    uint64_t sign;
    double show, click;
    uint32_t last_seen;
    const tn_dump_value *value; /* one per column of the head */
} tn_dump_row;

/* Creates `path` with the lines of the head; the caller appends lines of rows, and commits or
 * abandons the file. */
tn_status tn_dump_create(tn_file **out, const char *path, const tn_dump_head *head,
                         tn_error *err) TN_MUST_USE;
/* Appends a row's line to `out`; any thread. TN_E_CKPT: a value is not finite. */
tn_status tn_dump_print(const tn_dump_head *head, const tn_dump_row *row, tn_text *out,
                        tn_error *err) TN_MUST_USE;

typedef struct tn_dump tn_dump;

/* Reads the three head lines. TN_E_CKPT with file and line: it does not follow the format. */
tn_status tn_dump_open(tn_dump **out, const char *path, tn_error *err) TN_MUST_USE;
void tn_dump_close(tn_dump *d); /* NULL is fine */

const tn_dump_head *tn_dump_head_of(const tn_dump *d); /* `whole` is false until it is set */
/* Makes the values of this column whole numbers; called before the first row is read. */
void tn_dump_set_whole(tn_dump *d, uint32_t column);

/* Reads the next row, lent until the next call. TN_END: the last one was read. */
tn_status tn_dump_next(tn_dump *d, const tn_dump_row **out, tn_error *err) TN_MUST_USE;
uint64_t tn_dump_line(const tn_dump *d); /* number of the last row's line, from 1 */
