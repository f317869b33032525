/* embedloops.c - the inner loops of pooling and of its gradient. Vectors are short (8 to 64), so
 * the loops call no function per vector, and the compiler sees the common lengths. */
#include "nn/pooling/embedloops.h"

#include "base/core/compiler.h"
#include "base/keys/record.h"

#include <string.h>

/* Calls f with the length of a vector as its last argument: common lengths as constants, so that
 * its loops unroll. */
#define UNROLLED(f, dim, ...)                                                                      \
    ((dim) == 1    ? f(__VA_ARGS__, 1)                                                             \
     : (dim) == 8  ? f(__VA_ARGS__, 8)                                                             \
     : (dim) == 16 ? f(__VA_ARGS__, 16)                                                            \
                   : f(__VA_ARGS__, dim))

static const tn_real *vector_of(const tn_pooling *p, uint32_t entry)
{
    return p->sparse->rows + p->sparse->at[p->bag->index[entry]] + p->slot->segment->at;
}

static inline void put_scaled(tn_real *restrict y, const tn_real *restrict x, tn_real by,
                              uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        y[i] = x[i] * by;
    }
}

static inline void add_scaled(tn_real *restrict y, const tn_real *restrict x, tn_real by,
                              uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        y[i] += x[i] * by;
    }
}

static void put(uint32_t n, tn_real *restrict y, const tn_real *restrict x, tn_real by)
{
    UNROLLED(put_scaled, n, y, x, by);
}

void tn_add_scaled(uint32_t dim, tn_real *dv, const tn_real *dout, tn_real by)
{
    UNROLLED(add_scaled, dim, dv, dout, by);
}

enum { AHEAD = 8, AHEAD_BACK = 16 }; /* vectors on their way to the near cache */

__attribute__((always_inline)) static inline void add_vector(const uint32_t n, tn_real *restrict y,
                                                             const tn_real *restrict x)
{
#pragma omp simd
    for (uint32_t i = 0; i < n; i++) {
        y[i] += x[i];
    }
}

/* One loop over the occurrences of all keys: most keys have one to three, and a loop of their own
 * would end where the processor does not expect it. */
__attribute__((always_inline)) static inline void add_plain(const tn_plain_sum *p, tn_range keys,
                                                            const uint32_t dim)
{
    const tn_occurrence *item = p->sparse->occurrences.item;
    const uint32_t *first = p->sparse->occurrences.first;
    const uint32_t *at = p->sparse->at;
    tn_real *grads = p->sparse->grads;
    const uint32_t last = first[keys.to] - 1;
    uint32_t k = keys.from;
    for (uint32_t j = first[keys.from]; j <= last; j++) {
        const tn_occurrence *later = &item[j + AHEAD_BACK < last ? j + AHEAD_BACK : last];
        const tn_slot_use *soon = tn_use_of(p->use, p->n_uses, later->slot);
        __builtin_prefetch(p->dout + later->row * p->stride + soon->col);
        k += j == first[k + 1]; /* without a branch */
        while (j >= first[k + 1]) {
            k++; /* keys that nobody holds: never in a batch, but harmless */
        }
        const tn_slot_use *use = tn_use_of(p->use, p->n_uses, item[j].slot);
        if (use->i != TN_NO_SLOT) {
            add_vector(dim, grads + at[k] + use->segment->at,
                       p->dout + item[j].row * p->stride + use->col);
        }
    }
}

TN_HOT static void add_plain_keys(const tn_plain_sum *p, tn_range keys)
{
    UNROLLED(add_plain, p->dim, p, keys);
}

void tn_add_plain(const tn_plain_sum *p, tn_range keys)
{
    if (p->sparse->occurrences.first[keys.from] != p->sparse->occurrences.first[keys.to]) {
        add_plain_keys(p, keys);
    }
}

__attribute__((always_inline)) static inline void add_slot(const tn_plain_slot *p,
                                                           const uint32_t dim)
{
    const tn_bag *bag = &p->sparse->bag[p->slot->slot];
    const uint32_t *index = bag->index;
    const uint32_t *at = p->sparse->at;
    const tn_real *dout = p->dout;
    const size_t stride = p->stride;
    tn_real *grads = p->sparse->grads + p->slot->segment->at;
    const uint32_t n = p->n_rows;
    if (!bag->ones) {
        for (uint32_t r = 0; r < n; r++, dout += stride) {
            for (uint32_t j = bag->offset[r]; j < bag->offset[r + 1]; j++) {
                add_vector(dim, grads + at[index[j]], dout);
            }
        }
        return;
    }
    for (uint32_t r = 0; r < n; r++, dout += stride) {
        if (dim > 1) {
            __builtin_prefetch(grads + at[index[r + AHEAD < n ? r + AHEAD : r]], 1);
            __builtin_prefetch(r + AHEAD < n ? dout + AHEAD * stride : dout);
        }
        add_vector(dim, grads + at[index[r]], dout);
    }
}

TN_HOT static void add_plain_slot(const tn_plain_slot *p)
{
    UNROLLED(add_slot, p->slot->segment->dim, p);
}

void tn_add_plain_slot(const tn_plain_slot *p)
{
    add_plain_slot(p);
}

/* Every example takes one vector. */
__attribute__((always_inline)) static inline void copy_all(const tn_pooling *p, tn_range rows,
                                                           size_t stride, const uint32_t dim)
{
    const uint32_t *index = p->bag->index;
    const uint32_t *at = p->sparse->at;
    const tn_real *table = p->sparse->rows + p->slot->segment->at;
    const uint32_t last = rows.to - 1;
    tn_real *out = p->out;
    for (uint32_t r = rows.from; r <= last; r++, out += stride) {
        __builtin_prefetch(table + at[index[r + AHEAD < last ? r + AHEAD : last]]);
        memcpy(out, table + at[index[r]], dim * sizeof *out);
    }
}

/* Rows as long as they take one vector. */
__attribute__((always_inline)) static inline uint32_t copy_ones(const tn_pooling *p, tn_range rows,
                                                                size_t stride, const uint32_t dim)
{
    const uint32_t *offset = p->bag->offset;
    const uint32_t *index = p->bag->index;
    const uint32_t *at = p->sparse->at;
    const tn_real *table = p->sparse->rows + p->slot->segment->at;
    const uint32_t last = offset[rows.to];
    tn_real *out = p->out;
    uint32_t r = rows.from;
    for (; r < rows.to && offset[r + 1] - offset[r] == 1; r++, out += stride) {
        uint32_t entry = offset[r];
        if (entry + AHEAD < last) {
            __builtin_prefetch(table + at[index[entry + AHEAD]]);
        }
        memcpy(out, table + at[index[entry]], dim * sizeof *out);
    }
    return r - rows.from;
}

static void pool_all(const tn_pooling *p, tn_range rows, size_t stride)
{
    uint32_t dim = p->slot->segment->dim;
    UNROLLED(copy_all, dim, p, rows, stride);
}

uint32_t tn_pool_ones(const tn_pooling *p, tn_range rows, size_t stride)
{
    if (p->bag->ones) {
        pool_all(p, rows, stride);
        return rows.to - rows.from;
    }
    return copy_ones(p, rows, stride, p->slot->segment->dim);
}

/* The first vector is assigned. Multiplying by 1 changes no bit. */
void tn_pool_sum(const tn_pooling *p, tn_real scale)
{
    uint32_t first = p->entries.from;
    uint32_t dim = p->slot->segment->dim;
    put(dim, p->out, vector_of(p, first), tn_weight_of(p->bag, first) * scale);
    for (uint32_t j = first + 1; j < p->entries.to; j++) {
        tn_add_scaled(dim, p->out, vector_of(p, j), tn_weight_of(p->bag, j) * scale);
    }
}

void tn_pool_max(const tn_pooling *p, uint32_t *winner)
{
    for (uint32_t j = p->entries.from; j < p->entries.to; j++) {
        const tn_real *v = vector_of(p, j);
        tn_real x = tn_weight_of(p->bag, j);
        for (uint32_t c = 0; c < p->slot->segment->dim; c++) {
            tn_real y = x * v[c];
            if (j == p->entries.from || y > p->out[c]) {
                p->out[c] = y;
                winner[c] = j;
            }
        }
    }
}

void tn_pool_concat(const tn_pooling *p)
{
    uint32_t dim = p->slot->segment->dim;
    uint32_t n = p->entries.to - p->entries.from;
    n = n < p->slot->k ? n : p->slot->k;
    for (uint32_t j = 0; j < n; j++) {
        uint32_t entry = p->entries.from + j;
        put(dim, p->out + (size_t)j * dim, vector_of(p, entry), tn_weight_of(p->bag, entry));
    }
    memset(p->out + (size_t)n * dim, 0, (p->cols - n * dim) * sizeof *p->out);
}

void tn_add_won(uint32_t dim, tn_real *dv, const tn_real *dout, const tn_won *won)
{
    for (uint32_t c = 0; c < dim; c++) {
        if (won->winner[c] == won->entry) {
            dv[c] += won->x * dout[c];
        }
    }
}
