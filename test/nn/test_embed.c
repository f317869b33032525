/* test_embed.c - the short ways of pooling and of its gradient have the bits of the long ones;
 * gradients of rows have the same bits however the rows are cut into blocks. */
#include "base/keys/record.h"
#include "base/thread/team.h"
#include "nn/bags.h"
#include "nn/embed/embedlist.h"
#include "nn/near.h"
#include "support/test.h"

CLOSER(tn_graph_free);

enum { ROWS = 70, SLOTS = 3, KEYS = 12 /* per slot */, DIM_MAX = 40, ALL = SLOTS * KEYS };

/* One value per row and slot; slot 2 is of another node, or of none. */
typedef struct fixture {
    uint32_t offset[ROWS + 1], index[SLOTS][ROWS], slot[SLOTS];
    tn_row_block block[SLOTS];
    float ones[ROWS];
    tn_real rows[ALL * (DIM_MAX + 1)], grads[ALL * (DIM_MAX + 1)];
    tn_real y[ROWS * SLOTS * DIM_MAX];
    double factor[ROWS * SLOTS * DIM_MAX];
} fixture;

static void fill(fixture *f, uint32_t dim)
{
    uint64_t stream = tn_stream0(dim);
    const uint32_t width = dim + 1;
    for (uint32_t r = 0; r < ROWS; r++) {
        f->offset[r + 1] = r + 1;
        f->ones[r] = 1;
        for (uint32_t s = 0; s < SLOTS; s++) {
            uint64_t x = tn_draw(stream, r * SLOTS + s);
            f->index[s][r] = (s * KEYS + (uint32_t)tn_below(x, KEYS)) * width;
        }
    }
    for (uint32_t s = 0; s < SLOTS; s++) {
        f->slot[s] = s;
        f->block[s] =
            (tn_row_block){s * KEYS * width, (s + 1) * KEYS * width, &f->slot[s], 1, true};
    }
    for (uint32_t i = 0; i < ALL * width; i++) {
        f->rows[i] = (tn_real)(tn_unit(tn_draw(stream, 1000 + i)) - .5);
    }
    for (uint32_t i = 0; i < ROWS * (SLOTS - 1) * dim; i++) {
        f->factor[i] = tn_unit(tn_draw(stream, 100000 + i)) - .5;
    }
}

static tn_sparse sparse_of(fixture *f, uint32_t dim, const tn_bag *bag)
{
    return (tn_sparse){ALL * (dim + 1), f->rows, f->grads, bag, f->block, SLOTS};
}

/* What a fixture gives when its bags say that all rows have one value, say nothing, or hold a
 * weight of 1 for each. */
static void run_pooling(fixture *f, uint32_t dim, bool ones, bool weights)
{
    const tn_segment segment = {.name = "deep", .at = 1, .dim = dim};
    tn_embed_slot slot[SLOTS - 1];
    tn_bag bag[SLOTS];
    for (uint32_t s = 0; s < SLOTS; s++) {
        bag[s] = (tn_bag){.offset = f->offset, .index = f->index[s], .ones = ones};
        bag[s].weight = weights ? f->ones : NULL;
    }
    for (uint32_t s = 0; s < SLOTS - 1; s++) {
        slot[s] = (tn_embed_slot){.name = s == 0 ? "a" : "b", .slot = s, .segment = &segment};
    }
    const tn_sparse sparse = sparse_of(f, dim, bag);
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(ROWS, true);
    tn_trial t = tn_trial_open(g, tn_embed(g, "y", slot, SLOTS - 1), ROWS, true);
    t.feed.sparse = &sparse;
    tn_trial_run(&t, f->factor);
    for (uint32_t r = 0; r < ROWS; r++) {
        memcpy(f->y + (size_t)r * t.y->shape.cols, t.y->val + (size_t)r * t.y->stride,
               t.y->shape.cols * sizeof(tn_real));
    }
}

TEST(plain_slots_have_the_bits_of_weighted_ones)
{
    static const uint32_t dims[] = {1, 3, 8, 16, DIM_MAX};
    fixture *f FREED(tn_free) = tn_alloc(3, sizeof *f, "fixtures");
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        for (uint32_t way = 0; way < 3; way++) {
            fill(&f[way], dims[i]);
            run_pooling(&f[way], dims[i], way == 1, way == 2);
        }
        for (uint32_t way = 1; way < 3; way++) {
            assert_memory_equal(f[0].y, f[way].y, sizeof f->y);
            assert_memory_equal(f[0].grads, f[way].grads, sizeof f->grads);
        }
    }
}

/* Gradients by hand: of key k, the sum of the factors where it stands. */
TEST(a_key_gets_the_gradients_of_all_its_places)
{
    enum { DIM = 8 };
    fixture *f FREED(tn_free) = tn_alloc(1, sizeof *f, "a fixture");
    fill(f, DIM);
    run_pooling(f, DIM, true, false);
    for (uint32_t k = 0; k < ALL; k++) {
        for (uint32_t c = 0; c < DIM; c++) {
            double want = 0;
            const uint32_t s = k / KEYS;
            for (uint32_t r = 0; r < ROWS; r++) {
                bool taken = s < SLOTS - 1 && f->index[s][r] == k * (DIM + 1);
                want += taken ? f->factor[(r * (SLOTS - 1) + s) * DIM + c] : 0;
            }
            tn_assert_value((double)f->grads[k * (DIM + 1) + 1 + c], want);
        }
        /* nobody takes the first float of a row */
        assert_true(f->grads[(size_t)k * (DIM + 1)] == 0);
    }
}

/* The step is dropped by this word alone where no norm is taken; the next step is judged anew. */
TEST(a_row_gradient_that_is_not_finite_is_told)
{
    enum { DIM = 8, COLS = (SLOTS - 1) * DIM };
    static const double bad[] = {(double)NAN, (double)INFINITY, -(double)INFINITY};
    const tn_segment segment = {.name = "deep", .at = 1, .dim = DIM};
    fixture *f FREED(tn_free) = tn_alloc(1, sizeof *f, "a fixture");
    fill(f, DIM);
    tn_bag bag[SLOTS];
    tn_embed_slot slot[SLOTS - 1];
    for (uint32_t s = 0; s < SLOTS; s++) {
        bag[s] = (tn_bag){.offset = f->offset, .index = f->index[s], .ones = true};
    }
    for (uint32_t s = 0; s < SLOTS - 1; s++) {
        slot[s] = (tn_embed_slot){.name = s == 0 ? "a" : "b", .slot = s, .segment = &segment};
    }
    const tn_sparse sparse = sparse_of(f, DIM, bag);
    tn_graph *g FREED(tn_graph_free) = tn_trial_graph(ROWS, true);
    tn_trial t = tn_trial_open(g, tn_embed(g, "y", slot, SLOTS - 1), ROWS, true);
    t.feed.sparse = &sparse;
    static const size_t places[] = {0, DIM - 1, DIM, ROWS * COLS / 2 + 3, ROWS * COLS - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const double good = f->factor[places[i]];
        f->factor[places[i]] = bad[i % 3];
        tn_trial_run(&t, f->factor);
        assert_false(tn_graph_rows_finite(g));
        f->factor[places[i]] = good;
        tn_trial_run(&t, f->factor);
        assert_true(tn_graph_rows_finite(g));
    }
}

/* What training makes of sum_cols(embed), with and without the short way. */
TEST(a_sum_of_single_weights_needs_no_matrix)
{
    const tn_segment segment = {.name = "wide", .at = 1, .dim = 1};
    fixture *f FREED(tn_free) = tn_alloc(1, sizeof *f, "a fixture");
    fill(f, 1);
    for (uint32_t ones = 0; ones < 2; ones++) {
        tn_bag bag[SLOTS];
        tn_embed_slot slot[SLOTS];
        for (uint32_t s = 0; s < SLOTS; s++) {
            bag[s] = (tn_bag){.offset = f->offset, .index = f->index[s], .ones = ones == 1};
            slot[s] = (tn_embed_slot){
                .name = (const char *const[]){"a", "b", "c"}[s], .slot = s, .segment = &segment};
        }
        const tn_sparse sparse = sparse_of(f, 1, bag);
        tn_graph *g FREED(tn_graph_free) = tn_trial_graph(ROWS, true);
        tn_node *y = tn_apply(g, &tn_op_embed_sum, "y", NULL, 0,
                              tn_embed_one_column(g, tn_embed(g, "x", slot, SLOTS)));
        tn_trial t = tn_trial_open(g, y, ROWS, true);
        t.feed.sparse = &sparse;
        tn_trial_run(&t, f->factor);
        for (uint32_t r = 0; r < ROWS; r++) {
            double want = 0;
            for (uint32_t s = 0; s < SLOTS; s++) {
                want += (double)f->rows[f->index[s][r] + 1];
            }
            tn_assert_value((double)t.y->val[(size_t)r * t.y->stride], want);
        }
        for (uint32_t k = 0; k < ALL; k++) {
            double want = 0;
            for (uint32_t r = 0; r < ROWS; r++) {
                want += f->index[k / KEYS][r] == k * 2 ? f->factor[r] : 0;
            }
            tn_assert_value((double)f->grads[k * 2 + 1], want);
        }
    }
}

static const uint32_t bag_dims[] = {1, 3, 4, 8, 16, 40};
enum { DIMS = sizeof bag_dims / sizeof *bag_dims };

static tn_node *embed_with(tn_graph *g, const tn_segment *segment, const tn_pool *pools, uint32_t n)
{
    tn_embed_slot slots[TN_BAGS_SLOTS];
    tn_bags_slots(segment, pools, n, slots);
    return tn_embed(g, "x", slots, TN_BAGS_SLOTS);
}

static tn_node *sums(tn_graph *g, const tn_segment *segment)
{
    return embed_with(g, segment, (const tn_pool[]){TN_POOL_SUM}, 1);
}

static tn_node *all_pools(tn_graph *g, const tn_segment *segment)
{
    return embed_with(
        g, segment,
        (const tn_pool[]){TN_POOL_MEAN, TN_POOL_MAX, TN_POOL_SUM, TN_POOL_SQRTN, TN_POOL_CONCAT},
        5);
}

static tn_node *mostly_means(tn_graph *g, const tn_segment *segment)
{
    return embed_with(g, segment, (const tn_pool[]){TN_POOL_SQRTN, TN_POOL_MEAN, TN_POOL_MAX}, 3);
}

static tn_node *squares(tn_graph *g, const tn_segment *segment)
{
    tn_node *x = sums(g, segment);
    tn_node *both[] = {x, tn_apply(g, &tn_op_embed_squares, "q", TN_IN(x), NULL)};
    return tn_apply(g, &tn_op_fm_values, "y", TN_IN(both[0], both[1]),
                    &(tn_pairs_attr){segment->dim});
}

static tn_node *pairs(tn_graph *g, const tn_segment *segment)
{
    return tn_apply(g, &tn_op_fm, "y", TN_IN(sums(g, segment)), &(tn_pairs_attr){segment->dim});
}

static tn_node *single_weights(tn_graph *g, const tn_segment *segment)
{
    return segment->dim == 1 ? tn_apply(g, &tn_op_embed_sum, "y", NULL, 0,
                                        tn_embed_one_column(g, sums(g, segment)))
                             : sums(g, segment);
}

static tn_bags_build *const builds[] = {sums,  all_pools,      mostly_means, squares,
                                        pairs, single_weights, NULL};

/* Case number i: a dimension, slots of one value or mixed, of rows of their own or shared. */
static tn_bags_run case_of(uint32_t i, tn_bags_build *build)
{
    return (tn_bags_run){
        .build = build, .dim = bag_dims[i / 4], .mixed = i % 2 == 1, .shared = i / 2 % 2 == 1};
}

/* Fails unless `run` gives `want` however its rows are cut, on one thread and on a team. */
static void check_cuts(tn_bags_run run, const tn_real *want, const tn_op *as, tn_team *team)
{
    for (uint32_t way = 0; way < 2 * TN_BAGS_CUTS; way++) {
        size_t n = 0;
        const tn_op *op = NULL;
        run.cut = way / 2;
        run.team = way % 2 == 1 ? team : NULL;
        tn_real *got FREED(tn_free) = tn_bags_step(&run, &n, &op);
        assert_true(as == NULL || op == as);
        fail_if(memcmp(want, got, n * sizeof *got) != 0,
                "dim %u, mixed %u, shared %u, cut %u, team %u: other bits", run.dim, run.mixed,
                run.shared, run.cut, way % 2);
    }
}

static tn_team *team_of_three(void)
{
    tn_team *team = NULL;
    assert_int_equal(tn_team_open(&team, 3, NULL), TN_OK);
    return team;
}

TEST(gradients_are_summed_by_example_then_slot_then_place)
{
    tn_team *team FREED(tn_team_close) = team_of_three();
    for (uint32_t i = 0; i < DIMS * 4; i++) {
        const tn_bags_run run = case_of(i, sums);
        size_t n = 0;
        tn_real *want FREED(tn_free) = tn_bags_by_hand(&run, &n);
        check_cuts(run, want, NULL, team);
    }
}

TEST(blocks_of_any_kind_give_the_same_bits)
{
    tn_team *team FREED(tn_team_close) = team_of_three();
    for (uint32_t i = 0; i < DIMS * 4; i++) {
        for (uint32_t k = 0; builds[k] != NULL; k++) {
            const tn_bags_run run = case_of(i, builds[k]);
            size_t n = 0;
            const tn_op *op = NULL;
            tn_real *want FREED(tn_free) = tn_bags_step(&run, &n, &op);
            check_cuts(run, want, NULL, team);
        }
    }
}

/* Pairs straight from the rows, in blocks of any kind, on one thread or three. */
TEST(training_pairs_needs_no_matrix)
{
    tn_team *team FREED(tn_team_close) = team_of_three();
    for (uint32_t i = 0; i < DIMS * 4; i++) {
        tn_bags_run run = case_of(i, pairs);
        size_t n = 0;
        const tn_op *op = NULL;
        run.no_passes = true;
        tn_real *want FREED(tn_free) = tn_bags_step(&run, &n, &op);
        assert_ptr_equal(op, &tn_op_fm);
        run.no_passes = false;
        check_cuts(run, want, &tn_op_embed_fm, team);
    }
}

static tn_node *pairs_and_more(tn_graph *g, const tn_segment *segment)
{
    tn_node *x = sums(g, segment);
    tn_node *parts[] = {tn_apply(g, &tn_op_fm, "pairs", TN_IN(x), &(tn_pairs_attr){segment->dim}),
                        tn_apply(g, &tn_op_sum_cols, "more", TN_IN(x), NULL)};
    return tn_apply(g, &tn_op_add, "y", parts, 2, NULL);
}

static tn_node *narrow_pairs(tn_graph *g, const tn_segment *segment)
{
    return tn_apply(g, &tn_op_fm, "y", TN_IN(sums(g, segment)), &(tn_pairs_attr){segment->dim / 2});
}

static tn_node *pairs_of_means(tn_graph *g, const tn_segment *segment)
{
    return tn_apply(g, &tn_op_fm, "y",
                    TN_IN(embed_with(g, segment, (const tn_pool[]){TN_POOL_MEAN}, 1)),
                    &(tn_pairs_attr){segment->dim});
}

TEST(pairs_that_are_not_all_there_is_keep_their_matrix)
{
    static tn_bags_build *const others[] = {pairs_and_more, narrow_pairs, pairs_of_means, NULL};
    for (uint32_t k = 0; others[k] != NULL; k++) {
        tn_bags_run run = {.build = others[k], .dim = 8, .mixed = true};
        size_t n = 0;
        const tn_op *op = NULL;
        tn_real *got FREED(tn_free) = tn_bags_step(&run, &n, &op);
        assert_ptr_not_equal(op, &tn_op_embed_fm);
        run.no_passes = true;
        tn_real *want FREED(tn_free) = tn_bags_step(&run, &n, &op);
        assert_memory_equal(want, got, n * sizeof *got);
    }
}
