/* rows_parsing.h - what parsers need of a tn_rows beside rows.h: its memory, scratch, and grids. */
#pragma once

#include "base/core/text.h"
#include "base/math/key.h"
#include "io/rows/rows.h"
#include "io/schema/schema.h"
#include "io/text/delimiter_masks.h"
#include "io/text/digits.h"
#include "io/text/token_vectors.h"

/* A piece of a record that a parser found. */
typedef struct tn_span {
    const char *text;
    uint32_t size;
    uint32_t at; /* its begin in the record, for messages */
    bool quoted;
    bool found;
} tn_span;

#define TN_ROWS_ITEMS_MAX (UINT32_C(1) << 31)

/* Memory of tn_rows_bare. */
struct rows_bare {
    tn_bare now; /* key NULL: rows are not bare */
    uint64_t *grid;
    uint32_t grid_max; /* rows */
    bool grids;        /* parsers may make grids */
    bool wide;         /* a sign was too large, now or before: no grids of signs */
};

/* The last entry of a tf.Example in some place: io/format/tfexample_fast.c. */
typedef struct tn_tf_shape {
    uint32_t name;            /* 0 at first; never decides a result */
    uint64_t head, head_mask; /* its first eight bytes, if its value had none */
    uint64_t more, more_mask; /* the next eight */
    uint32_t value_at;        /* 0: there was none yet */
    uint32_t spec;
} tn_tf_shape;

struct rows_private {
    struct rows_bare bare;
    uint32_t keep;
    uint32_t rows_max;
    uint32_t entries_max;
    uint32_t reals_max;
    uint32_t numeric_max; /* rows whose numbers have room */
    uint32_t text_max;
    uint32_t entries_end;          /* end of room for tokens of the open row; absent keys follow */
    uint32_t text_first;           /* begin of the text of the open row */
    uint32_t serial;               /* number of the open row; never 0 */
    uint32_t *seen;                /* n_specs: serial of the last row that gave this number */
    uint32_t *filled;              /* n_specs: numbers of a vector that it gave then */
    uint32_t *count;               /* n_slots: values in the open row */
    uint32_t *skip;                /* n_slots: values that leave at the front */
    uint32_t *most;                /* n_slots: values that stay */
    const tn_slot_spec *uneven[2]; /* slots of one sequence with several lengths, after a fault */
    tn_entry *part;                /* entries that a cross is made of */
    uint32_t parts_max;
    uint32_t *table; /* places of keys, for duplicates; 0: free */
    uint32_t table_max;
    tn_span *span; /* scratch of parsers, which grow it, as the last row left it */
    uint32_t spans_max;
    struct tn_arrow_cell *cell; /* the same for columns in memory (io/arrow/cells.h) */
    uint32_t cells_max;
    tn_tf_shape *shape; /* the same for the first entries of a record */
    uint32_t shapes_max;
    tn_text scratch; /* used by parsers until the next row */
    const tn_delimiter_masks *marks;
    uint16_t *place; /* places of marks, after one before the line */
    uint32_t places_max;
    tn_token_vectors lanes; /* scratch of parsers */
};

/* The innermost part of tn_rows_token, for a slot with plain_key, while rows->token is NULL. False:
 * too many values. */
static inline bool tn_rows_put(tn_rows *rows, const tn_slot_spec *spec, uint64_t sign, float x)
{
    uint32_t n = rows->n_entries;
    if (n >= rows->private->entries_end) {
        return false;
    }
    rows->entry[n] = (tn_entry){tn_key_of(sign, spec->salt), spec->slot, x};
    rows->n_entries = n + 1;
    return true;
}

/* An x_j. Where a number that is not finite is no fault, it is left out. */
tn_fault tn_rows_read_x(const tn_slot_spec *spec, const char *text, size_t size,
                        float *x) TN_MUST_USE;

/* The number of a slot of `type: float`: a double, unless a float32 is all that is made of it. */
tn_fault tn_rows_read_number(const tn_slot_spec *spec, const char *text, size_t size,
                             double *v) TN_MUST_USE;

/* Adds an entry for each spec whose lane is not empty, with the key in it. */
void tn_rows_put_lanes(tn_rows *rows);

/* Room for `n` rows and the most that a parser may make of their keys without entries; less is
 * taken where it is not needed, or not to be had. */
void tn_rows_expect(tn_rows *rows, uint32_t n);

/* Makes room for `need` more items of an array, the address of whose pointer is `at`; false: no
 * memory, and all is as it was. */
bool tn_rows_grow(void *at, uint32_t used, uint32_t need, size_t size, uint32_t *capacity);

/* Makes room for `need` more entries of the open row, and then for absent keys. False: no memory.
 * */
bool tn_rows_make_room(tn_rows *rows, uint32_t need);

/* Adds the keys of crosses to the open row, whose slots are complete; on a fault *spec is whose. */
tn_fault tn_rows_put_crosses(tn_rows *rows, const tn_slot_spec **spec) TN_MUST_USE;

/* Appends bytes to the text; false: no memory. */
bool tn_rows_add_text(tn_rows *rows, const char *text, size_t size, tn_token *out);

/* Returns room for the places of the marks of a line of at most TN_DELIMITER_MASKS_LINE_MAX bytes.
 * [0] is the place before the first field, as if a mark were there: a field begins at
 * (uint16_t)(place[i] + 1) and ends at place[i + 1]. NULL: no memory. */
uint16_t *tn_rows_places(tn_rows *rows, size_t line_bytes);

/* Writing a grid (see tn_bare).
 *
 *     if (tn_rows_begin_grid(rows))           false: begin a row of entries
 *         the sign of spec i in lane i
 *         tn_rows_end_grid(rows, 1 << i | ..) or tn_rows_rollback
 *
 * A row of entries ends the grid of its block: what there is becomes entries. */

/* As tn_rows_begin, for a row of a grid. False: these rows are no grid, or there is no memory;
 * nothing was begun. */
bool tn_rows_begin_grid(tn_rows *rows);

/* Keeps the row, of the lanes whose bits are set; their signs are lost. False: no memory. */
bool tn_rows_end_grid(tn_rows *rows, uint64_t there);
