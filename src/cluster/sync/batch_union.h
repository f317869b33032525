/* batch_union.h - the batches of all ranks as one: the union of their keys, and sums in rank order.
 *
 *     rank 0   a   c d        joint    a b c d e        place of rank 0's keys   0 2 3
 *     rank 1     b c   e                                place of rank 1's keys   1 2 4
 *
 * At staleness 0 the owner of some partitions makes one pull and one update per key and step, as a
 * single process would on the joint batch (Chen et al. 2016, synchronous SGD): it unites the
 * keysets of a step, pulls the joint one, gives every rank its rows, and adds up the gradients that
 * come back, always in rank order, so that arrival decides no bit. Shows and clicks are added up.
 *
 *     unite -> tn_table_pull(joint keys, rows) -> give, each rank .. -> add -> tn_table_push
 *
 * Memory grows to the largest step and then stays. A union belongs to one thread; the team works
 * inside its calls.
 */
#pragma once

#include "base/core/arena.h"
#include "base/keys/keyset.h"
#include "base/keys/record.h"
#include "base/thread/team.h"

typedef struct tn_batch_union tn_batch_union;

/* Makes it in the arena, which must outlive it as must `owners` and `layout`. */
tn_batch_union *tn_batch_union_new(tn_arena *arena, uint32_t n_ranks, const tn_owners *owners,
                                   const tn_layout *layout);
void tn_batch_union_free(tn_batch_union *j); /* the memory of steps; NULL is fine */

/* Begins a step: keys[r] is rank r's keyset, lent until the next call, in ascending order of (key,
 * group) within each partition; NULL: it has none. Groups are known to the layout. TN_E_MEMORY;
 * TN_E_LIMIT (2^31 keys or 2^32 floats). */
tn_status tn_batch_union_unite(tn_batch_union *j, tn_team *team, const tn_keyset *const *keys,
                               tn_error *err) TN_MUST_USE;

/* Returns the union that the last unite made, in ascending order, too. Lasts until the next one. */
const tn_keyset *tn_batch_union_keys(const tn_batch_union *j);

/* Sets to[at of rank's keys] := rows[at of the joint keys], for every key of that rank. */
void tn_batch_union_give(tn_batch_union *j, tn_team *team, uint32_t rank, const float *rows,
                         float *to);

/* Sets sum := the ranks' gradients added up in rank order, as long as the joint rows. from[r] is
 * laid out by the `at` of rank r's keys; NULL where it had no keys. */
void tn_batch_union_add(tn_batch_union *j, tn_team *team, const float *const *from, float *sum);
