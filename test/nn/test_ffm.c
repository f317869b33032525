/* test_ffm.c - field-aware and field-weighted pairs: vectors of numerics.md, plain loops. */
#include "base/keys/record.h"
#include "base/thread/team.h"
#include "config/diag.h"
#include "config/tree.h"
#include "nn/graph/embed.h"
#include "nn/graph/params.h"
#include "nn/layer/layers.h"
#include "nn/near.h"
#include "nn/passes/finish.h"
#include "support/test.h"

CLOSER(tn_graph_free);

TEST(v7_ffm)
{
    enum { F = 3, K = 2 };
    double v[F * F * K];
    double want[F * F * K];
    for (uint32_t f = 0; f < F; f++) {
        for (uint32_t g = 0; g < F; g++) {
            for (uint32_t c = 0; c < K; c++) {
                v[(f * F + g) * K + c] = .1 * (6 * f + 2 * g + c) - .8;
                want[(g * F + f) * K + c] = f == g ? 0 : 2 * v[(f * F + g) * K + c];
            }
        }
    }
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, true);
    tn_node *x = tn_input(g, "x", F * F * K, true);
    tn_trial t =
        tn_trial_open(g, tn_apply(g, &tn_op_ffm, "y", TN_IN(x), &(tn_ffm_attr){F, K}), 1, true);
    tn_put(x, v);
    tn_trial_run(&t, (const double[]){2});
    tn_assert_near("y", t.y, t.y->val, (const double[]){.19});
    tn_assert_near("dA", x, x->grad, want);
}

TEST(v7_fwfm)
{
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(2, true);
    tn_params *params = tn_params_new();
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_node *x = tn_input(g, "x", 6, true);
    const struct {
        uint32_t dim;
        bool normalise;
    } opts = {2, false};
    tn_net net = {.g = g, .params = params};
    tn_origin at = {.source = "test"};
    tn_layer_args args = {
        .name = "y", .in = &x, .n_in = 1, .opts = &opts, .at = &at, .diag = &diag};
    tn_node *y = tn_layer_fwfm.build(&net, &args);
    assert_non_null(y);
    tn_trial t = tn_trial_open(g, y, 2, true);
    tn_params_init(params, 1);
    tn_node *r = tn_graph_find(g, "y.R");
    assert_true(r->val[0] == 1 && r->val[1] == 1 && r->val[2] == 1); /* fm, at first */
    tn_put(r, (const double[]){.5, -1, 2});
    tn_put(x, (const double[]){.1, .2, .3, -.4, -.5, .6, 1, 0, .5, .5, 0, 2});
    tn_trial_run(&t, (const double[]){1, 2});
    tn_assert_near("y", t.y, t.y->val, (const double[]){-.875, 2.25});
    /* <v0,v1>, <v0,v2>, <v1,v2> are -.05, .07, -.39 and .5, 0, 1 */
    tn_assert_near("dR", r, r->grad, (const double[]){.95, .07, 1.61});
    tn_params_free(params);
}

/* Number i of the vector that field f holds for field g. */
static double number(const tn_node *x, const tn_ffm_attr *a, uint32_t f, uint32_t g, uint32_t i)
{
    return (double)x->val[((size_t)f * a->fields + g) * a->dim + i];
}

static void check_forward(const tn_node *y, const tn_ffm_attr *a)
{
    double want = 0;
    for (uint32_t f = 0; f < a->fields; f++) {
        for (uint32_t g = f + 1; g < a->fields; g++) {
            for (uint32_t i = 0; i < a->dim; i++) {
                want += number(y->in[0], a, f, g, i) * number(y->in[0], a, g, f, i);
            }
        }
    }
    fail_if(!(fabs((double)*y->val - want) <= 1e-6 * a->fields * a->fields),
            "%u fields, k %u: %.9g instead of %.9g", a->fields, a->dim, (double)*y->val, want);
}

static void check_backward(const tn_node *x, const tn_ffm_attr *a)
{
    for (uint32_t i = 0; i < x->shape.cols; i++) {
        uint32_t f = i / a->dim / a->fields;
        uint32_t g = i / a->dim % a->fields;
        tn_assert_value((double)x->grad[i], f == g ? 0 : .5 * number(x, a, g, f, i % a->dim));
    }
}

TEST(any_number_of_fields_and_any_width_are_summed)
{
    static const uint32_t fields[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 39};
    static const uint32_t widths[] = {1, 2, 3, 4, 5, 8, 15, 16, 17, 33};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        for (size_t j = 0; j < sizeof widths / sizeof widths[0]; j++) {
            const tn_ffm_attr a = {fields[i], widths[j]};
            tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, true);
            tn_node *x = tn_input(g, "x", a.fields * a.fields * a.dim, true);
            tn_trial t = tn_trial_open(g, tn_apply(g, &tn_op_ffm, "y", TN_IN(x), &a), 1, true);
            for (uint32_t c = 0; c < x->shape.cols; c++) {
                x->val[c] = (tn_real)((double)(c * 7919 % 1013) / 506.5 - 1);
            }
            tn_trial_run(&t, (const double[]){.5});
            check_forward(t.y, &a);
            check_backward(x, &a);
        }
    }
}

/* A layer over two slots: a with 2 (1 2 3 4) and -1 (.5 0 1 -1), b with .5 (2 -2 1 1). */
static double layer_of_values(uint32_t k, bool within_slot, bool normalise)
{
    static const tn_segment segment = {.name = "deep", .at = 0, .dim = 4};
    static const tn_embed_slot slots[] = {
        {.name = "a", .slot = 0, .segment = &segment, .pool = TN_POOL_SUM},
        {.name = "b", .slot = 1, .segment = &segment, .pool = TN_POOL_SUM},
    };
    static const tn_real rows[] = {1, 2, 3, 4, (tn_real).5, 0, 1, -1, 2, -2, 1, 1};
    static const uint32_t places[] = {0, 4, 8};
    static const float x_of[] = {2, -1, .5F};
    tn_bag bag[] = {{.offset = (const uint32_t[]){0, 2}, .index = places, .weight = x_of},
                    {.offset = (const uint32_t[]){0, 1}, .index = places + 2, .weight = x_of + 2}};
    tn_sparse sparse = {.floats = 12, .rows = rows, .bag = bag};
    const struct {
        uint32_t k;
        bool within_slot, normalise;
    } opts = {k, within_slot, normalise};
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(1, false);
    tn_diag diag CLEANUP(tn_diag_done) = {0};
    tn_node *x = tn_embed(g, "x", slots, 2);
    tn_net net = {.g = g};
    tn_origin origin = {.source = "test"};
    tn_layer_args args = {
        .name = "y", .in = &x, .n_in = 1, .opts = &opts, .at = &origin, .diag = &diag};
    tn_node *y = tn_layer_ffm.build(&net, &args);
    assert_non_null(y);
    assert_int_equal(tn_graph_finish(g, &(tn_wanted){.logit = y}, NULL), TN_OK);
    tn_forward(g, &(tn_graph_feed){.rows = 1, .sparse = &sparse});
    double value = (double)*y->val;
    return value;
}

/* A[a,a] = (1.5, 4), A[a,b] = (5, 9), A[b,a] = (1, -1). Within a: 2 * -1 * <(1 2), (.5 0)> = -1. */
TEST(values_of_one_slot_meet_by_their_own_vectors)
{
    tn_assert_value(layer_of_values(2, false, false), -4);
    tn_assert_value(layer_of_values(0, false, false), -4);
    tn_assert_value(layer_of_values(2, true, false), -5);
}

/* |x|^2 = 4 + 1 + .25; xLearn's 1 / |x|^4 would give -.1451. */
TEST(normalising_divides_once)
{
    tn_assert_value(layer_of_values(2, false, true), -4 / 5.25);
    tn_assert_value(layer_of_values(2, true, true), -5 / 5.25);
}

/* Examples of eleven slots: one value each, or (`mixed`) slots 2 and 9 with none to two, weighted,
 * of the same keys. */
enum {
    SLOTS = 11,
    ROWS = 150,
    KEYS = 5,
    ALL = SLOTS * KEYS,
    WIDE_MAX = SLOTS * 4 + 1,
    PARTS = 3,
    ALSO = 9
};
typedef enum cut { TOGETHER, THIRDS, EACH, CUTS } cut;

typedef struct batch {
    tn_sparse sparse;
    tn_bag bag[SLOTS];
    uint32_t offset[SLOTS][ROWS + 1];
    uint32_t index[SLOTS][2 * ROWS];
    float weight[2 * ROWS];
    uint32_t slot[SLOTS], both[2];
    tn_row_block block[SLOTS * PARTS];
    uint32_t floats;
    tn_real rows[ALL * WIDE_MAX];
    tn_real grads[ALL * WIDE_MAX];
    double dy[ROWS];
    bool finite; /* gradients, as the graph says */
} batch;

static void fill_slot(batch *b, uint32_t s, uint32_t width, bool mixed)
{
    uint32_t n = 0;
    bool odd = mixed && (s == 2 || s == ALSO);
    for (uint32_t r = 0; r < ROWS; r++) {
        uint32_t group = odd ? 2 : s;
        b->offset[s][r] = n;
        for (uint32_t j = 0; j < (odd ? (r + s) % 3 : 1); j++) {
            b->index[s][n++] = (group * KEYS + (r * 7 + s + 3 * j) % KEYS) * width;
        }
    }
    b->offset[s][ROWS] = n;
    b->bag[s] = (tn_bag){.offset = b->offset[s],
                         .index = b->index[s],
                         .weight = odd ? b->weight : NULL,
                         .ones = !odd};
}

/* All rows in one block, those of a slot in three, or those of a slot in one, which has more slots
 * or none where two share rows. */
static void cut_rows(batch *b, uint32_t width, bool mixed, cut how)
{
    const uint32_t n = how == TOGETHER ? 1 : how == THIRDS ? SLOTS * PARTS : SLOTS;
    for (uint32_t s = 0; s < SLOTS; s++) {
        b->slot[s] = s;
    }
    b->both[0] = 2;
    b->both[1] = ALSO;
    for (uint32_t i = 0, from = 0; i < n; i++) {
        const uint32_t to = how == TOGETHER ? ALL
                            : how == THIRDS ? i / PARTS * KEYS + KEYS * (i % PARTS + 1) / PARTS
                                            : (i + 1) * KEYS;
        b->block[i] = (tn_row_block){.from = from * width,
                                     .to = to * width,
                                     .slot = b->slot,
                                     .n_slots = SLOTS,
                                     .whole = how != THIRDS};
        if (how == EACH) {
            const bool shared = mixed && i == 2;
            b->block[i].slot = shared ? b->both : b->slot + i;
            b->block[i].n_slots = shared ? 2 : !mixed || i != ALSO;
        }
        from = to;
    }
    b->sparse = (tn_sparse){b->floats, b->rows, b->grads, b->bag, b->block, n};
}

static void fill_batch(batch *b, uint32_t dim, bool mixed, cut how)
{
    const uint32_t width = dim + 1;
    b->floats = ALL * width;
    for (uint32_t j = 0; j < 2 * ROWS; j++) {
        b->weight[j] = (float)(j % 7) / 4 - .5F;
    }
    for (uint32_t s = 0; s < SLOTS; s++) {
        fill_slot(b, s, width, mixed);
    }
    for (uint32_t i = 0; i < ALL * WIDE_MAX; i++) {
        b->rows[i] = (tn_real)((double)(i * 7919 % 1013) / 506.5 - 1);
        b->grads[i] = 3; /* must not be added to */
    }
    for (uint32_t r = 0; r < ROWS; r++) {
        b->dy[r] = (r % 5) / 4.0 - .4;
    }
    cut_rows(b, width, mixed, how);
}

/* y of all rows; gradients are in b. */
static void run_graph(batch *b, uint32_t k, const tn_graph_opts *opts, tn_real y[ROWS])
{
    const tn_segment segment = {.name = "deep", .at = 1, .dim = SLOTS * k};
    tn_embed_slot slots[SLOTS];
    for (uint32_t s = 0; s < SLOTS; s++) {
        slots[s] = (tn_embed_slot){.name = "a", .slot = s, .segment = &segment};
    }
    tn_graph_opts o = *opts;
    o.train = true;
    o.max_rows = ROWS;
    o.reduction = TN_REDUCE_SUM;
    tn_graph *g FREED(tn_graph_free) = tn_graph_new(&o);
    tn_node *x = tn_embed(g, "x", slots, SLOTS);
    tn_node *made = tn_apply(g, &tn_op_ffm, "pairs", TN_IN(x), &(tn_ffm_attr){SLOTS, k});
    tn_trial t = tn_trial_open(g, made, ROWS, true);
    assert_ptr_equal(made->op, opts->no_passes ? &tn_op_ffm : &tn_op_embed_ffm);
    t.feed.sparse = &b->sparse;
    tn_trial_run(&t, b->dy);
    b->finite = tn_graph_rows_finite(g);
    for (uint32_t r = 0; r < ROWS; r++) {
        y[r] = *tn_val_row(made, r);
    }
}

TEST(training_needs_no_matrix)
{
    batch *a FREED(tn_free) = tn_alloc(1, sizeof *a, "a batch");
    batch *b FREED(tn_free) = tn_alloc(1, sizeof *b, "a batch");
    for (uint32_t i = 0; i < 4 * CUTS; i++) {
        uint32_t k = i % 2 == 0 ? 4 : 3;
        tn_real y[ROWS];
        tn_real want[ROWS];
        fill_batch(a, SLOTS * k, i % 4 >= 2, (cut)(i / 4));
        fill_batch(b, SLOTS * k, i % 4 >= 2, TOGETHER);
        run_graph(a, k, &(tn_graph_opts){.seed = 1}, y);
        run_graph(b, k, &(tn_graph_opts){.no_passes = true}, want);
        for (uint32_t r = 0; r < ROWS; r++) {
            assert_true(fabs((double)(y[r] - want[r])) < 1e-4);
        }
        for (uint32_t j = 0; j < b->floats; j++) {
            fail_if(!(fabs((double)(a->grads[j] - b->grads[j])) < 1e-4),
                    "case %u: gradient %u is %g instead of %g", i, j, (double)a->grads[j],
                    (double)b->grads[j]);
        }
    }
}

TEST(threads_and_blocks_do_not_change_a_bit)
{
    batch *a FREED(tn_free) = tn_alloc(1, sizeof *a, "a batch");
    batch *b FREED(tn_free) = tn_alloc(1, sizeof *b, "a batch");
    for (uint32_t i = 0; i < 4 * CUTS; i++) {
        tn_team *team FREED(tn_team_close) = NULL;
        tn_real y[ROWS];
        tn_real want[ROWS];
        assert_int_equal(tn_team_open(&team, 2 + i / 2 % 2 * 2, NULL), TN_OK);
        fill_batch(a, SLOTS * 4, i % 2 == 1, (cut)(i / 4));
        fill_batch(b, SLOTS * 4, i % 2 == 1, TOGETHER);
        run_graph(a, 4, &(tn_graph_opts){.team = team}, y);
        run_graph(b, 4, &(tn_graph_opts){.seed = 1}, want);
        assert_memory_equal(y, want, sizeof y);
        assert_memory_equal(a->grads, b->grads, b->floats * sizeof *a->grads);
    }
}

TEST(gradients_that_are_not_finite_are_told)
{
    batch *b FREED(tn_free) = tn_alloc(1, sizeof *b, "a batch");
    tn_team *team FREED(tn_team_close) = NULL;
    tn_real y[ROWS];
    assert_int_equal(tn_team_open(&team, 2, NULL), TN_OK);
    for (uint32_t i = 0; i < 4 * CUTS; i++) {
        fill_batch(b, SLOTS * 4, i % 2 == 1, (cut)(i / 4));
        b->dy[ROWS - 1] = i % 4 < 2 ? -(double)INFINITY : (double)NAN;
        run_graph(b, 4, &(tn_graph_opts){.team = team}, y);
        assert_false(b->finite);
        b->dy[ROWS - 1] = 1;
        run_graph(b, 4, &(tn_graph_opts){.team = team}, y);
        assert_true(b->finite);
    }
}
