/* part_client.c - asks rank 0 for parts, and reports those that are over. */
#include "cluster/train/part_client.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "cluster/train/part_progress.h"
#include "io/read/blocks.h"

static const uint64_t look_ns = 20000000; /* how often a waiting thread looks at *stop */

enum { DONE_MAX = 256 }; /* parts that one note lists */

typedef enum ask_state { NONE, OPEN, ANSWERED } ask_state;

struct tn_part_client {
    tn_part_client_opts opts;
    tn_dealer dealer;
    tn_part_info *part; /* n_parts: of the reader's own data; of its threads once they run */
    uint32_t n_parts;

    tn_part_progress book; /* its lock guards all below */
    uint64_t id;           /* numbers the last ask */
    ask_state state;
    bool waits;          /* rank 0 has answered that this rank waits */
    tn_part_note answer; /* a part, or that there are no more */
    uint64_t number;     /* numbers the last note */
    bool under_way;      /* the last note is not answered yet */
    uint64_t asked;      /* the id in the last note */
    uint32_t n_told;     /* the number of parts in it that are over */
    uint64_t again_ns;   /* when to ask again */
};

/* ---- notes to rank 0; locked ---- */

static uint32_t n_over(const tn_part_client *d)
{
    const tn_ledger_held *over = NULL;
    return tn_part_progress_over(&d->book, &over);
}

static void send(tn_part_client *d)
{
    TN_ASSERT(!d->under_way);
    const tn_ledger_held *over = NULL;
    uint64_t list[3][DONE_MAX];
    const uint32_t most = tn_part_progress_over(&d->book, &over);
    uint32_t n = 0;
    for (; n < most && n < DONE_MAX; n++) {
        list[0][n] = over[n].part;
        list[1][n] = over[n].attempt;
        list[2][n] = over[n].position;
    }
    d->asked = d->state == OPEN ? d->id : 0;
    d->n_told = n;
    d->under_way = true;
    d->again_ns = tn_clock_ns() + d->opts.again_ns;
    const tn_ask_note note = {.epoch = d->opts.epoch,
                              .done = {{list[0], n}, {list[1], n}, {list[2], n}},
                              .id = d->asked,
                              .number = ++d->number};
    d->opts.ask(d->opts.arg, &note);
}

/* Sends a note if rank 0 does not know of an ask or of parts that are over. */
static void send_news(tn_part_client *d)
{
    const bool asks = d->state == OPEN && d->asked != d->id;
    if (!d->under_way && (asks || n_over(d) > 0)) {
        send(d);
    }
}

static void take_answer(void *arg, const tn_part_note *note)
{
    tn_part_client *d = arg;
    (void)pthread_mutex_lock(&d->book.lock);
    const bool ours = note->epoch == d->opts.epoch;
    if (ours && d->state == OPEN && note->id == d->id) {
        d->waits = note->answer == TN_PART_WAIT;
        d->answer = *note;
        d->state = d->waits ? OPEN : ANSWERED;
    }
    if (ours && d->under_way && note->number == d->number) {
        TN_ASSERT(d->n_told <= DONE_MAX);
        tn_part_progress_settle(&d->book, d->n_told);
        d->under_way = false;
        send_news(d);
    }
    (void)pthread_cond_broadcast(&d->book.changed);
    (void)pthread_mutex_unlock(&d->book.lock);
}

/* ---- the reader's threads ---- */

/* The parts are known by their numbers, which only mean something in the same data. */
static tn_status begin(void *arg, const tn_reader *reader, tn_error *err)
{
    tn_part_client *d = arg;
    const uint32_t n = tn_reader_n_parts(reader);
    tn_part_info *part = NULL;
    TN_TRY(TN_ALLOC(part, (size_t)n + 1, "the parts of the data", err));
    for (uint32_t i = 0; i < n; i++) {
        part[i] = tn_reader_part(reader, i);
    }
    tn_free(d->part);
    d->part = part;
    d->n_parts = n;
    return TN_OK;
}

/* Until rank 0 has answered; without `wait` that there is nothing now is one, too. Locked. */
static void await_answer(tn_part_client *d, bool wait, const atomic_bool *stop)
{
    while (d->state == OPEN && (wait || !d->waits) && !atomic_load(stop)) {
        tn_part_progress_wait(&d->book, tn_clock_ns() + look_ns);
        if (d->state == OPEN && !d->under_way && tn_clock_ns() >= d->again_ns) {
            send(d);
        }
    }
}

static tn_status take_part(tn_part_client *d, const tn_part_note *note, tn_dealt *out,
                           tn_error *err)
{
    const tn_part_info *own = note->part < d->n_parts ? &d->part[note->part] : NULL;
    if (own == NULL || own->source != note->source || own->first != note->begin ||
        own->end != note->end) {
        return tn_fail(err, TN_E_DATA,
                       "rank 0 deals part %llu, bytes %llu to %llu of file %llu, which is not in "
                       "the data that this rank finds\nhint: all ranks must see the same files",
                       (unsigned long long)note->part, (unsigned long long)note->begin,
                       (unsigned long long)note->end, (unsigned long long)note->source);
    }
    const tn_ledger_deal deal = {.part = (uint32_t)note->part,
                                 .attempt = (uint32_t)note->attempt,
                                 .position = note->position};
    *out = (tn_dealt){.place = deal.part, .position = deal.position};
    return tn_part_progress_add(&d->book, &deal, err);
}

static tn_status next(void *arg, bool wait, const atomic_bool *stop, tn_dealt *out, bool *now,
                      tn_error *err)
{
    tn_part_client *d = arg;
    tn_status status = TN_OK;
    (void)pthread_mutex_lock(&d->book.lock);
    TN_ASSERT(d->part != NULL); /* begin() comes first */
    if (d->state == NONE) {
        d->id++;
        d->state = OPEN;
        d->waits = false;
        send_news(d);
    }
    await_answer(d, wait, stop);
    *now = d->state == ANSWERED && d->answer.answer == TN_PART_IS;
    if (*now) {
        d->state = NONE;
        status = take_part(d, &d->answer, out, err);
    } else if (d->state == ANSWERED) {
        status = TN_END;
    } else if (wait) {
        status = TN_E_STOPPED;
    }
    (void)pthread_mutex_unlock(&d->book.lock);
    return status;
}

static void flushed(void *arg, uint32_t parts, uint64_t batches, uint64_t records)
{
    tn_part_client *d = arg;
    (void)pthread_mutex_lock(&d->book.lock);
    tn_part_progress_flushed(&d->book, parts, batches, records);
    send_news(d);
    (void)pthread_mutex_unlock(&d->book.lock);
}

/* ---- the thread that trains ---- */

tn_part_client *tn_part_client_open(const tn_part_client_opts *opts)
{
    TN_ASSERT(opts->ask != NULL);
    tn_part_client *d = tn_alloc(1, sizeof *d, "a dealer of parts");
    d->opts = *opts;
    d->dealer = (tn_dealer){.begin = begin, .next = next, .arg = d, .flushed = flushed};
    tn_part_progress_init(&d->book);
    return d;
}

void tn_part_client_close(tn_part_client *d)
{
    if (d != NULL) {
        tn_part_progress_done(&d->book);
        tn_free(d->part);
        tn_free(d);
    }
}

const tn_dealer *tn_part_client_dealer(const tn_part_client *d)
{
    return &d->dealer;
}

void tn_part_client_note(tn_part_client *d, const tn_progress *at)
{
    TN_ASSERT(at->epoch == d->opts.epoch);
    (void)pthread_mutex_lock(&d->book.lock);
    tn_part_progress_note(&d->book, at);
    send_news(d);
    (void)pthread_mutex_unlock(&d->book.lock);
}

uint64_t tn_part_client_records(tn_part_client *d)
{
    return tn_part_progress_records(&d->book);
}

uint32_t tn_part_client_ended(tn_part_client *d)
{
    return tn_part_progress_ended(&d->book);
}

bool tn_part_client_settle(tn_part_client *d, uint64_t until_ns)
{
    (void)pthread_mutex_lock(&d->book.lock);
    while (n_over(d) > 0 && tn_clock_ns() < until_ns) {
        tn_part_progress_wait(&d->book, until_ns);
    }
    const bool settled = n_over(d) == 0;
    (void)pthread_mutex_unlock(&d->book.lock);
    return settled;
}

/* Locked. */
static void list_held(const tn_part_client *d, tn_arena *arena, tn_note_parts *out)
{
    const tn_ledger_held *held = NULL;
    const size_t n = tn_part_progress_held(&d->book, &held);
    uint64_t *list = TN_NEW_ARRAY(arena, uint64_t, n * 3 + 1);
    for (size_t i = 0; i < n; i++) {
        list[i] = held[i].part;
        list[n + i] = held[i].attempt;
        list[2 * n + i] = held[i].position;
    }
    *out = (tn_note_parts){{list, n}, {list + n, n}, {list + 2 * n, n}};
}

void tn_part_client_held(void *client, tn_arena *arena, tn_note_parts *out)
{
    tn_part_client *d = client;
    (void)pthread_mutex_lock(&d->book.lock);
    list_held(d, arena, out);
    (void)pthread_mutex_unlock(&d->book.lock);
}

void tn_part_client_give_back(tn_part_client *d, tn_arena *arena, tn_note_parts *out)
{
    tn_ledger_held dropped;
    (void)pthread_mutex_lock(&d->book.lock);
    TN_ASSERT(n_over(d) == 0);
    list_held(d, arena, out);
    while (tn_part_progress_drop(&d->book, &dropped)) {
    }
    (void)pthread_mutex_unlock(&d->book.lock);
}

void tn_part_client_bind(tn_part_client *d, tn_group_parts *out)
{
    *out = (tn_group_parts){.arg = d, .answer = take_answer, .held = tn_part_client_held};
}
