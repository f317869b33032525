/* test_queue.c - a bounded queue between threads. */
#include "support/test.h"

#include "base/core/clock.h"
#include "base/thread/queue.h"
#include "base/thread/threads.h"

#include <stdatomic.h>

CLOSER(tn_queue_free);

enum { ITEMS = 20000, PRODUCERS = 3, CONSUMERS = 2 };

static tn_queue *queue_of(uint32_t capacity)
{
    tn_queue *q = NULL;
    assert_int_equal(tn_queue_new(&q, capacity, NULL), TN_OK);
    return q;
}

TEST(items_come_out_in_the_order_they_went_in)
{
    int item[7] = {0};
    tn_queue *q FREED(tn_queue_free) = queue_of(3);
    uint32_t in = 0;
    for (uint32_t out = 0; out < 7; out++) {
        while (in < 7 && in - out < 3) {
            assert_true(tn_queue_push(q, &item[in++]));
        }
        void *got = NULL;
        assert_true(tn_queue_pop(q, &got));
        assert_ptr_equal(got, &item[out]);
    }
}

TEST(a_pop_waits_until_then_and_no_longer)
{
    int item = 0;
    void *got = &got;
    tn_queue *q FREED(tn_queue_free) = queue_of(1);
    assert_false(tn_queue_pop_until(q, 0, &got));
    assert_ptr_equal(got, &got); /* untouched */
    assert_false(tn_queue_is_over(q));
    const uint64_t until = tn_clock_ns() + 2000000;
    assert_false(tn_queue_pop_until(q, until, &got));
    assert_true(tn_clock_ns() >= until);
    assert_true(tn_queue_push(q, &item));
    tn_queue_close(q);
    assert_false(tn_queue_is_over(q));
    assert_true(tn_queue_pop_until(q, UINT64_MAX, &got));
    assert_ptr_equal(got, &item);
    assert_true(tn_queue_is_over(q));
    assert_false(tn_queue_pop_until(q, UINT64_MAX, &got));
}

TEST(a_closed_queue_refuses_new_items_and_hands_out_the_old_ones)
{
    int item[2] = {0};
    void *got = NULL;
    tn_queue *q FREED(tn_queue_free) = queue_of(2);
    assert_true(tn_queue_push(q, &item[0]));
    tn_queue_close(q);
    assert_false(tn_queue_push(q, &item[1]));
    assert_true(tn_queue_pop(q, &got));
    assert_ptr_equal(got, &item[0]);
    assert_false(tn_queue_pop(q, &got));
    assert_false(tn_queue_pop_until(q, 0, &got));
}

static tn_status push_until_refused(void *queue, tn_error *err)
{
    (void)err;
    static int item;
    while (tn_queue_push(queue, &item)) {
    }
    return TN_OK;
}

TEST(closing_wakes_a_producer_that_waits_for_room)
{
    tn_queue *q FREED(tn_queue_free) = queue_of(1);
    tn_thread *producer = NULL;
    assert_int_equal(tn_thread_start(&producer, "producer", push_until_refused, q, NULL), TN_OK);
    tn_queue_close(q);
    assert_int_equal(tn_thread_join(producer, NULL), TN_OK);
}

typedef struct traffic {
    tn_queue *queue;
    _Atomic uint64_t sum;
    _Atomic uint32_t count;
    unsigned char item[ITEMS];
} traffic;

static tn_status produce(void *arg, tn_error *err)
{
    (void)err;
    traffic *t = arg;
    for (uint32_t i = 0; i < ITEMS; i++) {
        bool pushed = tn_queue_push(t->queue, &t->item[i]);
        TN_ASSERT(pushed);
    }
    return TN_OK;
}

static tn_status consume(void *arg, tn_error *err)
{
    (void)err;
    traffic *t = arg;
    void *item;
    while (tn_queue_pop(t->queue, &item)) {
        atomic_fetch_add(&t->sum, (uint64_t)((unsigned char *)item - t->item));
        atomic_fetch_add(&t->count, 1);
    }
    return TN_OK;
}

TEST(every_item_of_many_producers_reaches_one_of_many_consumers)
{
    static traffic t;
    tn_thread *thread[PRODUCERS + CONSUMERS] = {0};
    t.queue = queue_of(5);
    for (uint32_t i = 0; i < PRODUCERS + CONSUMERS; i++) {
        assert_int_equal(
            tn_thread_start(&thread[i], "traffic", i < PRODUCERS ? produce : consume, &t, NULL),
            TN_OK);
    }
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        assert_int_equal(tn_thread_join(thread[i], NULL), TN_OK);
    }
    tn_queue_close(t.queue);
    for (uint32_t i = PRODUCERS; i < PRODUCERS + CONSUMERS; i++) {
        assert_int_equal(tn_thread_join(thread[i], NULL), TN_OK);
    }
    assert_int_equal(t.count, PRODUCERS * ITEMS);
    assert_int_equal(t.sum, (uint64_t)PRODUCERS * ITEMS * (ITEMS - 1) / 2);
    tn_queue_free(t.queue);
}

TEST(no_memory_is_reported)
{
    tn_error err = {0};
    tn_queue *q = NULL;
    tn_alloc_fail_at(1);
    assert_int_equal(tn_queue_new(&q, 4, &err), TN_E_MEMORY);
    assert_null(q);
    tn_queue_free(NULL);
}
