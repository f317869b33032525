/* test_group.c - peers carry out orders, and know of each other. */
#include "base/core/clock.h"
#include "cluster/groupkit.h"
#include "support/test.h"

#include <string.h>

static void orders_are_carried_out_by_all_in_turn(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= GROUPKIT_RANKS; n++) {
        groupkit x;
        groupkit_seats s;
        groupkit_set(&x, n);
        groupkit_form(&x);
        groupkit_seat(&x, &s);
        uint64_t sum = 0;
        for (uint64_t i = 0; i < 5; i++) {
            assert_int_equal(groupkit_order(x.group[0], TN_ORDER_EVALUATE, i, "e", &sum, NULL),
                             TN_OK);
            assert_int_equal(groupkit_order(x.group[0], TN_ORDER_MARK, 7, "m", &sum, NULL), TN_OK);
        }
        assert_int_equal(sum, 10 * 10 * (n * (n - 1) / 2));
        const tn_order_note bye = {.what = TN_ORDER_BYE};
        assert_int_equal(tn_group_order(x.group[0], &bye, NULL), TN_OK);
        groupkit_join(&x, &s);
        for (uint32_t r = 1; r < n; r++) {
            assert_int_equal(s.f[r].status, TN_OK);
            assert_string_equal(s.f[r].texts, "e;m;e;m;e;m;e;m;e;m;");
        }
        groupkit_close(&x);
    }
}

static void an_order_that_failed_names_its_rank(void **state)
{
    (void)state;
    groupkit x;
    groupkit_seats s;
    groupkit_set(&x, 2);
    groupkit_form(&x);
    groupkit_seat(&x, &s);
    uint64_t sum = 0;
    tn_error err = {0};
    assert_int_equal(groupkit_order(x.group[0], TN_ORDER_MARK, 1, "fail", &sum, &err), TN_E_IO);
    assert_string_equal(err.text, "rank 1: disk full");
    assert_int_equal(groupkit_order(x.group[0], TN_ORDER_MARK, 2, "ok", &sum, &err), TN_OK);
    tn_group_fail(x.group[0], TN_E_DATA, "no such file 'x'");
    groupkit_join(&x, &s);
    assert_int_equal(s.f[1].status, TN_E_DATA);
    assert_string_equal(s.f[1].err.text, "rank 0: no such file 'x'");
    assert_true(tn_group_is_told_elsewhere(x.group[1]));
    assert_false(tn_group_is_told_elsewhere(x.group[0]));
    groupkit_close(&x);
}

static void what_ranks_say_is_known_to_rank_0(void **state)
{
    (void)state;
    groupkit x;
    groupkit_set(&x, 2);
    groupkit_form(&x);
    assert_false(tn_group_is_asked(x.group[0], TN_ASKS_STOP));
    const tn_beat_note beat = {.state = TN_PEER_TRAINING, .rows_per_s = 250, .asks = TN_ASKS_STOP};
    tn_group_tell(x.group[1], &beat, 12);
    const uint64_t until = tn_clock_ns() + 20000000000;
    while (tn_group_rate(x.group[0]) < 250 && tn_clock_ns() < until) {
    }
    assert_true(tn_group_rate(x.group[0]) >= 250);
    assert_true(tn_group_is_asked(x.group[0], TN_ASKS_STOP));
    tn_text table = {0};
    tn_group_table(x.group[0], &table);
    assert_non_null(strstr(tn_text_str(&table), " 12 "));
    tn_text_done(&table);
    groupkit_close(&x);
}

/* Of reports that came to rank 0. */
typedef struct reports {
    pthread_mutex_t lock;
    uint32_t n;
    uint64_t sum;
    bool whole; /* the bytes of all were there */
} reports;

static void note_report(void *arg, uint32_t rank, const tn_report_note *note)
{
    reports *x = arg;
    (void)pthread_mutex_lock(&x->lock);
    x->n++;
    x->sum += rank * note->samples;
    x->whole = x->whole && note->metrics.n == 3 && memcmp(note->metrics.at, "a\0b", 3) == 0;
    (void)pthread_mutex_unlock(&x->lock);
}

static bool has_reports(reports *x, uint32_t n)
{
    (void)pthread_mutex_lock(&x->lock);
    const bool all = x->n >= n;
    (void)pthread_mutex_unlock(&x->lock);
    return all;
}

static void reports_reach_rank_0_each_once(void **state)
{
    (void)state;
    enum { EACH = 50 };
    groupkit x;
    reports seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .whole = true};
    groupkit_set(&x, 3);
    groupkit_form(&x);
    tn_group_set_reports(x.group[0], note_report, &seen);
    for (uint64_t i = 1; i <= EACH; i++) {
        const tn_report_note note = {.number = i, .samples = i, .metrics = {"a\0b", 3}};
        tn_group_report(x.group[1], &note);
        tn_group_report(x.group[2], &note);
    }
    const uint64_t until = tn_clock_ns() + 20000000000;
    while (!has_reports(&seen, 2 * EACH) && tn_clock_ns() < until) {
    }
    tn_group_set_reports(x.group[0], NULL, NULL);
    const tn_report_note late = {.number = EACH + 1, .samples = 1000};
    tn_group_report(x.group[1], &late); /* nobody wants it */
    groupkit_close(&x);
    assert_int_equal(seen.n, 2 * EACH);
    assert_int_equal(seen.sum, 3 * EACH * (EACH + 1) / 2);
    assert_true(seen.whole);
    (void)pthread_mutex_destroy(&seen.lock);
}

/* Of tables that were shown. */
typedef struct shown {
    pthread_mutex_t lock;
    uint32_t n, n_naming; /* those that name whom rank 1 waits for */
} shown;

static void note_table(void *arg, const char *table)
{
    shown *s = arg;
    (void)pthread_mutex_lock(&s->lock);
    s->n++;
    s->n_naming += strstr(table, "training, waits for rank 0") != NULL;
    (void)pthread_mutex_unlock(&s->lock);
}

static bool is_enough(shown *s)
{
    (void)pthread_mutex_lock(&s->lock);
    bool enough = s->n >= 3 && s->n_naming >= 2;
    (void)pthread_mutex_unlock(&s->lock);
    return enough;
}

static uint32_t for_rank_0(void *arg)
{
    (void)arg;
    return 1;
}

static void the_table_is_shown_again_and_again_and_says_who_waits_for_whom(void **state)
{
    (void)state;
    groupkit x;
    shown s = {.n = 0};
    (void)pthread_mutex_init(&s.lock, NULL);
    groupkit_set(&x, 2);
    for (uint32_t r = 0; r < x.n; r++) {
        tn_group_opts opts = groupkit_opts(&x, r);
        if (r == 0) {
            opts.table = (tn_group_table_opts){note_table, &s, 1000000};
        }
        groupkit_open(&x, r, &opts);
    }
    for (uint32_t r = 0; r < x.n; r++) {
        assert_int_equal(tn_group_form(x.group[r], NULL, NULL), TN_OK);
    }
    const tn_group_values values = {.waits_for = for_rank_0};
    const tn_beat_note beat = {.state = TN_PEER_TRAINING};
    tn_group_set_values(x.group[1], &values);
    tn_group_tell(x.group[1], &beat, 12);
    const uint64_t until = tn_clock_ns() + 20000000000;
    while (!is_enough(&s) && tn_clock_ns() < until) {
    }
    assert_true(is_enough(&s));
    tn_group_set_values(x.group[1], NULL);
    groupkit_close(&x);
    (void)pthread_mutex_destroy(&s.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_are_carried_out_by_all_in_turn),
        cmocka_unit_test(an_order_that_failed_names_its_rank),
        cmocka_unit_test(what_ranks_say_is_known_to_rank_0),
        cmocka_unit_test(reports_reach_rank_0_each_once),
        cmocka_unit_test(the_table_is_shown_again_and_again_and_says_who_waits_for_whom),
    };
    return cmocka_run_group_tests_name("ps/group", tests, groupkit_set_up, groupkit_tear_down);
}
