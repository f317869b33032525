/* row_columns.h - the floats of a row of the table as the named columns of a dump.
 *
 *     columns                               wide  wide.z  wide.n  deep  deep.n
 *     record 0    wide: w z n | deep: w[8] n   x     x       x      x     x
 *     record 1    deep: w[16] n                -     -       -      x     x
 *
 * Export writes dumps by these columns, import reads them.
 */
#pragma once

#include "base/core/arena.h"
#include "base/keys/record.h"
#include "extra/dump/dump.h"
#include "ps/table/table.h"

/* Place of a column in the rows of a record; n 0: it has none. */
typedef struct tn_row_place {
    uint32_t at, n;
    uint32_t at_waiting; /* in a row that waits for admission, if it is there */
    uint32_t segment;
    uint32_t state; /* TN_STATES_MAX: the weights */
} tn_row_place;

typedef struct tn_row_columns {
    const tn_layout *layout;
    uint32_t n;
    tn_dump_column column[TN_DUMP_COLUMNS_MAX];
    uint32_t
        weights[TN_DUMP_COLUMNS_MAX]; /* the column of its segment's weights; of these: itself */
    tn_row_place *place;              /* [record * n + column] */
    uint32_t *floats;                 /* per record: of a row, as far as there are columns */
    const tn_table *table;
} tn_row_columns;

/* Columns of all records; without `states` only the weights. Lives in the arena. TN_E_LIMIT. */
tn_status tn_row_columns_new(const tn_row_columns **out, const tn_table *table,
                             const tn_layout *layout, bool states, tn_arena *arena,
                             tn_error *err) TN_MUST_USE;

static inline const tn_row_place *tn_row_place_of(const tn_row_columns *c, uint32_t group,
                                                  uint32_t column)
{
    return &c->place[c->layout->group[group].record * c->n + column];
}
