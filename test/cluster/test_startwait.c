/* test_startwait.c - how long ranks wait for each other, on a clock of the test's own. */
#include "cluster/group/startwait.h"

#include "cluster/group/failure_detector.h"
#include "cluster/group/rendezvous.h"
#include "ps/shard/ownership.h"
#include "support/test.h"

#include <math.h>
#include <string.h>

enum { RANKS = 4 };

static const uint64_t s_ns = 1000000000;
static const uint64_t ms_ns = 1000000;
static const uint64_t look_ns = 100000000;

static tn_hello_note hello(uint64_t pid)
{
    return (tn_hello_note){.version = "1",
                           .host = "a",
                           .address = "ipc:///tmp/x.sock",
                           .config_hash = "c",
                           .structure = "s",
                           .cpu = "avx2",
                           .pid = pid,
                           .peers = RANKS};
}

/* A group of four whose rank r says hello r * apart_s after rank 0 began to wait; milliseconds
 * until it is whole, or until the patience is over: then minus that. `told` gets who was missing,
 * and when.
 */
static int64_t form(uint64_t patience_s, uint64_t apart_s, tn_text *told)
{
    tn_shares *shares = NULL;
    tn_forming *f = NULL;
    tn_startwait w;
    const tn_hello_note own = hello(1);
    const uint64_t begin = 12345 * s_ns;
    uint64_t now = begin;
    tn_startwait_verdict verdict = TN_STARTWAIT_ON;
    assert_int_equal(tn_shares_new(&shares, RANKS, 100, NULL), TN_OK);
    assert_int_equal(tn_forming_new(&f, &shares->owners, 1000, &own, NULL), TN_OK);
    tn_startwait_begin(&w, patience_s * s_ns, now);
    while (!tn_forming_is_whole(f) && verdict != TN_STARTWAIT_OVER) {
        now += look_ns;
        for (uint32_t r = 1; r < RANKS; r++) {
            if (now - begin >= r * apart_s * s_ns) { /* again and again */
                const tn_hello_note note = hello(r + 1);
                assert_int_equal(tn_forming_hello(f, r, 1000 + r, &note, told), 0);
            }
        }
        verdict = tn_startwait_look(&w, now);
        if (verdict == TN_STARTWAIT_TELL && !tn_forming_is_whole(f)) {
            tn_text_addf(told, "%.0f s: ", tn_startwait_s(&w));
            tn_forming_missing(f, told);
            tn_text_addc(told, '\n');
        }
    }
    const bool whole = tn_forming_is_whole(f);
    tn_forming_free(f);
    tn_shares_free(shares);
    return whole ? (int64_t)((now - begin) / ms_ns) : -llround(tn_startwait_s(&w) * 1e3);
}

static void c7_ranks_that_start_20_s_apart_form_a_group_after_60_s(void **state)
{
    (void)state;
    tn_text told = {0};
    assert_int_equal(form(120, 20, &told), 60000);
    assert_string_equal(tn_text_str(&told), "10 s: ranks 1..3\n20 s: ranks 2 and 3\n"
                                            "30 s: ranks 2 and 3\n40 s: rank 3\n50 s: rank 3\n");
    tn_text_done(&told);
}

static void c7_the_last_rank_may_come_two_minutes_after_the_first(void **state)
{
    (void)state;
    tn_text told = {0};
    assert_int_equal(form(120, 40, &told), 120000);
    tn_text_clear(&told);
    assert_int_equal(form(120, 41, &told), -120100);
    assert_non_null(strstr(tn_text_str(&told), "120 s: rank 3\n"));
    tn_text_done(&told);
}

static void time_in_which_the_process_was_stopped_does_not_count(void **state)
{
    (void)state;
    tn_startwait w;
    uint64_t now = 1;
    tn_startwait_begin(&w, 3 * s_ns, now);
    for (uint32_t i = 0; i < 3; i++) {
        now += 1000 * s_ns;
        assert_int_equal(tn_startwait_look(&w, now), TN_STARTWAIT_ON);
    }
    assert_int_equal(w.waited_ns, 3 * TN_PULSE_GAP_NS);
    assert_int_equal(tn_startwait_look(&w, now), TN_STARTWAIT_ON);
    assert_int_equal(tn_startwait_look(&w, now + 1), TN_STARTWAIT_OVER);
    assert_int_equal(tn_startwait_look(&w, now + 1), TN_STARTWAIT_OVER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c7_ranks_that_start_20_s_apart_form_a_group_after_60_s),
        cmocka_unit_test(c7_the_last_rank_may_come_two_minutes_after_the_first),
        cmocka_unit_test(time_in_which_the_process_was_stopped_does_not_count),
    };
    return cmocka_run_group_tests_name("ps/startwait", tests, NULL, NULL);
}
