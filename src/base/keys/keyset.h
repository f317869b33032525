/* keyset.h - the different keys of a batch, grouped by the partition they live in.
 *
 * The key space is cut into a fixed number of partitions and each peer owns a run of them, so keys
 * in partition order are in peer order too. One array of offsets serves both:
 *
 *     owners->from   0           2           4      peer 0 owns partitions 0 and 1
 *     partition      0     1     2     3
 *     first          0     2     3     3     6      nothing of partition 2 this time
 *     key            a b   c           d e f        each key once
 *     at             9 32  0           41 33 18     floats: where the key's row lies in `rows`
 *                    '-peer 0'   '--peer 1-'
 *
 * A peer's request is one slice of key, and its answer is one of rows in the same order. In the
 * batch, rows lie elsewhere: those that one slot takes are side by side (base/keys/bag.h), since
 * examples go through them slot by slot. So rows are scattered when they come, and gathered when
 * gradients leave.
 *
 * Keys of different share groups may have rows of different width: group[i] picks the record
 * (base/keys/record.h).
 */
#pragma once

#include "base/core/error.h"
#include "base/keys/keyspace.h"
#include "base/keys/record.h"
#include "base/thread/range.h"

#include <stdbool.h>
#include <stdint.h>

/* Says which peer owns which partitions. Fixed while a run lasts. */
typedef struct tn_owners {
    uint32_t n_peers;
    uint32_t n_partitions;
    const uint32_t *from; /* n_peers + 1: peer p owns partitions from[p] .. from[p+1] - 1 */
} tn_owners;

typedef struct tn_keyset {
    const tn_owners *owners;
    const tn_layout *layout;
    uint32_t n;
    uint32_t floats;       /* size of `rows`: all rows of the keyset end before */
    const uint64_t *key;   /* n, each once, by partition, then as first seen */
    const uint16_t *group; /* n: index of the share group in the tn_layout */
    const uint32_t *at;    /* n: offset of the key's row, in floats */
    const uint32_t *show;  /* n: how often the batch holds it */
    const uint32_t *click; /* n: how often in an example whose label is above .5 */
    const uint32_t *first; /* n_partitions + 1 */
} tn_keyset;

/* Returns the floats in the row of key i. */
static inline uint32_t tn_row_width(const tn_keyset *keys, uint32_t i)
{
    return tn_record_of(keys->layout, keys->group[i])->width;
}

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
