/* test_reply_queue.c - replies in their order, and the first failure, whoever reports it. */
#include "cluster/exchange/reply_queue.h"

#include "base/core/clock.h"
#include "support/test.h"

static uint32_t n_closed;

static int count_close(zmq_msg_t *message)
{
    (void)message;
    n_closed++;
    return 0;
}

static tn_in_message *reply_of(uint32_t from)
{
    tn_in_message *reply = tn_try_alloc(1, sizeof *reply, "a reply", NULL);
    assert_non_null(reply);
    reply->from = from;
    reply->frame.step = 10 + from;
    reply->close = count_close;
    return reply;
}

SET_UP
{
    static tn_reply_queue q;
    n_closed = 0;
    tn_reply_queue_init(&q);
    *state = &q;
}

TEAR_DOWN
{
    tn_reply_queue_done(*state);
}

/* The ranks whose replies came, as decimal digits. */
static void append(void *arg, const tn_frame *reply, uint32_t from)
{
    uint32_t *digits = arg;
    assert_int_equal(reply->step, 10 + from);
    assert_int_equal(n_closed, *digits > 0); /* each is closed before the next is read */
    *digits = 10 * *digits + from;
}

TEST_ON(tn_reply_queue *q, replies_are_read_once_in_the_order_of_arrival)
{
    uint32_t digits = 0;
    tn_reply_queue_put(q, reply_of(2));
    tn_reply_queue_put(q, reply_of(1));
    (void)tn_reply_queue_read(q, append, &digits);
    assert_int_equal(digits, 21);
    assert_int_equal(n_closed, 2);
    digits = 0;
    (void)tn_reply_queue_read(q, append, &digits);
    assert_int_equal(digits, 0);
    assert_int_equal(tn_reply_queue_check(q, NULL), TN_OK);
}

TEST_ON(tn_reply_queue *q, a_reply_that_came_since_the_read_ends_the_wait_at_once)
{
    uint32_t digits = 0;
    const uint64_t seen = tn_reply_queue_read(q, append, &digits);
    tn_reply_queue_put(q, reply_of(3));
    assert_int_not_equal(tn_wakeup_count(&q->wakeup), seen);
    tn_reply_queue_wait(q, seen, tn_clock_ns() + UINT64_C(3600000000000));
    n_closed = 0;
    (void)tn_reply_queue_read(q, append, &digits);
    assert_int_equal(digits, 3);
}

TEST_ON(tn_reply_queue *q, replies_that_nobody_reads_are_closed)
{
    tn_reply_queue_put(q, reply_of(1));
    tn_reply_queue_put(q, reply_of(2));
    tn_reply_queue_done(q);
    assert_int_equal(n_closed, 2);
    tn_reply_queue_init(q);
}

TEST_ON(tn_reply_queue *q, the_first_end_counts_and_stays)
{
    uint32_t digits = 0;
    tn_error err = {0};
    tn_reply_queue_end(q, TN_E_DATA, "rank 1: no such file");
    tn_reply_queue_end(q, TN_E_PEER, "a later reason");
    for (uint32_t i = 0; i < 2; i++) {
        (void)tn_reply_queue_read(q, append, &digits);
        assert_int_equal(tn_reply_queue_check(q, &err), TN_E_DATA);
        assert_string_equal(err.text, "rank 1: no such file");
    }
}

TEST_ON(tn_reply_queue *q, a_bad_reply_fails_before_a_later_end)
{
    uint32_t digits = 0;
    tn_error err = {0};
    const tn_frame refusal = {.code = TN_REFUSAL_DIVERGED, .step = 4};
    tn_reply_queue_reject(q, 2, "rows");
    tn_reply_queue_refused(q, &refusal, 1);
    tn_reply_queue_end(q, TN_E_DATA, "rank 1: no such file");
    (void)tn_reply_queue_read(q, append, &digits);
    assert_int_equal(tn_reply_queue_check(q, &err), TN_E_PEER);
    assert_string_equal(err.text, "rank 2 sent rows that nobody can use");
}

TEST_ON(tn_reply_queue *q, a_refusal_for_a_gradient_that_is_not_finite_is_divergence)
{
    tn_error err = {0};
    const tn_frame refusal = {.code = TN_REFUSAL_DIVERGED, .step = 4};
    tn_reply_queue_refused(q, &refusal, 1);
    assert_int_equal(tn_reply_queue_check(q, &err), TN_E_DIVERGED);
    assert_string_equal(err.text, "rank 1 refused a request of step 5: a gradient is not finite");
}
