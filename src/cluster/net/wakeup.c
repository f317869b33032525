/* wakeup.c - see wakeup.h. */
#include "cluster/net/wakeup.h"

#include "base/core/error.h"

#include <errno.h>
#include <time.h>

static const uint64_t ns_of_s = 1000000000;

void tn_wakeup_init(tn_wakeup *b)
{
    pthread_condattr_t attr;
    (void)pthread_mutex_init(&b->lock, NULL);
    (void)pthread_condattr_init(&attr);
    int set = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* that of tn_clock_ns */
    TN_ASSERT(set == 0);
    (void)pthread_cond_init(&b->rung, &attr);
    (void)pthread_condattr_destroy(&attr);
    b->rings = 0;
}

void tn_wakeup_done(tn_wakeup *b)
{
    (void)pthread_cond_destroy(&b->rung);
    (void)pthread_mutex_destroy(&b->lock);
}

void tn_wakeup_signal(tn_wakeup *b)
{
    (void)pthread_mutex_lock(&b->lock);
    b->rings++;
    (void)pthread_cond_broadcast(&b->rung);
    (void)pthread_mutex_unlock(&b->lock);
}

uint64_t tn_wakeup_count(tn_wakeup *b)
{
    (void)pthread_mutex_lock(&b->lock);
    uint64_t rings = b->rings;
    (void)pthread_mutex_unlock(&b->lock);
    return rings;
}

bool tn_wakeup_wait(tn_wakeup *b, uint64_t heard, uint64_t deadline_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(deadline_ns / ns_of_s),
                                   .tv_nsec = (long)(deadline_ns % ns_of_s)};
    int late = 0;
    (void)pthread_mutex_lock(&b->lock);
    while (b->rings == heard && late != ETIMEDOUT) {
        late = pthread_cond_timedwait(&b->rung, &b->lock, &until);
    }
    bool rang = b->rings != heard;
    (void)pthread_mutex_unlock(&b->lock);
    return rang;
}
