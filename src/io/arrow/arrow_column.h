/* arrow_column.h - a column of Arrow's arrays: its type, read once from a schema, and where its
 * values lie in the batch at hand.
 *
 *     tn_arrow_column_read(&column, schema, why);       once: dictionary<int8, utf8>
 *     tn_arrow_column_bind(column, array, n, why);      for each batch: buffers, sizes, offsets
 *     tn_arrow_column_put(column, i, &writer);          for each row: appends its cell
 *
 * A column is a tree, as its type is: a list has a column of its items, a dictionary one of its
 * codes and one of its values, run-end encoding one of its ends and one of its values.
 *
 * Private to arrow_cells.c and its helpers, arrow_schema.c, arrow_array.c and arrow_values.c.
 * Faults are sentences about a column, which the caller names: "its offsets go back".
 */
#pragma once

#include "base/core/error.h"
#include "base/core/text.h"
#include "io/arrow/cells.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ArrowArray;
struct ArrowSchema;

typedef enum tn_arrow_kind {
    TN_ARROW_NULL,
    TN_ARROW_BOOL,
    TN_ARROW_INT8,
    TN_ARROW_INT16,
    TN_ARROW_INT32,
    TN_ARROW_INT64,
    TN_ARROW_UINT8,
    TN_ARROW_UINT16,
    TN_ARROW_UINT32,
    TN_ARROW_UINT64,
    TN_ARROW_HALF,
    TN_ARROW_SINGLE,
    TN_ARROW_REAL,
    TN_ARROW_DATE32, /* days */
    TN_ARROW_DATE64, /* milliseconds */
    TN_ARROW_TIME32,
    TN_ARROW_TIME64,
    TN_ARROW_TIMESTAMP,
    TN_ARROW_DECIMAL,
    TN_ARROW_FIXED_TEXT, /* `width` bytes each */
    TN_ARROW_TEXT,       /* offsets of 32 bits */
    TN_ARROW_LARGE_TEXT, /* offsets of 64 bits */
    TN_ARROW_TEXT_VIEW,
    TN_ARROW_LIST,
    TN_ARROW_LARGE_LIST,
    TN_ARROW_LIST_VIEW,
    TN_ARROW_LARGE_LIST_VIEW,
    TN_ARROW_FIXED_LIST, /* `width` items each */
    TN_ARROW_DICTIONARY,
    TN_ARROW_RUNS, /* run-end encoded */
    TN_ARROW_KINDS
} tn_arrow_kind;

typedef struct tn_arrow_column tn_arrow_column;

struct tn_arrow_column {
    /* These say what the type is; the schema gives them. */
    tn_arrow_kind kind;
    uint32_t width;         /* bytes of a value, 0: no bytes of its own; items of a fixed list */
    int32_t scale;          /* digits after the point of a decimal */
    uint32_t digits;        /* digits after the point of a second: 0, 3, 6 or 9 */
    int32_t zone_s;         /* seconds that are added to UTC */
    tn_arrow_column *index; /* codes of a dictionary, ends of runs */
    tn_arrow_column *of;    /* values of a dictionary or of runs, items of a list */

    /* These describe the array at hand; buffers are lent until the call that bound them ends. */
    int64_t length;
    int64_t offset; /* from the first bit of `valid`, the first of a bool, the first row of runs */
    const uint8_t *valid;      /* bit offset + i: value i is there; NULL: all are */
    const char *data;          /* value 0: a number, an offset, a view; bits of bools */
    const char *more;          /* bytes of texts; sizes of a list view; sizes of a view's buffers */
    const void *const *buffer; /* buffers of a view */
    int64_t more_n;            /* how many bytes of texts, or buffers of a view, there are */
    int64_t run;               /* the run that was read last */
};

enum { TN_ARROW_WHY_BYTES = 400 };

/* Makes the column of a schema; *out is NULL on failure. TN_E_DATA: its type is not read, and `why`
 * says which it is. */
tn_status tn_arrow_column_read(tn_arrow_column **out, const struct ArrowSchema *schema,
                               char why[TN_ARROW_WHY_BYTES]) TN_MUST_USE;
void tn_arrow_column_free(tn_arrow_column *column); /* NULL is fine */

/* Looks up buffers and checks all that is the same for all values: at least `n` of them are there.
 * False: `why` has the reason. */
bool tn_arrow_column_bind(tn_arrow_column *column, const struct ArrowArray *array, int64_t n,
                          char why[TN_ARROW_WHY_BYTES]) TN_MUST_USE;

/* The room for cells: `out` is extended beyond what it holds, and gets its size at the end. */
typedef struct tn_cell_writer {
    char *at;
    char *end;
    tn_text *out;
    char why[TN_ARROW_WHY_BYTES]; /* the fault of a value; "": memory */
} tn_cell_writer;

/* Makes room for `size` more bytes. */
bool tn_cell_writer_grow(tn_cell_writer *w, size_t size) TN_MUST_USE;

static inline bool tn_cell_writer_has(tn_cell_writer *w, size_t size)
{
    return (size_t)(w->end - w->at) >= size || tn_cell_writer_grow(w, size);
}

/* Appends the cell of what is not there. */
static inline bool tn_cell_writer_none(tn_cell_writer *w)
{
    if (!tn_cell_writer_has(w, 1)) {
        return false;
    }
    *w->at++ = TN_CELL_NONE;
    return true;
}

/* Appends the cell of value i, below the length that was bound. False: w->why, or no memory. */
bool tn_arrow_column_put(tn_arrow_column *column, int64_t i, tn_cell_writer *w) TN_MUST_USE;
