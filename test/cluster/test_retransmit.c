/* test_retransmit.c - requests are kept until they are acknowledged, and sent again in order. */

#include "cluster/recovery.h"
#include "support/test.h"

enum { REQUESTS = 2000 };

#define SECOND UINT64_C(1000000000)

/* Requests of one sender, and how often each was released. */
typedef struct sender {
    tn_retransmit r;
    tn_retransmit_request request[REQUESTS + 1]; /* by sequence */
} sender;

static uint64_t released;

static void release(tn_retransmit_request *x)
{
    released += x->sequence;
    x->release = NULL; /* twice would crash */
}

static sender s;

static void begin(void)
{
    released = 0;
    s = (sender){0};
    tn_retransmit_init(&s.r, 1, SECOND);
}

static uint64_t put(void)
{
    uint64_t sequence = s.r.next;
    s.request[sequence] = (tn_retransmit_request){.release = release};
    tn_retransmit_put(&s.r, &s.request[sequence]);
    return sequence;
}

/* Sends all that is due; returns the numbers as decimal digits: 1, 2, 3 are 123. */
static uint64_t send_all(uint64_t now)
{
    uint64_t seen = 0;
    for (const tn_retransmit_request *x = NULL; (x = tn_retransmit_due(&s.r, now)) != NULL;) {
        seen = seen * 10 + x->sequence;
        tn_retransmit_sent(&s.r, now);
    }
    return seen;
}

static void begin_with(uint32_t n)
{
    begin();
    for (uint32_t i = 0; i < n; i++) {
        put();
    }
    send_all(0);
}

TEST(a_request_is_sent_once_and_released_when_it_is_acknowledged)
{
    begin();
    assert_int_equal(tn_retransmit_deadline(&s.r), TN_RETRANSMIT_NEVER);
    assert_null(tn_retransmit_due(&s.r, SECOND));
    put();
    put();
    assert_int_equal(tn_retransmit_deadline(&s.r), 0);
    assert_int_equal(send_all(5), 12);
    assert_int_equal(send_all(6), 0);
    assert_int_equal(tn_retransmit_deadline(&s.r), 5 + SECOND);
    assert_true(tn_retransmit_acknowledge(&s.r, 1));
    assert_int_equal(released, 1);
    assert_true(tn_retransmit_acknowledge(&s.r, 2));
    assert_int_equal(released, 3);
    assert_int_equal(tn_retransmit_deadline(&s.r), TN_RETRANSMIT_NEVER);
    assert_int_equal(recovery_acknowledged(&s.r), 2);
}

TEST(an_answer_that_comes_again_acknowledges_nothing)
{
    begin_with(3);
    assert_true(tn_retransmit_acknowledge(&s.r, 2));
    assert_false(tn_retransmit_acknowledge(&s.r, 2));
    assert_false(tn_retransmit_acknowledge(&s.r, 4));
    assert_false(tn_retransmit_acknowledge(&s.r, 0));
    assert_int_equal(released, 2);
    assert_int_equal(recovery_acknowledged(&s.r), 1);
}

TEST(acknowledgements_come_in_any_order)
{
    const uint64_t order[] = {3, 5, 1, 4, 2};
    begin_with(5);
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(tn_retransmit_acknowledge(&s.r, order[i]));
        uint64_t open[TN_RETRANSMIT_MAX];
        assert_int_equal(recovery_open(&s.r, open), 4 - i);
    }
    put();
    assert_int_equal(send_all(1), 6);
}

TEST(after_a_timeout_all_are_sent_again_oldest_first)
{
    begin_with(5);
    tn_retransmit_acknowledge(&s.r, 2);
    assert_int_equal(send_all(SECOND - 1), 0);
    assert_int_equal(send_all(SECOND), 1345);
}

TEST(after_a_reconnect_all_are_sent_again_at_once)
{
    begin_with(3);
    recovery_reconnected(&s.r);
    assert_int_equal(tn_retransmit_deadline(&s.r), 0);
    assert_int_equal(send_all(10), 123);
    assert_int_equal(tn_retransmit_deadline(&s.r), 10 + SECOND);
    tn_retransmit_acknowledge(&s.r, 1);
    tn_retransmit_acknowledge(&s.r, 2);
    tn_retransmit_acknowledge(&s.r, 3);
    recovery_reconnected(&s.r);
    assert_int_equal(tn_retransmit_deadline(&s.r), TN_RETRANSMIT_NEVER);
}

TEST(what_the_transport_does_not_take_stays_due)
{
    begin_with(1);
    put();
    put();
    assert_int_equal(tn_retransmit_due(&s.r, 1)->sequence, 2);
    assert_int_equal(tn_retransmit_due(&s.r, 1)->sequence, 2);
    tn_retransmit_sent(&s.r, 1);
    assert_int_equal(tn_retransmit_due(&s.r, 1)->sequence, 3);
    recovery_reconnected(&s.r);
    assert_int_equal(send_all(2), 123);
}

TEST(one_that_is_acknowledged_while_due_is_not_sent)
{
    begin_with(3);
    assert_int_equal(tn_retransmit_due(&s.r, SECOND)->sequence, 1);
    tn_retransmit_acknowledge(&s.r, 1);
    tn_retransmit_acknowledge(&s.r, 3);
    assert_int_equal(send_all(SECOND), 2);
    assert_int_equal(tn_retransmit_deadline(&s.r), 2 * SECOND);
}

TEST(the_clock_is_that_of_the_oldest)
{
    begin_with(1);
    for (uint64_t i = 2; i < 9; i++) { /* answers to later ones do not put the first one off */
        put();
        send_all(i * SECOND / 10);
        tn_retransmit_acknowledge(&s.r, i);
    }
    put();
    send_all(SECOND / 2);
    assert_int_equal(tn_retransmit_deadline(&s.r), SECOND);
    tn_retransmit_acknowledge(&s.r, 1);
    assert_int_equal(tn_retransmit_deadline(&s.r), SECOND / 2 + SECOND);
}

TEST(at_most_64_are_kept)
{
    begin();
    for (uint32_t i = 0; i < TN_RETRANSMIT_MAX; i++) {
        assert_false(tn_retransmit_is_full(&s.r));
        put();
    }
    assert_true(tn_retransmit_is_full(&s.r));
    send_all(1);
    tn_retransmit_acknowledge(&s.r, 17);
    assert_false(tn_retransmit_is_full(&s.r));
}

TEST(no_number_is_used_that_the_receiver_would_refuse)
{
    begin();
    tn_dedup o;
    tn_dedup_begin(&o, 1);
    put(); /* is lost, while all others arrive */
    while (!tn_retransmit_is_full(&s.r)) {
        uint64_t sequence = put();
        send_all(1);
        assert_int_equal(tn_dedup_check(&o, 1, sequence), TN_DEDUP_APPLY);
        tn_dedup_mark(&o, sequence);
        tn_retransmit_acknowledge(&s.r, sequence);
    }
    assert_int_equal(s.r.next, TN_DEDUP_WINDOW + 1);
    assert_int_equal(tn_dedup_check(&o, 1, s.r.next), TN_DEDUP_BEYOND);
    tn_retransmit_acknowledge(&s.r, 1);
    assert_false(tn_retransmit_is_full(&s.r));
}

TEST(waits_double_at_random_up_to_five_seconds)
{
    begin_with(1);
    double sum = 0;
    for (uint32_t k = 0; k < 500; k++) {
        uint64_t now = tn_retransmit_deadline(&s.r);
        assert_int_equal(send_all(now), 1);
        uint64_t wait = tn_retransmit_deadline(&s.r) - now;
        uint64_t most = k < 5 ? TN_RETRANSMIT_FIRST_NS << k : TN_RETRANSMIT_CAP_NS;
        assert_true(wait <= most);
        sum += (double)wait / (double)most;
    }
    assert_true(sum > 500 * .45 && sum < 500 * .55); /* full jitter: half of the limit on average */
}

TEST(the_same_seed_waits_the_same)
{
    uint64_t wait[2];
    for (uint32_t i = 0; i < 2; i++) {
        begin_with(1);
        for (uint32_t k = 0; k < 9; k++) {
            send_all(tn_retransmit_deadline(&s.r));
        }
        wait[i] = tn_retransmit_deadline(&s.r);
    }
    assert_int_equal(wait[0], wait[1]);
}

TEST(an_answer_makes_the_next_wait_short_again)
{
    begin_with(2);
    for (uint32_t k = 0; k < 9; k++) {
        send_all(tn_retransmit_deadline(&s.r));
    }
    uint64_t now = tn_retransmit_deadline(&s.r);
    send_all(now);
    tn_retransmit_acknowledge(&s.r, 1);
    assert_int_equal(tn_retransmit_deadline(&s.r), now + SECOND);
}

TEST(clearing_releases_everything_and_keeps_the_numbers)
{
    begin_with(4);
    put();
    tn_retransmit_clear(&s.r);
    assert_int_equal(released, 1 + 2 + 3 + 4 + 5);
    assert_int_equal(tn_retransmit_deadline(&s.r), TN_RETRANSMIT_NEVER);
    assert_int_equal(put(), 6);
    recovery_init(&s.r, 1, SECOND, 41);
    assert_int_equal(s.r.next, 42);
}

TEST(what_is_open_is_what_a_receiver_without_memory_takes)
{
    begin_with(9);
    tn_retransmit_acknowledge(&s.r, 1);
    tn_retransmit_acknowledge(&s.r, 5);
    uint64_t open[TN_RETRANSMIT_MAX];
    uint32_t n = recovery_open(&s.r, open);
    tn_dedup o = {0};
    assert_true(recovery_adopt(&o, 3, s.r.next, open, n));
    for (uint64_t i = 1; i <= 10; i++) {
        assert_int_equal(tn_dedup_check(&o, 3, i),
                         i == 1 || i == 5 ? TN_DEDUP_REPEATED : TN_DEDUP_APPLY);
    }
}
