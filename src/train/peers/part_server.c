/* part_server.c - answers what other ranks ask for, and finds stragglers. */
#include "train/peers/part_server.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/log.h"

#include <pthread.h>

struct tn_part_server {
    tn_part_server_callbacks voice;
    uint32_t ranks;
    atomic_bool asked; /* this process is to give back what it holds */
    tn_frame *frame;   /* ranks: the last ask of each; guarded by the ledger */

    pthread_mutex_t lock; /* guards the next; taken before the ledger's */
    tn_part_dealer *dealer;
};

tn_status tn_part_server_new(tn_part_server **out, uint32_t ranks,
                             const tn_part_server_callbacks *voice, tn_error *err)
{
    *out = NULL;
    tn_part_server *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "the dealing of parts", err));
    s->voice = *voice;
    s->ranks = ranks;
    (void)pthread_mutex_init(&s->lock, NULL);
    s->frame = tn_try_alloc(ranks, sizeof *s->frame, "the dealing of parts", err);
    if (s->frame == NULL) {
        tn_part_server_free(s);
        return TN_E_MEMORY;
    }
    *out = s;
    return TN_OK;
}

void tn_part_server_free(tn_part_server *s)
{
    if (s != NULL) {
        (void)pthread_mutex_destroy(&s->lock);
        tn_free(s->frame);
        tn_free(s);
    }
}

/* ---- answers ---- */

static void fill(tn_part_note *note, tn_ledger_answer answer, const tn_ledger_deal *deal)
{
    note->answer = answer == TN_LEDGER_PART   ? TN_PART_IS
                   : answer == TN_LEDGER_WAIT ? TN_PART_WAIT
                                              : TN_PART_NO_MORE;
    if (answer == TN_LEDGER_PART) {
        note->part = deal->part;
        note->attempt = deal->attempt;
        note->position = deal->position;
        note->source = deal->span.source;
        note->begin = deal->span.begin;
        note->end = deal->span.end;
    }
}

/* Under the ledger's lock. */
static void wake(void *arg, const tn_ledger_wake *w)
{
    const tn_part_server *s = arg;
    TN_ASSERT(w->rank < s->ranks && w->answer != TN_LEDGER_WAIT);
    tn_part_note note = {.epoch = tn_part_dealer_epoch(s->dealer), .id = w->id};
    fill(&note, w->answer, &w->deal);
    s->voice.deal(s->voice.arg, &s->frame[w->rank], &note);
}

/* Numbers from outside; those that are none of a part mean nothing to the ledger. */
static tn_ledger_held held_at(uint32_t rank, const tn_note_parts *parts, size_t i)
{
    TN_ASSERT(i < parts->part.n && i < parts->attempt.n && i < parts->position.n);
    const uint64_t part = parts->part.at[i];
    const uint64_t attempt = parts->attempt.at[i];
    return (tn_ledger_held){.rank = rank,
                            .part = part < UINT32_MAX ? (uint32_t)part : UINT32_MAX,
                            .attempt = attempt < UINT32_MAX ? (uint32_t)attempt : UINT32_MAX,
                            .position = parts->position.at[i]};
}

static void serve(tn_part_server *s, const tn_frame *frame, const tn_ask_note *ask,
                  tn_part_note *answer)
{
    TN_ASSERT(frame->rank < s->ranks);
    tn_ledger_deal deal;
    tn_ledger *ledger = tn_part_dealer_lock(s->dealer);
    const uint64_t time = tn_part_dealer_time(s->dealer, tn_clock_ns());
    for (size_t i = 0; i < ask->done.part.n; i++) {
        const tn_ledger_held done = held_at(frame->rank, &ask->done, i);
        (void)tn_ledger_done(ledger, frame->rank, done.part, done.attempt, time);
    }
    if (ask->id != 0) {
        s->frame[frame->rank] = *frame;
        s->frame[frame->rank].sequence = 0; /* of a word that comes by itself */
        s->frame[frame->rank].payload = NULL;
        fill(answer, tn_ledger_ask(ledger, frame->rank, (uint32_t)ask->epoch, ask->id, time, &deal),
             &deal);
    }
    tn_part_dealer_unlock(s->dealer);
}

static bool is_of_epoch(const tn_part_server *s, uint64_t epoch)
{
    return s->dealer != NULL && tn_part_dealer_epoch(s->dealer) == epoch;
}

static void take_ask(void *arg, const tn_frame *frame, const tn_ask_note *ask)
{
    tn_part_server *s = arg;
    tn_part_note answer = {
        .answer = TN_PART_WAIT, .epoch = ask->epoch, .id = ask->id, .number = ask->number};
    (void)pthread_mutex_lock(&s->lock);
    if (is_of_epoch(s, ask->epoch)) {
        serve(s, frame, ask, &answer);
    }
    (void)pthread_mutex_unlock(&s->lock);
    s->voice.deal(s->voice.arg, frame, &answer);
}

/* ---- claims ---- */

/* How many parts of the rank are not claimed any more; locked. */
static uint32_t claim(tn_part_server *s, uint32_t rank, const tn_note_parts *parts, uint64_t now_ns)
{
    const size_t n = parts->part.n;
    tn_ledger_held *held = tn_try_alloc(n + 1, sizeof *held, "claims of parts", NULL);
    if (held == NULL) {
        return 0; /* they come again */
    }
    for (size_t i = 0; i < n; i++) {
        held[i] = held_at(rank, parts, i);
    }
    const uint32_t late = tn_part_dealer_claim(s->dealer, rank, held, (uint32_t)n, now_ns);
    tn_free(held);
    return late;
}

static void take_claim(void *arg, uint32_t rank, const tn_note_parts *parts)
{
    tn_part_server *s = arg;
    uint32_t late = 0;
    (void)pthread_mutex_lock(&s->lock);
    if (s->dealer != NULL) {
        late = claim(s, rank, parts, tn_clock_ns());
    }
    (void)pthread_mutex_unlock(&s->lock);
    if (late > 0) {
        s->voice.lose(s->voice.arg, rank, "does not claim a part of the data that it was dealt");
    }
}

void tn_part_server_claim(tn_part_server *s, uint32_t rank, const tn_note_parts *held,
                          uint64_t now_ns)
{
    (void)pthread_mutex_lock(&s->lock);
    if (s->dealer != NULL) {
        (void)claim(s, rank, held, now_ns);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

/* ---- stragglers ---- */

/* The last is freed first, so that they are dealt again in their order. */
static void take_returned(void *arg, uint32_t rank, const tn_done_note *note)
{
    tn_part_server *s = arg;
    (void)pthread_mutex_lock(&s->lock);
    if (is_of_epoch(s, note->number)) {
        tn_ledger *ledger = tn_part_dealer_lock(s->dealer);
        for (size_t i = note->parts.part.n; i-- > 0;) {
            const tn_ledger_held held = held_at(rank, &note->parts, i);
            (void)tn_ledger_returned(ledger, &held);
        }
        tn_part_dealer_unlock(s->dealer);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

static void ask_back(tn_part_server *s, const tn_ledger_held *held)
{
    tn_log(TN_LOG_INFO,
           "rank %u is asked to give back part %u of the data, of which it has learned %llu "
           "records: another rank has nothing to do",
           held->rank, held->part, (unsigned long long)held->position);
    if (held->rank == 0) {
        atomic_store(&s->asked, true);
    } else {
        s->voice.ask_back(s->voice.arg, held->rank, tn_part_dealer_epoch(s->dealer));
    }
}

/* Looks for stragglers; returns whether one has not answered, and which. Locked. */
static bool look(tn_part_server *s, uint64_t now_ns, uint32_t *lost)
{
    tn_ledger_held held;
    tn_ledger *ledger = tn_part_dealer_lock(s->dealer);
    const bool still = tn_part_dealer_is_paused(s->dealer);
    const uint64_t time = tn_part_dealer_time(s->dealer, now_ns);
    while (!still && tn_ledger_straggler(ledger, time, &held)) {
        ask_back(s, &held);
    }
    const bool silent = !still && tn_ledger_silent(ledger, time, lost);
    tn_part_dealer_unlock(s->dealer);
    return silent && *lost != 0; /* this process knows that it lives */
}

static void tick(void *arg, uint64_t now_ns)
{
    tn_part_server *s = arg;
    uint32_t lost = 0;
    (void)pthread_mutex_lock(&s->lock);
    const bool silent = s->dealer != NULL && look(s, now_ns, &lost);
    (void)pthread_mutex_unlock(&s->lock);
    if (silent) {
        s->voice.lose(s->voice.arg, lost, "does not give back the part of the data that it has");
    }
}

bool tn_part_server_is_asked(tn_part_server *s)
{
    return atomic_exchange(&s->asked, false);
}

bool tn_part_server_would_be_asked(const tn_part_server *s)
{
    return atomic_load(&s->asked);
}

/* ---- epochs ---- */

void tn_part_server_bind(tn_part_server *s, tn_group_parts *out)
{
    *out = (tn_group_parts){
        .arg = s, .ask = take_ask, .claim = take_claim, .returned = take_returned, .tick = tick};
}

void tn_part_server_deal(tn_part_server *s, tn_part_dealer *d, uint64_t now_ns)
{
    (void)pthread_mutex_lock(&s->lock);
    if (s->dealer != NULL) {
        tn_part_dealer_on_wake(s->dealer, NULL, NULL);
    }
    s->dealer = d;
    atomic_store(&s->asked, false);
    if (d != NULL) {
        tn_part_dealer_on_wake(d, wake, s);
        tn_part_dealer_pause(d, true, now_ns);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

void tn_part_server_pause(tn_part_server *s, bool still, uint64_t now_ns)
{
    (void)pthread_mutex_lock(&s->lock);
    if (s->dealer != NULL) {
        tn_part_dealer_pause(s->dealer, still, now_ns);
    }
    (void)pthread_mutex_unlock(&s->lock);
}
