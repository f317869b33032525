/* test_group.c - peers carry out orders, know of each other, and end with one sentence. */
#include "support/test.h"

#include "base/core/clock.h"
#include "cluster/groupkit.h"
#include "cluster/wire/request_headers.h"

#include <sys/socket.h>
#include <unistd.h>

GROUP(groupkit_set_up, groupkit_tear_down);

TEST(orders_are_carried_out_by_all_in_turn)
{
    for (uint32_t n = 2; n <= GROUPKIT_RANKS; n++) {
        groupkit x CLEANUP(groupkit_close);
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
    }
}

TEST(an_order_that_failed_names_its_rank)
{
    groupkit_seats s;
    groupkit x CLEANUP(groupkit_close);
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
    assert_true(tn_group_is_reported_elsewhere(x.group[1], TN_E_DATA));
    assert_false(tn_group_is_reported_elsewhere(x.group[0], TN_E_DATA));
}

TEST(a_rank_reports_its_failure_after_another_was_stopped)
{
    groupkit_seats s;
    groupkit x CLEANUP(groupkit_close);
    groupkit_set(&x, 2);
    groupkit_form(&x);
    groupkit_seat(&x, &s);
    tn_group_fail(x.group[1], TN_E_STOPPED, "stopped by a signal");
    const tn_order_note order = {.what = TN_ORDER_EVALUATE};
    tn_status status = tn_group_order(x.group[0], &order, NULL);
    status = status == TN_OK ? tn_group_await(x.group[0], &order, NULL, NULL, NULL) : status;
    assert_int_equal(status, TN_E_STOPPED);
    tn_group_fail(x.group[0], TN_E_CKPT, "the run directory is in use");
    groupkit_join(&x, &s);
    assert_false(tn_group_is_reported_elsewhere(x.group[0], TN_E_CKPT));
    assert_true(tn_group_is_reported_elsewhere(x.group[0], TN_E_STOPPED));
}

/* The rows per second of all ranks, in the last line of the table of rank 0. */
static double rate_of(tn_group *g)
{
    tn_text table CLEANUP(tn_text_done) = {0};
    tn_group_table(g, &table);
    const char *all = strstr(tn_text_str(&table), "\n all ");
    assert_non_null(all);
    const double rate = strtod(all + strlen("\n all "), NULL);
    return rate;
}

TEST(what_ranks_say_is_known_to_rank_0)
{
    groupkit x CLEANUP(groupkit_close);
    groupkit_set(&x, 2);
    groupkit_form(&x);
    assert_false(tn_group_is_asked(x.group[0], TN_ASKS_STOP));
    const tn_beat_note beat = {.state = TN_PEER_TRAINING, .rows_per_s = 250, .asks = TN_ASKS_STOP};
    tn_group_set_beat(x.group[1], &beat, 12);
    const uint64_t until = tn_clock_ns() + 60000000000;
    while (rate_of(x.group[0]) < 250 && tn_clock_ns() < until) {
    }
    assert_true(rate_of(x.group[0]) >= 250);
    assert_true(tn_group_is_asked(x.group[0], TN_ASKS_STOP));
    tn_text table CLEANUP(tn_text_done) = {0};
    tn_group_table(x.group[0], &table);
    assert_non_null(strstr(tn_text_str(&table), " 12 "));
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

TEST(reports_reach_rank_0_each_once)
{
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
    const uint64_t until = tn_clock_ns() + 60000000000;
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

TEST(the_table_is_shown_again_and_again_and_says_who_waits_for_whom)
{
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
    tn_group_set_beat(x.group[1], &beat, 12);
    const uint64_t until = tn_clock_ns() + 60000000000;
    while (!is_enough(&s) && tn_clock_ns() < until) {
    }
    assert_true(is_enough(&s));
    tn_group_set_values(x.group[1], NULL);
    groupkit_close(&x);
    (void)pthread_mutex_destroy(&s.lock);
}

TEST(a_run_that_ends_by_a_failed_order_is_told_where_it_failed)
{
    groupkit_seats s;
    groupkit x CLEANUP(groupkit_close);
    groupkit_set(&x, 3);
    groupkit_form(&x);
    groupkit_seat(&x, &s);
    uint64_t sum = 0;
    tn_error err = {0};
    assert_int_equal(groupkit_order(x.group[0], TN_ORDER_MARK, 1, "fail", &sum, &err), TN_E_IO);
    tn_error_context(&err, "cannot save");
    tn_group_fail(x.group[0], TN_E_IO, err.text);
    groupkit_join(&x, &s);
    assert_string_equal(s.f[1].err.text, "cannot save: rank 1: disk full");
    assert_string_equal(s.f[2].err.text, "cannot save: rank 1: disk full");
    for (uint32_t r = 0; r < x.n; r++) {
        assert_true(tn_group_is_reported_elsewhere(x.group[r], TN_E_IO) == (r != 1));
    }
}

static void note_end(void *arg, tn_status status, const char *why)
{
    (void)why;
    atomic_store((_Atomic tn_status *)arg, status);
}

TEST(a_rank_that_fails_ends_all)
{
    _Atomic tn_status told = TN_OK; /* before x, whose threads write it until x is closed */
    groupkit_seats s;
    groupkit x CLEANUP(groupkit_close);
    groupkit_set(&x, 3);
    groupkit_form(&x);
    const tn_group_values values = {.arg = &told, .ended = note_end};
    tn_group_set_values(x.group[0], &values);
    groupkit_seat(&x, &s);
    tn_group_fail(x.group[2], TN_E_DATA, "line 3: a sign of 99 digits");
    const tn_order_note order = {.what = TN_ORDER_EVALUATE};
    tn_error err = {0};
    tn_status status = tn_group_order(x.group[0], &order, &err);
    status = status == TN_OK ? tn_group_await(x.group[0], &order, NULL, NULL, &err) : status;
    assert_int_equal(status, TN_E_DATA);
    assert_string_equal(err.text, "rank 2: line 3: a sign of 99 digits");
    groupkit_join(&x, &s);
    assert_int_equal(s.f[1].status, TN_E_DATA);
    assert_string_equal(s.f[1].err.text, "rank 2: line 3: a sign of 99 digits");
    assert_int_equal(tn_group_check(x.group[1], NULL), TN_E_DATA);
    assert_int_equal(atomic_load(&told), TN_E_DATA);
    for (uint32_t r = 0; r < x.n; r++) {
        assert_true(tn_group_is_reported_elsewhere(x.group[r], TN_E_DATA) == (r != 2));
    }
}

TEST(a_rank_that_falls_silent_is_lost)
{
    groupkit x;
    groupkit_seats s;
    groupkit_silence("4");
    groupkit_set(&x, 3);
    groupkit_form(&x);
    tn_group *gone = x.group[2]; /* its link ends, and it says nothing */
    x.group[2] = NULL;
    tn_group_close(gone);
    x.n = 2;
    groupkit_seat(&x, &s);
    const tn_order_note order = {.what = TN_ORDER_EVALUATE};
    tn_error err = {0};
    assert_int_equal(tn_group_order(x.group[0], &order, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "rank 2 (host '"));
    assert_non_null(strstr(err.text, "is taken for lost"));
    groupkit_join(&x, &s);
    assert_int_equal(s.f[1].status, TN_E_PEER);
    assert_false(tn_group_is_reported_elsewhere(x.group[0], TN_E_PEER));
    assert_true(tn_group_is_reported_elsewhere(x.group[1], TN_E_PEER));
    groupkit_close(&x);
    groupkit_silence("2");
}

/* Rank 1: pushes between two beats, and then its net thread stands still. */
typedef struct stopper {
    tn_group *group;
    uint32_t n_ticks;
    atomic_bool goes_on;
} stopper;

static uint32_t push_and_stop(void *arg)
{
    enum { LAST = 5 };
    stopper *s = arg;
    s->n_ticks++;
    for (uint64_t step = 7; s->n_ticks == LAST && step < 10; step++) {
        tn_out_message *p = NULL;
        tn_out_messages *pool = tn_group_out_messages(s->group);
        assert_int_equal(tn_out_message_take(&p, pool, TN_PUSH_PARAMS, NULL), TN_OK);
        memset(tn_out_message_payload(p), 0, TN_PUSH_PARAMS);
        p->frame.type = TN_FRAME_PUSH;
        p->frame.step = step;
        tn_link_post(tn_group_link(s->group), 0, p);
    }
    while (s->n_ticks > LAST && !atomic_load(&s->goes_on)) {
        (void)usleep(1000);
    }
    return 0;
}

TEST(the_step_of_a_lost_rank_is_that_of_its_last_push)
{
    groupkit x;
    groupkit_silence("4");
    groupkit_set(&x, 2);
    groupkit_form(&x);
    stopper s = {.group = x.group[1]};
    const tn_beat_note beat = {.state = TN_PEER_TRAINING};
    const tn_group_values values = {.arg = &s, .waits_for = push_and_stop};
    tn_group_set_beat(x.group[1], &beat, 100);
    tn_group_set_values(x.group[1], &values);
    const tn_order_note order = {.what = TN_ORDER_EVALUATE};
    tn_error err = {0};
    tn_status status = tn_group_order(x.group[0], &order, &err);
    status = status == TN_OK ? tn_group_await(x.group[0], &order, NULL, NULL, &err) : status;
    assert_int_equal(status, TN_E_PEER);
    assert_non_null(strstr(err.text, "s ago at step 102, and is taken for lost"));
    atomic_store(&s.goes_on, true);
    tn_group_set_values(x.group[1], NULL);
    groupkit_close(&x);
    groupkit_silence("2");
}

TEST(rank_0_that_falls_silent_is_lost)
{
    groupkit x;
    tn_order_note order;
    tn_error err = {0};
    groupkit_silence("4");
    groupkit_set(&x, 2);
    groupkit_form(&x);
    tn_group_close(x.group[0]);
    x.group[0] = NULL;
    assert_int_equal(tn_group_next_order(x.group[1], tn_clock_ns() + 60000000000, &order, &err),
                     TN_E_PEER);
    assert_non_null(strstr(err.text, "rank 0 (host '"));
    assert_false(tn_group_is_reported_elsewhere(x.group[1], TN_E_PEER)); /* who else? */
    groupkit_close(&x);
    groupkit_silence("2");
}

/* Whoever started all writes it to each: nobody waits until a silence is long enough, which has
 * another sentence. */
TEST(who_is_gone_by_the_news_ends_all_at_once)
{
    static const char line[] = "2 rank 2 (pid 4711) was killed by signal 9 (Killed)";
    static const char *const no_news[] = {"rank 2", "9 nobody", "1", ""};
    groupkit x;
    groupkit_seats s;
    int news[GROUPKIT_RANKS][2];
    groupkit_set(&x, 3);
    for (uint32_t r = 3; r-- > 0;) {
        tn_group_opts opts = groupkit_opts(&x, r);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, news[r]), 0);
        opts.news = news[r][1];
        groupkit_open(&x, r, &opts);
    }
    for (uint32_t r = 0; r < 3; r++) {
        assert_int_equal(tn_group_form(x.group[r], NULL, NULL), TN_OK);
    }
    tn_group *gone = x.group[2];
    x.group[2] = NULL;
    tn_group_close(gone);
    x.n = 2;
    groupkit_seat(&x, &s);
    for (uint32_t r = 0; r < 2; r++) {
        for (uint32_t i = 0; i < 4; i++) {
            assert_true(send(news[r][0], no_news[i], strlen(no_news[i]), 0) >= 0);
        }
        assert_true(send(news[r][0], line, sizeof line - 1, 0) > 0);
    }
    const tn_order_note order = {.what = TN_ORDER_EVALUATE};
    tn_error err = {0};
    tn_status status = tn_group_order(x.group[0], &order, &err);
    status = status == TN_OK ? tn_group_await(x.group[0], &order, NULL, NULL, &err) : status;
    assert_int_equal(status, TN_E_PEER);
    assert_memory_equal(err.text, line + 2, sizeof line - 3);
    groupkit_join(&x, &s);
    assert_int_equal(s.f[1].status, TN_E_PEER);
    assert_memory_equal(s.f[1].err.text, line + 2, sizeof line - 3);
    assert_true(tn_group_is_reported_elsewhere(x.group[0], TN_E_PEER) &&
                tn_group_is_reported_elsewhere(x.group[1], TN_E_PEER));
    groupkit_close(&x);
    for (uint32_t r = 0; r < 3; r++) {
        assert_int_equal(close(news[r][0]) | close(news[r][1]), 0);
    }
}

/* Its last answer might still be on its way, and is lost when it hangs up. */
TEST(who_is_dismissed_stays_until_rank_0_goes)
{
    static const uint64_t patience_ns = 2000000000; /* of a rank for rank 0 */
    groupkit_seats s;
    groupkit x CLEANUP(groupkit_close);
    groupkit_set(&x, 2);
    groupkit_form(&x);
    groupkit_seat(&x, &s);
    const tn_order_note bye = {.what = TN_ORDER_BYE};
    assert_int_equal(tn_group_order(x.group[0], &bye, NULL), TN_OK);
    groupkit_join(&x, &s);
    assert_int_equal(s.f[1].status, TN_OK);
    const uint64_t begin = tn_clock_ns();
    tn_group_close(x.group[1]);
    x.group[1] = NULL;
    assert_true(tn_clock_ns() - begin >= tn_silence_ns(patience_ns)); /* rank 0 is there still */
}

/* Who gives up after a short time does not look out for others for a long one, which is 10 s. */
TEST(a_short_timeout_is_short)
{
    groupkit x CLEANUP(groupkit_close);
    groupkit_set(&x, 2);
    tn_group_opts opts = groupkit_opts(&x, 0);
    opts.start_timeout_s = .2;
    const uint64_t begin = tn_clock_ns();
    tn_error err = {0};
    groupkit_open(&x, 0, &opts);
    assert_int_equal(tn_group_form(x.group[0], NULL, &err), TN_E_PEER);
    tn_group_close(x.group[0]);
    x.group[0] = NULL;
    assert_true(tn_clock_ns() - begin < tn_silence_ns(UINT64_C(10000000000)));
}
