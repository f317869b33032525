/* test_failure_detector_text.c - what a pulse says: sentences, totals, the table of the peers. */
#include "cluster/group/failure_detector.h"

#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define SECOND UINT64_C(1000000000)

static tn_pulse *open_pulse(uint32_t size)
{
    tn_pulse *p = NULL;
    const tn_pulse_opts opts = {.size = size, .gap_ns = 100 * SECOND};
    assert_int_equal(tn_pulse_new(&p, &opts, NULL), TN_OK);
    for (uint32_t r = 0; r < size; r++) {
        char host[16];
        (void)snprintf(host, sizeof host, "%c", 'a' + (char)r);
        tn_pulse_name(p, r, host, 4710 + r);
        if (r > 0) {
            tn_pulse_watch(p, r, 0);
        }
    }
    return p;
}

static void assert_event_text(tn_pulse *p, uint64_t now, const char *expected)
{
    tn_text text = {0};
    tn_pulse_event event;
    assert_true(tn_pulse_poll(p, now, &event));
    tn_pulse_event_text(p, &event, &text);
    assert_string_equal(tn_text_str(&text), expected);
    tn_text_done(&text);
}

static void assert_lost_text(const tn_pulse *p, uint32_t rank, uint64_t now, const char *expected)
{
    tn_text text = {0};
    tn_pulse_lost_text(p, rank, now, &text);
    assert_string_equal(tn_text_str(&text), expected);
    tn_text_done(&text);
}

static void sentences_name_rank_host_process_and_step(void **state)
{
    (void)state;
    tn_pulse *p = open_pulse(2);
    tn_pulse_event event;
    const tn_beat_note beat = {.state = TN_PEER_TRAINING, .waits_for = 1};
    tn_pulse_heard(p, 1, &beat, 310, SECOND);
    assert_event_text(p, 6 * SECOND,
                      "rank 1 (host 'b', pid 4711) has been silent for 5.0 s, at step 310");
    tn_pulse_heard(p, 1, &beat, 310, 8 * SECOND + 300 * MS);
    assert_event_text(p, 8 * SECOND + 400 * MS,
                      "rank 1 (host 'b', pid 4711) is heard again after 7.3 s, at step 310");
    assert_false(tn_pulse_poll(p, 8 * SECOND + 400 * MS, &event));
    tn_pulse_heard(p, 1, &beat, 310, 31 * SECOND);
    assert_event_text(p, 31 * SECOND,
                      "rank 1 (host 'b', pid 4711) has stood at step 310 for 30.0 s and waits for "
                      "rank 0");
    assert_event_text(p, 46 * SECOND + 200 * MS,
                      "rank 1 (host 'b', pid 4711) has been silent for 15.2 s, at step 310");
    assert_event_text(p, 46 * SECOND + 200 * MS,
                      "rank 1 (host 'b', pid 4711) was last heard of 15.2 s ago at step 310");
    assert_lost_text(p, 1, 47 * SECOND,
                     "rank 1 (host 'b', pid 4711) was last heard of 16.0 s ago at step 310");
    tn_pulse_free(p);
}

/* Beats come once a second, pushes with every step; what a rank calls its steps is its own affair.
 */
static void a_lost_rank_is_told_with_the_step_of_its_last_push(void **state)
{
    (void)state;
    tn_pulse *p = open_pulse(2);
    const tn_beat_note beat = {.state = TN_PEER_TRAINING};
    tn_pulse_heard(p, 1, &beat, 0, SECOND);
    tn_pulse_pushed(p, 1, 70);
    assert_lost_text(p, 1, 2 * SECOND,
                     "rank 1 (host 'b', pid 4711) was last heard of 1.0 s ago at step 0");
    tn_pulse_pushed(p, 1, 71);
    tn_pulse_pushed(p, 1, 72);
    tn_pulse_pushed(p, 1, 71); /* once more */
    assert_lost_text(p, 1, 2 * SECOND,
                     "rank 1 (host 'b', pid 4711) was last heard of 1.0 s ago at step 2");
    tn_pulse_heard(p, 1, &beat, 3, 2 * SECOND);
    assert_lost_text(p, 1, 3 * SECOND,
                     "rank 1 (host 'b', pid 4711) was last heard of 1.0 s ago at step 3");
    tn_pulse_pushed(p, 1, 80);
    assert_event_text(p, 8 * SECOND,
                      "rank 1 (host 'b', pid 4711) has been silent for 6.0 s, at step 11");
    tn_pulse_free(p);
}

static void what_is_not_known_is_left_out(void **state)
{
    (void)state;
    tn_pulse *p = open_pulse(3);
    const tn_beat_note beat = {.state = TN_PEER_TRAINING};
    tn_pulse_name(p, 1, "", 0);
    tn_pulse_name(p, 2, "c", 0);
    assert_lost_text(p, 1, 15 * SECOND, "rank 1 was not heard of in 15.0 s");
    tn_pulse_heard(p, 1, NULL, 310, SECOND);
    assert_lost_text(p, 1, 2 * SECOND, "rank 1 was last heard of 1.0 s ago");
    assert_lost_text(p, 1, 0, "rank 1 was last heard of 0.0 s ago");
    assert_lost_text(p, 2, 0, "rank 2 (host 'c') was not heard of in 0.0 s");
    tn_pulse_heard(p, 1, &beat, 0, SECOND);
    tn_pulse_heard(p, 1, &beat, 0, 31 * SECOND);
    assert_event_text(p, 31 * SECOND, "rank 1 has stood at step 0 for 30.0 s");
    tn_pulse_free(p);
}

static void c8_hosts_are_cut_and_made_printable(void **state)
{
    (void)state;
    tn_pulse *p = open_pulse(2);
    char longest[200];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    tn_pulse_name(p, 1, "b\nrank 0\x7f \xc3\xa4", 1);
    assert_lost_text(p, 1, 0,
                     "rank 1 (host 'b?rank 0? ?"
                     "?', pid 1) was not heard of in 0.0 s");
    tn_pulse_name(p, 1, longest, 0);
    char expected[200];
    (void)snprintf(expected, sizeof expected, "rank 1 (host '%.63s') was not heard of in 0.0 s",
                   longest);
    assert_lost_text(p, 1, 0, expected);
    tn_pulse_free(p);
}

static void the_table_has_a_line_for_each_rank_and_one_of_sums(void **state)
{
    (void)state;
    tn_pulse *p = open_pulse(6);
    tn_beat_note beat = {.state = TN_PEER_TRAINING,
                         .records = 1000,
                         .rss_bytes = UINT64_C(1200) * 1000 * 1000,
                         .rows_per_s = 12345,
                         .waiting = .25};
    tn_pulse_heard(p, 0, &beat, 310, SECOND);
    beat.waits_for = 6;
    beat.rows_per_s = 655;
    beat.waiting = .5;
    tn_pulse_heard(p, 1, &beat, 311, SECOND);
    beat.bytes_out = 3500000;
    beat.bytes_in = 250000;
    tn_pulse_heard(p, 1, &beat, 312, 2 * SECOND);
    beat.state = TN_PEER_WAITING;
    beat.waits_for = 1;
    tn_pulse_heard(p, 2, &beat, 0, SECOND);
    tn_pulse_unwatch(p, 3);
    tn_pulse_heard(p, 5, &beat, 9, SECOND);
    tn_pulse_event event;
    tn_pulse_heard(p, 1, NULL, 0, 9 * SECOND);
    tn_pulse_heard(p, 2, NULL, 0, 9 * SECOND);
    while (tn_pulse_poll(p, 9 * SECOND, &event)) {
        assert_int_equal(event.kind, TN_PULSE_SUSPECT);
        assert_true(event.rank == 4 || event.rank == 5);
    }
    tn_text text = {0};
    tn_pulse_table(p, 9 * SECOND, &text);
    assert_string_equal(
        tn_text_str(&text),
        "rank  host                  step    rows/s  waiting  MB/s out      in    RSS MB  state\n"
        "   0  a                      310     12345      25%       0.0     0.0      1200  "
        "training\n"
        "   1  b                      312       655      50%       3.5     0.2      1200  "
        "training, "
        "waits for rank 5\n"
        "   2  c                        0       655      50%       0.0     0.0      1200  waiting "
        "for rank 0\n"
        "   3  d                        0         0       0%       0.0     0.0         0  left\n"
        "   4  e                        0         0       0%       0.0     0.0         0  silent "
        "for 9.0 s\n"
        "   5  f                        9       655      50%       0.0     0.0      1200  silent "
        "for 8.0 s\n"
        " all                                 13655      42%       3.5              3600  3 of 6 "
        "at "
        "work\n");
    tn_text_done(&text);
    tn_pulse_free(p);
}

static void the_table_tells_who_is_lost_and_who_has_not_beaten_yet(void **state)
{
    (void)state;
    tn_pulse *p = open_pulse(3);
    tn_pulse_event event;
    tn_pulse_heard(p, 2, NULL, 0, 15 * SECOND);
    while (tn_pulse_poll(p, 15 * SECOND, &event)) {
        assert_int_equal(event.rank, 1);
    }
    tn_text text = {0};
    tn_pulse_table(p, 15 * SECOND, &text);
    assert_null(strstr(text.data, "\n   0")); /* nothing is known of itself */
    assert_non_null(strstr(text.data, "  lost\n"));
    assert_non_null(strstr(text.data, "  no heartbeat yet\n"));
    assert_non_null(strstr(text.data, "  0 of 3 at work\n"));
    tn_text_done(&text);
    tn_pulse_free(p);
}

static void every_state_has_a_name(void **state)
{
    (void)state;
    const char *names[TN_PEER_STATES] = {"loading", "training",   "waiting", "drained",
                                         "saving",  "evaluating", "ending"};
    for (uint64_t s = 0; s < TN_PEER_STATES; s++) {
        tn_pulse *p = open_pulse(1);
        const tn_beat_note beat = {.state = s};
        tn_pulse_heard(p, 0, &beat, 1, 0);
        tn_text text = {0};
        char end[40];
        tn_pulse_table(p, 0, &text);
        (void)snprintf(end, sizeof end, "0  %s\n all", names[s]);
        assert_non_null(strstr(text.data, end));
        tn_text_done(&text);
        tn_pulse_free(p);
    }
}

static void m4_sums_leave_out_who_is_silent_and_believe_no_absurd_figure(void **state)
{
    (void)state;
    tn_pulse *p = open_pulse(4);
    tn_pulse_totals t;
    tn_pulse_totals_of(p, &t);
    assert_int_equal(t.ranks, 0);
    assert_true(t.waiting == 0);
    tn_beat_note beat = {.records = 5, .rows_per_s = 100, .waiting = .5};
    tn_pulse_heard(p, 0, &beat, 1, SECOND);
    beat.rows_per_s = -1e300;
    beat.waiting = 1e300;
    beat.waits_for = UINT64_MAX;
    tn_pulse_heard(p, 1, &beat, 1, SECOND);
    beat.rows_per_s = 1e300;
    beat.waiting = -1;
    tn_pulse_heard(p, 2, &beat, 1, SECOND);
    tn_pulse_totals_of(p, &t);
    assert_int_equal(t.ranks, 3);
    assert_int_equal(t.records, 15);
    assert_true(t.rows_per_s == 1e12 + 100);
    assert_true(t.waiting == .5);
    tn_text text = {0};
    tn_pulse_table(p, SECOND, &text);
    assert_null(strstr(text.data, "waits"));
    tn_text_done(&text);
    tn_pulse_event event;
    tn_pulse_heard(p, 1, NULL, 0, 6 * SECOND);
    while (tn_pulse_poll(p, 6 * SECOND, &event)) {
    }
    tn_pulse_totals_of(p, &t); /* rank 2 is silent */
    assert_int_equal(t.ranks, 2);
    assert_true(t.rows_per_s == 100);
    tn_pulse_free(p);
}

static void rates_of_bytes_are_of_half_a_second_at_least(void **state)
{
    (void)state;
    tn_pulse *p = open_pulse(1);
    tn_pulse_totals t;
    tn_beat_note beat = {.bytes_out = 1000};
    tn_pulse_heard(p, 0, &beat, 0, 5 * SECOND);
    tn_pulse_totals_of(p, &t);
    assert_true(t.bytes_per_s == 0); /* since when is not known */
    beat.bytes_out = 3000;
    tn_pulse_heard(p, 0, &beat, 0, 6 * SECOND);
    tn_pulse_totals_of(p, &t);
    assert_true(fabs(t.bytes_per_s - 2000) < 1e-9);
    beat.bytes_out = 900000;
    tn_pulse_heard(p, 0, &beat, 0, 6 * SECOND); /* two at the same moment */
    tn_pulse_heard(p, 0, &beat, 0, 6 * SECOND + 499 * MS);
    tn_pulse_totals_of(p, &t);
    assert_true(fabs(t.bytes_per_s - 2000) < 1e-9);
    beat.bytes_out = 4000;
    tn_pulse_heard(p, 0, &beat, 0, 6 * SECOND + 500 * MS);
    tn_pulse_totals_of(p, &t);
    assert_true(fabs(t.bytes_per_s - 2000) < 1e-9); /* 1000 in half a second */
    beat.bytes_out = 0;                             /* its counts went back */
    tn_pulse_heard(p, 0, &beat, 0, 8 * SECOND);
    tn_pulse_totals_of(p, &t);
    assert_true(t.bytes_per_s == 0);
    tn_pulse_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sentences_name_rank_host_process_and_step),
        cmocka_unit_test(a_lost_rank_is_told_with_the_step_of_its_last_push),
        cmocka_unit_test(what_is_not_known_is_left_out),
        cmocka_unit_test(c8_hosts_are_cut_and_made_printable),
        cmocka_unit_test(the_table_has_a_line_for_each_rank_and_one_of_sums),
        cmocka_unit_test(the_table_tells_who_is_lost_and_who_has_not_beaten_yet),
        cmocka_unit_test(every_state_has_a_name),
        cmocka_unit_test(m4_sums_leave_out_who_is_silent_and_believe_no_absurd_figure),
        cmocka_unit_test(rates_of_bytes_are_of_half_a_second_at_least),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
