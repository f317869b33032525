/* out_message.c - the pool of buffers for messages, with counted references. */
#include "cluster/net/out_message.h"

#include "base/core/alloc.h"

#include <pthread.h>

enum { BIN_FIRST = 9, BIN_LAST = 30, BINS = BIN_LAST - BIN_FIRST + 1 }; /* 512 bytes .. 1 GiB */

struct tn_out_messages {
    pthread_mutex_t lock;
    tn_out_message *idle[BINS]; /* guarded by lock */
    _Atomic uint32_t n_taken;
};

tn_status tn_out_messages_new(tn_out_messages **out, tn_error *err)
{
    TN_TRY(TN_ALLOC(*out, 1, "messages", err));
    (void)pthread_mutex_init(&(*out)->lock, NULL);
    return TN_OK;
}

void tn_out_messages_free(tn_out_messages *pool)
{
    if (pool == NULL) {
        return;
    }
    TN_ASSERT(atomic_load(&pool->n_taken) == 0);
    for (uint32_t bin = 0; bin < BINS; bin++) {
        while (pool->idle[bin] != NULL) {
            tn_out_message *p = pool->idle[bin];
            pool->idle[bin] = p->next;
            tn_free(p);
        }
    }
    (void)pthread_mutex_destroy(&pool->lock);
    tn_free(pool);
}

static uint32_t bin_of(uint64_t bytes)
{
    uint32_t bin = 0;
    while (UINT64_C(1) << (BIN_FIRST + bin) < bytes) {
        bin++;
    }
    return bin;
}

tn_status tn_out_message_take(tn_out_message **out, tn_out_messages *pool, uint64_t payload,
                              tn_error *err)
{
    *out = NULL;
    if (payload > (UINT64_C(1) << BIN_LAST) - TN_FRAME_HEAD) {
        return tn_fail(err, TN_E_LIMIT, "a message of %llu bytes is longer than 1 GiB",
                       (unsigned long long)payload);
    }
    const uint32_t bin = bin_of(payload + TN_FRAME_HEAD);
    (void)pthread_mutex_lock(&pool->lock);
    tn_out_message *p = pool->idle[bin];
    if (p != NULL) {
        pool->idle[bin] = p->next;
    }
    (void)pthread_mutex_unlock(&pool->lock);
    if (p == NULL) {
        p = tn_try_alloc(1, sizeof *p + ((size_t)1 << (BIN_FIRST + bin)), "a message", err);
        if (p == NULL) {
            return TN_E_MEMORY;
        }
        p->bin = bin;
    }
    (void)atomic_fetch_add(&pool->n_taken, 1);
    TN_ASSERT(atomic_load_explicit(&p->references, memory_order_relaxed) == 0);
    p->frame = (tn_frame){.bytes = payload};
    p->sealed = false;
    p->to_incarnation = 0;
    p->next = NULL;
    p->pool = pool;
    atomic_store_explicit(&p->references, 1, memory_order_relaxed);
    *out = p;
    return TN_OK;
}

void tn_out_message_hold(tn_out_message *p)
{
    const uint32_t before = atomic_fetch_add_explicit(&p->references, 1, memory_order_relaxed);
    TN_ASSERT(before > 0);
}

void tn_out_message_drop(tn_out_message *p)
{
    if (p == NULL) {
        return;
    }
    const uint32_t before = atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel);
    TN_ASSERT(before > 0);
    if (before > 1) {
        return;
    }
    tn_out_messages *pool = p->pool;
    (void)pthread_mutex_lock(&pool->lock);
    p->next = pool->idle[p->bin];
    pool->idle[p->bin] = p;
    const uint32_t taken = atomic_fetch_sub(&pool->n_taken, 1);
    TN_ASSERT(taken > 0);
    (void)pthread_mutex_unlock(&pool->lock);
}
