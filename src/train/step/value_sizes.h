/* value_sizes.h - rules for rows whose values (x_j) are not about 1: train.value_sizes.
 *
 *     value_sizes: {f5: 9000, x: {others: 1, 3: 512}}
 *                   slot f5    slot x, and its index 3 alone
 *
 * A row's vector counts x_j times, so what a step does to a score grows with x_j squared. The rule
 * of w' = r w on x_j / r, written for w on x_j, takes as many steps of the same effect: lr / r,
 * n0 r^2, l2 r^2. So values of size r learn as if they had been divided by r, and the model that is
 * kept and exported is one of the values as they are. First values are divided by r where r is
 * below 1, by r / 16 where it is above 16.
 */
#pragma once

#include "base/core/compiler.h"

typedef struct tn_binder tn_binder;     /* config/field.h */
typedef struct tn_features tn_features; /* models/layerlist.h */
typedef struct tn_layout tn_layout;     /* base/keys/record.h */
typedef struct tn_rules tn_rules;       /* ps/optim/rule.h */
typedef struct tn_schema tn_schema;     /* io/schema/schema.h */
typedef struct tn_tree tn_tree;         /* config/tree.h */

/* Replaces the rules of groups, whose size is the largest of their slots', and appends those of
 * single keys, in the binder's arena. Faults go to its diag: a slot or a size that is none, a rule
 * that sizes have no meaning for. */
void tn_value_sizes_apply(const tn_tree *sizes, const tn_schema *schema, const tn_binder *b,
                          tn_rules *rules);
