/* part_dealer.c - deals parts from a ledger under one lock, answers what other ranks ask for, and
 * finds stragglers. */
#include "cluster/train/part_dealer.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/log.h"
#include "cluster/train/part_progress.h"
#include "io/read/blocks.h"

enum { LOOK_NS = 20000000 }; /* how often a thread that waits for a part looks at *stop */

/* Another rank that is followed. */
typedef struct followed {
    tn_part_progress book;
    uint64_t asks; /* so many were answered with a part */
    uint32_t part; /* its position: a part of its own */
} followed;

struct tn_part_dealer {
    uint32_t epoch, n_parts, rank, ranks;
    tn_dealer dealer;
    uint64_t ask;             /* the last one of this process's reader */
    bool answered;            /* the ask is; only the reader's thread looks */
    followed *others;         /* per rank; only rank 0 follows */
    tn_part_dealer_opts opts; /* its pointers are valid until there is a ledger */

    tn_part_progress book;  /* this process's; its lock guards all below, and the other books */
    tn_ledger *ledger;      /* NULL: the parts are not known yet */
    uint64_t still_ns;      /* the sum of all pauses before this one */
    uint64_t since_ns;      /* the begin of this pause; 0: there is none */
    tn_part_server *server; /* sends other ranks the part that they wait for; NULL: nobody does,
                               and they find out by asking again */
};

struct tn_part_server {
    tn_part_server_callbacks voice;
    uint32_t ranks;
    atomic_bool asked; /* this process is to give back what it holds */
    tn_frame *frame;   /* ranks: the last ask of each; guarded by the ledger */

    pthread_mutex_t lock; /* guards the next; taken before the ledger's */
    tn_part_dealer *dealer;
};

/* ---- the ledger ---- */

tn_ledger *tn_part_dealer_lock(tn_part_dealer *d)
{
    (void)pthread_mutex_lock(&d->book.lock);
    return d->ledger;
}

/* The ledger's time at a moment of the clock. Locked. */
static uint64_t time_of(const tn_part_dealer *d, uint64_t now_ns)
{
    TN_ASSERT((d->since_ns != 0 ? d->since_ns : now_ns) >= d->still_ns);
    return (d->since_ns != 0 ? d->since_ns : now_ns) - d->still_ns;
}

/* ---- answers to other ranks ---- */

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

/* Wakes other ranks that wait; the reader of this one finds out by asking again. */
static void wake_others(tn_part_dealer *d)
{
    TN_ASSERT(d->ledger != NULL);
    const tn_part_server *s = d->server;
    tn_ledger_wake w;
    const uint64_t time = time_of(d, tn_clock_ns());
    while (tn_ledger_woken(d->ledger, time, &w)) {
        if (w.rank != d->rank) {
            TN_ASSERT(w.rank < s->ranks && w.answer != TN_LEDGER_WAIT);
            tn_part_note note = {.epoch = d->epoch, .id = w.id};
            fill(&note, w.answer, &w.deal);
            s->voice.deal(s->voice.arg, &s->frame[w.rank], &note);
        }
    }
}

void tn_part_dealer_unlock(tn_part_dealer *d)
{
    if (d->server != NULL) {
        wake_others(d);
    }
    (void)pthread_cond_broadcast(&d->book.changed);
    (void)pthread_mutex_unlock(&d->book.lock);
}

/* Marks the parts of a rank that are over in the ledger. Locked. */
static void settle(tn_part_dealer *d, uint32_t rank, tn_part_progress *book, uint64_t now_ns)
{
    TN_ASSERT(rank < d->ranks && d->ledger != NULL);
    const tn_ledger_held *over = NULL;
    const uint32_t n = tn_part_progress_over(book, &over);
    for (uint32_t i = 0; i < n; i++) {
        (void)tn_ledger_done(d->ledger, rank, over[i].part, over[i].attempt, now_ns);
    }
    tn_part_progress_settle(book, n);
}

/* ---- the reader's threads ---- */

/* Locked. */
static tn_ledger_answer ask_now(tn_part_dealer *d, tn_ledger_deal *out)
{
    TN_ASSERT(d->ledger != NULL && d->ask > 0);
    const uint64_t time = time_of(d, tn_clock_ns());
    return tn_ledger_ask(d->ledger, d->rank, d->epoch, d->ask, time, out);
}

/* An ask is repeated under its id until it is answered. Locked. */
static tn_ledger_answer ask(tn_part_dealer *d, bool wait, const atomic_bool *stop,
                            tn_ledger_deal *out)
{
    d->ask += d->answered;
    tn_ledger_answer answer = ask_now(d, out);
    while (answer == TN_LEDGER_WAIT && wait && !atomic_load(stop)) {
        tn_part_progress_wait(&d->book, tn_clock_ns() + LOOK_NS);
        answer = ask_now(d, out);
    }
    d->answered = answer != TN_LEDGER_WAIT;
    return answer;
}

static tn_status next(void *arg, bool wait, const atomic_bool *stop, tn_dealt *out, bool *now,
                      tn_error *err)
{
    tn_part_dealer *d = arg;
    tn_ledger_deal deal;
    tn_status status = TN_OK;
    (void)pthread_mutex_lock(&d->book.lock);
    const tn_ledger_answer answer = ask(d, wait, stop, &deal);
    TN_ASSERT(answer != TN_LEDGER_OLD);
    *now = answer == TN_LEDGER_PART;
    if (*now) {
        status = tn_part_progress_add(&d->book, &deal, err);
        *out = (tn_dealt){.place = deal.part, .position = deal.position};
    } else if (answer == TN_LEDGER_NO_MORE) {
        status = TN_END;
    } else if (wait) {
        status = TN_E_STOPPED;
    }
    (void)pthread_mutex_unlock(&d->book.lock);
    return status;
}

static void flushed(void *arg, uint32_t parts, uint64_t batches, uint64_t records)
{
    tn_part_dealer *d = arg;
    (void)tn_part_dealer_lock(d);
    tn_part_progress_flushed(&d->book, parts, batches, records);
    settle(d, d->rank, &d->book, time_of(d, tn_clock_ns()));
    tn_part_dealer_unlock(d);
}

/* ---- opening ---- */

static tn_status make_ledger(tn_part_dealer *d, const tn_epoch_parts *map, tn_error *err)
{
    TN_ASSERT(d->ledger == NULL);
    const tn_part_dealer_opts *opts = &d->opts;
    tn_ledger_span *span = NULL;
    TN_TRY(TN_ALLOC(span, (size_t)map->n_parts + 1, "the parts of the data", err));
    for (uint32_t i = 0; i < map->n_parts; i++) {
        span[i] = (tn_ledger_span){map->part[i].source, map->part[i].first, map->part[i].end};
    }
    tn_ledger_opts ledger = {.epoch = opts->epoch,
                             .ranks = opts->ranks,
                             .n_parts = map->n_parts,
                             .mode = opts->mode,
                             .relaxed = opts->relaxed,
                             .straggler_ns = tn_timer_ns(TN_LEDGER_STRAGGLER_NS),
                             .silent_ns = tn_silence_ns(TN_LEDGER_SILENT_NS),
                             .part = span};
    d->n_parts = map->n_parts;
    tn_status status = tn_ledger_new(&d->ledger, &ledger, err);
    tn_free(span);
    return status;
}

static tn_status stand_at(const tn_part_dealer *d, const tn_epoch_parts *map, tn_error *err)
{
    const tn_epoch_position *stand = d->opts.stand;
    if (stand == NULL || stand->n_parts == 0) {
        return TN_OK;
    }
    TN_TRY(tn_epoch_parts_check(map, stand, err));
    tn_status status = tn_ledger_restore(d->ledger, stand->part, stand->n_parts, err);
    return status == TN_E_CKPT ? tn_epoch_parts_refuse(err) : status;
}

static tn_status learn_parts(tn_part_dealer *d, const tn_epoch_parts *map, tn_error *err)
{
    TN_TRY(make_ledger(d, map, err));
    TN_TRY(stand_at(d, map, err));
    d->opts.map = NULL;
    d->opts.stand = NULL;
    return TN_OK;
}

/* The reader that is opened first, where no map was given. */
static tn_status begin(void *arg, const tn_reader *reader, tn_error *err)
{
    tn_part_dealer *d = arg;
    if (d->ledger != NULL) {
        return TN_OK;
    }
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_status status = learn_parts(d, tn_epoch_parts_of(reader, NULL, arena), err);
    tn_arena_free(arena);
    return status;
}

tn_status tn_part_dealer_open(tn_part_dealer **out, const tn_part_dealer_opts *opts, tn_error *err)
{
    *out = NULL;
    tn_part_dealer *d = NULL;
    TN_TRY(TN_ALLOC(d, 1, "a dealer of parts", err));
    TN_ASSERT(opts->rank < opts->ranks);
    tn_part_progress_init(&d->book);
    d->epoch = opts->epoch;
    d->opts = *opts;
    d->rank = opts->rank;
    d->ranks = opts->ranks;
    d->answered = true;
    d->dealer = (tn_dealer){.begin = begin, .next = next, .arg = d, .flushed = flushed};
    d->others = tn_try_alloc(opts->ranks, sizeof *d->others, "a dealer of parts", err);
    tn_status status = d->others != NULL ? TN_OK : TN_E_MEMORY;
    for (uint32_t r = 0; status == TN_OK && r < opts->ranks; r++) {
        tn_part_progress_init(&d->others[r].book);
    }
    if (status == TN_OK && opts->map != NULL) {
        status = learn_parts(d, opts->map, err);
    }
    if (status != TN_OK) {
        tn_part_dealer_close(d);
        return status;
    }
    *out = d;
    return TN_OK;
}

void tn_part_dealer_close(void *dealer)
{
    tn_part_dealer *d = dealer;
    if (d != NULL) {
        tn_ledger_free(d->ledger);
        tn_part_progress_done(&d->book);
        for (uint32_t r = 0; d->others != NULL && r < d->ranks; r++) {
            tn_part_progress_done(&d->others[r].book);
        }
        tn_free(d->others);
        tn_free(d);
    }
}

uint64_t tn_part_dealer_records(tn_part_dealer *d)
{
    return tn_part_progress_records(&d->book);
}

uint32_t tn_part_dealer_ended(tn_part_dealer *d)
{
    return tn_part_progress_ended(&d->book);
}

uint32_t tn_part_dealer_reassigned(void *dealer)
{
    tn_part_dealer *d = dealer;
    const tn_ledger *ledger = tn_part_dealer_lock(d);
    const uint32_t n = ledger != NULL ? tn_ledger_reassigned(ledger) : 0;
    tn_part_dealer_unlock(d);
    return n;
}

const tn_dealer *tn_part_dealer_dealer(const void *dealer)
{
    const tn_part_dealer *d = dealer;
    return &d->dealer;
}

/* ---- what is learned ---- */

void tn_part_dealer_note(void *dealer, const tn_progress *at, uint64_t now_ns)
{
    tn_part_dealer *d = dealer;
    TN_ASSERT(at->epoch == d->epoch);
    (void)tn_part_dealer_lock(d);
    tn_part_progress_note(&d->book, at);
    settle(d, d->rank, &d->book, time_of(d, now_ns));
    tn_part_dealer_unlock(d);
}

/* Deals a rank what it has dealt itself: all up to part `last` of its own. Locked. */
static tn_status deal_others(tn_part_dealer *d, uint32_t rank, uint32_t last, uint64_t now_ns,
                             tn_error *err)
{
    followed *f = &d->others[rank];
    while (f->asks <= last) {
        tn_ledger_deal deal;
        tn_ledger_answer answer =
            tn_ledger_ask(d->ledger, rank, d->epoch, f->asks + 1, now_ns, &deal);
        if (answer != TN_LEDGER_PART) {
            return tn_fail(err, TN_E_PEER, "rank %u reads part %u of its own, of which are %llu",
                           rank, last, (unsigned long long)f->asks);
        }
        TN_TRY(tn_part_progress_add(&f->book, &deal, err));
        f->asks++;
    }
    return TN_OK;
}

tn_status tn_part_dealer_follow(tn_part_dealer *d, uint32_t rank, const tn_progress *at,
                                uint64_t now_ns, tn_error *err)
{
    TN_ASSERT(rank < d->ranks && rank != d->rank);
    followed *f = &d->others[rank];
    if (at->part == 0 && at->position == 0) {
        return TN_OK; /* not begun, perhaps without any part */
    }
    if (at->part < f->part) {
        return tn_fail(err, TN_E_PEER, "rank %u went back from part %u of its own to %u", rank,
                       f->part, at->part);
    }
    (void)tn_part_dealer_lock(d);
    tn_status status = deal_others(d, rank, at->part, time_of(d, now_ns), err);
    if (status == TN_OK) {
        tn_part_progress_note(&f->book, at);
        settle(d, rank, &f->book, time_of(d, now_ns));
        f->part = at->part;
    }
    tn_part_dealer_unlock(d);
    return status;
}

void tn_part_dealer_give_back(tn_part_dealer *d, uint64_t now_ns)
{
    tn_ledger_held held;
    (void)tn_part_dealer_lock(d);
    settle(d, d->rank, &d->book, time_of(d, now_ns));
    while (tn_part_progress_drop(&d->book, &held)) {
        held.rank = d->rank;
        bool returned = tn_ledger_returned(d->ledger, &held);
        TN_ASSERT(returned);
    }
    tn_part_dealer_unlock(d);
}

/* Enters in the ledger how far a rank's parts are. Locked. */
static void claim(tn_part_dealer *d, uint32_t rank, tn_part_progress *book, uint64_t now_ns)
{
    const tn_ledger_held *held = NULL;
    settle(d, rank, book, now_ns); /* the reader may have flushed just now */
    const uint32_t n = tn_part_progress_held(book, &held);
    (void)tn_ledger_claim(d->ledger, rank, held, n, now_ns);
}

tn_epoch_part *tn_part_dealer_parts(void *dealer, tn_arena *arena, uint32_t *n, uint64_t now_ns)
{
    tn_part_dealer *d = dealer;
    tn_epoch_part *part = TN_NEW_ARRAY(arena, tn_epoch_part, d->n_parts + 1);
    (void)tn_part_dealer_lock(d);
    const uint64_t time = time_of(d, now_ns);
    claim(d, d->rank, &d->book, time);
    for (uint32_t r = 0; r < d->ranks; r++) {
        if (d->others[r].asks > 0) {
            claim(d, r, &d->others[r].book, time);
        }
    }
    *n = tn_ledger_save(d->ledger, part);
    TN_ASSERT(*n <= d->n_parts);
    tn_part_dealer_unlock(d);
    return part;
}

/* ---- as the dealer of an epoch ---- */

tn_epoch_dealer tn_part_dealer_of_epoch(tn_part_dealer *d)
{
    static const tn_epoch_dealer_ops ops = {.dealer = tn_part_dealer_dealer,
                                            .note = tn_part_dealer_note,
                                            .parts = tn_part_dealer_parts,
                                            .reassigned = tn_part_dealer_reassigned,
                                            .close = tn_part_dealer_close};
    return d != NULL ? (tn_epoch_dealer){&ops, d} : (tn_epoch_dealer){0};
}

tn_status tn_part_dealer_deal(tn_epoch_dealer *out, const tn_epoch_dealt *left, tn_error *err)
{
    const tn_part_dealer_opts opts = {.epoch = left->epoch,
                                      .ranks = left->ranks,
                                      .rank = left->rank,
                                      .mode = TN_LEDGER_BY_RULE,
                                      .map = left->map,
                                      .stand = left->stand};
    tn_part_dealer *d = NULL;
    const tn_status status = tn_part_dealer_open(&d, &opts, err);
    *out = tn_part_dealer_of_epoch(d);
    return status;
}

/* ---- other ranks, on request ---- */

tn_part_server *tn_part_server_new(uint32_t ranks, const tn_part_server_callbacks *voice)
{
    tn_part_server *s = tn_alloc(1, sizeof *s, "the dealing of parts");
    s->voice = *voice;
    s->ranks = ranks;
    s->frame = tn_alloc(ranks, sizeof *s->frame, "the dealing of parts");
    (void)pthread_mutex_init(&s->lock, NULL);
    return s;
}

void tn_part_server_free(tn_part_server *s)
{
    if (s != NULL) {
        (void)pthread_mutex_destroy(&s->lock);
        tn_free(s->frame);
        tn_free(s);
    }
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
    const uint64_t time = time_of(s->dealer, tn_clock_ns());
    for (size_t i = 0; i < ask->done.part.n; i++) {
        const tn_ledger_held done = held_at(frame->rank, &ask->done, i);
        (void)tn_ledger_done(ledger, frame->rank, done.part, done.attempt, time);
    }
    if (ask->id != 0) {
        s->frame[frame->rank] = *frame;
        s->frame[frame->rank].sequence = 0; /* an answer that comes by itself */
        s->frame[frame->rank].payload = NULL;
        fill(answer, tn_ledger_ask(ledger, frame->rank, (uint32_t)ask->epoch, ask->id, time, &deal),
             &deal);
    }
    tn_part_dealer_unlock(s->dealer);
}

static bool is_of_epoch(const tn_part_server *s, uint64_t epoch)
{
    return s->dealer != NULL && s->dealer->epoch == epoch;
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
static uint32_t claim_for(tn_part_server *s, uint32_t rank, const tn_note_parts *parts,
                          uint64_t now_ns)
{
    const size_t n = parts->part.n;
    tn_ledger_held *held = tn_try_alloc(n + 1, sizeof *held, "claims of parts", NULL);
    if (held == NULL) {
        return 0; /* they come again */
    }
    for (size_t i = 0; i < n; i++) {
        held[i] = held_at(rank, parts, i);
    }
    tn_ledger *ledger = tn_part_dealer_lock(s->dealer);
    const uint32_t late =
        tn_ledger_claim(ledger, rank, held, (uint32_t)n, time_of(s->dealer, now_ns));
    tn_part_dealer_unlock(s->dealer);
    tn_free(held);
    return late;
}

static void take_claim(void *arg, uint32_t rank, const tn_note_parts *parts)
{
    tn_part_server *s = arg;
    uint32_t late = 0;
    (void)pthread_mutex_lock(&s->lock);
    if (s->dealer != NULL) {
        late = claim_for(s, rank, parts, tn_clock_ns());
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
        (void)claim_for(s, rank, held, now_ns);
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
        s->voice.ask_back(s->voice.arg, held->rank, s->dealer->epoch);
    }
}

/* Looks for stragglers; returns whether one has not answered, and which. Locked. */
static bool look(tn_part_server *s, uint64_t now_ns, uint32_t *lost)
{
    tn_ledger_held held;
    tn_ledger *ledger = tn_part_dealer_lock(s->dealer);
    const bool still = s->dealer->since_ns != 0;
    const uint64_t time = time_of(s->dealer, now_ns);
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

/* All ranks wait from now on, or no more. */
static void stand_still(tn_part_dealer *d, bool still, uint64_t now_ns)
{
    (void)tn_part_dealer_lock(d);
    if (still && d->since_ns == 0) {
        d->since_ns = now_ns;
    } else if (!still && d->since_ns != 0) {
        TN_ASSERT(now_ns >= d->since_ns);
        d->still_ns += now_ns - d->since_ns;
        d->since_ns = 0;
    }
    tn_part_dealer_unlock(d);
}

static void set_server(tn_part_dealer *d, tn_part_server *s)
{
    (void)tn_part_dealer_lock(d);
    d->server = s;
    tn_part_dealer_unlock(d);
}

void tn_part_server_deal(tn_part_server *s, tn_part_dealer *d, uint64_t now_ns)
{
    (void)pthread_mutex_lock(&s->lock);
    if (s->dealer != NULL) {
        set_server(s->dealer, NULL);
    }
    s->dealer = d;
    atomic_store(&s->asked, false);
    if (d != NULL) {
        set_server(d, s);
        stand_still(d, true, now_ns);
    }
    (void)pthread_mutex_unlock(&s->lock);
}

void tn_part_server_pause(tn_part_server *s, bool still, uint64_t now_ns)
{
    (void)pthread_mutex_lock(&s->lock);
    if (s->dealer != NULL) {
        stand_still(s->dealer, still, now_ns);
    }
    (void)pthread_mutex_unlock(&s->lock);
}
