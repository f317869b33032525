/* test_embedback.c - gradients of rows are the same bits by keys and slot by slot. */
#include "nn/bags.h"
#include "nn/op/ops.h"

#include "base/core/alloc.h"
#include "support/test.h"

#include <string.h>

static const uint32_t dims[] = {1, 3, 4, 8, 16, 40};
enum { DIMS = sizeof dims / sizeof *dims };

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
    tn_node *both[] = {x, tn_embed_squares(g, "q", x)};
    return tn_fm_values(g, "y", both, segment->dim);
}

static tn_node *pairs(tn_graph *g, const tn_segment *segment)
{
    return tn_fm(g, "y", sums(g, segment), segment->dim);
}

static tn_node *single_weights(tn_graph *g, const tn_segment *segment)
{
    return segment->dim == 1 ? tn_embed_sum(g, "y", sums(g, segment)) : sums(g, segment);
}

static tn_bags_build *const builds[] = {sums,  all_pools,      mostly_means, squares,
                                        pairs, single_weights, NULL};

static void slots_apart_give_the_bits_of_the_list(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < DIMS * 2; i++) {
        for (uint32_t k = 0; builds[k] != NULL; k++) {
            tn_bags_run run = {.build = builds[k], .dim = dims[i / 2], .mixed = i % 2 == 1};
            size_t n = 0;
            const tn_op *op = NULL;
            tn_real *want = tn_bags_step(&run, &n, &op);
            run.apart = true;
            tn_real *got = tn_bags_step(&run, &n, &op);
            if (memcmp(want, got, n * sizeof *got) != 0) {
                fail_msg("graph %u, dim %u, mixed %u: other bits", k, run.dim, i % 2);
            }
            tn_free(want);
            tn_free(got);
        }
    }
}

static void slots_apart_need_no_more_than_one_writer(void **state)
{
    (void)state;
    tn_team *team = NULL;
    tn_error err = {0};
    assert_int_equal(tn_team_open(&team, 3, &err), TN_OK);
    for (uint32_t k = 0; builds[k] != NULL; k++) {
        tn_bags_run run = {.build = builds[k], .dim = 8, .mixed = true, .apart = true};
        size_t n = 0;
        const tn_op *op = NULL;
        tn_real *want = tn_bags_step(&run, &n, &op);
        run.team = team;
        tn_real *got = tn_bags_step(&run, &n, &op);
        assert_memory_equal(want, got, n * sizeof *got);
        tn_free(want);
        tn_free(got);
    }
    tn_team_close(team);
}

/* Pairs straight from the rows, by keys or by slots, on one thread or three. */
static void training_pairs_needs_no_matrix(void **state)
{
    (void)state;
    tn_team *team = NULL;
    tn_error err = {0};
    assert_int_equal(tn_team_open(&team, 3, &err), TN_OK);
    for (uint32_t i = 0; i < DIMS * 2; i++) {
        tn_bags_run run = {.build = pairs, .dim = dims[i / 2], .mixed = i % 2 == 1};
        size_t n = 0;
        const tn_op *op = NULL;
        run.no_passes = true;
        tn_real *want = tn_bags_step(&run, &n, &op);
        assert_ptr_equal(op, &tn_op_fm);
        run.no_passes = false;
        for (uint32_t way = 0; way < 4; way++) {
            run.apart = way % 2 == 1;
            run.team = way >= 2 ? team : NULL;
            tn_real *got = tn_bags_step(&run, &n, &op);
            assert_ptr_equal(op, &tn_op_embed_fm);
            if (memcmp(want, got, n * sizeof *got) != 0) {
                fail_msg("dim %u, mixed %u, way %u: other bits", run.dim, i % 2, way);
            }
            tn_free(got);
        }
        tn_free(want);
    }
    tn_team_close(team);
}

static tn_node *pairs_and_more(tn_graph *g, const tn_segment *segment)
{
    tn_node *x = sums(g, segment);
    tn_node *parts[] = {tn_fm(g, "pairs", x, segment->dim), tn_sum_cols(g, "more", x)};
    return tn_add(g, "y", parts, 2);
}

static tn_node *narrow_pairs(tn_graph *g, const tn_segment *segment)
{
    return tn_fm(g, "y", sums(g, segment), segment->dim / 2);
}

static tn_node *pairs_of_means(tn_graph *g, const tn_segment *segment)
{
    return tn_fm(g, "y", embed_with(g, segment, (const tn_pool[]){TN_POOL_MEAN}, 1), segment->dim);
}

static void pairs_that_are_not_all_there_is_keep_their_matrix(void **state)
{
    (void)state;
    static tn_bags_build *const others[] = {pairs_and_more, narrow_pairs, pairs_of_means, NULL};
    for (uint32_t k = 0; others[k] != NULL; k++) {
        tn_bags_run run = {.build = others[k], .dim = 8, .mixed = true};
        size_t n = 0;
        const tn_op *op = NULL;
        tn_real *got = tn_bags_step(&run, &n, &op);
        assert_ptr_not_equal(op, &tn_op_embed_fm);
        run.no_passes = true;
        tn_real *want = tn_bags_step(&run, &n, &op);
        assert_memory_equal(want, got, n * sizeof *got);
        tn_free(want);
        tn_free(got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_apart_give_the_bits_of_the_list),
        cmocka_unit_test(slots_apart_need_no_more_than_one_writer),
        cmocka_unit_test(training_pairs_needs_no_matrix),
        cmocka_unit_test(pairs_that_are_not_all_there_is_keep_their_matrix),
    };
    return cmocka_run_group_tests_name("nn/embedback", tests, NULL, NULL);
}
