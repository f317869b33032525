/* partdealer.c - see partdealer.h. */
#include "train/partdealer.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "train/partbook.h"

#include <pthread.h>
#include <time.h>

enum { SELF = 0, LOOK_NS = 20000000 }; /* how often who waits for a part looks at *stop */

struct tn_partdealer {
    uint32_t epoch, n_parts;
    tn_dealer dealer;
    tn_partbook *book; /* of rank 0 */
    uint64_t ask;      /* of rank 0's reader, the last one .. */
    bool answered;     /* .. which has its answer; of the reader's thread */

    pthread_mutex_t lock; /* guards the ledger */
    pthread_cond_t changed;
    tn_ledger *ledger;
};

/* ---- the ledger ---- */

tn_ledger *tn_partdealer_lock(tn_partdealer *d)
{
    (void)pthread_mutex_lock(&d->lock);
    return d->ledger;
}

void tn_partdealer_unlock(tn_partdealer *d)
{
    (void)pthread_cond_broadcast(&d->changed);
    (void)pthread_mutex_unlock(&d->lock);
}

/* Tells the ledger which parts of rank 0 are over. Locked. */
static void settle(tn_partdealer *d, uint64_t now_ns)
{
    tn_ledger_held over;
    while (tn_partbook_over(d->book, &over, 1) > 0) {
        (void)tn_ledger_done(d->ledger, SELF, over.part, over.attempt, now_ns);
        tn_partbook_settle(d->book, 1);
    }
}

static void finish_parts(tn_partdealer *d, uint64_t now_ns)
{
    (void)tn_partdealer_lock(d);
    settle(d, now_ns);
    tn_partdealer_unlock(d);
}

/* ---- the reader's threads ---- */

/* Waits a little for a change. Locked. */
static void await_change(tn_partdealer *d)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_cond_timedwait(&d->changed, &d->lock, &until);
}

/* An ask is repeated under its id until it is answered. */
static tn_ledger_answer ask(tn_partdealer *d, bool wait, const atomic_bool *stop,
                            tn_ledger_deal *out)
{
    (void)pthread_mutex_lock(&d->lock);
    d->ask += d->answered;
    tn_ledger_answer answer = tn_ledger_ask(d->ledger, SELF, d->epoch, d->ask, tn_clock_ns(), out);
    while (answer == TN_LEDGER_WAIT && wait && !atomic_load(stop)) {
        await_change(d);
        answer = tn_ledger_ask(d->ledger, SELF, d->epoch, d->ask, tn_clock_ns(), out);
    }
    d->answered = answer != TN_LEDGER_WAIT;
    (void)pthread_mutex_unlock(&d->lock);
    return answer;
}

static tn_status next(void *arg, bool wait, const atomic_bool *stop, tn_dealt *out, bool *now,
                      tn_error *err)
{
    tn_partdealer *d = arg;
    tn_ledger_deal deal;
    tn_ledger_answer answer = ask(d, wait, stop, &deal);
    TN_ASSERT(answer != TN_LEDGER_OLD);
    if (answer == TN_LEDGER_NO_MORE) {
        return TN_END;
    }
    *now = answer == TN_LEDGER_PART;
    if (!*now) {
        return wait ? TN_E_STOPPED : TN_OK;
    }
    TN_TRY(tn_partbook_add(d->book, &deal, err));
    *out = (tn_dealt){.place = deal.part, .position = deal.position};
    return TN_OK;
}

static void flushed(void *arg, uint32_t parts, uint64_t batches)
{
    tn_partdealer *d = arg;
    tn_partbook_flushed(d->book, parts, batches);
    finish_parts(d, tn_clock_ns());
}

/* ---- opening ---- */

static tn_status make_ledger(tn_partdealer *d, const tn_partdealer_opts *opts, tn_error *err)
{
    const tn_data_map *map = opts->map;
    tn_ledger_span *span =
        tn_try_alloc((size_t)map->n_parts + 1, sizeof *span, "the parts of the data", err);
    if (span == NULL) {
        return TN_E_MEMORY;
    }
    for (uint32_t i = 0; i < map->n_parts; i++) {
        span[i] = (tn_ledger_span){map->part[i].source, map->part[i].first, map->part[i].end};
    }
    tn_ledger_opts ledger = {.epoch = opts->epoch,
                             .ranks = opts->ranks,
                             .n_parts = map->n_parts,
                             .mode = opts->mode,
                             .relaxed = opts->relaxed,
                             .part = span};
    tn_status status = tn_ledger_new(&d->ledger, &ledger, err);
    tn_free(span);
    return status;
}

static tn_status stand_at(const tn_partdealer *d, const tn_partdealer_opts *opts, tn_error *err)
{
    const tn_data_stand *stand = opts->stand;
    if (stand == NULL || !stand->within) {
        return TN_OK;
    }
    TN_TRY(tn_data_map_check_stand(opts->map, stand, err));
    tn_status status = tn_ledger_restore(d->ledger, stand->part, stand->n_parts, err);
    return status == TN_E_CKPT ? tn_data_map_refuse(err) : status;
}

static void init_lock(tn_partdealer *d)
{
    pthread_condattr_t attr;
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&d->lock, NULL);
    (void)pthread_cond_init(&d->changed, &attr);
    (void)pthread_condattr_destroy(&attr);
}

tn_status tn_partdealer_open(tn_partdealer **out, const tn_partdealer_opts *opts, tn_error *err)
{
    *out = NULL;
    tn_partdealer *d = tn_try_alloc(1, sizeof *d, "a dealer of parts", err);
    if (d == NULL) {
        return TN_E_MEMORY;
    }
    init_lock(d);
    d->epoch = opts->epoch;
    d->n_parts = opts->map->n_parts;
    d->answered = true;
    d->dealer = (tn_dealer){.next = next, .arg = d, .flushed = flushed};
    tn_status status = tn_partbook_new(&d->book, err);
    if (status == TN_OK) {
        status = make_ledger(d, opts, err);
    }
    if (status == TN_OK) {
        status = stand_at(d, opts, err);
    }
    if (status != TN_OK) {
        tn_partdealer_close(d);
        return status;
    }
    *out = d;
    return TN_OK;
}

void tn_partdealer_close(tn_partdealer *d)
{
    if (d != NULL) {
        tn_ledger_free(d->ledger);
        tn_partbook_free(d->book);
        (void)pthread_mutex_destroy(&d->lock);
        (void)pthread_cond_destroy(&d->changed);
        tn_free(d);
    }
}

uint32_t tn_partdealer_epoch(const tn_partdealer *d)
{
    return d->epoch;
}

const tn_dealer *tn_partdealer_dealer(const tn_partdealer *d)
{
    return &d->dealer;
}

/* ---- what is learned ---- */

void tn_partdealer_note(tn_partdealer *d, const tn_progress *at, uint64_t now_ns)
{
    TN_ASSERT(at->epoch == d->epoch);
    tn_partbook_note(d->book, at);
    finish_parts(d, now_ns);
}

const tn_manifest_part *tn_partdealer_parts(tn_partdealer *d, tn_arena *arena, uint32_t *n,
                                            uint64_t now_ns)
{
    tn_manifest_part *part = TN_NEW_ARRAY(arena, tn_manifest_part, d->n_parts + 1);
    tn_ledger_held *held = TN_NEW_ARRAY(arena, tn_ledger_held, d->n_parts + 1);
    tn_ledger *ledger = tn_partdealer_lock(d);
    settle(d, now_ns); /* the reader may have told just now */
    uint32_t n_held = tn_partbook_held(d->book, held, d->n_parts);
    n_held = n_held < d->n_parts ? n_held : d->n_parts;
    (void)tn_ledger_claim(ledger, SELF, held, n_held, now_ns);
    *n = tn_ledger_save(ledger, part);
    tn_partdealer_unlock(d);
    return part;
}
