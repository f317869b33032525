/* test_groupend.c - peers end together: by a failure, by an order that failed, by a loss. */
#include "base/core/clock.h"
#include "cluster/group/failure_detector.h"
#include "cluster/groupkit.h"
#include "cluster/wire/request_headers.h"
#include "support/test.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void a_run_that_ends_by_a_failed_order_is_told_where_it_failed(void **state)
{
    (void)state;
    groupkit x;
    groupkit_seats s;
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
        assert_true(tn_group_is_told_elsewhere(x.group[r]) == (r != 1));
    }
    groupkit_close(&x);
}

static void note_end(void *arg, tn_status status, const char *why)
{
    (void)why;
    atomic_store((_Atomic tn_status *)arg, status);
}

static void a_rank_that_fails_ends_all(void **state)
{
    (void)state;
    groupkit x;
    groupkit_seats s;
    _Atomic tn_status told = TN_OK;
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
        assert_true(tn_group_is_told_elsewhere(x.group[r]) == (r != 2));
    }
    groupkit_close(&x);
}

static void a_rank_that_falls_silent_is_lost(void **state)
{
    (void)state;
    groupkit x;
    groupkit_seats s;
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
    assert_false(tn_group_is_told_elsewhere(x.group[0]));
    assert_true(tn_group_is_told_elsewhere(x.group[1]));
    groupkit_close(&x);
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
        tn_parcel *p = NULL;
        tn_parcels *parcels = tn_group_parcels(s->group);
        assert_int_equal(tn_parcel_take(&p, parcels, TN_PUSH_PARAMS, NULL), TN_OK);
        memset(tn_parcel_payload(p), 0, TN_PUSH_PARAMS);
        p->frame.type = TN_FRAME_PUSH;
        p->frame.step = step;
        tn_link_post(tn_group_link(s->group), 0, p);
    }
    while (s->n_ticks > LAST && !atomic_load(&s->goes_on)) {
        (void)usleep(1000);
    }
    return 0;
}

static void the_step_of_a_lost_rank_is_that_of_its_last_push(void **state)
{
    (void)state;
    groupkit x;
    groupkit_set(&x, 2);
    groupkit_form(&x);
    stopper s = {.group = x.group[1]};
    const tn_beat_note beat = {.state = TN_PEER_TRAINING};
    const tn_group_values values = {.arg = &s, .waits_for = push_and_stop};
    tn_group_tell(x.group[1], &beat, 100);
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
}

static void rank_0_that_falls_silent_is_lost(void **state)
{
    (void)state;
    groupkit x;
    tn_order_note order;
    tn_error err = {0};
    groupkit_set(&x, 2);
    groupkit_form(&x);
    tn_group_close(x.group[0]);
    x.group[0] = NULL;
    assert_int_equal(tn_group_next_order(x.group[1], tn_clock_ns() + 20000000000, &order, &err),
                     TN_E_PEER);
    assert_non_null(strstr(err.text, "rank 0 (host '"));
    assert_false(tn_group_is_told_elsewhere(x.group[1])); /* who else? */
    groupkit_close(&x);
}

/* Whoever started all writes it to each: nobody waits until a silence is long enough. */
static void who_is_gone_by_the_news_ends_all_at_once(void **state)
{
    (void)state;
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
    const uint64_t begin = tn_clock_ns();
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
    assert_true(tn_group_is_told_elsewhere(x.group[0]) && tn_group_is_told_elsewhere(x.group[1]));
    assert_true(tn_clock_ns() - begin < tn_timer_ns(TN_PULSE_LOST_NS));
    groupkit_close(&x);
    for (uint32_t r = 0; r < 3; r++) {
        assert_int_equal(close(news[r][0]) | close(news[r][1]), 0);
    }
}

/* Its last answer might still be on its way, and is lost when it hangs up. */
static void who_is_dismissed_stays_until_rank_0_goes(void **state)
{
    (void)state;
    static const uint64_t patience_ns = 2000000000; /* of a rank for rank 0 */
    groupkit x;
    groupkit_seats s;
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
    assert_true(tn_clock_ns() - begin >= tn_timer_ns(patience_ns)); /* rank 0 is there still */
    groupkit_close(&x);
}

/* Who gives up after a short time does not look out for others for a long one. */
static void a_short_timeout_is_short(void **state)
{
    (void)state;
    groupkit x;
    groupkit_set(&x, 2);
    tn_group_opts opts = groupkit_opts(&x, 0);
    opts.start_timeout_s = .2;
    const uint64_t begin = tn_clock_ns();
    tn_error err = {0};
    groupkit_open(&x, 0, &opts);
    assert_int_equal(tn_group_form(x.group[0], NULL, &err), TN_E_PEER);
    tn_group_close(x.group[0]);
    x.group[0] = NULL;
    assert_true(tn_clock_ns() - begin < UINT64_C(1100000000)); /* not an eighth of 10 s */
    groupkit_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_that_ends_by_a_failed_order_is_told_where_it_failed),
        cmocka_unit_test(a_rank_that_fails_ends_all),
        cmocka_unit_test(a_rank_that_falls_silent_is_lost),
        cmocka_unit_test(the_step_of_a_lost_rank_is_that_of_its_last_push),
        cmocka_unit_test(rank_0_that_falls_silent_is_lost),
        cmocka_unit_test(who_is_dismissed_stays_until_rank_0_goes),
        cmocka_unit_test(a_short_timeout_is_short),
        cmocka_unit_test(who_is_gone_by_the_news_ends_all_at_once),
    };
    return cmocka_run_group_tests_name("ps/groupend", tests, groupkit_set_up, groupkit_tear_down);
}
