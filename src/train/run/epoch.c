/* epoch.c - opens the data of an epoch, checks that they are those of before, counts them. */
#include "train/run/epoch.h"

#include "base/core/clock.h"
#include "base/trace/trace.h"
#include "ps/optim/optim.h"
#include "train/config/run.h"
#include "train/peers/part_dealer.h"
#include "train/report/report.h"
#include "train/run/epoch_reader.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <math.h>
#include <stdio.h>

tn_status tn_epoch_init(tn_epoch *e, tn_worker *w, tn_run_state *state,
                        const tn_metrics_opts *metrics, tn_error *err)
{
    *e = (tn_epoch){.w = w, .state = state};
    return tn_metrics_new(&e->metrics, metrics, err);
}

void tn_epoch_done(tn_epoch *e)
{
    TN_ASSERT(e->data == NULL && e->steps == NULL);
    tn_metrics_free(e->metrics);
    tn_arena_free(e->parts);
    tn_met_done(&e->met);
    tn_part_dealer_close(e->dealer);
    tn_arena_free(e->map);
}

/* ---- the files ---- */

/* Files that hold other bytes than before are an end, or, where data.changed allows it, a line. */
static tn_status check_sources(tn_epoch *e, const tn_sources *was, const tn_sources *now,
                               const char *since, tn_error *err)
{
    tn_text how = {0};
    tn_status status = TN_OK;
    if (tn_sources_differ(was, now, &how)) {
        char line[1200];
        (void)snprintf(line, sizeof line, "the training data have changed %s: %s", since,
                       tn_text_str(&how));
        status = e->w->plan->run->data.changed == TN_CHANGED_ACCEPT
                     ? tn_report_event(e->report, e->state, "warn", line, err)
                     : tn_fail(err, TN_E_DATA,
                               "%s\nhint: data.changed=accept learns from them as they are, "
                               "--fresh begins anew",
                               line);
    }
    tn_text_done(&how);
    return status;
}

/* The files as they are when an epoch begins, into `arena`. */
static tn_status look_at_sources(tn_epoch *e, tn_arena *arena, const tn_sources **out,
                                 tn_error *err)
{
    const tn_model_plan *plan = e->w->plan;
    const tn_sources *was = e->state->data != NULL ? e->state->data->sources : NULL;
    const char *since = "since the epoch before";
    TN_TRY(tn_sources_now(out, &plan->run->data.train, plan->schema, arena, err));
    if (e->state->data == NULL) {
        since = "since the checkpoint";
        TN_TRY(tn_sources_read(&was, &e->state->past->sources, "sources.jsonl", arena, err));
    }
    return check_sources(e, was, *out, since, err);
}

tn_status tn_epoch_look_again(tn_epoch *e, tn_error *err)
{
    const tn_sources *was = e->state->data->sources;
    const tn_sources *now = tn_sources_again(was, e->map);
    char since[64];
    (void)snprintf(since, sizeof since, "while epoch %u was read", e->state->progress.epoch + 1);
    TN_TRY(check_sources(e, was, now, since, err));
    tn_epoch_parts *map = TN_NEW(e->map, tn_epoch_parts);
    *map = *e->state->data;
    map->sources = now;
    e->state->data = map;
    return TN_OK;
}

/* ---- the reader ---- */

static void close_dealer(tn_epoch *e)
{
    e->reassigned = tn_epoch_reassigned(e);
    tn_part_dealer_close(e->dealer);
    e->dealer = NULL;
    e->returned = 0;
}

/* A reader of the files that were looked at; they become the files of this epoch. */
static tn_status open_reader(tn_epoch *e, tn_error *err)
{
    tn_run_state *s = e->state;
    const tn_sources *sources = NULL;
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_status status = look_at_sources(e, arena, &sources, err);
    if (status == TN_OK && tn_schedule_ends_with_run(e->w->plan->run)) {
        status = tn_run_end(e->w->plan, s->progress.epoch, s->epoch_step, &e->schedule_end, err);
    }
    if (status == TN_OK) {
        status = tn_epoch_reader_open(&e->data, e->w, &s->progress, &s->stand, &e->dealer, err);
    }
    if (status != TN_OK) {
        tn_arena_free(arena);
        return status;
    }
    tn_arena_free(e->map);
    e->map = arena;
    s->data = tn_epoch_parts_of(tn_step_prefetch_reader(e->data), sources, arena);
    e->number = s->progress.epoch;
    e->is_begun = true;
    tn_met_clear(&e->met);
    return TN_OK;
}

tn_status tn_epoch_open(tn_epoch *e, tn_report *report, tn_error *err)
{
    const bool within = e->state->stand.within;
    const tn_progress *at = &e->state->progress;
    e->report = report;
    e->samples_before = e->state->samples;
    close_dealer(e); /* of the epoch before */
    tn_status status = open_reader(e, err);
    e->is_whole = e->dealer == NULL ? at->part == 0 && at->position == 0 : !within;
    if (e->is_whole) {
        tn_metrics_clear(e->metrics);
    }
    return status;
}

void tn_epoch_close(tn_epoch *e)
{
    if (e->data != NULL) {
        tn_met_add_reader(&e->met, tn_step_prefetch_reader(e->data), TN_ALL_PARTS);
    }
    tn_step_prefetch_close(e->data);
    e->data = NULL;
}

tn_status tn_epoch_begin_steps(tn_epoch *e, tn_error *err)
{
    return tn_step_loop_new(&e->steps, e->w, e->data, err);
}

void tn_epoch_end_steps(tn_epoch *e)
{
    tn_step_loop_free(e->steps);
    e->steps = NULL;
}

tn_status tn_epoch_give_back(tn_epoch *e, tn_error *err)
{
    tn_reader *reader = tn_step_prefetch_reader(e->data);
    tn_epoch_end_steps(e);
    tn_reader_quit(reader); /* so that no part is over between these two */
    tn_met_add_reader(&e->met, reader, tn_part_dealer_ended(e->dealer));
    tn_step_prefetch_close(e->data);
    e->data = NULL;
    e->returned += tn_part_dealer_records(e->dealer);
    tn_part_dealer_give_back(e->dealer, tn_clock_ns());
    const tn_dealt_epoch of = {e->state->progress.epoch, e->state->data->cut_for};
    TN_TRY(tn_epoch_reader_open_dealt(&e->data, e->w, &of, tn_part_dealer_dealer(e->dealer), err));
    return tn_epoch_begin_steps(e, err);
}

/* ---- the place in it ---- */

tn_status tn_epoch_note(tn_epoch *e, const tn_batch *batch, const tn_scored *rows, tn_error *err)
{
    tn_lane *lane = e->w->lane;
    tn_span_begin(lane, TN_PHASE_METRICS);
    tn_status status = tn_metrics_add(e->metrics, rows, err);
    tn_span_end(lane);
    TN_TRY(status);
    e->state->progress = batch->progress;
    e->state->progress.records += e->returned;
    if (e->dealer != NULL) {
        tn_part_dealer_note(e->dealer, &batch->progress, tn_clock_ns());
    }
    return TN_OK;
}

tn_epoch_end tn_epoch_next(tn_epoch *e)
{
    tn_run_state *s = e->state;
    const tn_epoch_end end = {s->progress, s->epoch_step, e->samples_before};
    /* The rest of an epoch does not tell how many records one has. */
    e->records_before = e->is_whole ? s->samples - e->samples_before : 0;
    e->samples_before = s->samples;
    s->part = NULL;
    s->n_parts = 0;
    s->epoch_step = e->w->steps;
    s->progress = (tn_progress){.epoch = s->progress.epoch + 1};
    return end;
}

void tn_epoch_return(tn_epoch *e, const tn_epoch_end *end)
{
    e->state->progress = end->progress;
    e->state->epoch_step = end->epoch_step;
    e->samples_before = end->samples_before;
}

bool tn_epoch_is_current(const tn_epoch *e)
{
    return e->state->data != NULL && e->state->progress.epoch == e->number;
}

uint64_t tn_epoch_records(const tn_epoch *e)
{
    return e->state->samples - e->samples_before;
}

uint64_t tn_epoch_reassigned(const tn_epoch *e)
{
    return e->reassigned + (e->dealer != NULL ? tn_part_dealer_reassigned(e->dealer) : 0);
}

/* Of what is learned, not of what is read: with a large shuffle window all is read before the first
 * step. Until an epoch has told how many records there are, by what the bytes that were read held.
 */
double tn_epoch_share(const tn_epoch *e, uint64_t others)
{
    double all = (double)e->records_before;
    if (e->records_before == 0) {
        tn_reader *reader = tn_step_prefetch_reader(e->data);
        tn_read_counts read;
        tn_reader_counts(reader, &read);
        const double bytes = (double)tn_reader_done_bytes(reader);
        const double total = (double)tn_reader_total_bytes(reader);
        all = bytes > 0 ? (double)read.records * total / bytes : 0;
    }
    const uint64_t learned = e->state->progress.records + others;
    return all > 0 ? fmin(1, (double)learned / all) : (double)NAN;
}

void tn_epoch_set_records(tn_epoch *e, uint64_t records)
{
    e->state->samples = e->samples_before + records;
}

void tn_epoch_count_dealt(tn_epoch *e)
{
    e->state->progress.records = e->returned + tn_part_dealer_records(e->dealer);
}

/* ---- its parts, for a checkpoint ---- */

void tn_epoch_list_dealt(tn_epoch *e)
{
    tn_run_state *s = e->state;
    if (e->dealer != NULL && s->progress.epoch == tn_part_dealer_epoch(e->dealer)) {
        tn_arena_free(e->parts);
        e->parts = tn_arena_new(1 << 12);
        s->part = tn_part_dealer_parts(e->dealer, e->parts, &s->n_parts, tn_clock_ns());
    }
}

bool tn_epoch_list_parts(tn_epoch *e, const tn_progress *progress)
{
    tn_run_state *s = e->state;
    tn_arena_free(e->parts);
    e->parts = tn_arena_new(1 << 14);
    s->part = tn_epoch_parts_manifest(s->data, progress, e->w->plan->owners.n_peers, e->parts,
                                      &s->n_parts);
    return s->part != NULL;
}
