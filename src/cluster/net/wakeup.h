/* wakeup.h - one thread waits for news of several kinds, others ring when there are some.
 *
 *     uint64_t heard = tn_bell_rings(bell);       before looking for news
 *     .. look at everything that may have news ..
 *     tn_bell_wait(bell, heard, deadline_ns);     returns at once if it rang since
 */
#ifndef TN_CLUSTER_WAKEUP_H
#define TN_CLUSTER_WAKEUP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tn_bell {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    uint64_t rings; /* guarded by lock */
} tn_bell;

void tn_bell_init(tn_bell *b);
void tn_bell_done(tn_bell *b);

void tn_bell_ring(tn_bell *b); /* any thread, never waits for long */
uint64_t tn_bell_rings(tn_bell *b);

/* Until it has rung since `heard`, or the time of tn_clock_ns() has come: then false. */
bool tn_bell_wait(tn_bell *b, uint64_t heard, uint64_t deadline_ns);

#endif
