/* wakeup.h - one thread waits for news of several kinds, other threads wake it up when there are
 * some.
 *
 *     uint64_t seen = tn_wakeup_count(wakeup);        before looking for news
 *     .. look at everything that may have news ..
 *     tn_wakeup_wait(wakeup, seen, deadline_ns);      returns at once if it was signalled since
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tn_wakeup {
    pthread_mutex_t lock;
    pthread_cond_t signalled;
    uint64_t count; /* guarded by lock */
} tn_wakeup;

void tn_wakeup_init(tn_wakeup *w);
void tn_wakeup_done(tn_wakeup *w);

void tn_wakeup_signal(tn_wakeup *w); /* any thread, never waits for long */
uint64_t tn_wakeup_count(tn_wakeup *w);

/* Waits until it is signalled after `seen`, or until the deadline of tn_clock_ns(): then false. */
bool tn_wakeup_wait(tn_wakeup *w, uint64_t seen, uint64_t deadline_ns);
