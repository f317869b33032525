/* slab.c - see slab.h. */
#include "ps/table/slab.h"

#include "base/core/alloc.h"

enum { FULL_BYTES = 16 << 10, FIRST_ROWS_LOG2 = 3, FULL_ROWS_LOG2_MAX = 10, POINTERS_FIRST = 8 };

void tn_slab_init(tn_slab *s, uint32_t stride)
{
    TN_ASSERT(stride >= sizeof(tn_row) && stride % sizeof(float) == 0);
    *s = (tn_slab){.stride = stride};
    while (s->full_log2 < FULL_ROWS_LOG2_MAX &&
           ((size_t)stride << (s->full_log2 + 1)) <= FULL_BYTES) {
        s->full_log2++;
    }
    s->first_log2 = s->full_log2 < FIRST_ROWS_LOG2 ? s->full_log2 : FIRST_ROWS_LOG2;
}

void tn_slab_clear(tn_slab *s, tn_extents *e)
{
    tn_extents_refund(e, s->chunks_max * sizeof(char *));
    tn_free(s->chunk);
    tn_slab_init(s, s->stride);
}

static tn_status more_pointers(tn_slab *s, tn_extents *e, tn_error *err)
{
    uint32_t most = s->chunks_max == 0 ? POINTERS_FIRST : 2 * s->chunks_max;
    tn_extents_charge(e, (most - s->chunks_max) * sizeof(char *));
    char **chunk = tn_try_alloc(most, sizeof *chunk, "chunks of rows", err);
    if (chunk == NULL) {
        tn_extents_refund(e, (most - s->chunks_max) * sizeof(char *));
        return TN_E_MEMORY;
    }
    if (s->n_chunks > 0) {
        memcpy(chunk, s->chunk, s->n_chunks * sizeof *chunk);
    }
    tn_free(s->chunk);
    s->chunk = chunk;
    s->chunks_max = most;
    return TN_OK;
}

/* Rows of the chunk behind `capacity`: as many as there are, between the first and the full size.
 */
static uint32_t next_chunk(const tn_slab *s, uint32_t capacity)
{
    const uint32_t first = UINT32_C(1) << s->first_log2;
    const uint32_t full = UINT32_C(1) << s->full_log2;
    const uint32_t rows = capacity < first ? first : capacity;
    return rows < full ? rows : full;
}

static tn_status more_rows(tn_slab *s, tn_extents *e, tn_error *err)
{
    if (s->n_chunks == s->chunks_max) {
        TN_TRY(more_pointers(s, e, err));
    }
    const uint32_t rows = next_chunk(s, s->capacity);
    void *chunk = NULL;
    TN_TRY(tn_extents_take(e, (size_t)rows * s->stride, &chunk, err));
    s->chunk[s->n_chunks++] = chunk;
    s->capacity += rows;
    return TN_OK;
}

tn_status tn_slab_reserve(tn_slab *s, tn_extents *e, tn_error *err)
{
    if (s->n_rows == TN_SLAB_ROWS_MAX) {
        return tn_fail(err, TN_E_LIMIT, "a partition holds more than %d rows of one size",
                       TN_SLAB_ROWS_MAX);
    }
    return s->n_rows < s->capacity ? TN_OK : more_rows(s, e, err);
}

tn_row *tn_slab_add(tn_slab *s)
{
    TN_ASSERT(s->n_rows < s->capacity);
    return tn_slab_at(s, s->n_rows++);
}

uint64_t tn_slab_growth(const tn_slab *s, uint32_t rows)
{
    uint32_t capacity = s->capacity;
    uint32_t chunks = s->n_chunks;
    while (capacity < s->n_rows + rows) {
        capacity += next_chunk(s, capacity);
        chunks++;
    }
    const uint32_t pointers = chunks > s->chunks_max ? s->chunks_max + POINTERS_FIRST : 0;
    return (uint64_t)(capacity - s->capacity) * s->stride + pointers * sizeof(char *);
}

uint64_t tn_slab_growth_most(const tn_slab *s, uint32_t rows)
{
    const uint64_t full = (UINT64_C(1) << s->full_log2) * s->stride;
    return (uint64_t)rows * s->stride + 2 * full;
}
