/* test_sync_step.c - whatever the order of messages, the model must be that of one process on the
 * joint batch, and arrival must not decide a bit. */
#include "ranks.h"

#include "support/test.h"

TEST(any_number_of_ranks_trains_the_model_of_the_joint_batch)
{
    for (uint32_t n = 1; n <= RANKS_MAX; n++) {
        for (uint32_t clipped = 0; clipped < 2; clipped++) {
            ranks_world *w = ranks_new(n, clipped ? 0.7 : (double)INFINITY, 1);
            ranks_run(w);
            ranks_check(w);
            ranks_free(w);
        }
    }
}

/* C10: 2 and 4 peers repeat exactly at staleness 0. */
TEST(c10_the_order_of_arrival_decides_no_bit)
{
    enum { SEEDS = 12 };
    for (uint32_t n = 2; n <= RANKS_MAX; n++) {
        ranks_world *first = ranks_new(n, 0.7, 1);
        ranks_run(first);
        for (uint64_t seed = 2; seed < SEEDS; seed++) {
            ranks_world *w = ranks_new(n, 0.7, seed);
            ranks_run(w);
            for (uint32_t o = 0; o < n; o++) {
                assert_memory_equal(w->owner[o].weights, first->owner[o].weights,
                                    sizeof w->owner[o].weights);
            }
            for (uint64_t i = 0; i < RANKS_KEYS; i++) {
                kit_row a;
                kit_row b;
                uint32_t p = tn_partition_of(ranks_key(i), TN_PARTITIONS);
                uint32_t o = 0;
                while (p >= first->shares->owners.from[o + 1]) {
                    o++;
                }
                bool there = kit_row_of(first->owner[o].shard.table, ranks_key(i), &a);
                assert_int_equal(kit_row_of(w->owner[o].shard.table, ranks_key(i), &b), there);
                if (there) {
                    assert_memory_equal(a.data, b.data, a.view.n_floats * sizeof(float));
                }
            }
            ranks_free(w);
        }
        ranks_free(first);
    }
}

TEST(what_is_not_due_is_refused)
{
    ranks_world *w = ranks_new(2, 0.7, 1);
    tn_sync_step *l = w->owner[0].steps;
    const tn_batch_note note = {.rows = 1, .weight_sum = 1};
    const tn_pushed pushed = {.lr_factor = 1};
    tn_error err = {0};
    tn_turn turn;
    assert_int_equal(tn_sync_step_push(l, 0, &pushed, &err), TN_E_PEER);
    assert_string_equal(err.text, "rank 0 sent a push that is not due in step 0");
    assert_int_equal(tn_sync_step_norm(l, 1, 0, NULL), TN_E_PEER);
    assert_int_equal(tn_sync_step_pull(l, 0, &note, NULL, NULL), TN_OK);
    assert_int_equal(tn_sync_step_pull(l, 0, &note, NULL, NULL), TN_OK);
    assert_int_equal(tn_sync_step_pull(l, 0, &note, NULL, &err), TN_E_PEER);
    assert_string_equal(err.text, "rank 0 sent a pull that is not due in step 0");
    assert_int_equal(tn_sync_step_advance(l, NULL, &turn, NULL), TN_OK);
    assert_int_equal(turn, TN_TURN_NONE);
    assert_int_equal(tn_sync_step_pull(l, 1, &note, NULL, NULL), TN_OK);
    assert_int_equal(tn_sync_step_advance(l, NULL, &turn, NULL), TN_OK);
    assert_int_equal(turn, TN_TURN_ROWS);
    assert_int_equal(tn_sync_step_push(l, 0, &pushed, NULL), TN_OK);
    assert_int_equal(tn_sync_step_push(l, 0, &pushed, NULL), TN_E_PEER);
    assert_int_equal(tn_sync_step_norm(l, 1, 0.25, NULL), TN_OK);
    assert_int_equal(tn_sync_step_norm(l, 1, 0.25, NULL), TN_E_PEER);
    assert_int_equal(tn_sync_step_push(l, 1, &pushed, NULL), TN_OK);
    assert_int_equal(tn_sync_step_advance(l, NULL, &turn, NULL), TN_OK);
    assert_int_equal(turn, TN_TURN_NORM);
    assert_true(tn_sync_step_norm2(l) == 0);
    assert_int_equal(tn_sync_step_norm(l, 0, (double)INFINITY, NULL), TN_OK);
    assert_int_equal(tn_sync_step_advance(l, NULL, &turn, &err), TN_E_DIVERGED);
    ranks_free(w);
}

TEST(memory_that_runs_out_is_told)
{
    ranks_world *w = ranks_new(2, 0.7, 1);
    const tn_exchange exchange = {.arena = w->arena,
                                  .shares = w->shares,
                                  .layout = &w->m->layout,
                                  .shard = &w->owner[0].shard};
    for (uint64_t n = 1;; n++) {
        tn_sync_step *l = NULL;
        tn_alloc_fail_at(n);
        tn_status status = tn_sync_step_new(&l, &exchange, NULL);
        tn_alloc_fail_at(0);
        if (status == TN_OK) {
            assert_int_equal(n, 2);
            tn_sync_step_free(l);
            break;
        }
        assert_int_equal(status, TN_E_MEMORY);
        assert_null(l);
    }
    ranks_free(w);
}
