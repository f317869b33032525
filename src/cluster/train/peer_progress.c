/* peer_progress.c - a rank reports what it has learned and read; rank 0 adds the reports up. */
#include "cluster/train/peer_progress.h"

#include "base/core/alloc.h"
#include "base/core/bytes.h"
#include "base/core/clock.h"
#include "base/core/log.h"

#include <pthread.h>
#include <string.h>

/* ---- to rank 0 ---- */

enum { N_FIRST = 14, N_NUMBERS = N_FIRST + 2 * TN_TASKS_MAX };

/* Lists the members of `f` in the order of the bytes. */
static void list_numbers(tn_rank_counts *f, uint64_t *out[N_NUMBERS])
{
    tn_read_counts *c = &f->met.counts;
    uint64_t *const list[N_FIRST] = {&f->number,        &f->epoch,
                                     &f->held.created,  &f->held.admitted,
                                     &f->held.rows,     &f->held.bytes,
                                     &f->held.expired,  &f->held.evicted,
                                     &c->bytes,         &c->records,
                                     &c->blank,         &c->bad,
                                     &c->duplicate_key, &f->met.tasks.contradictions};
    memcpy(out, list, sizeof list);
    for (uint32_t k = 0; k < TN_TASKS_MAX; k++) {
        out[N_FIRST + 2 * k] = &f->met.tasks.task[k].rows;
        out[N_FIRST + 2 * k + 1] = &f->met.tasks.task[k].clicks;
    }
}

/* Pairs, each half ended by NUL. */
static bool are_pairs(const char *at, size_t n)
{
    uint32_t halves = 0;
    for (size_t i = 0; i < n; i++) {
        halves += at[i] == '\0';
    }
    return n == 0 || (halves % 2 == 0 && at[n - 1] == '\0');
}

void tn_rank_counts_pack(const tn_rank_counts *f, tn_text *out)
{
    TN_ASSERT(are_pairs(tn_text_str(&f->met.reasons), f->met.reasons.size));
    tn_rank_counts copy = *f;
    uint64_t *number[N_NUMBERS];
    list_numbers(&copy, number);
    for (uint32_t i = 0; i < N_NUMBERS; i++) {
        tn_text_add_u64le(out, *number[i]);
    }
    tn_text_add(out, tn_text_str(&f->met.reasons), f->met.reasons.size);
}

/* Fills `f`, which is empty; false where the bytes are no figures: they may come from outside. */
static bool unpack_figures(tn_rank_counts *f, tn_note_bytes bytes)
{
    const size_t size = (size_t)N_NUMBERS * sizeof(uint64_t);
    if (bytes.n < size || !are_pairs(bytes.at + size, bytes.n - size)) {
        return false;
    }
    uint64_t *number[N_NUMBERS];
    list_numbers(f, number);
    for (uint32_t i = 0; i < N_NUMBERS; i++) {
        *number[i] = tn_load_u64(bytes.at + i * sizeof(uint64_t));
    }
    tn_text_add(&f->met.reasons, bytes.at + size, bytes.n - size);
    return true;
}

static const uint64_t every_ns = 1000000000;

static tn_metrics_opts kind_of(const tn_metrics_opts *kinds)
{
    return (tn_metrics_opts){.target = kinds->target, .coarse = true, .sampling = kinds->sampling};
}

/* ---- a rank that reports ---- */

tn_status tn_reporter_init(tn_reporter *r, tn_group *group, const tn_metrics_opts *kinds,
                           tn_error *err)
{
    const tn_metrics_opts kind = kind_of(kinds);
    *r = (tn_reporter){.group = group};
    return tn_metrics_new(&r->metrics, &kind, err);
}

void tn_reporter_done(tn_reporter *r)
{
    tn_metrics_free(r->metrics);
    tn_text_done(&r->packed);
    *r = (tn_reporter){0};
}

tn_status tn_reporter_say(tn_reporter *r, uint64_t now_ns, tn_error *err)
{
    r->next_ns = now_ns + tn_timer_ns(every_ns);
    if (tn_metrics_rows(r->metrics) == 0) {
        return TN_OK;
    }
    tn_text_clear(&r->packed);
    tn_metrics_pack(r->metrics, &r->packed);
    TN_TRY(tn_text_check(&r->packed, "metrics", err));
    r->note.number++;
    r->note.metrics = (tn_note_bytes){r->packed.data, r->packed.size};
    tn_group_report(r->group, &r->note);
    return TN_OK;
}

tn_status tn_reporter_add(tn_reporter *r, const tn_reporter_step *step, uint64_t now_ns,
                          tn_error *err)
{
    if (step->learned != NULL) {
        r->note.samples += step->rows;
        r->note.loss_sum += step->learned->loss * step->weight;
        r->note.weight_sum += step->weight;
    }
    r->note.epoch = step->epoch;
    r->note.records = step->records;
    r->note.bad = step->bad;
    return now_ns < r->next_ns ? TN_OK : tn_reporter_say(r, now_ns, err);
}

/* ---- rank 0 ---- */

/* The newest words of a rank. */
typedef struct peer {
    tn_report_note note; /* without metrics */
    tn_rank_counts figures;
} peer;

struct tn_peer_progress {
    pthread_mutex_t lock;     /* guards all below */
    tn_peer_metrics *metrics; /* owned */
    peer *peer;               /* owned; n_ranks */
    uint32_t n_ranks;
};

tn_status tn_peer_progress_new(tn_peer_progress **out, uint32_t n_ranks,
                               const tn_metrics_opts *kinds, tn_error *err)
{
    TN_ASSERT(n_ranks > 0);
    const tn_metrics_opts kind = kind_of(kinds);
    *out = NULL;
    tn_peer_progress *r = NULL;
    TN_TRY(TN_ALLOC(r, 1, "reports of peers", err));
    (void)pthread_mutex_init(&r->lock, NULL);
    r->n_ranks = n_ranks;
    tn_status status = TN_ALLOC(r->peer, n_ranks, "reports of peers", err);
    if (status == TN_OK) {
        status = tn_peer_metrics_new(&r->metrics, n_ranks, &kind, err);
    }
    if (status != TN_OK) {
        tn_peer_progress_free(r);
        return status;
    }
    *out = r;
    return TN_OK;
}

void tn_peer_progress_free(tn_peer_progress *r)
{
    if (r != NULL) {
        tn_peer_metrics_free(r->metrics);
        for (uint32_t k = 0; r->peer != NULL && k < r->n_ranks; k++) {
            tn_met_done(&r->peer[k].figures.met);
        }
        tn_free(r->peer);
        (void)pthread_mutex_destroy(&r->lock);
        tn_free(r);
    }
}

void tn_peer_progress_take(void *arg, uint32_t rank, const tn_report_note *note)
{
    tn_peer_progress *r = arg;
    tn_error err = {0};
    TN_ASSERT(rank < r->n_ranks);
    (void)pthread_mutex_lock(&r->lock);
    if (note->number > r->peer[rank].note.number) {
        tn_status status = tn_peer_metrics_put(r->metrics, rank, note->number, note->metrics.at,
                                               note->metrics.n, &err);
        if (status == TN_OK) {
            r->peer[rank].note = *note;
            r->peer[rank].note.metrics = (tn_note_bytes){0};
        }
    }
    (void)pthread_mutex_unlock(&r->lock);
    if (err.code != TN_OK) {
        tn_log(TN_LOG_WARN, "%s", err.text);
    }
}

void tn_peer_progress_sums_of(tn_peer_progress *r, tn_ranks_sums *out)
{
    *out = (tn_ranks_sums){0};
    (void)pthread_mutex_lock(&r->lock);
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        const uint64_t epoch = r->peer[k].note.epoch;
        out->epoch = epoch > out->epoch ? epoch : out->epoch;
    }
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        const tn_report_note *note = &r->peer[k].note;
        const bool now = note->epoch == out->epoch;
        out->rows += note->samples;
        out->loss += note->loss_sum;
        out->weight += note->weight_sum;
        out->records += now ? note->records : 0;
        out->bad += now ? note->bad : 0;
    }
    (void)pthread_mutex_unlock(&r->lock);
}

tn_status tn_peer_progress_scores(tn_peer_progress *r, tn_metrics *m, tn_error *err)
{
    (void)pthread_mutex_lock(&r->lock);
    tn_status status = tn_peer_metrics_total(r->metrics, m, err);
    (void)pthread_mutex_unlock(&r->lock);
    return status;
}

/* ---- what was read, and tables ---- */

void tn_peer_progress_add_counts(tn_peer_progress *r, uint32_t rank, tn_note_bytes figures)
{
    TN_ASSERT(rank < r->n_ranks);
    tn_rank_counts told = {0};
    if (!unpack_figures(&told, figures)) {
        return; /* a rank that has none, as where nothing is trained */
    }
    (void)pthread_mutex_lock(&r->lock);
    if (told.number > r->peer[rank].figures.number) {
        const tn_rank_counts old = r->peer[rank].figures;
        r->peer[rank].figures = told;
        told = old;
    }
    (void)pthread_mutex_unlock(&r->lock);
    tn_met_done(&told.met);
}

void tn_peer_progress_counts(tn_peer_progress *r, tn_held *held, uint64_t epoch, tn_met *met)
{
    (void)pthread_mutex_lock(&r->lock);
    for (uint32_t k = 0; k < r->n_ranks; k++) {
        const tn_rank_counts *figures = &r->peer[k].figures;
        held->created += figures->held.created;
        held->admitted += figures->held.admitted;
        held->rows += figures->held.rows;
        held->bytes += figures->held.bytes;
        held->expired += figures->held.expired;
        held->evicted += figures->held.evicted;
        if (met != NULL && figures->number > 0 && figures->epoch == epoch) {
            tn_met_add(met, &figures->met);
        }
    }
    (void)pthread_mutex_unlock(&r->lock);
}
