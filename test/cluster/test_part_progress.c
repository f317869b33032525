/* test_part_progress.c - what a reader was dealt: in hand, over, told. */
#include "cluster/train/part_progress.h"

#include "support/test.h"

static void add(tn_part_progress *b, uint32_t part, uint32_t attempt, uint64_t position)
{
    const tn_ledger_deal deal = {.part = part, .attempt = attempt, .position = position};
    assert_int_equal(tn_part_progress_add(b, &deal, NULL), TN_OK);
}

static void assert_held(const tn_ledger_held *h, uint32_t part, uint32_t attempt, uint64_t position)
{
    assert_int_equal(h->part, part);
    assert_int_equal(h->attempt, attempt);
    assert_int_equal(h->position, position);
}

TEST(parts_are_in_hand_then_over_then_settled)
{
    tn_part_progress b;
    const tn_ledger_held *held = NULL;
    tn_part_progress_init(&b);
    assert_int_equal(tn_part_progress_held(&b, &held), 0);
    assert_int_equal(tn_part_progress_over(&b, &held), 0);
    add(&b, 7, 0, 0);
    add(&b, 3, 2, 40);
    add(&b, 9, 0, 0);
    assert_int_equal(tn_part_progress_held(&b, &held), 3);
    assert_held(&held[0], 7, 0, 0);
    assert_held(&held[1], 3, 2, 40);
    tn_part_progress_note(&b, &(tn_progress){.part = 1, .position = 300, .records = 210});
    assert_int_equal(b.records, 210);
    assert_int_equal(tn_part_progress_held(&b, &held), 3); /* over, but nobody knows */
    assert_held(&held[0], 7, 0, 0);
    assert_held(&held[1], 3, 2, 300);
    assert_int_equal(tn_part_progress_over(&b, &held), 1);
    assert_held(&held[0], 7, 0, 0);
    assert_int_equal(tn_part_progress_over(&b, &held), 1);
    tn_part_progress_settle(&b, 1);
    assert_int_equal(tn_part_progress_over(&b, &held), 0);
    assert_int_equal(tn_part_progress_held(&b, &held), 2);
    assert_held(&held[0], 3, 2, 300);
    tn_part_progress_flushed(&b, 3, 2, 300); /* one batch is still to be learned */
    assert_int_equal(tn_part_progress_over(&b, &held), 0);
    tn_part_progress_note(&b, &(tn_progress){.part = 2, .position = 5});
    assert_int_equal(tn_part_progress_over(&b, &held), 2);
    assert_held(&held[0], 3, 2, 300);
    assert_held(&held[1], 9, 0, 5);
    assert_int_equal(tn_part_progress_held(&b, &held), 2);
    add(&b, 4, 0, 0); /* of which no row is learned: it has none */
    assert_int_equal(tn_part_progress_held(&b, &held), 3);
    tn_part_progress_flushed(&b, 4, 2, 400);
    tn_part_progress_settle(&b, 2);
    assert_int_equal(b.records, 400);
    assert_int_equal(tn_part_progress_held(&b, &held), 1);
    assert_int_equal(tn_part_progress_over(&b, &held), 1);
    assert_held(&held[0], 4, 0, 0);
    tn_part_progress_done(&b);
}

TEST(parts_in_hand_are_taken_out_for_another_reader)
{
    tn_part_progress b;
    const tn_ledger_held *held = NULL;
    tn_ledger_held dropped;
    tn_part_progress_init(&b);
    for (uint32_t reader = 0; reader < 2; reader++) {
        add(&b, 7, 0, 0);
        add(&b, 3, 1, 20);
        add(&b, 9, 0, 0);
        tn_part_progress_note(&b, &(tn_progress){.part = 1, .position = 30});
        tn_part_progress_settle(&b, 1);
        assert_true(tn_part_progress_drop(&b, &dropped));
        assert_held(&dropped, 9, 0, 0);
        assert_true(tn_part_progress_drop(&b, &dropped));
        assert_held(&dropped, 3, 1, 30);
        assert_false(tn_part_progress_drop(&b, &dropped));
        assert_int_equal(tn_part_progress_held(&b, &held), 0);
        assert_int_equal(tn_part_progress_over(&b, &held), 0);
    }
    tn_part_progress_done(&b);
}

TEST(any_number_of_parts_is_kept)
{
    tn_part_progress b;
    const tn_ledger_held *held = NULL;
    tn_part_progress_init(&b);
    for (uint32_t i = 0; i < 1000; i++) {
        add(&b, 1000 - i, i % 3, i);
        tn_part_progress_note(&b, &(tn_progress){.part = i, .position = i + 1});
    }
    for (uint32_t i = 0; i < 999; i++) {
        assert_int_equal(tn_part_progress_over(&b, &held), 999 - i);
        assert_held(held, 1000 - i, i % 3, i + 1);
        tn_part_progress_settle(&b, 1);
    }
    assert_int_equal(tn_part_progress_held(&b, &held), 1);
    tn_part_progress_done(&b);
}
