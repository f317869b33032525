/* keyspace.h - how the space of keys is cut into partitions, and what a key may hold at most. */
#pragma once

#include <stdint.h>

enum { TN_PARTITIONS = 1024 };

/* Limits of a layout of rows (base/keys/record.h). */
enum { TN_SEGMENTS_MAX = 16, TN_GROUPS_MAX = 4096, TN_DIM_MAX = 4096 };

/* Returns the partition of a key. Keys are mixed before they get here, so the high bits are as good
 * as any. */
static inline uint32_t tn_partition_of(uint64_t key, uint32_t n_partitions)
{
    return (uint32_t)(((key >> 32) * n_partitions) >> 32);
}
