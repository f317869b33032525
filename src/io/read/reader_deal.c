/* reader_deal.c - which parts are this reader's: all of them, or those that it is dealt. */
#include "base/core/alloc.h"
#include "io/read/reader_private.h"

/* Every part from where the reader began, in the order of the epoch; or those of its share. */
static tn_status deal_all(void *arg, bool wait, const atomic_bool *stop, tn_dealt *out, bool *now,
                          tn_error *err)
{
    (void)wait;
    (void)stop;
    (void)err;
    tn_reader *r = arg;
    const tn_progress *from = &r->opts.from;
    const uint64_t every = r->opts.shares > 0 ? r->opts.shares : 1;
    const uint64_t place = r->opts.share + every * (from->part + (uint64_t)r->deal.n_taken);
    if (place >= r->files->n_parts) {
        return TN_END;
    }
    *out =
        (tn_dealt){.place = (uint32_t)place, .position = r->deal.n_taken == 0 ? from->position : 0};
    *now = true;
    r->deal.n_taken++;
    return TN_OK;
}

tn_status tn_reader_begin_deal(tn_reader *r, tn_error *err)
{
    const tn_dealer own = {.next = deal_all, .arg = r};
    tn_dealer *d = &r->deal.dealer;
    *d = r->opts.dealer != NULL ? *r->opts.dealer : own;
    return d->begin != NULL ? d->begin(d->arg, r, err) : TN_OK;
}

void tn_reader_end_deal(tn_reader *r)
{
    for (uint32_t i = 0; i < r->deal.n; i++) {
        tn_free(r->deal.part[i].reason);
    }
    tn_free(r->deal.part);
}

/* A part may come again, when its first reader was lost: there is no last one. */
static tn_status append(tn_reader *r, const tn_dealt *dealt, tn_error *err)
{
    if (r->deal.n == r->deal.most) {
        uint32_t most = 2 * r->deal.most + 16;
        tn_deal_part *more = tn_try_alloc(most, sizeof *more, "the parts that were dealt", err);
        if (more == NULL) {
            return TN_E_MEMORY;
        }
        for (uint32_t i = 0; i < r->deal.n; i++) {
            more[i] = r->deal.part[i];
        }
        tn_free(r->deal.part);
        r->deal.part = more;
        r->deal.most = most;
    }
    r->deal.part[r->deal.n++] = (tn_deal_part){.dealt = *dealt};
    return TN_OK;
}

/* Tells the assembler what came of asking. */
static tn_status publish(tn_reader *r, tn_status status, const tn_dealt *dealt, bool now,
                         tn_error *err)
{
    (void)pthread_mutex_lock(&r->lock);
    r->deal.waits = status == TN_OK && !now;
    if (status == TN_OK && now) {
        status = append(r, dealt, err);
    }
    r->deal.over = status == TN_END; /* a failure ends the reader itself */
    (void)pthread_cond_broadcast(&r->changed);
    (void)pthread_mutex_unlock(&r->lock);
    return status;
}

bool tn_reader_deal(tn_reader *r, uint32_t *part)
{
    tn_dealt dealt = {0};
    tn_error err = {0};
    bool now = false;
    tn_status status = TN_OK;
    for (uint32_t turn = 0; status == TN_OK && !now; turn++) {
        status = r->deal.dealer.next(r->deal.dealer.arg, turn > 0, &r->stop, &dealt, &now, &err);
        TN_ASSERT(status != TN_OK || !now || dealt.place < r->files->n_parts);
        status = publish(r, status, &dealt, now, &err);
    }
    if (status != TN_OK && status != TN_END) {
        tn_reader_end(r, status, &err);
    }
    *part = status == TN_OK ? r->order[dealt.place] : 0;
    return status == TN_OK;
}

tn_status tn_reader_await_deal(tn_reader *r, uint32_t i, bool wait, tn_dealt *out, bool *now)
{
    (void)pthread_mutex_lock(&r->lock);
    while (!atomic_load(&r->stop) && !r->ended && r->deal.n <= i && !r->deal.over &&
           (wait || !r->deal.waits)) {
        (void)pthread_cond_wait(&r->changed, &r->lock);
    }
    *now = r->deal.n > i;
    if (*now) {
        *out = r->deal.part[i].dealt;
    }
    bool stopped = r->ended || atomic_load(&r->stop);
    tn_status status = *now || (r->deal.waits && !wait) ? TN_OK : TN_END;
    (void)pthread_mutex_unlock(&r->lock);
    return stopped ? TN_E_STOPPED : status;
}

tn_dealt tn_reader_dealt(tn_reader *reader, uint32_t i)
{
    (void)pthread_mutex_lock(&reader->lock);
    TN_ASSERT(i < reader->deal.n);
    tn_dealt dealt = reader->deal.part[i].dealt;
    (void)pthread_mutex_unlock(&reader->lock);
    return dealt;
}
