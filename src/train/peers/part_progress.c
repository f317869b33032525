/* part_progress.c - the parts that a reader was dealt, as a list under one lock. */
#include "train/peers/part_progress.h"

#include "base/core/alloc.h"

#include <pthread.h>

typedef struct entry {
    uint32_t part, attempt;
    uint64_t position; /* where the reader begins, then what is learned */
} entry;

struct tn_part_progress {
    pthread_mutex_t lock; /* guards all below */
    entry *entry;         /* dealt[0 .. n-1] */
    uint32_t n, most;
    uint64_t learned;         /* batches */
    uint32_t flushed;         /* so many parts are over .. */
    uint64_t flushed_batch;   /* .. when so many batches are learned, .. */
    uint64_t flushed_records; /* .. and then so many records .. */
    uint64_t records;         /* .. of these so many are */
    uint32_t over;            /* so many are */
    uint32_t settled;         /* .. and of these so many */
};

tn_status tn_part_progress_new(tn_part_progress **out, tn_error *err)
{
    *out = NULL;
    tn_part_progress *b = NULL;
    TN_TRY(TN_ALLOC(b, 1, "a reader's parts", err));
    (void)pthread_mutex_init(&b->lock, NULL);
    *out = b;
    return TN_OK;
}

void tn_part_progress_free(tn_part_progress *b)
{
    if (b != NULL) {
        (void)pthread_mutex_destroy(&b->lock);
        tn_free(b->entry);
        tn_free(b);
    }
}

/* Parts that are settled are nobody's business, but a reader counts all that it was dealt. */
static tn_status grow(tn_part_progress *b, tn_error *err)
{
    if (b->n < b->most) {
        return TN_OK;
    }
    uint32_t most = 2 * b->most + 16;
    entry *more = NULL;
    TN_TRY(TN_ALLOC(more, most, "a reader's parts", err));
    for (uint32_t i = 0; i < b->n; i++) {
        more[i] = b->entry[i];
    }
    tn_free(b->entry);
    b->entry = more;
    b->most = most;
    return TN_OK;
}

tn_status tn_part_progress_add(tn_part_progress *b, const tn_ledger_deal *deal, tn_error *err)
{
    (void)pthread_mutex_lock(&b->lock);
    tn_status status = grow(b, err);
    if (status == TN_OK) {
        b->entry[b->n++] = (entry){deal->part, deal->attempt, deal->position};
    }
    (void)pthread_mutex_unlock(&b->lock);
    return status;
}

/* Locked. */
static void finish(tn_part_progress *b)
{
    TN_ASSERT(b->settled <= b->over && b->over <= b->n);
    if (b->learned >= b->flushed_batch && b->flushed > b->over) {
        b->over = b->flushed;
        b->records = b->flushed_records > b->records ? b->flushed_records : b->records;
    }
}

void tn_part_progress_note(tn_part_progress *b, const tn_progress *at)
{
    (void)pthread_mutex_lock(&b->lock);
    TN_ASSERT(at->part < b->n && at->part >= b->over);
    b->over = at->part;
    b->entry[at->part].position = at->position;
    b->records = at->records;
    b->learned++;
    finish(b);
    (void)pthread_mutex_unlock(&b->lock);
}

void tn_part_progress_flushed(tn_part_progress *b, uint32_t parts, uint64_t batches,
                              uint64_t records)
{
    (void)pthread_mutex_lock(&b->lock);
    TN_ASSERT(parts <= b->n && parts >= b->flushed && batches >= b->flushed_batch);
    b->flushed = parts;
    b->flushed_batch = batches;
    b->flushed_records = records;
    finish(b);
    (void)pthread_mutex_unlock(&b->lock);
}

uint64_t tn_part_progress_records(tn_part_progress *b)
{
    (void)pthread_mutex_lock(&b->lock);
    uint64_t records = b->records;
    (void)pthread_mutex_unlock(&b->lock);
    return records;
}

uint32_t tn_part_progress_ended(tn_part_progress *b)
{
    (void)pthread_mutex_lock(&b->lock);
    uint32_t n = b->over;
    (void)pthread_mutex_unlock(&b->lock);
    return n;
}

/* Entries from .. to - 1. Locked. */
static uint32_t list(const tn_part_progress *b, uint32_t from, uint32_t to, tn_ledger_held *out,
                     uint32_t most)
{
    TN_ASSERT(from <= to && to <= b->n + 1);
    for (uint32_t i = from; i < to && i - from < most; i++) {
        const entry *e = &b->entry[i];
        out[i - from] =
            (tn_ledger_held){.part = e->part, .attempt = e->attempt, .position = e->position};
    }
    return to - from;
}

uint32_t tn_part_progress_over(tn_part_progress *b, tn_ledger_held *out, uint32_t most)
{
    (void)pthread_mutex_lock(&b->lock);
    uint32_t n = list(b, b->settled, b->over, out, most);
    (void)pthread_mutex_unlock(&b->lock);
    return n;
}

void tn_part_progress_settle(tn_part_progress *b, uint32_t n)
{
    (void)pthread_mutex_lock(&b->lock);
    TN_ASSERT(n <= b->over - b->settled);
    b->settled += n;
    (void)pthread_mutex_unlock(&b->lock);
}

uint32_t tn_part_progress_held(tn_part_progress *b, tn_ledger_held *out, uint32_t most)
{
    (void)pthread_mutex_lock(&b->lock);
    uint32_t n = list(b, b->settled, b->n, out, most);
    (void)pthread_mutex_unlock(&b->lock);
    return n;
}

bool tn_part_progress_drop(tn_part_progress *b, tn_ledger_held *out)
{
    (void)pthread_mutex_lock(&b->lock);
    bool has = b->n > b->settled;
    if (has) {
        b->n--;
        (void)list(b, b->n, b->n + 1, out, 1);
        b->over = b->over < b->n ? b->over : b->n;
    } else {
        b->n = b->flushed = b->over = b->settled = 0;
        b->learned = b->flushed_batch = b->flushed_records = b->records = 0;
    }
    (void)pthread_mutex_unlock(&b->lock);
    return has;
}
