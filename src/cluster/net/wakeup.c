/* wakeup.c - a counter that one thread waits for and others increase. */
#include "cluster/net/wakeup.h"

#include "base/core/error.h"

#include <errno.h>
#include <time.h>

static const uint64_t ns_of_s = 1000000000;

void tn_wakeup_init(tn_wakeup *w)
{
    pthread_condattr_t attr;
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_condattr_init(&attr);
    int set = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC); /* that of tn_clock_ns */
    TN_ASSERT(set == 0);
    (void)pthread_cond_init(&w->signalled, &attr);
    (void)pthread_condattr_destroy(&attr);
    w->count = 0;
}

void tn_wakeup_done(tn_wakeup *w)
{
    (void)pthread_cond_destroy(&w->signalled);
    (void)pthread_mutex_destroy(&w->lock);
}

void tn_wakeup_signal(tn_wakeup *w)
{
    (void)pthread_mutex_lock(&w->lock);
    w->count++;
    (void)pthread_cond_broadcast(&w->signalled);
    (void)pthread_mutex_unlock(&w->lock);
}

uint64_t tn_wakeup_count(tn_wakeup *w)
{
    (void)pthread_mutex_lock(&w->lock);
    uint64_t count = w->count;
    (void)pthread_mutex_unlock(&w->lock);
    return count;
}

bool tn_wakeup_wait(tn_wakeup *w, uint64_t seen, uint64_t deadline_ns)
{
    const struct timespec until = {.tv_sec = (time_t)(deadline_ns / ns_of_s),
                                   .tv_nsec = (long)(deadline_ns % ns_of_s)};
    int late = 0;
    (void)pthread_mutex_lock(&w->lock);
    while (w->count == seen && late != ETIMEDOUT) {
        late = pthread_cond_timedwait(&w->signalled, &w->lock, &until);
    }
    bool is_new = w->count != seen;
    (void)pthread_mutex_unlock(&w->lock);
    return is_new;
}
