/* test_table.c - pull, peek, push, walk and restore, one promise at a time. */
#include "onetable.h"
#include "support/mallocs.h"
#include "support/test.h"

TEST(v17_first_values_depend_on_seed_segment_and_key_alone)
{
    const uint32_t bits[DIM] = {0xbd1e6e04, 0x3d5dad65, 0x3dabd360, 0x3d6a536e};
    const uint64_t key[] = {99, UINT64_C(0x0123456789abcdef), UINT64_C(0xf00) << 52};
    onetable f CLEANUP(onetable_end) = onetable_begin("adam", NULL, 42);
    kit_keys *k = keys_of(&f, key, 3);
    float *rows = floats(&f, k);
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
    assert_memory_equal(rows + k->set.at[k->index[1]], bits, sizeof bits);
}

TEST(a_second_pull_finds_what_the_first_created)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("sgd", NULL, 1);
    kit_keys *k = keys_of(&f, many_keys(&f, 1000, 7), 1000);
    float *first = floats(&f, k);
    float *second = floats(&f, k);
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, first, NULL), TN_OK);
    assert_int_equal(tn_table_rows(f.t), 1000);
    assert_int_equal(tn_table_total(f.t).created, 1000);
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, second, NULL), TN_OK);
    assert_int_equal(tn_table_total(f.t).created, 1000);
    assert_memory_equal(first, second, k->n_floats * sizeof *first);
}

TEST(r4_evaluation_creates_nothing_and_changes_nothing)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("adam", NULL, 1);
    kit_keys *known = keys_of(&f, many_keys(&f, 100, 7), 100);
    kit_keys *all = keys_of(&f, many_keys(&f, 200, 7), 200);
    float *rows = floats(&f, all);
    assert_int_equal(tn_table_pull(f.t, NULL, &known->set, rows, NULL), TN_OK);
    kit_row before;
    assert_true(kit_row_of(f.t, known->set.key[3], &before));

    bool missing[200];
    memset(rows, 0x7f, all->n_floats * sizeof *rows);
    tn_table_peek(f.t, NULL, &all->set, NULL, rows, missing);
    for (uint32_t i = 0; i < 200; i++) {
        assert_int_equal(missing[all->index[i]], i >= 100);
    }
    for (uint32_t i = 100; i < 200; i++) {
        for (uint32_t j = 0; j < DIM; j++) {
            assert_true(rows[all->set.at[all->index[i]] + j] == 0);
        }
    }
    assert_true(rows[all->set.at[all->index[5]]] != 0);
    assert_int_equal(tn_table_rows(f.t), 100);
    kit_row after;
    assert_true(kit_row_of(f.t, known->set.key[3], &after));
    assert_memory_equal(before.data, after.data, before.view.n_floats * sizeof(float));
}

TEST(a7_evaluation_may_show_first_values_and_training_then_gets_the_same)
{
    const bool missing_init[] = {true};
    bool missing[50];
    onetable f CLEANUP(onetable_end) = onetable_begin("adagrad", NULL, 5);
    kit_keys *k = keys_of(&f, many_keys(&f, 50, 3), 50);
    float *peeked = floats(&f, k);
    float *pulled = floats(&f, k);
    tn_table_peek(f.t, NULL, &k->set, missing_init, peeked, missing);
    assert_false(missing[7]);
    assert_int_equal(tn_table_rows(f.t), 0);
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, pulled, NULL), TN_OK);
    assert_memory_equal(peeked, pulled, k->n_floats * sizeof *peeked);
}

TEST(r7_a_push_for_missing_keys_is_dropped_and_its_neighbours_are_exact)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("sgd", "lr=1", 1);
    uint64_t *key = many_keys(&f, 300, 7);
    uint64_t *even = TN_NEW_ARRAY(f.arena, uint64_t, 150);
    for (uint32_t i = 0; i < 150; i++) {
        even[i] = key[2 * (size_t)i];
    }
    kit_keys *some = keys_of(&f, even, 150);
    kit_keys *all = keys_of(&f, key, 300);
    float *before = floats(&f, all);
    float *after = floats(&f, all);
    float *grads = floats(&f, all);
    assert_int_equal(tn_table_pull(f.t, NULL, &some->set, before, NULL), TN_OK);
    tn_table_peek(f.t, NULL, &all->set, NULL, before, NULL);
    for (uint32_t i = 0; i < all->n_floats; i++) {
        grads[i] = (float)i;
    }
    tn_push push = kit_push(0);
    tn_table_push(f.t, NULL, &all->set, grads, &push, 1);
    assert_int_equal(tn_table_rows(f.t), 150);
    tn_table_peek(f.t, NULL, &all->set, NULL, after, NULL);
    for (uint32_t i = 0; i < 300; i++) {
        for (uint32_t j = 0; j < DIM; j++) {
            uint32_t at = all->set.at[all->index[i]] + j;
            float want = i % 2 == 0 ? before[at] - grads[at] : 0;
            assert_true(after[at] == want);
        }
    }
}

/* Float counters stop at 2^24 under +1. */
/* R10: the wide weight, the deep vector and all optimizer state of a key are in one row. */
typedef struct order {
    uint64_t last;
    uint64_t n;
    uint64_t stop_at;
} order;

static tn_status in_order(void *arg, const tn_row_view *row, tn_error *err)
{
    order *o = arg;
    assert_true(o->n == 0 || row->key > o->last);
    o->last = row->key;
    o->n++;
    return o->n == o->stop_at ? tn_fail(err, TN_E_IO, "disk full") : TN_OK;
}

TEST(a_walk_shows_every_row_in_key_order_and_hands_on_failures)
{
    const uint32_t n = 5000;
    onetable f CLEANUP(onetable_end) = onetable_begin("sgd", NULL, 1);
    uint64_t *key = many_keys(&f, n, 7);
    kit_keys *k = keys_of(&f, key, n);
    float *rows = floats(&f, k);
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
    order o = {0};
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        assert_int_equal(tn_table_walk(f.t, p, in_order, &o, NULL), TN_OK);
    }
    assert_int_equal(o.n, n);
    tn_error err = {0};
    o = (order){.stop_at = 1};
    uint32_t p = tn_partition_of(key[0], TN_PARTITIONS);
    assert_int_equal(tn_table_walk(f.t, p, in_order, &o, &err), TN_E_IO);
    assert_string_equal(err.text, "disk full");
}

TEST(a_restored_row_is_bit_for_bit_the_one_that_was_shown)
{
    const uint64_t key = 404;
    onetable f CLEANUP(onetable_end) = onetable_begin("adam", NULL, 1);
    kit_keys *k = keys_of(&f, &key, 1);
    float *rows = floats(&f, k);
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
    tn_push push = kit_push(0);
    tn_table_push(f.t, NULL, &k->set, rows, &push, 1);
    kit_row before;
    assert_true(kit_row_of(f.t, key, &before));

    tn_table_clear(f.t);
    assert_int_equal(tn_table_rows(f.t), 0);
    assert_int_equal(tn_table_bytes(f.t), 0);
    kit_row after;
    assert_false(kit_row_of(f.t, key, &after));
    assert_int_equal(tn_table_restore(f.t, &before.view, NULL), TN_OK);
    assert_true(kit_row_of(f.t, key, &after));
    assert_memory_equal(before.data, after.data, before.view.n_floats * sizeof(float));
    assert_true(after.view.show == 1 && after.view.last_seen == 1);

    tn_error err = {0};
    before.view.n_floats--;
    assert_int_equal(tn_table_restore(f.t, &before.view, &err), TN_E_CKPT);
    before.view.group = 1;
    assert_int_equal(tn_table_restore(f.t, &before.view, &err), TN_E_CKPT);
}

TEST(a_warm_step_allocates_nothing)
{
    onetable f CLEANUP(onetable_end) = onetable_begin("adagrad", "rowwise=true l2=1e-6", 1);
    kit_keys *k = keys_of(&f, many_keys(&f, 3000, 7), 3000);
    float *rows = floats(&f, k);
    assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
    uint64_t before = tn_mallocs();
    for (uint64_t s = 0; s < 10; s++) {
        tn_push push = kit_push(s);
        assert_int_equal(tn_table_pull(f.t, NULL, &k->set, rows, NULL), TN_OK);
        double sum = tn_table_norm2(f.t, NULL, &k->set, rows, &push);
        tn_table_push(f.t, NULL, &k->set, rows, &push, sum > 0 ? .5 : 1);
    }
    assert_int_equal(tn_mallocs(), before);
}
