/* failure_detector.c - beats and silences: failure_detector.h. Sentences and the table are in
 * failure_detector_text.c. */
#include "cluster/group/failure_detector.h"

#include "base/core/alloc.h"
#include "cluster/group/failure_detector_state.h"

#include <string.h>

/* Beats that were held up come in one burst, which says nothing of a rate. */
#define RATE_MIN_NS UINT64_C(500000000)
#define ROWS_PER_S_MAX 1e12

static void use_defaults(tn_pulse_opts *o)
{
    o->stall_steps = o->stall_steps != 0 ? o->stall_steps : TN_PULSE_STALL_STEPS;
    o->stall_ns = o->stall_ns != 0 ? o->stall_ns : TN_PULSE_STALL_NS;
    o->suspect_ns = o->suspect_ns != 0 ? o->suspect_ns : TN_PULSE_SUSPECT_NS;
    o->lost_ns = o->lost_ns != 0 ? o->lost_ns : TN_PULSE_LOST_NS;
    o->gap_ns = o->gap_ns != 0 ? o->gap_ns : TN_PULSE_GAP_NS;
}

tn_status tn_pulse_new(tn_pulse **out, const tn_pulse_opts *opts, tn_error *err)
{
    TN_ASSERT(opts->size > 0);
    *out = NULL;
    tn_pulse *p = tn_try_alloc(1, sizeof *p, "the heartbeats of the group", err);
    if (p == NULL) {
        return TN_E_MEMORY;
    }
    p->opts = *opts;
    use_defaults(&p->opts);
    TN_ASSERT(p->opts.suspect_ns <= p->opts.lost_ns);
    p->rank = tn_try_alloc(opts->size, sizeof *p->rank, "the heartbeats of the group", err);
    if (p->rank == NULL) {
        tn_pulse_free(p);
        return TN_E_MEMORY;
    }
    *out = p;
    return TN_OK;
}

void tn_pulse_free(tn_pulse *p)
{
    if (p == NULL) {
        return;
    }
    tn_free(p->rank);
    tn_free(p);
}

static tn_pulse_rank *rank_of(const tn_pulse *p, uint32_t rank)
{
    TN_ASSERT(rank < p->opts.size);
    return &p->rank[rank];
}

void tn_pulse_name(tn_pulse *p, uint32_t rank, const char *host, uint64_t pid)
{
    tn_pulse_rank *r = rank_of(p, rank);
    size_t n = 0;
    for (; n < TN_PULSE_HOST - 1 && host[n] != 0; n++) {
        bool is_plain = host[n] >= ' ' && host[n] < 0x7f;
        r->host[n] = '?';
        if (is_plain) {
            r->host[n] = host[n];
        }
    }
    r->host[n] = 0;
    r->pid = pid;
}

/* Waking time at a moment since the last poll. */
static uint64_t awake_at(const tn_pulse *p, uint64_t now_ns)
{
    uint64_t passed = p->has_begun && now_ns > p->polled_ns ? now_ns - p->polled_ns : 0;
    return p->awake + (passed < p->opts.gap_ns ? passed : p->opts.gap_ns);
}

/* Moves waking time on to now. */
static void wake(tn_pulse *p, uint64_t now_ns)
{
    p->awake = awake_at(p, now_ns);
    p->polled_ns = !p->has_begun || now_ns > p->polled_ns ? now_ns : p->polled_ns;
    p->has_begun = true;
}

static uint64_t since(uint64_t now, uint64_t then)
{
    return now > then ? now - then : 0;
}

void tn_pulse_watch(tn_pulse *p, uint32_t rank, uint64_t now_ns)
{
    if (!p->has_begun) {
        wake(p, now_ns);
    }
    tn_pulse_rank *r = rank_of(p, rank);
    tn_pulse_rank fresh = {.watch = TN_PULSE_WELL,
                           .heard_ns = now_ns,
                           .heard_awake = awake_at(p, now_ns),
                           .pid = r->pid};
    memcpy(fresh.host, r->host, sizeof fresh.host);
    *r = fresh;
}

void tn_pulse_unwatch(tn_pulse *p, uint32_t rank)
{
    rank_of(p, rank)->watch = TN_PULSE_GONE;
}

static double within(double value, double max)
{
    return value > 0 ? (value < max ? value : max) : 0;
}

/* Bytes per second out of two counts. */
static void take_rates(tn_pulse_rank *r, const tn_beat_note *beat, uint64_t now_ns)
{
    const uint64_t passed = since(now_ns, r->rate_ns);
    if (r->n_beats > 0 && passed < RATE_MIN_NS) {
        return;
    }
    if (r->n_beats > 0) {
        const double seconds = (double)passed * 1e-9;
        r->out_per_s = (double)since(beat->bytes_out, r->rate_out) / seconds;
        r->in_per_s = (double)since(beat->bytes_in, r->rate_in) / seconds;
    }
    r->rate_ns = now_ns;
    r->rate_out = beat->bytes_out;
    r->rate_in = beat->bytes_in;
}

/* A rank that has moved, or was not training before, begins to stand anew. */
static void follow(tn_pulse *p, tn_pulse_rank *r, uint64_t state, uint64_t step, uint64_t awake)
{
    const bool trained = r->n_beats > 0 && r->state == TN_PEER_TRAINING;
    if (trained && step > r->step) {
        tn_recent_add(&p->steps, since(awake, r->stood_awake) / (step - r->step));
    }
    if (!trained || state != TN_PEER_TRAINING || step != r->step) {
        r->stood_awake = awake;
        r->was_told = false;
    }
    r->step = step;
    r->state = state;
}

static void take_beat(tn_pulse *p, tn_pulse_rank *r, const tn_beat_note *beat, uint64_t step,
                      uint64_t now_ns)
{
    TN_ASSERT(beat->state < TN_PEER_STATES); /* notes of others are not read */
    follow(p, r, beat->state, step, awake_at(p, now_ns));
    take_rates(r, beat, now_ns);
    r->records = beat->records;
    r->rss_bytes = beat->rss_bytes;
    r->waits_for = beat->waits_for <= p->opts.size ? beat->waits_for : 0;
    r->rows_per_s = within(beat->rows_per_s, ROWS_PER_S_MAX);
    r->waiting = within(beat->waiting, 1);
    r->at_beat = r->pushed;
    r->n_beats++;
}

void tn_pulse_pushed(tn_pulse *p, uint32_t rank, uint64_t number)
{
    tn_pulse_rank *r = rank_of(p, rank);
    if (!r->has_pushed) {
        r->has_pushed = true;
        r->pushed = r->at_beat = number;
    }
    r->pushed = number > r->pushed ? number : r->pushed; /* it may be sent again */
}

void tn_pulse_heard(tn_pulse *p, uint32_t rank, const tn_beat_note *beat, uint64_t step,
                    uint64_t now_ns)
{
    tn_pulse_rank *r = rank_of(p, rank);
    if (r->watch == TN_PULSE_DEAD || r->watch == TN_PULSE_GONE) {
        return;
    }
    const uint64_t awake = awake_at(p, now_ns);
    if (r->watch == TN_PULSE_QUIET && since(awake, r->heard_awake) >= p->opts.suspect_ns) {
        r->silent_ns = since(now_ns, r->heard_ns);
    }
    r->heard_ns = now_ns;
    r->heard_awake = awake;
    r->was_heard = true;
    if (beat != NULL) {
        take_beat(p, r, beat, step, now_ns);
    }
}

static bool is_stalled(const tn_pulse *p, const tn_pulse_rank *r)
{
    const uint64_t usual = tn_recent_median(&p->steps) * p->opts.stall_steps;
    const uint64_t limit = usual > p->opts.stall_ns ? usual : p->opts.stall_ns;
    return r->n_beats > 0 && r->state == TN_PEER_TRAINING &&
           since(p->awake, r->stood_awake) >= limit;
}

/* What is to be told of a rank now, if anything; its state moves on. */
static bool look_at(tn_pulse *p, tn_pulse_rank *r, uint64_t now_ns, tn_pulse_event *out)
{
    const uint64_t silent = since(p->awake, r->heard_awake);
    out->step = r->step;
    out->ns = since(now_ns, r->heard_ns);
    if (r->watch == TN_PULSE_WELL && silent >= p->opts.suspect_ns) {
        r->watch = TN_PULSE_QUIET;
        out->kind = TN_PULSE_SUSPECT;
        return true;
    }
    if (r->watch == TN_PULSE_QUIET && silent >= p->opts.lost_ns) {
        r->watch = TN_PULSE_DEAD;
        out->kind = TN_PULSE_LOST;
        return true;
    }
    if (r->watch == TN_PULSE_QUIET && silent < p->opts.suspect_ns) {
        r->watch = TN_PULSE_WELL;
        out->kind = TN_PULSE_BACK;
        out->ns = r->silent_ns;
        return true;
    }
    if (r->watch == TN_PULSE_WELL && !r->was_told && is_stalled(p, r)) {
        r->was_told = true;
        out->kind = TN_PULSE_STALLED;
        out->ns = since(p->awake, r->stood_awake);
        return true;
    }
    return false;
}

bool tn_pulse_poll(tn_pulse *p, uint64_t now_ns, tn_pulse_event *out)
{
    wake(p, now_ns);
    for (; p->cursor < p->opts.size; p->cursor++) {
        tn_pulse_event event = {.rank = p->cursor};
        if (look_at(p, &p->rank[p->cursor], now_ns, &event)) {
            *out = event; /* the same rank is looked at again: it may be lost as well */
            return true;
        }
    }
    p->cursor = 0;
    return false;
}
