/* reader_stopper.c - see reader_stopper.h. A handler may only set the flag, so somebody has to look
 * at it. */
#include "train/step/reader_stopper.h"

#include "base/core/alloc.h"
#include "base/thread/threads.h"

#include <pthread.h>
#include <time.h>

enum { SLICE_NS = 50 * 1000 * 1000, SECOND_NS = 1000 * 1000 * 1000 };

struct tn_stopper {
    tn_reader *reader;
    const atomic_bool *flag;
    tn_thread *thread;
    pthread_mutex_t lock; /* guards `over` */
    pthread_cond_t ended; /* over turned true */
    bool over;
};

/* The end of the next slice of waiting. */
static struct timespec slice_end(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += SLICE_NS;
    if (t.tv_nsec >= SECOND_NS) {
        t.tv_nsec -= SECOND_NS;
        t.tv_sec++;
    }
    return t;
}

static tn_status look(void *arg, tn_error *err)
{
    (void)err;
    tn_stopper *s = arg;
    (void)pthread_mutex_lock(&s->lock);
    while (!s->over && !atomic_load(s->flag)) {
        const struct timespec until = slice_end();
        (void)pthread_cond_timedwait(&s->ended, &s->lock, &until);
    }
    bool over = s->over;
    (void)pthread_mutex_unlock(&s->lock);
    if (!over) {
        tn_reader_stop(s->reader);
    }
    return TN_OK;
}

tn_status tn_stopper_start(tn_stopper **out, tn_reader *reader, const atomic_bool *flag,
                           tn_error *err)
{
    *out = NULL;
    tn_stopper *s = tn_try_alloc(1, sizeof *s, "a stopper", err);
    if (s == NULL) {
        return TN_E_MEMORY;
    }
    s->reader = reader;
    s->flag = flag;
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&s->lock, NULL);
    (void)pthread_cond_init(&s->ended, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    tn_status status = tn_thread_start(&s->thread, "tnet-stopper", look, s, err);
    if (status != TN_OK) {
        tn_stopper_end(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

void tn_stopper_end(tn_stopper *s)
{
    if (s == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&s->lock);
    s->over = true;
    (void)pthread_cond_signal(&s->ended);
    (void)pthread_mutex_unlock(&s->lock);
    tn_status status = tn_thread_join(s->thread, NULL);
    TN_ASSERT(status == TN_OK);
    (void)pthread_cond_destroy(&s->ended);
    (void)pthread_mutex_destroy(&s->lock);
    tn_free(s);
}
