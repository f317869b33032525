/* part_progress.c - the parts that a reader was dealt, as a list. */
#include "cluster/train/part_progress.h"

#include "base/core/alloc.h"
#include "base/thread/threads.h"

#include <string.h>

void tn_part_progress_init(tn_part_progress *b)
{
    *b = (tn_part_progress){.n = 0};
    (void)pthread_mutex_init(&b->lock, NULL);
    tn_cond_init(&b->changed);
}

void tn_part_progress_done(tn_part_progress *b)
{
    (void)pthread_mutex_destroy(&b->lock);
    (void)pthread_cond_destroy(&b->changed);
    tn_free(b->entry);
}

void tn_part_progress_wait(tn_part_progress *b, uint64_t until_ns)
{
    (void)tn_cond_wait_until(&b->changed, &b->lock, until_ns);
}

uint64_t tn_part_progress_records(tn_part_progress *b)
{
    (void)pthread_mutex_lock(&b->lock);
    const uint64_t records = b->records;
    (void)pthread_mutex_unlock(&b->lock);
    return records;
}

uint32_t tn_part_progress_ended(tn_part_progress *b)
{
    (void)pthread_mutex_lock(&b->lock);
    const uint32_t ended = b->over;
    (void)pthread_mutex_unlock(&b->lock);
    return ended;
}

/* Parts that are settled are nobody's business, but a reader counts all that it was dealt. */
static tn_status grow(tn_part_progress *b, tn_error *err)
{
    const uint32_t most = 2 * b->most + 16;
    TN_TRY(TN_GROW(b->entry, b->n, most, "a reader's parts", err));
    b->most = most;
    return TN_OK;
}

tn_status tn_part_progress_add(tn_part_progress *b, const tn_ledger_deal *deal, tn_error *err)
{
    if (b->n == b->most) {
        TN_TRY(grow(b, err));
    }
    b->entry[b->n++] =
        (tn_ledger_held){.part = deal->part, .attempt = deal->attempt, .position = deal->position};
    return TN_OK;
}

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
    TN_ASSERT(at->part < b->n && at->part >= b->over);
    b->over = at->part;
    b->entry[at->part].position = at->position;
    b->records = at->records;
    b->learned++;
    finish(b);
}

void tn_part_progress_flushed(tn_part_progress *b, uint32_t parts, uint64_t batches,
                              uint64_t records)
{
    TN_ASSERT(parts <= b->n && parts >= b->flushed && batches >= b->flushed_batch);
    b->flushed = parts;
    b->flushed_batch = batches;
    b->flushed_records = records;
    finish(b);
}

uint32_t tn_part_progress_over(const tn_part_progress *b, const tn_ledger_held **out)
{
    *out = b->n > 0 ? &b->entry[b->settled] : NULL;
    return b->over - b->settled;
}

void tn_part_progress_settle(tn_part_progress *b, uint32_t n)
{
    TN_ASSERT(n <= b->over - b->settled);
    b->settled += n;
}

uint32_t tn_part_progress_held(const tn_part_progress *b, const tn_ledger_held **out)
{
    *out = b->n > 0 ? &b->entry[b->settled] : NULL;
    return b->n - b->settled;
}

bool tn_part_progress_drop(tn_part_progress *b, tn_ledger_held *out)
{
    if (b->n == b->settled) {
        b->n = b->flushed = b->over = b->settled = 0;
        b->learned = b->flushed_batch = b->flushed_records = b->records = 0;
        return false;
    }
    *out = b->entry[--b->n];
    b->over = b->over < b->n ? b->over : b->n;
    return true;
}
