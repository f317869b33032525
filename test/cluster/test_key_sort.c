/* test_key_sort.c - the keys of a peer in ascending order. */
#include "support/test.h"
#include "wire.h"

#include "base/math/key.h"

/* n keys of one partition, whose low bits low(i) gives, and one key on either side of it. */
static void sorts(uint32_t n, uint64_t (*low)(uint32_t i))
{
    tn_arena *arena = tn_arena_new(1 << 16);
    uint64_t *key = TN_NEW_ARRAY(arena, uint64_t, n + 2);
    for (uint32_t i = 0; i < n; i++) {
        key[i] = UINT64_C(300) << 54 | (low(i) & 0x3fffffffffffff);
    }
    key[n] = UINT64_C(255) << 54; /* of peer 0 */
    key[n + 1] = UINT64_C(699) << 54;
    kit_keys *k = kit_keys_new(arena, wire_layout(), key, NULL, n + 2);
    k->set.owners = &wire_owners;
    tn_key_order order = wire_order(arena, &k->set, 2);
    assert_int_equal(order.n, n + 1);
    for (uint32_t i = 0; i < order.n; i++) {
        uint32_t at = order.index[i];
        assert_in_range(at, 1, n + 1);
        assert_true(i == 0 || k->set.key[order.index[i - 1]] < k->set.key[at]);
    }
    assert_int_equal(order.index[n], n + 1);
    assert_int_equal(wire_order(arena, &k->set, 0).n, 1);
    assert_int_equal(wire_order(arena, &k->set, 1).n, 0);
    assert_int_equal(wire_order(arena, &k->set, 3).n, 0);
    tn_arena_free(arena);
}

static void sorts_all_sizes(uint64_t (*low)(uint32_t i))
{
    static const uint32_t size[] = {0,  1,  2,  3,  15, 16,  17,   31,   32,
                                    33, 47, 48, 49, 64, 100, 1000, 1024, 9999};
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
        sorts(size[i], low);
    }
}

static uint64_t mixed(uint32_t i)
{
    return tn_mix(i);
}

static uint64_t rising(uint32_t i)
{
    return i;
}

static uint64_t falling(uint32_t i)
{
    return UINT32_MAX - i;
}

static void mixed_keys_are_sorted(void **state)
{
    (void)state;
    sorts_all_sizes(mixed);
}

static void sorted_keys_stay_so(void **state)
{
    (void)state;
    sorts_all_sizes(rising);
}

static void falling_keys_are_turned(void **state)
{
    (void)state;
    sorts_all_sizes(falling);
}

static void every_peer_gets_its_keys_once(void **state)
{
    (void)state;
    tn_arena *arena = tn_arena_new(1 << 16);
    const kit_keys *k = wire_keys(arena, &(wire_opts){7, 20000, 5, 3});
    bool *seen = TN_NEW_ARRAY(arena, bool, 20000);
    uint32_t n = 0;
    for (uint32_t peer = 0; peer < WIRE_PEERS; peer++) {
        tn_key_order order = wire_order(arena, &k->set, peer);
        for (uint32_t i = 0; i < order.n; i++) {
            uint32_t at = order.index[i];
            uint32_t p = tn_partition_of(k->set.key[at], TN_PARTITIONS);
            assert_true(p >= wire_owners.from[peer] && p < wire_owners.from[peer + 1]);
            assert_false(seen[at]);
            seen[at] = true;
        }
        n += order.n;
    }
    assert_int_equal(n, 20000);
    tn_arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixed_keys_are_sorted),
        cmocka_unit_test(sorted_keys_stay_so),
        cmocka_unit_test(falling_keys_are_turned),
        cmocka_unit_test(every_peer_gets_its_keys_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
