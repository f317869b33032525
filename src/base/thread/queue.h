/* queue.h - a bounded queue of pointers between threads.
 *
 * push waits while it is full, pop while it is empty. close() wakes everybody:
 * push then refuses, pop hands out what is left and then refuses. Owns nothing
 * it carries. Any number of producers and consumers.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_queue tn_queue;

tn_status tn_queue_new(tn_queue **out, uint32_t capacity, tn_error *err) TN_MUST_USE;
void tn_queue_free(tn_queue *q); /* NULL is fine; nobody may be inside */

bool tn_queue_push(tn_queue *q, void *item) TN_MUST_USE; /* false: closed, item stays yours */
bool tn_queue_pop(tn_queue *q, void **out) TN_MUST_USE;  /* false: closed and empty */
/* Waits at most until tn_clock_ns() is `until_ns`; 0: not at all. Returns false also when time is
 * up. */
bool tn_queue_pop_until(tn_queue *q, uint64_t until_ns, void **out) TN_MUST_USE;
bool tn_queue_is_over(tn_queue *q); /* closed and empty */
void tn_queue_close(tn_queue *q);
