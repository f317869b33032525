/* value_size_look.h - sizes of values (x_j) that are not about 1, from the first 10,000 rows of
 * weight: train.value_sizes, where it is open.
 */
#pragma once

#include "base/core/error.h"

typedef struct tn_arena tn_arena;   /* base/core/arena.h */
typedef struct tn_schema tn_schema; /* io/schema/schema.h */
typedef struct tn_strs tn_strs;     /* config/values.h */
typedef struct tn_text tn_text;     /* base/core/text.h */

/* Appends "value_sizes: {x: {others: 1, 3: 512}}" to a section in flow style, and to `said` the
 * line that tells of it; nothing where all values are about 1. Sizes are powers of two, of slots by
 * what most of their values have, of single keys where they are 8 times off. */
tn_status tn_value_size_look(tn_arena *arena, const tn_schema *schema, const tn_strs *paths,
                             tn_text *train, tn_text *said, tn_error *err) TN_MUST_USE;
