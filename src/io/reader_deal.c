/* reader_deal.c - which parts are this reader's: all of them, or those that it is dealt. */
#include "base/alloc.h"
#include "io/reader_private.h"

/* Every part from where the reader began, in the order of the epoch. */
static tn_status deal_all(void *arg, bool wait, const atomic_bool *stop, tn_dealt *out, bool *now,
                          tn_error *err)
{
    (void)wait;
    (void)stop;
    (void)err;
    tn_reader *r = arg;
    const tn_progress *from = &r->opts.from;
    uint32_t place = from->part + r->n_taken;
    if (place >= r->files->n_parts) {
        return TN_END;
    }
    *out = (tn_dealt){.place = place, .position = r->n_taken == 0 ? from->position : 0};
    *now = true;
    r->n_taken++;
    return TN_OK;
}

void tn_reader_begin_deal(tn_reader *r)
{
    r->dealer = r->opts.dealer != NULL ? *r->opts.dealer : (tn_dealer){deal_all, r};
}

/* A part may come again, when its first reader was lost: there is no last one. */
static tn_status append(tn_reader *r, const tn_dealt *dealt, tn_error *err)
{
    if (r->n_dealt == r->dealt_max) {
        uint32_t most = 2 * r->dealt_max + 16;
        tn_dealt *more = tn_try_alloc(most, sizeof *more, "the parts that were dealt", err);
        if (more == NULL) {
            return TN_E_MEMORY;
        }
        for (uint32_t i = 0; i < r->n_dealt; i++) {
            more[i] = r->dealt[i];
        }
        tn_free(r->dealt);
        r->dealt = more;
        r->dealt_max = most;
    }
    r->dealt[r->n_dealt++] = *dealt;
    return TN_OK;
}

/* Tells the assembler what came of asking. */
static tn_status publish(tn_reader *r, tn_status status, const tn_dealt *dealt, bool now,
                         tn_error *err)
{
    (void)pthread_mutex_lock(&r->lock);
    r->deal_waits = status == TN_OK && !now;
    if (status == TN_OK && now) {
        status = append(r, dealt, err);
    }
    r->deal_over = status != TN_OK;
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
        status = r->dealer.next(r->dealer.arg, turn > 0, &r->stop, &dealt, &now, &err);
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
    while (!atomic_load(&r->stop) && !r->ended && r->n_dealt <= i && !r->deal_over &&
           (wait || !r->deal_waits)) {
        (void)pthread_cond_wait(&r->changed, &r->lock);
    }
    *now = r->n_dealt > i;
    if (*now) {
        *out = r->dealt[i];
    }
    bool stopped = r->ended || atomic_load(&r->stop);
    tn_status status = *now || (r->deal_waits && !wait) ? TN_OK : TN_END;
    (void)pthread_mutex_unlock(&r->lock);
    return stopped ? TN_E_STOPPED : status;
}

tn_dealt tn_reader_dealt(tn_reader *reader, uint32_t i)
{
    (void)pthread_mutex_lock(&reader->lock);
    TN_ASSERT(i < reader->n_dealt);
    tn_dealt dealt = reader->dealt[i];
    (void)pthread_mutex_unlock(&reader->lock);
    return dealt;
}
