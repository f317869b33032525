/* crowd.c - see crowd.h. */
#include "cluster/crowd.h"

#include <time.h>

void crowd_enter(crowd *c, uint32_t rank, tn_reader *reader)
{
    (void)pthread_mutex_lock(&c->lock);
    c->reader[rank] = reader;
    (void)pthread_mutex_unlock(&c->lock);
}

void crowd_leave(crowd *c, uint32_t rank, bool stands)
{
    (void)pthread_mutex_lock(&c->lock);
    c->reader[rank] = NULL;
    c->stands = c->stands || stands;
    c->at_work--;
    (void)pthread_cond_signal(&c->left);
    (void)pthread_mutex_unlock(&c->lock);
}

void crowd_watch(crowd *c)
{
    (void)pthread_mutex_lock(&c->lock);
    while (c->at_work > 0) {
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        bool woken = pthread_cond_timedwait(&c->left, &c->lock, &until) == 0;
        for (uint32_t r = 0; !woken && c->stands && r < CROWD_MAX; r++) {
            if (c->reader[r] != NULL) {
                tn_reader_stop(c->reader[r]);
            }
        }
    }
    (void)pthread_mutex_unlock(&c->lock);
}
