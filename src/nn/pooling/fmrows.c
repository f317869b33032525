/* fmrows.c - factorization machines over the rows of the batch's small table. */
#include "nn/pooling/fmrows.h"

#include "base/core/compiler.h"
#include "base/keys/record.h"

enum { AHEAD = 8 }; /* vectors on their way to the near cache */

/* Calls f with the length of a vector as its last argument: common lengths as constants, so that
 * its loops unroll. */
#define UNROLLED(f, dim, ...)                                                                      \
    ((dim) == 4    ? f(__VA_ARGS__, 4)                                                             \
     : (dim) == 8  ? f(__VA_ARGS__, 8)                                                             \
     : (dim) == 16 ? f(__VA_ARGS__, 16)                                                            \
                   : f(__VA_ARGS__, dim))

#define ALWAYS_INLINE __attribute__((always_inline)) static inline

ALWAYS_INLINE void add_vector(const uint32_t dim, tn_real *restrict s, tn_real *restrict q,
                              const tn_real *restrict v)
{
#pragma omp simd
    for (uint32_t c = 0; c < dim; c++) {
        s[c] += v[c];
        q[c] += v[c] * v[c];
    }
}

ALWAYS_INLINE void back_vector(const uint32_t dim, tn_real *restrict dv, const tn_real *restrict v,
                               const tn_real *restrict s, tn_real dy)
{
#pragma omp simd
    for (uint32_t c = 0; c < dim; c++) {
        dv[c] += dy * (s[c] - v[c]);
    }
}

ALWAYS_INLINE void add_slot(const tn_fm_rows *p, const tn_embed_slot *slot, tn_range rows,
                            const uint32_t dim)
{
    const uint32_t *index = p->sparse->bag[slot->slot].index;
    const uint32_t *at = p->sparse->at;
    const tn_real *table = p->sparse->rows + slot->segment->at;
    tn_real *sum = p->sum;
    tn_real *squares = p->squares;
    for (uint32_t r = rows.from; r < rows.to; r++) {
        __builtin_prefetch(table + at[index[r + AHEAD < rows.to ? r + AHEAD : r]]);
        add_vector(dim, sum + (size_t)r * dim, squares + (size_t)r * dim, table + at[index[r]]);
    }
}

TN_HOT static void fm_add_slot(const tn_fm_rows *p, const tn_embed_slot *slot, tn_range rows)
{
    UNROLLED(add_slot, p->dim, p, slot, rows);
}

void tn_fm_add_slot(const tn_fm_rows *p, const tn_embed_slot *slot, tn_range rows)
{
    fm_add_slot(p, slot, rows);
}

TN_HOT static void fm_add_one(const tn_fm_rows *p, uint32_t row, const tn_real *v)
{
    size_t at = (size_t)row * p->dim;
    add_vector(p->dim, p->sum + at, p->squares + at, v);
}

void tn_fm_add(const tn_fm_rows *p, uint32_t row, const tn_real *v)
{
    fm_add_one(p, row, v);
}

ALWAYS_INLINE void back_slot(const tn_fm_rows *p, const tn_embed_slot *slot, uint32_t n_rows,
                             const uint32_t dim)
{
    const uint32_t *index = p->sparse->bag[slot->slot].index;
    const uint32_t *at = p->sparse->at;
    const tn_real *table = p->sparse->rows + slot->segment->at;
    tn_real *grads = p->sparse->grads + slot->segment->at;
    const tn_real *sum = p->sum;
    const tn_real *dy = p->dy;
    for (uint32_t r = 0; r < n_rows; r++) {
        uint32_t soon = at[index[r + AHEAD < n_rows ? r + AHEAD : r]];
        __builtin_prefetch(table + soon);
        __builtin_prefetch(grads + soon, 1);
        back_vector(dim, grads + at[index[r]], table + at[index[r]], sum + (size_t)r * dim,
                    dy[r * p->stride]);
    }
}

TN_HOT static void fm_back_slot(const tn_fm_rows *p, const tn_embed_slot *slot, uint32_t n_rows)
{
    UNROLLED(back_slot, p->dim, p, slot, n_rows);
}

void tn_fm_back_slot(const tn_fm_rows *p, const tn_embed_slot *slot, uint32_t n_rows)
{
    fm_back_slot(p, slot, n_rows);
}

/* One loop over the occurrences of all keys, as in embedloops.c. */
ALWAYS_INLINE void back_keys(const tn_fm_rows *p, tn_range keys, const uint32_t dim)
{
    const tn_occurrence *item = p->sparse->occurrences.item;
    const uint32_t *first = p->sparse->occurrences.first;
    const uint32_t *at = p->sparse->at;
    const tn_real *table = p->sparse->rows;
    tn_real *grads = p->sparse->grads;
    uint32_t k = keys.from;
    for (uint32_t j = first[keys.from]; j < first[keys.to]; j++) {
        k += j == first[k + 1]; /* without a branch */
        while (j >= first[k + 1]) {
            k++; /* keys that nobody holds: never in a batch, but harmless */
        }
        const tn_slot_use *use = tn_use_of(p->use, p->n_uses, item[j].slot);
        if (use->i != TN_NO_SLOT) {
            size_t v = (size_t)at[k] + use->segment->at;
            back_vector(dim, grads + v, table + v, p->sum + (size_t)item[j].row * dim,
                        p->dy[item[j].row * p->stride]);
        }
    }
}

TN_HOT static void fm_back_keys(const tn_fm_rows *p, tn_range keys)
{
    UNROLLED(back_keys, p->dim, p, keys);
}

void tn_fm_back_keys(const tn_fm_rows *p, tn_range keys)
{
    fm_back_keys(p, keys);
}
