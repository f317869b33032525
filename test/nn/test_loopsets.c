/* test_loopsets.c - pairs of vectors have the same bits with every set of instructions. */
#include "nn/loopsets.h"

#include "base/keys/record.h"
#include "nn/graph/graphcore.h"
#include "nn/passes/finish.h"
#include "support/test.h"

enum {
    SETS_MAX = 3,
    ROWS = 60,
    ROWS_OF_PAIRS = 2,
    KEYS = 12,
    DIM_MAX = 40,
    FIELDS_MAX = 39,
    K_MAX = 17
};

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
    tn_real d[ROWS_OF_PAIRS * FIELDS_MAX * FIELDS_MAX * K_MAX], y[ROWS_OF_PAIRS];
} pairs;

/* Forward and backward of y = op(x), and x, whose gradient is kept. */
static tn_graph *finished(tn_graph *g, tn_node *y, tn_node *factor)
{
    tn_node *loss = tn_apply(g, &tn_op_mul, "loss", TN_IN(y, factor), NULL);
    assert_int_equal(tn_graph_finish(g, &(tn_wanted){.logit = y, .loss = loss}, NULL), TN_OK);
    fill(factor->val, g->opts.max_rows, 4);
    return g;
}

static void run_pairs(const tn_loopset *set, uint32_t n, uint32_t k, pairs *p)
{
    tn_graph *g = tn_graph_new(&(tn_graph_opts){.max_rows = ROWS_OF_PAIRS, .train = true});
    tn_node *x = tn_input(g, "x", n * n * k, true);
    tn_node *y = tn_apply(g, set->ffm, "y", TN_IN(x), &(tn_ffm_attr){n, k});
    (void)finished(g, y, tn_input(g, "factor", 1, false));
    for (uint32_t r = 0; r < ROWS_OF_PAIRS; r++) {
        fill(tn_val_row(x, r), x->shape.cols, r + 1);
    }
    tn_forward(g, &(tn_graph_feed){.rows = ROWS_OF_PAIRS, .info = {.training = true}});
    tn_backward(g);
    for (uint32_t r = 0; r < ROWS_OF_PAIRS; r++) {
        p->y[r] = *tn_val_row(y, r);
        memcpy(p->d + (size_t)r * x->shape.cols, tn_grad_row(x, r), x->shape.cols * sizeof *p->d);
    }
    tn_graph_free(g);
}

TEST(field_aware_pairs)
{
    static const uint32_t fields[] = {1, 3, 4, 9, 16, FIELDS_MAX};
    static const uint32_t widths[] = {1, 3, 4, 8, 16, K_MAX};
    const tn_loopset *set[SETS_MAX];
    uint32_t n_sets = sets_here(set);
    pairs *p FREED(tn_free) = tn_alloc(SETS_MAX, sizeof *p, "pairs");
    for (uint32_t i = 0; i < 36; i++) {
        uint32_t n = fields[i / 6];
        uint32_t k = widths[i % 6];
        for (uint32_t s = 0; s < n_sets; s++) {
            run_pairs(set[s], n, k, &p[s]);
            fail_if(!same(&p[s], &p[0], sizeof *p), "%s, %u fields, k %u: other bits", set[s]->name,
                    n, k);
        }
    }
}

/* Two slots: values of the examples, gradients of the rows in blocks of a slot each, in one of
 * both, or in three that are of no slot alone. */
enum { CUTS = 3 };
typedef struct sums {
    tn_real rows[KEYS * DIM_MAX], y[ROWS], grads[CUTS][KEYS * DIM_MAX];
    uint32_t offset[ROWS + 1], index[2][ROWS];
} sums;

/* The first half of the keys in slot 0, the other in slot 1. */
static void fill_sums(sums *f, uint32_t dim)
{
    memset(f, 0, sizeof *f);
    fill(f->rows, (size_t)KEYS * dim, 3);
    for (uint32_t r = 0; r < ROWS; r++) {
        f->offset[r + 1] = r + 1;
        f->index[0][r] = (r * r + r / 3) % (KEYS / 2) * dim;
        f->index[1][r] = (KEYS / 2 + r % (KEYS / 2)) * dim;
    }
}

static void run_sums(const tn_loopset *set, uint32_t dim, sums *f)
{
    const tn_segment segment = {.name = "deep", .dim = dim};
    const tn_embed_slot slots[] = {{.name = "a", .segment = &segment},
                                   {.name = "b", .slot = 1, .segment = &segment}};
    fill_sums(f, dim);
    const tn_bag bags[] = {{.offset = f->offset, .index = f->index[0], .ones = true},
                           {.offset = f->offset, .index = f->index[1], .ones = true}};
    static const uint32_t slot[] = {0, 1};
    const uint32_t all = KEYS * dim;
    const tn_row_block by_slot[] = {{0, all / 2, slot, 1, true}, {all / 2, all, slot + 1, 1, true}};
    const tn_row_block one[] = {{0, all, slot, 2, true}};
    const tn_row_block cut[] = {{0, 4 * dim, slot, 2, false},
                                {4 * dim, 8 * dim, slot, 2, false},
                                {8 * dim, all, slot, 2, false}};
    const tn_sparse sparse[CUTS] = {{all, f->rows, f->grads[0], bags, by_slot, 2},
                                    {all, f->rows, f->grads[1], bags, one, 1},
                                    {all, f->rows, f->grads[2], bags, cut, 3}};
    tn_graph *g = tn_graph_new(&(tn_graph_opts){.max_rows = ROWS, .train = true});
    const tn_embed_pairs attr = {.list = tn_embed(g, "e", slots, 2)->attr, .dim = dim};
    tn_node *y = tn_apply(g, set->fm, "y", NULL, 0, &attr);
    (void)finished(g, y, tn_input(g, "factor", 1, false));
    for (uint32_t i = 0; i < CUTS; i++) {
        tn_forward(
            g, &(tn_graph_feed){.rows = ROWS, .sparse = &sparse[i], .info = {.training = true}});
        tn_backward(g);
    }
    for (uint32_t r = 0; r < ROWS; r++) {
        f->y[r] = *tn_val_row(y, r);
    }
    tn_graph_free(g);
}

TEST(pairs_of_sums)
{
    static const uint32_t dims[] = {1, 3, 4, 8, 10, 16, 32, DIM_MAX};
    const tn_loopset *set[SETS_MAX];
    uint32_t n_sets = sets_here(set);
    sums *f FREED(tn_free) = tn_alloc(SETS_MAX, sizeof *f, "sums");
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        size_t bytes = (size_t)KEYS * dims[i] * sizeof(tn_real);
        for (uint32_t s = 0; s < n_sets; s++) {
            run_sums(set[s], dims[i], &f[s]);
            bool right = same(f[s].y, f[0].y, sizeof f->y);
            for (uint32_t c = 0; c < CUTS; c++) {
                right &= same(f[s].grads[c], f[0].grads[0], bytes);
            }
            fail_if(!right, "%s, dim %u: other bits", set[s]->name, dims[i]);
        }
    }
}
