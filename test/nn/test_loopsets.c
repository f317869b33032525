/* test_loopsets.c - pairs of vectors have the same bits with every set of instructions. */
#include "nn/loopsets.h"

#include "base/core/alloc.h"
#include "base/keys/record.h"
#include "base/math/rng.h"
#include "support/test.h"

#include <string.h>

enum { SETS_MAX = 3, ROWS = 60, KEYS = 12, DIM_MAX = 40, FIELDS_MAX = 39, K_MAX = 17 };

/* Those that this processor has; the first is the plain one. */
static uint32_t sets_here(const tn_loopset *out[SETS_MAX])
{
    uint32_t n = 0;
    out[n++] = &tn_loops_plain;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2")) {
        out[n++] = &tn_loops_avx2;
    }
    if (__builtin_cpu_supports("avx512f")) {
        out[n++] = &tn_loops_avx512;
    }
#endif
    return n;
}

static void fill(tn_real *x, size_t n, uint64_t seed)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (tn_real)(2 * tn_unit(tn_draw(tn_stream0(seed), i)) - 1);
    }
}

static bool same(const void *a, const void *b, size_t bytes)
{
    return memcmp(a, b, bytes) == 0;
}

typedef struct pairs {
    tn_real v[FIELDS_MAX * FIELDS_MAX * K_MAX], d[FIELDS_MAX * FIELDS_MAX * K_MAX];
    tn_real y;
} pairs;

static void run_pairs(const tn_loopset *set, uint32_t n, uint32_t k, pairs *p)
{
    const tn_real *field[FIELDS_MAX];
    tn_real *dfield[FIELDS_MAX];
    fill(p->v, (size_t)n * n * k, 1);
    fill(p->d, (size_t)n * n * k, 2);
    for (uint32_t f = 0; f < n; f++) {
        field[f] = p->v + (size_t)f * n * k;
        dfield[f] = p->d + (size_t)f * n * k;
    }
    const tn_ffm_row row = {n, k, field};
    p->y = set->ffm_pairs(&row);
    for (uint32_t from = 0; from < n; from += TN_FIELDS_TILE) {
        uint32_t to = from + TN_FIELDS_TILE < n ? from + TN_FIELDS_TILE : n;
        set->ffm_pairs_back(&row, (tn_range){from, to}, (tn_real)-.7, dfield);
    }
}

static void field_aware_pairs(void **state)
{
    (void)state;
    static const uint32_t fields[] = {1, 3, 4, 9, 16, FIELDS_MAX};
    static const uint32_t widths[] = {1, 3, 4, 8, 16, K_MAX};
    const tn_loopset *set[SETS_MAX];
    uint32_t n_sets = sets_here(set);
    pairs *p = tn_alloc(SETS_MAX, sizeof *p, "pairs");
    for (uint32_t i = 0; i < 36; i++) {
        uint32_t n = fields[i / 6];
        uint32_t k = widths[i % 6];
        for (uint32_t s = 0; s < n_sets; s++) {
            run_pairs(set[s], n, k, &p[s]);
            if (!same(&p[s].y, &p[0].y, sizeof p->y) ||
                !same(p[s].d, p[0].d, (size_t)n * n * k * sizeof *p->d)) {
                fail_msg("%s, %u fields, k %u: other bits", set[s]->name, n, k);
            }
        }
    }
    tn_free(p);
}

/* One slot: sums and squares of the examples, gradients of the keys by either way. */
typedef struct sums {
    tn_real rows[KEYS * DIM_MAX], dy[ROWS];
    tn_real sum[ROWS * DIM_MAX], squares[ROWS * DIM_MAX];
    tn_real by_slot[KEYS * DIM_MAX], by_keys[KEYS * DIM_MAX];
    uint32_t offset[ROWS + 1], index[ROWS], at[KEYS + 1], first[KEYS + 1];
    tn_occurrence item[ROWS];
} sums;

static void fill_sums(sums *f, uint32_t dim)
{
    uint32_t n = 0;
    memset(f, 0, sizeof *f);
    fill(f->rows, (size_t)KEYS * dim, 3);
    fill(f->dy, ROWS, 4);
    for (uint32_t r = 0; r < ROWS; r++) {
        f->offset[r + 1] = r + 1;
        f->index[r] = (r * r + r / 3) % KEYS;
    }
    for (uint32_t k = 0; k < KEYS; k++) {
        f->first[k] = n;
        f->at[k + 1] = (k + 1) * dim;
        for (uint32_t r = 0; r < ROWS; r++) {
            if (f->index[r] == k) {
                f->item[n++] = (tn_occurrence){r, 0, r};
            }
        }
    }
    f->first[KEYS] = n;
}

static void run_sums(const tn_loopset *set, uint32_t dim, sums *f)
{
    const tn_segment segment = {.name = "deep", .dim = dim};
    const tn_embed_slot slot = {.name = "a", .segment = &segment};
    const tn_slot_use use[] = {{.segment = &segment}, {.i = TN_NO_SLOT}};
    fill_sums(f, dim);
    const tn_bag bag = {.offset = f->offset, .index = f->index, .ones = true};
    tn_sparse sparse = {.n = KEYS, .at = f->at, .rows = f->rows, .grads = f->by_slot, .bag = &bag};
    sparse.occurrences = (tn_occurrences){f->first, f->item};
    const tn_fm_rows p = {.sparse = &sparse,
                          .use = use,
                          .n_uses = 1,
                          .dim = dim,
                          .sum = f->sum,
                          .squares = f->squares,
                          .dy = f->dy,
                          .stride = 1};
    set->fm_add_slot(&p, &slot, (tn_range){0, ROWS / 2});
    set->fm_add_slot(&p, &slot, (tn_range){ROWS / 2, ROWS});
    set->fm_add_slot(&p, &slot, (tn_range){0, ROWS}); /* adds */
    set->fm_back_slot(&p, &slot, ROWS);
    tn_sparse again = sparse;
    again.grads = f->by_keys;
    tn_fm_rows q = p;
    q.sparse = &again;
    set->fm_back_keys(&q, (tn_range){0, KEYS});
}

static void pairs_of_sums(void **state)
{
    (void)state;
    static const uint32_t dims[] = {1, 3, 4, 8, 10, 16, 32, DIM_MAX};
    const tn_loopset *set[SETS_MAX];
    uint32_t n_sets = sets_here(set);
    sums *f = tn_alloc(SETS_MAX, sizeof *f, "sums");
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        size_t bytes = (size_t)KEYS * dims[i] * sizeof(tn_real);
        for (uint32_t s = 0; s < n_sets; s++) {
            run_sums(set[s], dims[i], &f[s]);
            if (!same(f[s].sum, f[0].sum, sizeof f->sum) ||
                !same(f[s].squares, f[0].squares, sizeof f->squares) ||
                !same(f[s].by_slot, f[0].by_slot, bytes) ||
                !same(f[s].by_keys, f[0].by_slot, bytes)) {
                fail_msg("%s, dim %u: other bits", set[s]->name, dims[i]);
            }
        }
    }
    tn_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(field_aware_pairs),
        cmocka_unit_test(pairs_of_sums),
    };
    return cmocka_run_group_tests_name("nn/loopsets", tests, NULL, NULL);
}
