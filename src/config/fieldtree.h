/* fieldtree.h - how an option table looks at a tree: shorthands, defaults, layers.
 *
 * Binding, printing and merging of layers need it. All new nodes live in `arena`; given nodes are
 * shared, never changed.
 */
#pragma once

#include "config/values.h"

/* Returns the row of `key`, or NULL. `fields` may be NULL: no rows. */
const tn_field *tn_field_find(const tn_field *fields, const char *key);

/* Returns the index of the text in `words` (NULL-terminated, or NULL); UINT32_MAX: none. */
uint32_t tn_word_find(const char *const *words, const char *text);

/* Returns all keys that are allowed in a map that is read by `f` as `choice` (which is NULL but for
 * variants), "type" included; for suggestions. */
const char *const *tn_field_keys(tn_arena *arena, const tn_field *fields, const tn_field *more,
                                 bool variant, uint32_t *n);

/* Returns `optimizer: adam` as {type: adam}: the map that a scalar means when `f` is a TABLE or a
 * VARIANT; every other tree as it is. */
const tn_tree *tn_field_unfold(tn_arena *arena, const tn_field *f, const tn_tree *tree);

/* Returns the tree that `f` is read from: `given` (NULL: nothing) on top of the default; a variant
 * whose type is written begins with the defaults of that type instead. NULL when nothing is given
 * and the option is required; a tree of kind NULL when it is "not set". */
const tn_tree *tn_field_value(tn_arena *arena, const tn_field *f, const tn_tree *given);

/* Returns the choice that the unfolded map of a variant names, by itself or by the default; NULL
 * when it names none that exists. */
const tn_choice *tn_field_choice(tn_arena *arena, const tn_field *f, const tn_tree *map);

/* Lays a layer on top of another, key by key, as tn_tree_merge but knowing the tables: shorthands
 * are unfolded; a rule that changes its type begins anew with the defaults of that type, and a
 * variant whose choices share options (a model) keeps those that the new choice has too; a map
 * over a list of tables changes the items that its keys name:
 *
 *     slots: {C1: {dim: 4}}      on      slots: [{name: C1}, {name: C2}]
 *
 * A name without an item is reported to `diag`. */
tn_tree *tn_fields_merge(const tn_binder *b, const tn_field *fields, const tn_tree *under,
                         const tn_tree *over);

/* Lays two pieces of one layer on top of each other, in the order in which they were written:
 * options beside a type belong to it, whichever came first.
 *
 *     optimizer.lr=0.5  optimizer.type=sgd       is {type: sgd, lr: 0.5}
 */
tn_tree *tn_fields_join(const tn_binder *b, const tn_field *fields, const tn_tree *first,
                        const tn_tree *second);
