/* retired.h - options of earlier versions, which configurations in checkpoints still have.
 *
 * A user who gives one is refused, as for any option that does not exist. But config.yaml of a
 * checkpoint and run.yaml of a run hold every option with its value, and are read again by those
 * who evaluate, export or train on: from them such options are dropped.
 */
#pragma once

typedef struct tn_arena tn_arena; /* base/core/arena.h */
typedef struct tn_tree tn_tree;   /* config/tree.h */

/* Returns a copy of `config`, a map of sections, without options that are no more. */
tn_tree *tn_retired_drop(tn_arena *arena, const tn_tree *config);
