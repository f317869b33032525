/* test_group.c - peers find each other, carry out orders, and end together. */
#include "base/clock.h"
#include "ps/group.h"
#include "ps/keys.h"
#include "support/test.h"
#include "support/tmpdir.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MOST = 4, TEXT_SIZE = 1500 };

static char dir[256];

static int set_up(void **state)
{
    (void)state;
    tn_tmpdir_make(dir);
    return setenv("TNET_FAST", "8", 1); /* NOLINT(concurrency-mt-unsafe): no thread yet */
}

static int tear_down(void **state)
{
    (void)state;
    tn_tmpdir_remove(dir);
    return 0;
}

typedef struct group {
    uint32_t n;
    uint32_t from[RANKS_MOST + 1];
    tn_owners owners;
    tn_security security;
    char at[RANKS_MOST][TN_ENDPOINT_PATH];
    const char *address[RANKS_MOST];
    const char *host[RANKS_MOST];
    tn_roster roster[RANKS_MOST];
    tn_group *group[RANKS_MOST];
} group;

static void set(group *x, uint32_t n)
{
    *x = (group){.n = n};
    x->owners = (tn_owners){n, TN_PARTITIONS, x->from};
    assert_int_equal(tn_security_init(&x->security, keys_zmq(), NULL, NULL), TN_OK);
    for (uint32_t r = 0; r < n; r++) {
        int size = snprintf(x->at[r], sizeof x->at[r], "ipc://%s/%u.sock", dir, r);
        assert_in_range(size, 1, sizeof x->at[r] - 1);
        x->address[r] = x->at[r];
    }
    for (uint32_t r = 0; r < n; r++) {
        x->from[r + 1] = TN_PARTITIONS * (r + 1) / n;
        x->roster[r] = (tn_roster){.rank = r,
                                   .size = n,
                                   .job = 7,
                                   .address = x->address,
                                   .host = x->host,
                                   .bind = x->at[r],
                                   .how = "test"};
    }
}

static tn_group_opts opts_of(group *x, uint32_t rank)
{
    return (tn_group_opts){.zmq = keys_zmq(),
                           .roster = &x->roster[rank],
                           .security = &x->security,
                           .owners = &x->owners,
                           .hello = {.version = "1",
                                     .config_hash = "c",
                                     .structure = "s",
                                     .cpu = "avx2",
                                     .threads = 1},
                           .start_timeout_s = 20};
}

static void open_one(group *x, uint32_t rank, const tn_group_opts *opts)
{
    tn_error err = {0};
    if (tn_group_open(&x->group[rank], opts, &err) != TN_OK) {
        fail_msg("%s", err.text);
    }
}

static void close_all(group *x)
{
    for (uint32_t r = x->n; r > 0; r--) {
        tn_group_close(x->group[r - 1]);
    }
    tn_security_done(&x->security);
}

static void form(group *x)
{
    for (uint32_t r = x->n; r > 0; r--) { /* the last first: nobody need be there */
        tn_group_opts opts = opts_of(x, r - 1);
        open_one(x, r - 1, &opts);
    }
    for (uint32_t r = 0; r < x->n; r++) {
        tn_error err = {0};
        if (tn_group_form(x->group[r], NULL, &err) != TN_OK) {
            fail_msg("rank %u: %s", r, err.text);
        }
    }
}

/* ---- a follower on a thread of its own ---- */

typedef struct follower {
    tn_group *group;
    tn_status status;
    tn_error err;
    uint32_t n_orders;
    char texts[TEXT_SIZE];
} follower;

static void *follow(void *arg)
{
    follower *f = arg;
    tn_order_note order;
    f->status = TN_OK;
    while (f->status == TN_OK) {
        f->status = tn_group_next_order(f->group, tn_clock_ns() + 20000000000, &order, &f->err);
        if (f->status != TN_OK || order.what == TN_ORDER_BYE) {
            return NULL;
        }
        f->n_orders++;
        size_t used = strlen(f->texts);
        (void)snprintf(f->texts + used, sizeof f->texts - used, "%s;", order.text);
        const bool bad = strcmp(order.text, "fail") == 0;
        const tn_done_note done = {.what = order.what,
                                   .number = order.number,
                                   .status = bad ? TN_E_IO : TN_OK,
                                   .text = bad ? "disk full" : "",
                                   .records = 10,
                                   .metrics = {"a\0b", 3}};
        f->status = tn_group_done(f->group, &done, &f->err);
    }
    return NULL;
}

typedef struct seats {
    follower f[RANKS_MOST];
    pthread_t thread[RANKS_MOST];
} seats;

static void seat_followers(group *x, seats *s)
{
    *s = (seats){0};
    for (uint32_t r = 1; r < x->n; r++) {
        s->f[r].group = x->group[r];
        assert_int_equal(pthread_create(&s->thread[r], NULL, follow, &s->f[r]), 0);
    }
}

static void join_followers(const group *x, seats *s)
{
    for (uint32_t r = 1; r < x->n; r++) {
        assert_int_equal(pthread_join(s->thread[r], NULL), 0);
    }
}

static tn_status add_records(void *arg, uint32_t rank, const tn_done_note *note, tn_error *err)
{
    (void)err;
    uint64_t *sum = arg;
    *sum += note->records * rank;
    assert_int_equal(note->metrics.n, 3);
    assert_memory_equal(note->metrics.at, "a\0b", 3);
    return TN_OK;
}

static tn_status order_and_await(tn_group *g, uint64_t what, uint64_t number, const char *text,
                                 uint64_t *sum, tn_error *err)
{
    const tn_order_note order = {.what = what, .number = number, .text = text};
    TN_TRY(tn_group_order(g, &order, err));
    return tn_group_await(g, &order, add_records, sum, err);
}

static void orders_are_carried_out_by_all_in_turn(void **state)
{
    (void)state;
    for (uint32_t n = 2; n <= RANKS_MOST; n++) {
        group x;
        seats s;
        set(&x, n);
        form(&x);
        seat_followers(&x, &s);
        uint64_t sum = 0;
        for (uint64_t i = 0; i < 5; i++) {
            assert_int_equal(order_and_await(x.group[0], TN_ORDER_EVALUATE, i, "e", &sum, NULL),
                             TN_OK);
            assert_int_equal(order_and_await(x.group[0], TN_ORDER_MARK, 7, "m", &sum, NULL), TN_OK);
        }
        assert_int_equal(sum, 10 * 10 * (n * (n - 1) / 2));
        const tn_order_note bye = {.what = TN_ORDER_BYE};
        assert_int_equal(tn_group_order(x.group[0], &bye, NULL), TN_OK);
        join_followers(&x, &s);
        for (uint32_t r = 1; r < n; r++) {
            assert_int_equal(s.f[r].status, TN_OK);
            assert_string_equal(s.f[r].texts, "e;m;e;m;e;m;e;m;e;m;");
        }
        close_all(&x);
    }
}

static void an_order_that_failed_names_its_rank(void **state)
{
    (void)state;
    group x;
    seats s;
    set(&x, 2);
    form(&x);
    seat_followers(&x, &s);
    uint64_t sum = 0;
    tn_error err = {0};
    assert_int_equal(order_and_await(x.group[0], TN_ORDER_MARK, 1, "fail", &sum, &err), TN_E_IO);
    assert_string_equal(err.text, "rank 1: disk full");
    assert_int_equal(order_and_await(x.group[0], TN_ORDER_MARK, 2, "ok", &sum, &err), TN_OK);
    tn_group_fail(x.group[0], TN_E_DATA, "no such file 'x'");
    join_followers(&x, &s);
    assert_int_equal(s.f[1].status, TN_E_DATA);
    assert_string_equal(s.f[1].err.text, "rank 0: no such file 'x'");
    close_all(&x);
}

static void note_end(void *arg, tn_status status, const char *why)
{
    (void)why;
    atomic_store((_Atomic tn_status *)arg, status);
}

static void a_rank_that_fails_ends_all(void **state)
{
    (void)state;
    group x;
    seats s;
    _Atomic tn_status told = TN_OK;
    set(&x, 3);
    form(&x);
    const tn_group_values values = {.arg = &told, .ended = note_end};
    tn_group_set_values(x.group[0], &values);
    seat_followers(&x, &s);
    tn_group_fail(x.group[2], TN_E_DATA, "line 3: a sign of 99 digits");
    const tn_order_note order = {.what = TN_ORDER_EVALUATE};
    tn_error err = {0};
    tn_status status = tn_group_order(x.group[0], &order, &err);
    status = status == TN_OK ? tn_group_await(x.group[0], &order, NULL, NULL, &err) : status;
    assert_int_equal(status, TN_E_DATA);
    assert_string_equal(err.text, "rank 2: line 3: a sign of 99 digits");
    join_followers(&x, &s);
    assert_int_equal(s.f[1].status, TN_E_DATA);
    assert_string_equal(s.f[1].err.text, "rank 2: line 3: a sign of 99 digits");
    assert_int_equal(tn_group_check(x.group[1], NULL), TN_E_DATA);
    assert_int_equal(atomic_load(&told), TN_E_DATA);
    close_all(&x);
}

static void a_rank_that_falls_silent_is_lost(void **state)
{
    (void)state;
    group x;
    seats s;
    set(&x, 3);
    form(&x);
    tn_group *gone = x.group[2]; /* its link ends, and it says nothing */
    x.group[2] = NULL;
    tn_group_close(gone);
    x.n = 2;
    seat_followers(&x, &s);
    const tn_order_note order = {.what = TN_ORDER_EVALUATE};
    tn_error err = {0};
    assert_int_equal(tn_group_order(x.group[0], &order, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "rank 2 (host '"));
    assert_non_null(strstr(err.text, "is taken for lost"));
    join_followers(&x, &s);
    assert_int_equal(s.f[1].status, TN_E_PEER);
    close_all(&x);
}

static void rank_0_that_falls_silent_is_lost(void **state)
{
    (void)state;
    group x;
    tn_order_note order;
    tn_error err = {0};
    set(&x, 2);
    form(&x);
    tn_group_close(x.group[0]);
    x.group[0] = NULL;
    assert_int_equal(tn_group_next_order(x.group[1], tn_clock_ns() + 20000000000, &order, &err),
                     TN_E_PEER);
    assert_non_null(strstr(err.text, "rank 0 (host '"));
    close_all(&x);
}

static void who_does_not_fit_is_refused_with_the_reason(void **state)
{
    (void)state;
    group x;
    tn_error err = {0};
    set(&x, 2);
    tn_group_opts opts = opts_of(&x, 0);
    opts.start_timeout_s = 1;
    open_one(&x, 0, &opts);
    opts = opts_of(&x, 1);
    opts.hello.config_hash = "d";
    open_one(&x, 1, &opts);
    assert_int_equal(tn_group_form(x.group[1], NULL, &err), TN_E_CONFIG);
    assert_non_null(strstr(err.text, "rank 1"));
    assert_int_equal(tn_group_form(x.group[0], NULL, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "(cluster.start_timeout) for rank 1"));
    close_all(&x);
}

static void rank_0_that_never_comes_is_told_in_time(void **state)
{
    (void)state;
    group x;
    tn_error err = {0};
    set(&x, 2);
    tn_group_opts opts = opts_of(&x, 1);
    opts.start_timeout_s = .3;
    open_one(&x, 1, &opts);
    assert_int_equal(tn_group_form(x.group[1], NULL, &err), TN_E_PEER);
    assert_non_null(strstr(err.text, "for rank 0 at ipc://"));
    const atomic_bool stop = true;
    tn_group_close(x.group[1]);
    open_one(&x, 1, &opts);
    assert_int_equal(tn_group_form(x.group[1], &stop, &err), TN_E_STOPPED);
    close_all(&x);
    tn_group_close(NULL);
}

static void what_ranks_say_is_known_to_rank_0(void **state)
{
    (void)state;
    group x;
    set(&x, 2);
    form(&x);
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
    close_all(&x);
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
    group x;
    reports seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .whole = true};
    set(&x, 3);
    form(&x);
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
    close_all(&x);
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
    group x;
    shown s = {.n = 0};
    (void)pthread_mutex_init(&s.lock, NULL);
    set(&x, 2);
    for (uint32_t r = 0; r < x.n; r++) {
        tn_group_opts opts = opts_of(&x, r);
        if (r == 0) {
            opts.table = (tn_group_table_opts){note_table, &s, 1000000};
        }
        open_one(&x, r, &opts);
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
    close_all(&x);
    (void)pthread_mutex_destroy(&s.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_are_carried_out_by_all_in_turn),
        cmocka_unit_test(an_order_that_failed_names_its_rank),
        cmocka_unit_test(a_rank_that_fails_ends_all),
        cmocka_unit_test(a_rank_that_falls_silent_is_lost),
        cmocka_unit_test(rank_0_that_falls_silent_is_lost),
        cmocka_unit_test(who_does_not_fit_is_refused_with_the_reason),
        cmocka_unit_test(rank_0_that_never_comes_is_told_in_time),
        cmocka_unit_test(what_ranks_say_is_known_to_rank_0),
        cmocka_unit_test(reports_reach_rank_0_each_once),
        cmocka_unit_test(the_table_is_shown_again_and_again_and_says_who_waits_for_whom),
    };
    return cmocka_run_group_tests_name("ps/group", tests, set_up, tear_down);
}
