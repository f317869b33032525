/* test_key_codec.c - keys sorted, as bytes and back; damaged blocks are dropped. */
#include "support/mallocs.h"
#include "support/test.h"
#include "wire.h"

#include "base/core/bytes.h"
#include "base/math/key.h"
#include "cluster/wire/request_headers.h"

static tn_keyblock_rules rules_of(uint32_t peer)
{
    return (tn_keyblock_rules){&wire_owners, wire_layout(), peer};
}

/* The peer's keys as bytes in the arena. */
static char *encode(tn_arena *arena, const tn_keyset *keys, tn_key_order order,
                    tn_keyblock_shape *shape)
{
    *shape = tn_keyblock_measure(keys, order);
    char *bytes = TN_NEW_ARRAY(arena, char, shape->bytes + 1);
    bytes[shape->bytes] = 0x55;
    tn_keyblock_write(keys, order, shape, bytes);
    assert_int_equal(bytes[shape->bytes], 0x55);
    return bytes;
}

static void same_keys(const tn_keyset *keys, tn_key_order order, const tn_keyset *got)
{
    uint32_t at = 0;
    assert_int_equal(got->n, order.n);
    assert_ptr_equal(got->owners, &wire_owners);
    for (uint32_t i = 0; i < order.n; i++) {
        uint32_t k = order.index[i];
        assert_true(got->key[i] == keys->key[k] && got->group[i] == keys->group[k]);
        assert_true(got->show[i] == keys->show[k] && got->click[i] == keys->click[k]);
        assert_int_equal(got->at[i], at);
        at += wire_width(got->group[i]);
    }
    assert_int_equal(got->floats, at);
    assert_ptr_equal(got->layout, wire_layout());
    uint32_t i = 0;
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        assert_int_equal(got->first[p], i);
        while (i < order.n && tn_partition_of(got->key[i], TN_PARTITIONS) == p) {
            i++;
        }
    }
    assert_int_equal(got->first[TN_PARTITIONS], order.n);
}

TEST(keys_come_back_for_every_peer_and_shape)
{
    static const wire_opts shapes[] = {
        {1, 0, 1, 1},
        {2, 1, 1, 1},
        {3, 2, 2, 2},
        {4, 17, 1, 1},
        {5, 1000, 256, 256},
        {6, 1000, 257, 257},
        {7, 20000, WIRE_GROUPS, 70000},
        {8, 300, 3, 20000000},
        {9, 300, 3, 4000000000U},
    };
    tn_keyblock block = {0};
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
        const kit_keys *k = wire_keys(arena, &shapes[s]);
        for (uint32_t peer = 0; peer < WIRE_PEERS; peer++) {
            tn_key_order order = wire_order(arena, &k->set, peer);
            tn_keyblock_shape shape;
            const char *bytes = encode(arena, &k->set, order, &shape);
            const tn_keyblock_rules rules = rules_of(peer);
            const uint32_t count[TN_FRAME_COUNTS] = {order.n, shape.floats};
            assert_int_equal(tn_keyblock_read(&block, bytes, shape.bytes, count, &rules),
                             TN_DROP_NONE);
            same_keys(&k->set, order, &block.keys);
        }
    }
    tn_keyblock_done(&block);
    tn_keyblock_done(&block);
}

/* From the first key of the space to the last: all of one peer. */
TEST(the_whole_key_space_fits)
{
    static const uint32_t from[] = {0, TN_PARTITIONS};
    static const tn_owners one = {1, TN_PARTITIONS, from};
    static const uint64_t key[] = {0, UINT64_MAX};
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    kit_keys *k = kit_keys_new(arena, wire_layout(), key, NULL, 2);
    tn_keyblock_shape shape;
    const char *bytes = encode(arena, &k->set, wire_all(arena, &k->set), &shape);
    assert_int_equal(shape.width[TN_KEY_DELTAS], 8);
    assert_int_equal(shape.bytes, TN_KEYBLOCK_HEAD + 8);
    tn_keyblock block CLEANUP(tn_keyblock_done) = {0};
    const tn_keyblock_rules rules = {&one, wire_layout(), 0};
    const uint32_t count[TN_FRAME_COUNTS] = {2, 4};
    assert_int_equal(tn_keyblock_read(&block, bytes, shape.bytes, count, &rules), TN_DROP_NONE);
    assert_memory_equal(block.keys.key, key, sizeof key);
}

static const uint64_t golden_key[] = {UINT64_C(0x4000000000012345), UINT64_C(0x4000000000000001),
                                      UINT64_C(0x4000000000000002)};

static const uint16_t golden_group[] = {0, 0, 1};

#define GOLDEN_BLOCK "03010101000000000100000000000040000000422301000100000200000100"

/* Of peer 2; as first seen the last key comes first. */
TEST(golden_keyblock)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
    kit_keys *k = kit_keys_new(arena, wire_layout(), golden_key, golden_group, 3);
    k->set.owners = &wire_owners;
    k->show[2] = 3;
    k->click[2] = 1;
    tn_key_order order = wire_order(arena, &k->set, 2);
    assert_true(order.n == 3 && order.index[0] == 1 && order.index[1] == 2 && order.index[2] == 0);
    tn_keyblock_shape shape;
    const char *bytes = encode(arena, &k->set, order, &shape);
    assert_int_equal(shape.floats, 5);
    wire_equals(bytes, shape.bytes, GOLDEN_BLOCK);
}

TEST(golden_pull)
{
    char message[256];
    tn_frame f = wire_sender;
    f.type = TN_FRAME_PULL;
    f.flags = tn_frame_flags(TN_VALUES_BF16, TN_VALUES_F32);
    f.sequence = 7;
    f.step = 41;
    f.count[TN_KEYS] = 3;
    f.count[TN_ROW_FLOATS] = 5;
    f.bytes = TN_PULL_PARAMS + wire_golden(GOLDEN_BLOCK, message + TN_FRAME_HEAD + TN_PULL_PARAMS);
    memcpy(message + TN_FRAME_HEAD, &(tn_pull_params){2, 1.5}, TN_PULL_PARAMS);
    tn_frame_seal(message, &f);
    wire_equals(message, TN_FRAME_HEAD + f.bytes, wire_golden_pull);
    const tn_keyblock_rules rules = rules_of(2);
    tn_keyblock block CLEANUP(tn_keyblock_done) = {0};
    assert_int_equal(tn_keyblock_read(&block, message + TN_FRAME_HEAD + TN_PULL_PARAMS,
                                      f.bytes - TN_PULL_PARAMS, f.count, &rules),
                     TN_DROP_NONE);
    assert_int_equal(block.keys.show[1], 3);
}

TEST(golden_push)
{
    static const float grads[] = {.5F, -.25F, 1.F / 3, 0, -1};
    static const float dense[] = {1, -2};
    char message[256];
    tn_frame f = wire_sender;
    f.type = TN_FRAME_PUSH;
    f.flags = tn_frame_flags(TN_VALUES_BF16, TN_VALUES_F32);
    f.sequence = 8;
    f.step = 41;
    f.count[TN_KEYS] = 3;
    f.count[TN_ROW_FLOATS] = 5;
    f.count[TN_DENSE_FLOATS] = 2;
    f.bytes = TN_PUSH_PARAMS + 5 * 2 + 2 * 4;
    char *at = message + TN_FRAME_HEAD;
    memcpy(at, &(tn_push_params){7, .5, 20000, 0, .6875}, TN_PUSH_PARAMS);
    assert_true(tn_values_write(TN_VALUES_BF16, grads, 5, at + TN_PUSH_PARAMS) == TN_VALUES_FINITE);
    assert_true(tn_values_write(TN_VALUES_F32, dense, 2, at + TN_PUSH_PARAMS + 10) ==
                TN_VALUES_FINITE);
    tn_frame_seal(message, &f);
    wire_equals(message, TN_FRAME_HEAD + f.bytes, wire_golden_push);
}

TEST(golden_rows)
{
    static const float row[] = {1, -2, .1F};
    static const bool missing[] = {true, false};
    char message[256];
    tn_frame f = wire_sender;
    f.type = TN_FRAME_ROWS;
    f.flags = tn_frame_flags(TN_VALUES_F16, TN_VALUES_F32) | TN_FRAME_MISSING;
    f.step = 5;
    f.count[TN_KEYS] = 2;
    f.count[TN_ROW_FLOATS] = 3;
    f.bytes = TN_ROWS_PARAMS + 3 * 2 + 1;
    memcpy(message + TN_FRAME_HEAD, &(tn_rows_params){0, 0, 0}, TN_ROWS_PARAMS);
    char *at = message + TN_FRAME_HEAD + TN_ROWS_PARAMS;
    assert_true(tn_values_write(TN_VALUES_F16, row, 3, at) == TN_VALUES_FINITE);
    tn_missing_put(at + 6, missing, 2);
    tn_frame_seal(message, &f);
    wire_equals(message, TN_FRAME_HEAD + f.bytes, wire_golden_rows);
}

/* One byte of the golden block is another. */
static const struct {
    tn_drop fault;
    uint32_t at, value;
} damages[] = {
    {TN_DROP_KEYS_HEAD, 0, 0}, /* deltas of no bytes */
    {TN_DROP_KEYS_HEAD, 0, 9},      {TN_DROP_KEYS_HEAD, 1, 3},
    {TN_DROP_KEYS_HEAD, 2, 5},      {TN_DROP_KEYS_HEAD, 3, 5},
    {TN_DROP_KEYS_HEAD, 3, 255},    {TN_DROP_KEYS_HEAD, 4, 1},
    {TN_DROP_KEYS_HEAD, 7, 1},      {TN_DROP_KEYS_SIZE, 0, 4},
    {TN_DROP_KEYS_SIZE, 0, 2},      {TN_DROP_KEYS_SIZE, 1, 2},
    {TN_DROP_KEYS_SIZE, 2, 0},      {TN_DROP_KEYS_SIZE, 3, 2},
    {TN_DROP_KEYS_OWNER, 15, 0x3f}, {TN_DROP_KEYS_OWNER, 15, 0xaf},
    {TN_DROP_KEYS_WIDTH, 21, 0},  /* deltas of two bytes */
    {TN_DROP_KEYS_FLOATS, 23, 0}, /* a longer row */
    {TN_DROP_KEYS_FLOATS, 22, 1}, /* a row of another width */
    {TN_DROP_KEYS_SHOWS, 28, 2},  /* two clicks, one show */
    {TN_DROP_KEYS_WIDTH, 29, 0},  /* no clicks */
};

TEST(each_fault_of_a_block_is_found)
{
    const tn_keyblock_rules rules = rules_of(2);
    static const uint32_t count[TN_FRAME_COUNTS] = {3, 5};
    tn_keyblock block CLEANUP(tn_keyblock_done) = {0};
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        char bytes[64];
        size_t size = wire_golden(GOLDEN_BLOCK, bytes);
        assert_int_equal(tn_keyblock_read(&block, bytes, size, count, &rules), TN_DROP_NONE);
        bytes[damages[i].at] = (char)damages[i].value;
        tn_drop why = tn_keyblock_read(&block, bytes, size, count, &rules);
        fail_if(why != damages[i].fault, "byte %u: %s", damages[i].at, tn_drop_text(why));
        assert_int_equal(block.keys.n, 0);
    }
}

/* Blocks written by hand: {fault, keys, floats, bytes}. */
static const struct {
    tn_drop fault;
    uint32_t n, floats;
    const char *hex;
} blocks[] = {
    {TN_DROP_NONE, 0, 0, "01000000000000000000000000000000"},
    {TN_DROP_NONE, 1, 2, "01000000000000000000000000000040"},
    {TN_DROP_KEYS_SIZE, 0, 0, "010000000000000000000000000000"},
    {TN_DROP_KEYS_SIZE, 0, 0, ""},
    {TN_DROP_KEYS_SIZE, 0, 0, "0100000000000000000000000000000000"},
    {TN_DROP_KEYS_HEAD, 0, 0, "01000000000000000100000000000000"}, /* a first key of none */
    {TN_DROP_KEYS_WIDTH, 0, 0, "02000000000000000000000000000000"},
    {TN_DROP_KEYS_WIDTH, 1, 2, "08000000000000000000000000000040"},
    {TN_DROP_KEYS_WIDTH, 1, 2, "0101000000000000000000000000004000"},
    {TN_DROP_KEYS_WIDTH, 1, 2, "0100010000000000000000000000004000"},
    {TN_DROP_KEYS_WIDTH, 1, 2, "0100000100000000000000000000004000"},
    {TN_DROP_KEYS_OWNER, 1, 2, "01000000000000000000000000000000"},
    {TN_DROP_KEYS_FLOATS, 1, 1, "01000000000000000000000000000040"},
    {TN_DROP_KEYS_FLOATS, 1, 3, "01000000000000000000000000000040"},
    {TN_DROP_KEYS_GROUP, 1, 2, "010200000000000000000000000000405802"}, /* 600 */
    {TN_DROP_NONE, 1, WIRE_WIDE, "010200000000000000000000000000405702"},
    {TN_DROP_NONE, 2, 4, "020000000000000000000000000000400001"},
    {TN_DROP_KEYS_END, 2, 4, "0100000000000000ffffffffffffffff00"},
    {TN_DROP_KEYS_END, 2, 4, "0100000000000000feffffffffffffff01"},
    {TN_DROP_KEYS_END, 2, 4, "08000000000000000000000000000040ffffffffffffffff"},
    {TN_DROP_KEYS_END, 2, 4, "08000000000000000000000000000040ffffffffffffffbf"},
    {TN_DROP_KEYS_OWNER, 2, 4, "08000000000000000000000000000040feffffffffffffbf"}, /* the last */
    {TN_DROP_KEYS_SHOWS, 1, 2, "01000400000000000000000000000040ffffffff"},         /* 2^32 shows */
    {TN_DROP_NONE, 1, 2, "01000400000000000000000000000040feffffff"},
    {TN_DROP_KEYS_SHOWS, 1, 2, "0100000100000000000000000000004002"},
    {TN_DROP_NONE, 1, 2, "0100000100000000000000000000004001"},
};

TEST(blocks_by_hand)
{
    const tn_keyblock_rules rules = rules_of(2);
    tn_keyblock block CLEANUP(tn_keyblock_done) = {0};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        char *bytes FREED(tn_free) = tn_alloc(64, 1, "a block"); /* its end is watched by ASan */
        size_t size = wire_golden(blocks[i].hex, bytes);
        char *exact FREED(tn_free) = tn_alloc(size + 1, 1, "a block");
        memcpy(exact, bytes, size);
        const uint32_t count[TN_FRAME_COUNTS] = {blocks[i].n, blocks[i].floats};
        tn_drop why = tn_keyblock_read(&block, exact, size, count, &rules);
        fail_if(why != blocks[i].fault, "'%s': %s", blocks[i].hex, tn_drop_text(why));
    }
}

/* Keys that a count claims but no bytes hold cost nothing. */
TEST(memory_is_taken_for_keys_that_are_there)
{
    char bytes[64];
    size_t size = wire_golden(GOLDEN_BLOCK, bytes);
    const tn_keyblock_rules rules = rules_of(2);
    tn_keyblock block CLEANUP(tn_keyblock_done) = {0};
    uint32_t count[TN_FRAME_COUNTS] = {UINT32_MAX, UINT32_MAX};
    uint64_t before = tn_mallocs();
    assert_int_equal(tn_keyblock_read(&block, bytes, size, count, &rules), TN_DROP_KEYS_SIZE);
    assert_null(block.room);
    assert_int_equal(tn_mallocs(), before);
    count[TN_KEYS] = 3;
    count[TN_ROW_FLOATS] = 5;
    tn_alloc_fail_at(1);
    assert_int_equal(tn_keyblock_read(&block, bytes, size, count, &rules), TN_DROP_MEMORY);
    assert_int_equal(block.keys.n, 0);
    assert_int_equal(tn_keyblock_read(&block, bytes, size, count, &rules), TN_DROP_NONE);
    before = tn_mallocs();
    assert_int_equal(tn_keyblock_read(&block, bytes, size, count, &rules), TN_DROP_NONE);
    assert_int_equal(tn_mallocs(), before);
}

/* n keys of one partition, whose low bits low(i) gives, and one key on either side of it. */
static void sorts(uint32_t n, uint64_t (*low)(uint32_t i))
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
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

TEST(mixed_keys_are_sorted)
{
    sorts_all_sizes(mixed);
}

TEST(sorted_keys_stay_so)
{
    sorts_all_sizes(rising);
}

TEST(falling_keys_are_turned)
{
    sorts_all_sizes(falling);
}

TEST(every_peer_gets_its_keys_once)
{
    tn_arena *arena FREED(tn_arena_free) = tn_arena_new(1 << 16);
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
}
