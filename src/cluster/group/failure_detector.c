/* failure_detector.c - heartbeats and silences become events, sentences and a table.
 *
 * Silence is measured in waking time: the time of the clock without the part of a wait between
 * two polls beyond gap_ns. Texts for people use the time of the clock.
 */
#include "cluster/group/failure_detector.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "cluster/ledger/running_median.h"

#include <string.h>

typedef enum watch_state {
    UNWATCHED, /* from the beginning: oneself, or not in yet */
    ALIVE,
    SUSPECTED,
    LOST,
} watch_state;

enum { HOST_BYTES = 64 }; /* room for a host's name, which may be cut, and its NUL */

typedef struct watched_rank {
    watch_state watch;
    bool was_received;       /* since it is watched */
    bool was_reported;       /* its stall was reported */
    uint64_t received_ns;    /* when the last frame came; before the first, when watching began */
    uint64_t received_awake; /* the same in waking time */
    uint64_t silent_ns;      /* how long it was silent before the last frame, if suspect then */
    uint64_t n_beats;        /* 0: nothing below is known */
    uint64_t step, stood_awake; /* since when it has been at this step, or training */
    bool has_pushed;            /* else the next two are nothing */
    uint64_t pushed, at_beat;   /* the number of its last push, now and at its last beat */
    uint64_t state;             /* tn_peer_state */
    uint64_t rss_bytes, waits_for;
    double rows_per_s, waiting;
    uint64_t rate_ns, rate_out, rate_in; /* counts of bytes when rates were taken */
    double out_per_s, in_per_s;          /* bytes */
    uint64_t pid;
    char host[HOST_BYTES];
} watched_rank;

struct tn_failure_detector {
    uint64_t suspect_ns, lost_ns, stall_ns, gap_ns;
    tn_running_median steps; /* ns of waking time of a step, of all ranks */
    uint64_t polled_ns, awake;
    bool has_begun;  /* polled_ns is set */
    uint32_t cursor; /* the rank to look at next in this round of polls */
    uint32_t size;
    watched_rank rank[];
};

/* Beats that were held up come in one burst, which says nothing of a rate. */
#define RATE_MIN_NS UINT64_C(500000000)
#define ROWS_PER_S_MAX 1e12

void tn_failure_detector_free(tn_failure_detector *p)
{
    tn_free(p);
}

tn_status tn_failure_detector_new(tn_failure_detector **out, uint32_t size, uint64_t gap_ns,
                                  tn_error *err)
{
    TN_ASSERT(size > 0 && gap_ns > 0);
    tn_failure_detector *p =
        tn_try_alloc(1, sizeof *p + size * sizeof *p->rank, "the heartbeats of the group", err);
    *out = p;
    if (p == NULL) {
        return TN_E_MEMORY;
    }
    p->size = size;
    p->suspect_ns = tn_silence_ns(TN_FAILURE_SUSPECT_NS);
    p->lost_ns = tn_silence_ns(TN_FAILURE_LOST_NS);
    p->stall_ns = tn_silence_ns(TN_FAILURE_STALL_NS);
    p->gap_ns = gap_ns;
    return TN_OK;
}

static watched_rank *rank_of(tn_failure_detector *p, uint32_t rank)
{
    TN_ASSERT(rank < p->size);
    return &p->rank[rank];
}

void tn_failure_detector_name(tn_failure_detector *p, uint32_t rank, const char *host, uint64_t pid)
{
    watched_rank *r = rank_of(p, rank);
    size_t n = 0;
    for (; n < HOST_BYTES - 1 && host[n] != 0; n++) {
        r->host[n] = (char)(host[n] >= ' ' && host[n] < 0x7f ? host[n] : '?');
    }
    r->host[n] = 0;
    r->pid = pid;
}

/* Returns the waking time at a moment since the last poll. */
static uint64_t awake_at(const tn_failure_detector *p, uint64_t now_ns)
{
    uint64_t passed = p->has_begun && now_ns > p->polled_ns ? now_ns - p->polled_ns : 0;
    return p->awake + (passed < p->gap_ns ? passed : p->gap_ns);
}

/* Advances waking time to now. */
static void wake(tn_failure_detector *p, uint64_t now_ns)
{
    p->awake = awake_at(p, now_ns);
    p->polled_ns = !p->has_begun || now_ns > p->polled_ns ? now_ns : p->polled_ns;
    p->has_begun = true;
}

static uint64_t since(uint64_t now, uint64_t then)
{
    return now > then ? now - then : 0;
}

void tn_failure_detector_watch(tn_failure_detector *p, uint32_t rank, uint64_t now_ns)
{
    if (!p->has_begun) {
        wake(p, now_ns);
    }
    watched_rank *r = rank_of(p, rank);
    watched_rank fresh = {.watch = ALIVE,
                          .received_ns = now_ns,
                          .received_awake = awake_at(p, now_ns),
                          .pid = r->pid};
    memcpy(fresh.host, r->host, sizeof fresh.host);
    *r = fresh;
}

static double within(double value, double max)
{
    return value > 0 ? (value < max ? value : max) : 0;
}

static double seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

/* Bytes per second out of two counts. */
static void take_rates(watched_rank *r, const tn_beat_note *beat, uint64_t now_ns)
{
    const uint64_t passed = since(now_ns, r->rate_ns);
    if (r->n_beats > 0 && passed < RATE_MIN_NS) {
        return;
    }
    if (r->n_beats > 0) {
        const double passed_s = seconds(passed);
        r->out_per_s = (double)since(beat->bytes_out, r->rate_out) / passed_s;
        r->in_per_s = (double)since(beat->bytes_in, r->rate_in) / passed_s;
    }
    r->rate_ns = now_ns;
    r->rate_out = beat->bytes_out;
    r->rate_in = beat->bytes_in;
}

/* Restarts the stall timer of a rank that has moved, or was not training before. */
static void follow(tn_failure_detector *p, watched_rank *r, uint64_t state, uint64_t step,
                   uint64_t awake)
{
    const bool trained = r->n_beats > 0 && r->state == TN_PEER_TRAINING;
    if (trained && step > r->step) {
        tn_running_median_add(&p->steps, since(awake, r->stood_awake) / (step - r->step));
    }
    if (!trained || state != TN_PEER_TRAINING || step != r->step) {
        r->stood_awake = awake;
        r->was_reported = false;
    }
    r->step = step;
    r->state = state;
}

static void take_beat(tn_failure_detector *p, watched_rank *r, const tn_beat_note *beat,
                      uint64_t step, uint64_t now_ns)
{
    TN_ASSERT(beat->state < TN_PEER_STATES); /* notes of others are not read */
    follow(p, r, beat->state, step, awake_at(p, now_ns));
    take_rates(r, beat, now_ns);
    r->rss_bytes = beat->rss_bytes;
    r->waits_for = beat->waits_for <= p->size ? beat->waits_for : 0;
    r->rows_per_s = within(beat->rows_per_s, ROWS_PER_S_MAX);
    r->waiting = within(beat->waiting, 1);
    r->at_beat = r->pushed;
    r->n_beats++;
}

void tn_failure_detector_pushed(tn_failure_detector *p, uint32_t rank, uint64_t number)
{
    watched_rank *r = rank_of(p, rank);
    if (!r->has_pushed) {
        r->has_pushed = true;
        r->pushed = r->at_beat = number;
    }
    r->pushed = number > r->pushed ? number : r->pushed; /* it may be sent again */
}

void tn_failure_detector_received(tn_failure_detector *p, uint32_t rank, const tn_beat_note *beat,
                                  uint64_t step, uint64_t now_ns)
{
    watched_rank *r = rank_of(p, rank);
    if (r->watch == LOST) {
        return;
    }
    const uint64_t awake = awake_at(p, now_ns);
    if (r->watch == SUSPECTED && since(awake, r->received_awake) >= p->suspect_ns) {
        r->silent_ns = since(now_ns, r->received_ns);
    }
    r->received_ns = now_ns;
    r->received_awake = awake;
    r->was_received = true;
    if (beat != NULL) {
        take_beat(p, r, beat, step, now_ns);
    }
}

static bool is_stalled(const tn_failure_detector *p, const watched_rank *r)
{
    const uint64_t stood = since(p->awake, r->stood_awake);
    return r->n_beats > 0 && r->state == TN_PEER_TRAINING && stood >= p->stall_ns &&
           stood >= tn_running_median_value(&p->steps) * TN_FAILURE_STALL_STEPS;
}

/* Finds the event of a rank that is due now, if any; moves its state on. */
static bool look_at(tn_failure_detector *p, watched_rank *r, uint64_t now_ns, tn_failure_event *out)
{
    const uint64_t silent = since(p->awake, r->received_awake);
    out->step = r->step;
    out->ns = since(now_ns, r->received_ns);
    if (r->watch == ALIVE && silent >= p->suspect_ns) {
        r->watch = SUSPECTED;
        out->kind = TN_FAILURE_SUSPECT;
    } else if (r->watch == SUSPECTED && silent >= p->lost_ns) {
        r->watch = LOST;
        out->kind = TN_FAILURE_LOST;
    } else if (r->watch == SUSPECTED && silent < p->suspect_ns) {
        r->watch = ALIVE;
        out->kind = TN_FAILURE_BACK;
        out->ns = r->silent_ns;
    } else if (r->watch == ALIVE && !r->was_reported && is_stalled(p, r)) {
        r->was_reported = true;
        out->kind = TN_FAILURE_STALLED;
        out->ns = since(p->awake, r->stood_awake);
    } else {
        return false;
    }
    return true;
}

bool tn_failure_detector_poll(tn_failure_detector *p, uint64_t now_ns, tn_failure_event *out)
{
    wake(p, now_ns);
    for (; p->cursor < p->size; p->cursor++) {
        tn_failure_event event = {.rank = p->cursor};
        if (look_at(p, &p->rank[p->cursor], now_ns, &event)) {
            *out = event; /* the same rank is polled again: it may be lost as well */
            return true;
        }
    }
    p->cursor = 0;
    return false;
}

/* ---- sentences, totals, the table ---- */

static void add_who(const tn_failure_detector *p, uint32_t rank, tn_text *out)
{
    TN_ASSERT(rank < p->size);
    const watched_rank *r = &p->rank[rank];
    tn_text_addf(out, "rank %u", rank);
    if (r->host[0] != 0) {
        tn_text_addf(out, " (host '%s'", r->host);
        if (r->pid != 0) {
            tn_text_addf(out, ", pid %llu", (unsigned long long)r->pid);
        }
        tn_text_addc(out, ')');
    }
}

static void add_step(const watched_rank *r, const char *before, tn_text *out)
{
    if (r->n_beats > 0) {
        const uint64_t step = r->step + (r->pushed - r->at_beat);
        tn_text_addf(out, "%s%llu", before, (unsigned long long)step);
    }
}

static void add_lost(const tn_failure_detector *p, uint32_t rank, uint64_t silent_ns, tn_text *out)
{
    const watched_rank *r = &p->rank[rank];
    add_who(p, rank, out);
    if (!r->was_received) {
        tn_text_addf(out, " was not heard of in %.1f s", seconds(silent_ns));
        return;
    }
    tn_text_addf(out, " was last heard of %.1f s ago", seconds(silent_ns));
    add_step(r, " at step ", out);
}

void tn_failure_event_text(const tn_failure_detector *p, const tn_failure_event *event,
                           tn_text *out)
{
    TN_ASSERT(event->rank < p->size);
    const watched_rank *r = &p->rank[event->rank];
    const double s = seconds(event->ns);
    if (event->kind == TN_FAILURE_LOST) {
        add_lost(p, event->rank, event->ns, out);
        return;
    }
    add_who(p, event->rank, out);
    if (event->kind == TN_FAILURE_STALLED) {
        tn_text_addf(out, " has stood at step %llu for %.1f s", (unsigned long long)event->step, s);
        if (r->waits_for != 0) {
            tn_text_addf(out, " and waits for rank %llu", (unsigned long long)r->waits_for - 1);
        }
        return;
    }
    tn_text_addf(out,
                 event->kind == TN_FAILURE_BACK ? " is heard again after %.1f s"
                                                : " has been silent for %.1f s",
                 s);
    add_step(r, ", at step ", out);
}

void tn_failure_lost_text(const tn_failure_detector *p, uint32_t rank, uint64_t now_ns,
                          tn_text *out)
{
    TN_ASSERT(rank < p->size);
    add_lost(p, rank, since(now_ns, p->rank[rank].received_ns), out);
}

static void add_state(const watched_rank *r, uint64_t now_ns, tn_text *out)
{
    static const char *const names[TN_PEER_STATES] = {"loading", "training",   "waiting", "drained",
                                                      "saving",  "evaluating", "ending"};
    if (r->watch == LOST) {
        tn_text_adds(out, "lost");
    } else if (r->watch == SUSPECTED) {
        tn_text_addf(out, "silent for %.1f s", seconds(since(now_ns, r->received_ns)));
    } else if (r->n_beats == 0) {
        tn_text_adds(out, "no heartbeat yet");
    } else {
        TN_ASSERT(r->state < TN_PEER_STATES);
        tn_text_adds(out, names[r->state]);
        if (r->waits_for != 0) {
            tn_text_addf(out, "%s for rank %llu", r->state == TN_PEER_WAITING ? "" : ", waits",
                         (unsigned long long)r->waits_for - 1);
        }
    }
    tn_text_addc(out, '\n');
}

void tn_failure_detector_table(const tn_failure_detector *p, uint64_t now_ns, tn_text *out)
{
    tn_text_adds(out,
                 "rank  host                  step    rows/s  waiting  MB/s out      in    RSS "
                 "MB  state\n");
    double rows_per_s = 0;
    double out_per_s = 0;
    double rss_bytes = 0;
    double waiting = 0;
    uint32_t n = 0; /* neither suspect nor lost */
    for (uint32_t i = 0; i < p->size; i++) {
        const watched_rank *r = &p->rank[i];
        if (r->watch == UNWATCHED && r->n_beats == 0) {
            continue;
        }
        tn_text_addf(out, "%4u  %-16.16s", i, r->host);
        tn_text_addf(out, "%10llu%10.0f%8.0f%%%10.1f%8.1f%10.0f  ", (unsigned long long)r->step,
                     r->rows_per_s, r->waiting * 100, r->out_per_s * 1e-6, r->in_per_s * 1e-6,
                     (double)r->rss_bytes * 1e-6);
        add_state(r, now_ns, out);
        if (r->n_beats > 0 && (r->watch == UNWATCHED || r->watch == ALIVE)) {
            n++;
            rows_per_s += r->rows_per_s;
            out_per_s += r->out_per_s;
            rss_bytes += (double)r->rss_bytes;
            waiting += r->waiting;
        }
    }
    tn_text_addf(out, " all  %-16s%10s%10.0f%8.0f%%%10.1f%8s%10.0f  %u of %u at work\n", "", "",
                 rows_per_s, n > 0 ? waiting * 100 / n : 0, out_per_s * 1e-6, "", rss_bytes * 1e-6,
                 n, p->size);
}
