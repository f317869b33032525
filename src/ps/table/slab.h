/* slab.h - rows of one size in one partition, numbered from 0, that never move.
 *
 *     chunk   0: 8 rows | 1: 8 | 2: 16 | 3: 32 | .. | k: full | k+1: full ..     full: some 16 KB
 *
 * Small at first, so that a partition with few keys costs little. Guarded by the partition's lock.
 */
#ifndef TN_PS_SLAB_H
#define TN_PS_SLAB_H

#include "ps/table/page_arena.h"
#include "ps/table/row.h"

enum { TN_SLAB_ROWS_MAX = (1 << 24) - 1 };

typedef struct tn_slab {
    char **chunk; /* owned; the chunks themselves belong to the extents */
    uint32_t n_chunks, chunks_max;
    uint32_t n_rows;
    uint32_t capacity; /* rows in all chunks */
    uint32_t stride;   /* bytes of a row */
    uint8_t first_log2, full_log2;
} tn_slab;

void tn_slab_init(tn_slab *s, uint32_t stride);
void tn_slab_clear(tn_slab *s, tn_extents *e);

/* Makes room for one more row. */
tn_status tn_slab_reserve(tn_slab *s, tn_extents *e, tn_error *err) TN_MUST_USE;

/* What `rows` more rows take beyond what there is; and at most, whatever there is. */
uint64_t tn_slab_growth(const tn_slab *s, uint32_t rows);
uint64_t tn_slab_growth_most(const tn_slab *s, uint32_t rows);

/* After tn_slab_reserve: a zeroed row behind all others; its number was n_rows. */
tn_row *tn_slab_add(tn_slab *s);

static inline tn_row *tn_slab_at(const tn_slab *s, uint32_t number)
{
    uint32_t full = number >> s->full_log2;
    uint32_t chunk = s->full_log2 - s->first_log2 + full;
    uint32_t at = number - (full << s->full_log2);
    if (__builtin_expect(full == 0, 0)) {
        uint32_t log2 = 31 - (uint32_t)__builtin_clz(number | 1);
        bool first = number >> s->first_log2 == 0;
        chunk = first ? 0 : log2 - s->first_log2 + 1;
        at = first ? number : number - (UINT32_C(1) << log2);
    }
    return (tn_row *)(void *)(s->chunk[chunk] + (size_t)at * s->stride);
}

#endif
