/* test_ledgersave.c - the ledger in a manifest: nothing is forgotten, what does not fit is refused.
 */
#include "cluster/ledger/ledger.h"

#include "support/test.h"

CLOSER(tn_ledger_free);

enum { RANKS = 2, PARTS = 6, EPOCH = 1 };

/* Two sources in the order of an epoch that shuffles: source 0 has 0 10 20 35, source 7 is one
 * empty part, source 9 cannot be cut and has one more that is empty. */
static const tn_ledger_span spans[PARTS] = {
    {9, 0, UINT64_MAX}, {0, 20, 35}, {0, 0, 10}, {7, 0, 0}, {0, 10, 20}, {0, 35, 35},
};

static tn_ledger *open_ledger(tn_ledger_mode mode)
{
    const tn_ledger_opts opts = {
        .epoch = EPOCH, .ranks = RANKS, .n_parts = PARTS, .mode = mode, .part = spans};
    tn_ledger *l = NULL;
    assert_int_equal(tn_ledger_new(&l, &opts, NULL), TN_OK);
    return l;
}

static tn_ledger_deal deal_to(tn_ledger *l, uint32_t rank, uint64_t id)
{
    tn_ledger_deal deal = {0};
    assert_int_equal(tn_ledger_ask(l, rank, EPOCH, id, 0, &deal), TN_LEDGER_PART);
    return deal;
}

static void is_row(const tn_epoch_part *a, tn_epoch_part b)
{
    assert_int_equal(a->source, b.source);
    assert_int_equal(a->begin, b.begin);
    assert_int_equal(a->end, b.end);
    assert_int_equal(a->state, b.state);
    assert_int_equal(a->attempt, b.attempt);
    assert_int_equal(a->position, b.position);
}

/* Part 0 is dealt and at record 33, part 1 free under attempt 1 from record 4 on; 2, 3, 4, 5 done.
 */
static tn_ledger *in_the_middle(void)
{
    tn_ledger *l = open_ledger(TN_LEDGER_ON_REQUEST);
    deal_to(l, 0, 1);
    deal_to(l, 1, 1);
    for (uint32_t part = 2; part < PARTS; part++) {
        assert_int_equal(deal_to(l, 1, part).part, part);
        assert_true(tn_ledger_done(l, 1, part, 0, 1));
    }
    const tn_ledger_held zero = {.rank = 0, .part = 0, .position = 33};
    tn_ledger_claim(l, 0, &zero, 1, 1);
    const tn_ledger_held one = {.rank = 1, .part = 1, .position = 4};
    assert_true(tn_ledger_returned(l, &one));
    return l;
}

static uint32_t saved_rows(tn_epoch_part row[PARTS])
{
    tn_ledger *l FREED(tn_ledger_free) = in_the_middle();
    uint32_t n = tn_ledger_save(l, row);
    return n;
}

TEST(parts_are_saved_by_place_with_done_ones_merged)
{
    tn_epoch_part row[PARTS];
    assert_int_equal(saved_rows(row), 5);
    is_row(&row[0], (tn_epoch_part){0, 0, 20, TN_PART_DONE, 0, 0});
    is_row(&row[1], (tn_epoch_part){0, 20, 35, TN_PART_FREE, 1, 4});
    is_row(&row[2], (tn_epoch_part){0, 35, 35, TN_PART_DONE, 0, 0});
    is_row(&row[3], (tn_epoch_part){7, 0, 0, TN_PART_DONE, 0, 0});
    is_row(&row[4], (tn_epoch_part){9, 0, UINT64_MAX, TN_PART_DEALT, 0, 33});
}

TEST(a_restored_ledger_deals_what_was_not_done_from_its_positions)
{
    tn_epoch_part row[PARTS];
    uint32_t n = saved_rows(row);
    tn_ledger *l FREED(tn_ledger_free) = open_ledger(TN_LEDGER_ON_REQUEST);
    deal_to(l, 0, 8);
    assert_int_equal(tn_ledger_restore(l, row, n, NULL), TN_OK);
    tn_ledger_deal a = deal_to(l, 1, 1);
    assert_int_equal(a.part, 0);
    assert_int_equal(a.attempt, 1);
    assert_int_equal(a.position, 33);
    tn_ledger_deal b = deal_to(l, 0, 1); /* its ids began anew */
    assert_int_equal(b.part, 1);
    assert_int_equal(b.attempt, 1);
    assert_int_equal(b.position, 4);
    assert_false(tn_ledger_done(l, 0, 0, 0, 1)); /* of the time before */
    assert_true(tn_ledger_done(l, 1, 0, 1, 1));
    assert_true(tn_ledger_done(l, 0, 1, 1, 1));
    assert_true(tn_ledger_is_over(l));
    assert_int_equal(tn_ledger_save(l, row), 3);
}

TEST(a_restored_ledger_by_rule_leaves_out_what_is_done)
{
    tn_epoch_part row[PARTS];
    uint32_t n = saved_rows(row);
    tn_ledger *l FREED(tn_ledger_free) = open_ledger(TN_LEDGER_BY_RULE);
    assert_int_equal(tn_ledger_restore(l, row, n, NULL), TN_OK);
    assert_int_equal(deal_to(l, 1, 1).part, 1);
    assert_int_equal(deal_to(l, 0, 1).part, 0);
    tn_ledger_deal deal;
    assert_int_equal(tn_ledger_ask(l, 0, EPOCH, 2, 0, &deal), TN_LEDGER_NO_MORE);
}

TEST(rows_may_come_in_any_order)
{
    tn_epoch_part row[PARTS];
    tn_epoch_part again[PARTS];
    uint32_t n = saved_rows(row);
    for (uint32_t i = 0; i < n; i++) {
        again[i] = row[n - 1 - i];
    }
    tn_ledger *l FREED(tn_ledger_free) = open_ledger(TN_LEDGER_ON_REQUEST);
    assert_int_equal(tn_ledger_restore(l, again, n, NULL), TN_OK);
    assert_int_equal(tn_ledger_save(l, again), n);
    is_row(&again[0], row[0]);
    is_row(&again[4], (tn_epoch_part){9, 0, UINT64_MAX, TN_PART_FREE, 1, 33});
}

/* Restores rows that do not fit over a ledger in use, which must not change. */
static void is_refused(const tn_epoch_part *row, uint32_t n, const char *words)
{
    tn_ledger *l FREED(tn_ledger_free) = in_the_middle();
    tn_epoch_part before[PARTS];
    tn_epoch_part after[PARTS];
    uint32_t n_before = tn_ledger_save(l, before);
    tn_error err = {0};
    assert_int_equal(tn_ledger_restore(l, row, n, &err), TN_E_CKPT);
    assert_non_null(strstr(err.text, words));
    assert_int_equal(tn_ledger_save(l, after), n_before);
    for (uint32_t i = 0; i < n_before; i++) {
        is_row(&after[i], before[i]);
    }
    assert_true(tn_ledger_done(l, 0, 0, 0, 1)); /* still held */
}

TEST(other_parts_are_refused)
{
    tn_epoch_part row[PARTS];
    uint32_t n = saved_rows(row);
    is_refused(row, n - 1,
               "does not know a part of the data: source 9, bytes 0 to 184467440737095");
    is_refused(row, 0, "does not know");
    tn_epoch_part good = row[0];
    row[0].end = 25; /* inside a part */
    is_refused(row, n, "not those of the data: source 0, bytes 0 to 25");
    row[0] = good;
    row[0].begin = 5;
    is_refused(row, n, "bytes 5 to 20");
    row[0] = good;
    row[0].end = 35; /* a second time */
    is_refused(row, n, "bytes 20 to 35");
    row[0] = good;
    row[0].state = TN_PART_FREE; /* two parts in one row that is not done */
    is_refused(row, n, "bytes 0 to 20");
    row[0] = good;
    row[3].source = 8;
    is_refused(row, n, "source 8, bytes 0 to 0");
}

TEST(without_memory_nothing_is_changed)
{
    tn_epoch_part row[PARTS];
    uint32_t n = saved_rows(row);
    tn_ledger *l FREED(tn_ledger_free) = in_the_middle();
    tn_error err = {0};
    tn_alloc_fail_at(1);
    assert_int_equal(tn_ledger_restore(l, row, n, &err), TN_E_MEMORY);
    tn_alloc_fail_at(0);
    assert_true(tn_ledger_done(l, 0, 0, 0, 1));
}
