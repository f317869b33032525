/* failure_detector_text.c - what a pulse says to people: sentences, totals, the table of
 * failure_detector.h. */
#include "cluster/group/failure_detector.h"
#include "cluster/group/failure_detector_state.h"

static double seconds(uint64_t ns)
{
    return (double)ns * 1e-9;
}

static void add_who(const tn_pulse *p, uint32_t rank, tn_text *out)
{
    TN_ASSERT(rank < p->opts.size);
    const tn_pulse_rank *r = &p->rank[rank];
    tn_text_addf(out, "rank %u", rank);
    if (r->host[0] != 0) {
        tn_text_addf(out, " (host '%s'", r->host);
        if (r->pid != 0) {
            tn_text_addf(out, ", pid %llu", (unsigned long long)r->pid);
        }
        tn_text_addc(out, ')');
    }
}

static void add_step(const tn_pulse_rank *r, const char *before, tn_text *out)
{
    if (r->n_beats > 0) {
        const uint64_t step = r->step + (r->pushed - r->at_beat);
        tn_text_addf(out, "%s%llu", before, (unsigned long long)step);
    }
}

static void add_lost(const tn_pulse *p, uint32_t rank, uint64_t silent_ns, tn_text *out)
{
    const tn_pulse_rank *r = &p->rank[rank];
    add_who(p, rank, out);
    if (!r->was_heard) {
        tn_text_addf(out, " was not heard of in %.1f s", seconds(silent_ns));
        return;
    }
    tn_text_addf(out, " was last heard of %.1f s ago", seconds(silent_ns));
    add_step(r, " at step ", out);
}

void tn_pulse_event_text(const tn_pulse *p, const tn_pulse_event *event, tn_text *out)
{
    TN_ASSERT(event->rank < p->opts.size);
    const tn_pulse_rank *r = &p->rank[event->rank];
    const double s = seconds(event->ns);
    if (event->kind == TN_PULSE_LOST) {
        add_lost(p, event->rank, event->ns, out);
        return;
    }
    add_who(p, event->rank, out);
    if (event->kind == TN_PULSE_STALLED) {
        tn_text_addf(out, " has stood at step %llu for %.1f s", (unsigned long long)event->step, s);
        if (r->waits_for != 0) {
            tn_text_addf(out, " and waits for rank %llu", (unsigned long long)r->waits_for - 1);
        }
        return;
    }
    tn_text_addf(out,
                 event->kind == TN_PULSE_BACK ? " is heard again after %.1f s"
                                              : " has been silent for %.1f s",
                 s);
    add_step(r, ", at step ", out);
}

void tn_pulse_lost_text(const tn_pulse *p, uint32_t rank, uint64_t now_ns, tn_text *out)
{
    TN_ASSERT(rank < p->opts.size);
    const uint64_t heard = p->rank[rank].heard_ns;
    add_lost(p, rank, now_ns > heard ? now_ns - heard : 0, out);
}

static bool is_counted(const tn_pulse_rank *r)
{
    return r->n_beats > 0 && (r->watch == TN_PULSE_UNWATCHED || r->watch == TN_PULSE_WELL);
}

void tn_pulse_totals_of(const tn_pulse *p, tn_pulse_totals *out)
{
    tn_pulse_totals t = {0};
    for (uint32_t i = 0; i < p->opts.size; i++) {
        const tn_pulse_rank *r = &p->rank[i];
        if (is_counted(r)) {
            t.ranks++;
            t.records += r->records;
            t.rows_per_s += r->rows_per_s;
            t.bytes_per_s += r->out_per_s;
            t.waiting += r->waiting;
            t.rss_bytes += r->rss_bytes;
        }
    }
    t.waiting = t.ranks > 0 ? t.waiting / t.ranks : 0;
    *out = t;
}

static void add_state(const tn_pulse_rank *r, uint64_t now_ns, tn_text *out)
{
    static const char *const names[TN_PEER_STATES] = {"loading", "training",   "waiting", "drained",
                                                      "saving",  "evaluating", "ending"};
    if (r->watch == TN_PULSE_DEAD || r->watch == TN_PULSE_GONE) {
        tn_text_adds(out, r->watch == TN_PULSE_DEAD ? "lost" : "left");
    } else if (r->watch == TN_PULSE_QUIET) {
        const uint64_t ns = now_ns > r->heard_ns ? now_ns - r->heard_ns : 0;
        tn_text_addf(out, "silent for %.1f s", seconds(ns));
    } else if (r->n_beats == 0) {
        tn_text_adds(out, "no heartbeat yet");
    } else {
        tn_text_adds(out, names[r->state]);
        if (r->waits_for != 0) {
            tn_text_addf(out, "%s for rank %llu", r->state == TN_PEER_WAITING ? "" : ", waits",
                         (unsigned long long)r->waits_for - 1);
        }
    }
    tn_text_addc(out, '\n');
}

void tn_pulse_table(const tn_pulse *p, uint64_t now_ns, tn_text *out)
{
    tn_text_adds(out,
                 "rank  host                  step    rows/s  waiting  MB/s out      in    RSS "
                 "MB  state\n");
    for (uint32_t i = 0; i < p->opts.size; i++) {
        const tn_pulse_rank *r = &p->rank[i];
        if (r->watch == TN_PULSE_UNWATCHED && r->n_beats == 0) {
            continue;
        }
        tn_text_addf(out, "%4u  %-16.16s", i, r->host);
        tn_text_addf(out, "%10llu%10.0f%8.0f%%%10.1f%8.1f%10.0f  ", (unsigned long long)r->step,
                     r->rows_per_s, r->waiting * 100, r->out_per_s * 1e-6, r->in_per_s * 1e-6,
                     (double)r->rss_bytes * 1e-6);
        add_state(r, now_ns, out);
    }
    tn_pulse_totals t;
    tn_pulse_totals_of(p, &t);
    tn_text_addf(out, " all  %-16s%10s%10.0f%8.0f%%%10.1f%8s%10.0f  %u of %u at work\n", "", "",
                 t.rows_per_s, t.waiting * 100, t.bytes_per_s * 1e-6, "",
                 (double)t.rss_bytes * 1e-6, t.ranks, p->opts.size);
}
