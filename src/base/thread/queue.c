/* queue.c - a ring under one mutex; two conditions, one per direction. */
#include "base/thread/queue.h"

#include "base/core/alloc.h"
#include "base/thread/threads.h"

struct tn_queue {
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t not_empty;
    pthread_cond_t not_full;
    bool closed;
    uint32_t capacity;
    uint32_t first; /* the oldest item */
    uint32_t count;
    void *item[];
};

tn_status tn_queue_new(tn_queue **out, uint32_t capacity, tn_error *err)
{
    *out = NULL;
    TN_ASSERT(capacity > 0);
    tn_queue *q = tn_try_alloc(1, sizeof *q + capacity * sizeof q->item[0], "a queue", err);
    if (q == NULL) {
        return TN_E_MEMORY;
    }
    pthread_mutex_init(&q->lock, NULL);
    tn_cond_init(&q->not_empty);
    pthread_cond_init(&q->not_full, NULL);
    q->capacity = capacity;
    *out = q;
    return TN_OK;
}

void tn_queue_free(tn_queue *q)
{
    if (q == NULL) {
        return;
    }
    pthread_cond_destroy(&q->not_full);
    pthread_cond_destroy(&q->not_empty);
    pthread_mutex_destroy(&q->lock);
    tn_free(q);
}

bool tn_queue_push(tn_queue *q, void *item)
{
    pthread_mutex_lock(&q->lock);
    while (q->count == q->capacity && !q->closed) {
        pthread_cond_wait(&q->not_full, &q->lock);
    }
    bool taken = !q->closed;
    if (taken) {
        TN_ASSERT(q->count < q->capacity);
        uint32_t room = q->capacity - q->first; /* places from the oldest item to the ring's end */
        q->item[q->count < room ? q->first + q->count : q->count - room] = item;
        q->count++;
        pthread_cond_signal(&q->not_empty);
    }
    pthread_mutex_unlock(&q->lock);
    return taken;
}

bool tn_queue_pop_until(tn_queue *q, uint64_t until_ns, void **out)
{
    bool late = false;
    pthread_mutex_lock(&q->lock);
    while (q->count == 0 && !q->closed && !late) {
        late = !tn_cond_wait_until(&q->not_empty, &q->lock, until_ns);
    }
    bool got = q->count > 0;
    if (got) {
        TN_ASSERT(q->first < q->capacity);
        *out = q->item[q->first];
        q->first = q->first + 1 == q->capacity ? 0 : q->first + 1;
        q->count--;
        pthread_cond_signal(&q->not_full);
    }
    pthread_mutex_unlock(&q->lock);
    return got;
}

bool tn_queue_pop(tn_queue *q, void **out)
{
    return tn_queue_pop_until(q, UINT64_MAX, out);
}

bool tn_queue_is_over(tn_queue *q)
{
    pthread_mutex_lock(&q->lock);
    bool over = q->closed && q->count == 0;
    pthread_mutex_unlock(&q->lock);
    return over;
}

void tn_queue_close(tn_queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->not_empty);
    pthread_cond_broadcast(&q->not_full);
    pthread_mutex_unlock(&q->lock);
}
