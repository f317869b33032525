/* wakeup.h - one thread waits for news of several kinds, others ring when there are some.
 *
 *     uint64_t heard = tn_wakeup_count(wakeup);       before looking for news
 *     .. look at everything that may have news ..
 *     tn_wakeup_wait(wakeup, heard, deadline_ns);     returns at once if it rang since
 */
#ifndef TN_CLUSTER_WAKEUP_H
#define TN_CLUSTER_WAKEUP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tn_wakeup {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    uint64_t rings; /* guarded by lock */
} tn_wakeup;

void tn_wakeup_init(tn_wakeup *b);
void tn_wakeup_done(tn_wakeup *b);

void tn_wakeup_signal(tn_wakeup *b); /* any thread, never waits for long */
uint64_t tn_wakeup_count(tn_wakeup *b);

/* Until it has rung since `heard`, or the time of tn_clock_ns() has come: then false. */
bool tn_wakeup_wait(tn_wakeup *b, uint64_t heard, uint64_t deadline_ns);

#endif
