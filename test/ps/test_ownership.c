/* test_ownership.c - every partition and every float has one owner; slices of a keyset are keysets.
 */
#include "kit.h"
#include "ps/shard/dense.h"
#include "ps/shard/ownership.h"

#include "support/test.h"

CLOSER(tn_shares_free);

TEST(every_float_and_partition_has_one_owner)
{
    const size_t size[] = {0, 1, 15, 16, 17, 1000, 423280};
    for (uint32_t n = 1; n <= TN_PARTITIONS; n = n * 3 / 2 + 1) {
        for (uint32_t i = 0; i < sizeof size / sizeof size[0]; i++) {
            tn_shares *s FREED(tn_shares_free) = NULL;
            assert_int_equal(tn_shares_new(&s, n, size[i], NULL), TN_OK);
            assert_true(s->owners.from[0] == 0 && s->owners.from[n] == TN_PARTITIONS);
            assert_true(s->dense[0] == 0 && s->dense[n] == size[i]);
            for (uint32_t p = 0; p < n; p++) {
                assert_in_range(s->owners.from[p + 1] - s->owners.from[p], TN_PARTITIONS / n,
                                TN_PARTITIONS / n + 1);
                assert_true(s->dense[p] <= s->dense[p + 1]);
                assert_true(s->dense[p] % 16 == 0 || s->dense[p] == size[i]);
                assert_in_range(s->dense[p + 1] - s->dense[p], 0, size[i] / n + 32);
            }
        }
    }
}

TEST(runs_are_cut_where_ranges_are)
{
    enum { SIZE = 100, PEERS = 3 };
    const tn_dense_run run[] = {{0, 5}, {7, 40}, {40, 41}, {60, 100}};
    tn_shares *s FREED(tn_shares_free) = NULL;
    uint32_t times[SIZE] = {0};
    assert_int_equal(tn_shares_new(&s, PEERS, SIZE, NULL), TN_OK);
    for (uint32_t p = 0; p < PEERS; p++) {
        tn_dense_run out[4];
        uint32_t n = tn_shares_runs(s, p, run, 4, out);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(out[i].begin < out[i].end && out[i].end <= s->dense[p + 1] - s->dense[p]);
            for (size_t x = out[i].begin; x < out[i].end; x++) {
                times[s->dense[p] + x]++;
            }
        }
    }
    for (uint32_t x = 0; x < SIZE; x++) {
        bool trained = x != 5 && x != 6 && !(x >= 41 && x < 60);
        assert_int_equal(times[x], trained);
    }
}

TEST(a_slice_is_the_keyset_of_its_owner)
{
    enum { KEYS = 500, PEERS = 5 };
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    kit_model *m = kit_model_plain(arena, 2, kit_rule(arena, "sgd", NULL));
    tn_shares *s FREED(tn_shares_free) = NULL;
    uint64_t key[KEYS];
    for (uint64_t i = 0; i < KEYS; i++) {
        key[i] = tn_stream2(1, 2, i);
    }
    assert_int_equal(tn_shares_new(&s, PEERS, 0, NULL), TN_OK);
    kit_keys *k = kit_keys_new(arena, &m->layout, key, NULL, KEYS);
    k->set.owners = &s->owners;
    uint32_t n = 0;
    for (uint32_t p = 0; p < PEERS; p++) {
        uint32_t first[TN_PARTITIONS + 1];
        tn_keyset slice = tn_shares_slice(&k->set, p, first);
        assert_int_equal(slice.first[0], 0);
        assert_int_equal(slice.first[TN_PARTITIONS], slice.n);
        for (uint32_t q = 0; q < TN_PARTITIONS; q++) {
            for (uint32_t i = slice.first[q]; i < slice.first[q + 1]; i++) {
                assert_int_equal(tn_partition_of(slice.key[i], TN_PARTITIONS), q);
                assert_true(q >= s->owners.from[p] && q < s->owners.from[p + 1]);
                assert_true(slice.key[i] == k->set.key[n] && slice.at[i] == k->set.at[n]);
                n++;
            }
        }
    }
    assert_int_equal(n, KEYS);
}

TEST(memory_that_runs_out_is_told)
{
    tn_shares *s = NULL;
    tn_alloc_fail_at(1);
    assert_int_equal(tn_shares_new(&s, 2, 1, NULL), TN_E_MEMORY);
    tn_alloc_fail_at(0);
    assert_null(s);
}
