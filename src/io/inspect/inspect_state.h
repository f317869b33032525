/* inspect_state.h - inside a tn_stat; only src/io/inspect_stat*.c include this. */
#ifndef TN_IO_INSPECT_STATE_H
#define TN_IO_INSPECT_STATE_H

#include "io/inspect/inspect_sketch.h"
#include "io/inspect/inspect_stat.h"

/* What was seen of one slot or numeric column. */
typedef struct tn_slot_stat {
    uint64_t filled; /* rows with a value */
    uint64_t values;
    uint32_t values_max; /* in one row */
    tn_distinct *distinct;
    tn_top *top;
    bool numeric; /* has `numbers` in place of distinct and top, or beside them */
    tn_numbers numbers;
} tn_slot_stat;

struct tn_stat {
    const tn_schema *schema;
    uint64_t rows, labelled, clicks, soft, weighted, grouped, zero_weight;
    double labels, weights;
    tn_slot_stat *slot;    /* n_specs */
    const tn_rows *adding; /* for the tiles of one tn_stat_add */
    uint32_t *order;       /* entries by slot, rows ascending; `orders` of them */
    uint32_t *row_of;      /* entry: its row */
    uint32_t *first;       /* n_slots + 1, into order */
    size_t orders;
};

#endif
