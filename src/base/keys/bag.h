/* bag.h - which rows of the batch's small table the examples take, slot by slot, and back.
 *
 * Example i takes rows index[offset[i]] .. index[offset[i+1] - 1]:
 *
 *     example    0      1    2
 *     index      7 2    7              example 2 has nothing in this slot
 *     offset     0      2    3    3
 *
 * The way back, from a key to its occurrences, is what backward walks: a tile of
 * keys sums its own gradients in a fixed order, by example, then by slot, then
 * by place in the slot, so each row of gradients has one writer.
 */
#ifndef TN_BASE_BAG_H
#define TN_BASE_BAG_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_bag {
    const uint32_t *offset; /* rows of the batch + 1 */
    const uint32_t *index;  /* offset[rows]: positions in the batch's keyset */
    const float *weight;    /* x_j, same length; NULL when all are 1 */
    bool ones;              /* every example takes one row, offset[i] == i; false: look */
} tn_bag;

/* One place where a key stands. */
typedef struct tn_occurrence {
    uint32_t row;   /* example in the batch */
    uint32_t slot;  /* slot of the schema */
    uint32_t entry; /* in the slot's bag: index[entry] is the key, weight[entry] its x_j */
} tn_occurrence;

/* Occurrences of key i: item[first[i]] .. item[first[i+1] - 1], in ascending (row, slot, entry). */
typedef struct tn_occurrences {
    const uint32_t *first; /* keys + 1 */
    const tn_occurrence *item;
} tn_occurrences;

#endif
