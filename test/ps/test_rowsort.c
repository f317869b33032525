/* test_rowsort.c - rows in key order: keys that are mixed, keys that are not, and equal ones. */
#include "ps/table/tabledef.h"

#include "base/math/key.h"
#include "ps/table/row.h"
#include "support/test.h"

enum { MOST = 70000 };

typedef struct rows {
    tn_row_entry *both; /* 2 MOST */
    tn_row *row;        /* MOST; where an entry stood at first is told by which row it names */
} rows;

SET_UP
{
    rows *r = tn_alloc(1, sizeof *r, "a fixture");
    r->both = tn_alloc((size_t)2 * MOST, sizeof *r->both, "entries");
    r->row = tn_alloc(MOST, sizeof *r->row, "rows");
    *state = r;
}

TEAR_DOWN
{
    rows *r FREED(tn_free) = *state;
    tn_free(r->both);
    tn_free(r->row);
}

typedef uint64_t key_fn(uint32_t i);

/* Sorts n keys; then they ascend, equal ones are as they came, and none is missing. */
static void sorts(const rows *r, uint32_t n, key_fn *key)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        r->both[i] = (tn_row_entry){key(i), &r->row[i]};
        sum += tn_mix(i);
    }
    const tn_row_entry *sorted = tn_rows_sort(r->both, n);
    assert_true(sorted == r->both || sorted == r->both + n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t came = (uint32_t)(sorted[i].row - r->row);
        assert_true(came < n && sorted[i].key == key(came));
        sum -= tn_mix(came);
        if (i > 0) {
            assert_true(sorted[i - 1].key <= sorted[i].key);
            assert_true(sorted[i - 1].key < sorted[i].key || sorted[i - 1].row < sorted[i].row);
        }
    }
    assert_true(sum == 0);
}

static void sorts_all_sizes(const rows *r, key_fn *key)
{
    static const uint32_t size[] = {1, 2, 3, 31, 32, 33, 34, 100, 1000, 4097, 9999, MOST};
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
        sorts(r, size[i], key);
    }
}

/* As the table has them: of one partition, mixed below that. */
static uint64_t mixed(uint32_t i)
{
    return UINT64_C(586) << 54 | tn_mix(i) >> 10;
}

static uint64_t descending(uint32_t i)
{
    return UINT64_MAX - i;
}

static uint64_t all_equal(uint32_t i)
{
    (void)i;
    return 7;
}

static uint64_t few_values(uint32_t i)
{
    return tn_mix(i) % 5 << 40;
}

/* The uppermost bits say nothing: one key apart makes them differ. */
static uint64_t low_bits_only(uint32_t i)
{
    return i == 0 ? UINT64_MAX : tn_mix(i) & 0xfffff;
}

static uint64_t all_bits(uint32_t i)
{
    return tn_mix(i);
}

TEST(keys_of_a_partition_are_sorted)
{
    sorts_all_sizes(*state, mixed);
    sorts_all_sizes(*state, all_bits);
}

TEST(keys_that_are_not_mixed_are_sorted_too)
{
    sorts_all_sizes(*state, descending);
    sorts_all_sizes(*state, low_bits_only);
}

TEST(equal_keys_keep_their_order)
{
    sorts_all_sizes(*state, all_equal);
    sorts_all_sizes(*state, few_values);
}
