/* test_totals.c - totals are exact, however reports travel. */
#include "cluster/ledger/totals.h"

#include "base/math/rng.h"
#include "support/test.h"

enum { RANKS = 5, REPORTS = 40 };

static void is_sum(const tn_totals *t, uint64_t records, uint64_t samples, uint64_t bad)
{
    tn_read_total sum = tn_totals_sum(t);
    assert_int_equal(sum.records, records);
    assert_int_equal(sum.samples, samples);
    assert_int_equal(sum.bad, bad);
}

static tn_read_total so_far(uint64_t n)
{
    return (tn_read_total){.records = 10 * n, .samples = 9 * n, .bad = n};
}

static bool put(tn_totals *t, uint32_t rank, uint64_t incarnation, uint64_t sequence)
{
    tn_read_total report = so_far(sequence);
    return tn_totals_put(t, rank, incarnation, sequence, &report);
}

static void m4_dropped_repeated_and_reordered_reports_leave_totals_exact(void **state)
{
    (void)state;
    tn_totals *t = tn_totals_new(RANKS);
    const uint64_t stream = tn_stream2(3, TN_RNG_GENERATE, 0);
    uint64_t newest[RANKS] = {0};
    for (uint32_t r = 0; r < RANKS; r++) {
        tn_totals_begin(t, r, r + 1);
    }
    for (uint32_t i = 0; i < 10 * REPORTS; i++) {
        uint64_t x = tn_draw(stream, i);
        uint32_t rank = (uint32_t)tn_below(x, RANKS);
        uint64_t sequence = 1 + tn_below(tn_mix(x), REPORTS);
        assert_int_equal(put(t, rank, rank + 1, sequence), sequence > newest[rank]);
        newest[rank] = sequence > newest[rank] ? sequence : newest[rank];
        uint64_t n = 0;
        for (uint32_t r = 0; r < RANKS; r++) {
            n += newest[r];
        }
        is_sum(t, 10 * n, 9 * n, n);
    }
    tn_totals_free(t);
}

static void m4_a_silent_rank_is_not_added_again(void **state)
{
    (void)state;
    tn_totals *t = tn_totals_new(2);
    tn_totals_begin(t, 0, 7);
    tn_totals_begin(t, 1, 8);
    assert_true(put(t, 0, 7, 3));
    for (uint64_t i = 1; i < 20; i++) {
        assert_true(put(t, 1, 8, i));
        is_sum(t, 10 * (3 + i), 9 * (3 + i), 3 + i);
    }
    tn_totals_free(t);
}

static void what_a_former_start_reported_stays(void **state)
{
    (void)state;
    tn_totals *t = tn_totals_new(2);
    assert_false(put(t, 1, 0, 1));
    assert_false(put(t, 1, 5, 1));
    tn_totals_begin(t, 1, 5);
    assert_true(put(t, 1, 5, 4));
    tn_totals_begin(t, 1, 6);
    is_sum(t, 40, 36, 4);
    assert_false(put(t, 1, 5, 9)); /* it is gone, though its report was under way */
    assert_true(put(t, 1, 6, 1));
    is_sum(t, 50, 45, 5);
    tn_totals_free(t);
}

static void a_rollback_goes_back_to_what_the_checkpoint_had_read(void **state)
{
    (void)state;
    tn_totals *t = tn_totals_new(2);
    tn_totals_begin(t, 0, 5);
    tn_totals_begin(t, 1, 6);
    assert_true(put(t, 0, 5, 4));
    const tn_read_total base = so_far(2);
    tn_totals_restore(t, &base);
    is_sum(t, 20, 18, 2);
    assert_false(put(t, 0, 5, 5));
    tn_totals_begin(t, 0, 5);
    assert_true(put(t, 0, 5, 1));
    is_sum(t, 30, 27, 3);
    tn_totals_free(t);
    tn_totals_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(m4_dropped_repeated_and_reordered_reports_leave_totals_exact),
        cmocka_unit_test(m4_a_silent_rank_is_not_added_again),
        cmocka_unit_test(what_a_former_start_reported_stays),
        cmocka_unit_test(a_rollback_goes_back_to_what_the_checkpoint_had_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
