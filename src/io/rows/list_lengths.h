/* list_lengths.h - one length for the lists of a sequence in a row: they are cut together.
 *
 *     row      hist_item  a b c d      max_len: 3, keep: last      b c d
 *              hist_cate  1 2 - 4                                  2 - 4
 *
 * A null keeps its place. Which slots belong together is said by their option `sequence`; a run
 * makes it of the section `sequences` (train/config/sequences.h). Lists of several lengths are a
 * fault of the row, or with `uneven: cut` all are cut to the shortest, at the end that max_len
 * cuts. A row may have no values. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_schema tn_schema; /* io/schema/schema.h */
typedef struct tn_slot_spec tn_slot_spec;

/* Cuts most[slot], the values that a row keeps of each slot, to one length within each sequence;
 * `count` is what the row has. False: lists of `uneven`, two slots of one sequence, have several
 * lengths, which is a fault. */
bool tn_list_lengths_cut(const tn_schema *schema, const uint32_t *count, uint32_t *most,
                         const tn_slot_spec *uneven[2]);
