/* bag.h - which rows of the batch's small table the examples take, slot by slot, and back.
 *
 * Example i takes the rows that begin at index[offset[i]] .. index[offset[i+1] - 1]:
 *
 *     example    0       1     2
 *     index      63 18   63               in floats; example 2 has nothing in this slot
 *     offset     0       2     3     3
 *
 * Rows are numbered as slots show them first, so those of one share group (mostly: of one slot) lie
 * side by side, and a slot's examples find them in a part of the table that stays in the near
 * cache. The way back goes over such parts: a block of rows adds up its own gradients in a fixed
 * order, by example, then by slot, then by place in the slot, so each row has one writer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_bag {
    const uint32_t *offset; /* rows of the batch + 1 */
    const uint32_t *index;  /* offset[rows]: where each row begins in the table, in floats */
    const float *weight;    /* x_j, same length; NULL when all are 1 */
    bool ones;              /* every example takes one row, offset[i] == i; false: look */
} tn_bag;

/* Rows side by side, and the slots whose examples take them. No row is in two blocks. */
typedef struct tn_row_block {
    uint32_t from, to;    /* range of the block in the table, in floats */
    const uint32_t *slot; /* indexes of slots in the schema, ascending */
    uint32_t n_slots;
    bool whole; /* these slots take no other rows */
} tn_row_block;
