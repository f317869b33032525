/* value_size_look.h - sizes of values (x_j) that are not about 1, and rows of length 1, from the
 * first 10,000 rows of weight: train.value_sizes, where it is open.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>

typedef struct tn_arena tn_arena;         /* base/core/arena.h */
typedef struct tn_schema tn_schema;       /* io/schema/schema.h */
typedef struct tn_slot_opts tn_slot_opts; /* io/schema/dataopts.h */
typedef struct tn_strs tn_strs;           /* config/values.h */
typedef struct tn_text tn_text;           /* base/core/text.h */
typedef struct tn_tree tn_tree;           /* config/tree.h */

/* Whether a slot's vectors are pooled by `mean`, as it says or as embedding.pool does; those of a
 * sequence are not, where the model `attends` its positions (tn_model). */
bool tn_pool_is_mean(const tn_slot_opts *slot, const tn_tree *pool, bool attends);

typedef struct tn_value_size_in {
    tn_arena *arena;
    const tn_schema *schema;
    const tn_strs *paths;
    const tn_tree *pool; /* embedding.pool */
    bool attends;        /* tn_model.attends */
    bool of_unit_rows;   /* sizes of rows of length 1 are asked for, too */
} tn_value_size_in;

typedef struct tn_value_size_found {
    tn_tree *sizes; /* the map of train.value_sizes, {x: {others: 1, 3: 512}}; NULL: about 1 */
    bool unit_rows; /* squares of a row's values sum to 1, as those of tf-idf do */
} tn_value_size_found;

/* Fills *out, which begins as zeros, and appends a line about sizes to `said`. Sizes are powers of
 * two, of slots by what most of their values have, of single keys where they are 8 times off. In a
 * slot whose `pool` (embedding.pool where it says none) is `mean` a value counts for x_j by the
 * values of its row. Rows have length 1 when nine of ten have several values and squares that sum
 * to 1 within 5 %; those of more than 128 values have no sizes: their values are small because many
 * share a row. */
tn_status tn_value_size_look(const tn_value_size_in *in, tn_value_size_found *out, tn_text *said,
                             tn_error *err) TN_MUST_USE;
