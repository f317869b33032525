/* keyset.h - the different keys of a batch, grouped by the partition they live in.
 *
 * The key space is cut into a fixed number of partitions and each peer owns a run of them, so keys
 * in partition order are in peer order too. One array of offsets serves both:
 *
 *     owners->from   0           2           4      peer 0 owns partitions 0 and 1
 *     partition      0     1     2     3
 *     first          0     2     3     3     6      nothing of partition 2 this time
 *     key            a b   c           d e f        each key once
 *     at             0 9   10          19 20 21 30  floats: where the key's row lies in `rows`
 *                    '-peer 0'   '--peer 1-'
 *
 * A peer's request is one slice of key, its answer lands in the same slice of
 * rows, its gradient leaves from the same slice of grads; there, a partition is
 * one slice again. After the localizer made this, nothing is sorted or scattered.
 *
 * Keys of different share groups may have rows of different width: group[i]
 * picks the record (base/keys/record.h) and at[i] .. at[i+1] is the place of row i.
 */
#ifndef TN_BASE_KEYSET_H
#define TN_BASE_KEYSET_H

#include "base/core/error.h"
#include "base/keys/keyspace.h"
#include "base/thread/range.h"

#include <stdbool.h>
#include <stdint.h>

/* Who owns which partitions. Fixed while a run lasts. */
typedef struct tn_owners {
    uint32_t n_peers;
    uint32_t n_partitions;
    const uint32_t *from; /* n_peers + 1: peer p owns partitions from[p] .. from[p+1] - 1 */
} tn_owners;

typedef struct tn_keyset {
    const tn_owners *owners;
    uint32_t n;
    const uint64_t *key;   /* n, each once, by partition, then as first seen */
    const uint16_t *group; /* n: index of the share group in the tn_layout */
    const uint32_t *at;    /* n + 1: offset of the key's row, in floats */
    const uint32_t *show;  /* n: how often the batch holds it */
    const uint32_t *click; /* n: how often in an example whose label is above .5 */
    const uint32_t *first; /* n_partitions + 1 */
} tn_keyset;

static inline tn_range tn_keys_of_partition(const tn_keyset *keys, uint32_t partition)
{
    return (tn_range){keys->first[partition], keys->first[partition + 1]};
}

static inline tn_range tn_keys_of_peer(const tn_keyset *keys, uint32_t peer)
{
    TN_ASSERT(peer < keys->owners->n_peers);
    const uint32_t *from = keys->owners->from;
    return (tn_range){keys->first[from[peer]], keys->first[from[peer + 1]]};
}

#endif
