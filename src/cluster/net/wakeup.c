/* wakeup.c - a counter that one thread waits for and others increase. */
#include "cluster/net/wakeup.h"

#include "base/thread/threads.h"

void tn_wakeup_init(tn_wakeup *w)
{
    (void)pthread_mutex_init(&w->lock, NULL);
    tn_cond_init(&w->signalled);
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
    bool late = false;
    (void)pthread_mutex_lock(&w->lock);
    while (w->count == seen && !late) {
        late = !tn_cond_wait_until(&w->signalled, &w->lock, deadline_ns);
    }
    bool is_new = w->count != seen;
    (void)pthread_mutex_unlock(&w->lock);
    return is_new;
}
