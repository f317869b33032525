/* ffmloops.c - sums over pairs of field-aware vectors, and their gradients. Vectors of four
 * numbers, the usual length, go four by four: sixteen pairs lie in two blocks of 4 x 4 vectors, of
 * which one is turned about its diagonal.
 *
 *     field[f .. f+3]   | f,g    f,g+1   f,g+2   f,g+3   |
 *                       | f+1,g  f+1,g+1 ..              |      times, entry by entry,
 *
 *     field[g .. g+3]   | g,f    g,f+1   g,f+2   g,f+3   |      its columns as rows
 *                       | g+1,f  g+1,f+1 ..              |
 */
#include "nn/pooling/ffmloops.h"

#include "base/core/compiler.h"
#include "base/keys/record.h"
#include "config/field.h"

#include <string.h>

const tn_field tn_ffm_attrs[] = {
    TN_FIELD_U32(tn_ffm_attr, fields, "1", 1, TN_FFM_FIELDS_MAX, "", "number of fields"),
    TN_FIELD_U32(tn_ffm_attr, dim, "4", 1, TN_DIM_MAX, "columns", "width of a vector"),
    TN_FIELD_END,
};

bool tn_ffm_fits(const tn_ffm_attr *attr, const tn_node *x)
{
    return (uint64_t)attr->fields * attr->fields * attr->dim == x->shape.cols;
}

enum { FOUR = 4, LANES = FOUR * FOUR };

/* Four vectors of four. */
typedef tn_real quad __attribute__((vector_size(LANES * sizeof(tn_real))));
/* The same where numbers lie, which is anywhere. */
typedef quad loose_quad __attribute__((aligned(sizeof(tn_real)), may_alias));

#define ALWAYS_INLINE __attribute__((always_inline)) static inline

/* Rows of four blocks at `at`, as columns. */
ALWAYS_INLINE void turn(const tn_real *const *row, size_t at, quad out[FOUR])
{
    quad a = *(const loose_quad *)(row[0] + at);
    quad b = *(const loose_quad *)(row[1] + at);
    quad c = *(const loose_quad *)(row[2] + at);
    quad d = *(const loose_quad *)(row[3] + at);
#define HALVES(x, y, i)                                                                            \
    __builtin_shufflevector(x, y, (i), (i) + 1, (i) + 2, (i) + 3, (i) + 4, (i) + 5, (i) + 6,       \
                            (i) + 7, (i) + 16, (i) + 17, (i) + 18, (i) + 19, (i) + 20, (i) + 21,   \
                            (i) + 22, (i) + 23)
#define QUARTERS(x, y, i)                                                                          \
    __builtin_shufflevector(x, y, (i), (i) + 1, (i) + 2, (i) + 3, (i) + 8, (i) + 9, (i) + 10,      \
                            (i) + 11, (i) + 16, (i) + 17, (i) + 18, (i) + 19, (i) + 24, (i) + 25,  \
                            (i) + 26, (i) + 27)
    quad ab = HALVES(a, b, 0);
    quad cd = HALVES(c, d, 0);
    out[0] = QUARTERS(ab, cd, 0);
    out[1] = QUARTERS(ab, cd, FOUR);
    ab = HALVES(a, b, 2 * FOUR);
    cd = HALVES(c, d, 2 * FOUR);
    out[2] = QUARTERS(ab, cd, 0);
    out[3] = QUARTERS(ab, cd, FOUR);
#undef HALVES
#undef QUARTERS
}

/* One pair, added to the first lanes. */
ALWAYS_INLINE void add_pair(const tn_ffm_row *x, uint32_t f, uint32_t g, const uint32_t dim,
                            tn_real *sum)
{
    const tn_real *a = x->field[f] + (size_t)g * dim;
    const tn_real *b = x->field[g] + (size_t)f * dim;
    for (uint32_t c = 0; c < dim; c++) {
        sum[c] += a[c] * b[c];
    }
}

/* Pairs of two different fours of fields. */
ALWAYS_INLINE void add_fours(const tn_ffm_row *x, uint32_t f, uint32_t g, quad sum[FOUR])
{
    quad turned[FOUR];
    turn(x->field + g, (size_t)f * FOUR, turned);
    for (uint32_t i = 0; i < FOUR; i++) {
        sum[i] += *(const loose_quad *)(x->field[f + i] + (size_t)g * FOUR) * turned[i];
    }
}

TN_HOT static tn_real pairs_4(const tn_ffm_row *x)
{
    quad sum[FOUR] = {{0}};
    tn_real rest[FOUR] = {0};
    tn_real lane[LANES] = {0};
    uint32_t whole = x->n / FOUR * FOUR;
    for (uint32_t f = 0; f < whole; f += FOUR) {
        for (uint32_t g = f + FOUR; g < whole; g += FOUR) {
            add_fours(x, f, g, sum);
        }
        for (uint32_t i = f; i < f + FOUR; i++) {
            for (uint32_t j = i + 1; j < f + FOUR; j++) {
                add_pair(x, i, j, FOUR, rest);
            }
            for (uint32_t j = whole; j < x->n; j++) {
                add_pair(x, i, j, FOUR, rest);
            }
        }
    }
    for (uint32_t i = whole; i < x->n; i++) {
        for (uint32_t j = i + 1; j < x->n; j++) {
            add_pair(x, i, j, FOUR, rest);
        }
    }
    quad all = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    memcpy(lane, &all, sizeof lane);
    tn_real total = (rest[0] + rest[1]) + (rest[2] + rest[3]);
    for (uint32_t i = 0; i < LANES; i += FOUR) {
        total += (lane[i] + lane[i + 1]) + (lane[i + 2] + lane[i + 3]);
    }
    return total;
}

TN_HOT static tn_real pairs_any(const tn_ffm_row *x)
{
    tn_real total = 0;
    for (uint32_t f = 0; f < x->n; f++) {
        for (uint32_t g = f + 1; g < x->n; g++) {
            const tn_real *a = x->field[f] + (size_t)g * x->dim;
            const tn_real *b = x->field[g] + (size_t)f * x->dim;
            tn_real lane[LANES] = {0};
            uint32_t c = 0;
            for (; c + LANES <= x->dim; c += LANES) {
                for (uint32_t i = 0; i < LANES; i++) {
                    lane[i] += a[c + i] * b[c + i];
                }
            }
            for (uint32_t i = 0; c + i < x->dim; i++) {
                lane[i] += a[c + i] * b[c + i];
            }
            for (uint32_t i = 0; i < LANES; i++) {
                total += lane[i];
            }
        }
    }
    return total;
}

tn_real tn_ffm_pairs(const tn_ffm_row *x)
{
    return x->dim == FOUR ? pairs_4(x) : pairs_any(x);
}

ALWAYS_INLINE void back_pair(const tn_ffm_row *x, uint32_t f, uint32_t g, tn_real dy,
                             tn_real *restrict df, const uint32_t dim)
{
    const tn_real *restrict a = x->field[g] + (size_t)f * dim;
    tn_real *restrict d = df + (size_t)g * dim;
    for (uint32_t c = 0; c < dim; c++) {
        d[c] += dy * a[c];
    }
}

/* To fields g .. g + 3. */
ALWAYS_INLINE void back_four(const tn_ffm_row *x, uint32_t g, tn_real dy, tn_real *const *dfield)
{
    uint32_t whole = x->n / FOUR * FOUR;
    for (uint32_t f = 0; f < whole; f += FOUR) {
        if (f == g) {
            continue;
        }
        quad turned[FOUR];
        turn(x->field + g, (size_t)f * FOUR, turned);
        for (uint32_t i = 0; i < FOUR; i++) {
            loose_quad *d = (loose_quad *)(dfield[f + i] + (size_t)g * FOUR);
            *d += turned[i] * dy;
        }
    }
    for (uint32_t i = g; i < g + FOUR; i++) {
        for (uint32_t f = g; f < g + FOUR; f++) {
            if (f != i) {
                back_pair(x, f, i, dy, dfield[f], FOUR);
            }
        }
        for (uint32_t f = whole; f < x->n; f++) {
            back_pair(x, f, i, dy, dfield[f], FOUR);
        }
    }
}

TN_HOT static void back_4(const tn_ffm_row *x, tn_range to, tn_real dy, tn_real *const *dfield)
{
    uint32_t g = to.from;
    for (; g + FOUR <= to.to; g += FOUR) {
        back_four(x, g, dy, dfield);
    }
    for (; g < to.to; g++) {
        for (uint32_t f = 0; f < x->n; f++) {
            if (f != g) {
                back_pair(x, f, g, dy, dfield[f], FOUR);
            }
        }
    }
}

TN_HOT static void back_any(const tn_ffm_row *x, tn_range to, tn_real dy, tn_real *const *dfield)
{
    for (uint32_t f = 0; f < x->n; f++) {
        for (uint32_t g = to.from; g < to.to; g++) {
            if (f != g) {
                back_pair(x, f, g, dy, dfield[f], x->dim);
            }
        }
    }
}

void tn_ffm_pairs_back(const tn_ffm_row *x, tn_range to, tn_real dy, tn_real *const *dfield)
{
    TN_ASSERT(to.from % TN_FIELDS_TILE == 0 && to.to <= x->n);
    (x->dim == FOUR ? back_4 : back_any)(x, to, dy, dfield);
}
