/* epoch.c - one pass over the training data: steps, and what is due between them. */
#include "train/run/trainer_state.h"

#include "base/core/clock.h"
#include "io/read/bad_record_limit.h"
#include "train/run/epoch_reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Records of this epoch that all ranks have read, as far as they have told. */
static uint64_t records_of_all(const tn_trainer *t)
{
    tn_peer_progress_sums others = {0};
    if (t->lead != NULL) {
        tn_peer_progress_sums_of(tn_leader_peer_progress(t->lead), &others);
    }
    return t->state.progress.records +
           (others.epoch == t->state.progress.epoch ? others.records : 0);
}

/* Share of this epoch that is learned, not what is read: with a large shuffle window all is read
 * before the first step. Until an epoch has told how many records there are, by what the bytes that
 * were read held.
 */
static double share_of_epoch(const tn_trainer *t, tn_reader *reader)
{
    double all = (double)t->epoch_records;
    if (t->epoch_records == 0) {
        tn_read_counts read;
        tn_reader_counts(reader, &read);
        const double bytes = (double)tn_reader_done_bytes(reader);
        const double total = (double)tn_reader_total_bytes(reader);
        all = bytes > 0 ? (double)read.records * total / bytes : 0;
    }
    return all > 0 ? fmin(1, (double)records_of_all(t) / all) : (double)NAN;
}

/* Share of the run: of what ends it first. */
static double share_done(const tn_trainer *t, double epoch_done)
{
    const tn_train_opts *o = &t->run->train;
    double share = (t->state.progress.epoch + epoch_done) / o->epochs;
    if (o->max_steps != TN_UNSET_U64) {
        share = fmax(share, (double)t->worker->steps / (double)o->max_steps);
    }
    if (!isnan(o->max_time)) {
        share = fmax(share, (tn_clock_s() - t->begin) / o->max_time);
    }
    return share;
}

/* The batch that this rank has learned from: its scores, and where the epoch stands behind it. */
static tn_status note_batch(tn_trainer *t, const tn_batch *batch, const tn_scored *rows,
                            tn_error *err)
{
    tn_lane *lane = t->worker->lane;
    tn_span_begin(lane, TN_PHASE_METRICS);
    tn_status status = tn_metrics_add(t->epoch_metrics, rows, err);
    tn_span_end(lane);
    TN_TRY(status);
    t->state.progress = batch->progress;
    t->state.progress.records += t->returned;
    if (t->dealer != NULL) {
        tn_part_dealer_note(t->dealer, &batch->progress, tn_clock_ns());
    }
    return TN_OK;
}

static tn_status note_step(tn_trainer *t, const tn_step_turn *turn, tn_error *err)
{
    const double begin = tn_clock_s();
    const tn_rule_opts *dense = t->run->train.optimizer.opts;
    tn_scored rows = {0};
    tn_link_counts counts = {0};
    if (turn->step != NULL) {
        const tn_batch *batch = turn->step->batch;
        rows = (tn_scored){.n = batch->rows,
                           .logit = t->worker->train_logit->val,
                           .label = batch->label,
                           .weight = batch->weight};
        TN_TRY(note_batch(t, batch, &rows, err));
    }
    if (t->lead != NULL) {
        tn_link_counts_of(tn_group_link(t->beats.group), &counts);
    }
    t->state.samples = t->lead != NULL ? t->state.samples + turn->rows
                                       : t->samples_before + t->state.progress.records;
    t->state.steps = t->worker->steps;
    t->unsaved = true;
    tn_reader *reader = tn_step_prefetch_reader(t->data);
    double epoch_done = share_of_epoch(t, reader);
    tn_report_step step = {
        .learned = &turn->learned,
        .rows = &rows,
        .joint = tn_trainer_is_async(t) ? rows.n : turn->rows,
        .weight = turn->weight,
        .state = &t->state,
        .lr = dense->lr * turn->factor,
        .wait_read_s = turn->waited_s,
        .wait_pull_s = turn->waits.rows_s,
        .wait_push_s = turn->waits.weights_s,
        .bytes_in = counts.bytes_in,
        .bytes_out = counts.bytes_out,
        .compute_s = turn->took_s,
        .took_s = t->lead == NULL ? turn->waited_s + turn->took_s + tn_clock_s() - begin : 0,
        .keys = turn->step != NULL ? turn->step->local->keys.n : 0,
        .epoch_done = epoch_done,
        .done = share_done(t, epoch_done),
        .reader = reader,
    };
    tn_span_begin(t->worker->lane, TN_PHASE_REPORT);
    tn_status status = tn_report_step_done(t->report, &step, err);
    tn_span_end(t->worker->lane);
    return status;
}

/* Whether a multiple of every->steps lies behind what was looked at before. */
static bool has_come(const tn_trainer *t, const tn_every *every, uint64_t steps)
{
    return every->steps > 0 && steps / every->steps > t->looked / every->steps;
}

static bool is_due(const tn_trainer *t, const tn_every *every, double now, double *next)
{
    if (every->seconds > 0 && now >= *next) {
        *next = now + every->seconds;
        return true;
    }
    return has_come(t, every, t->worker->steps);
}

static bool comes(const tn_trainer *t, const tn_every *every, uint64_t steps, double next)
{
    return (every->seconds > 0 && tn_clock_s() >= next) || has_come(t, every, steps);
}

bool tn_trainer_is_due(tn_trainer *t, uint64_t steps)
{
    const double now = tn_clock_s();
    const tn_train_opts *o = &t->run->train;
    return comes(t, &t->eval_every, steps, t->next_eval) ||
           comes(t, &t->ckpt_every, steps, t->next_ckpt) ||
           comes(t, &t->delta_every, steps, t->next_delta) || steps >= o->max_steps ||
           now - t->begin >= o->max_time || tn_trainer_is_asked(t) || tn_trainer_is_full(t) ||
           t->memory.room == TN_ROOM_AFTER_SAVE ||
           (t->watch->save != NULL && atomic_load(t->watch->save));
}

static tn_status stop_if_full(tn_trainer *t, tn_error *err)
{
    if (tn_memory_cap_look(&t->memory) == TN_ROOM_AFTER_SAVE) {
        TN_TRY(tn_trainer_end_save(t, err));
        (void)tn_memory_cap_look(&t->memory);
    }
    const bool full = t->peer_is_full || tn_room_is_over(t->memory.room);
    return full ? tn_trainer_stop_full(t, err) : TN_OK;
}

static tn_status do_what_is_due(tn_trainer *t, tn_error *err)
{
    double now = tn_clock_s();
    uint64_t steps = t->worker->steps;
    const tn_train_opts *o = &t->run->train;
    TN_TRY(tn_trainer_note_save(t, err));
    if (is_due(t, &t->eval_every, now, &t->next_eval)) {
        tn_status status = tn_trainer_validate(t, err);
        if (status == TN_E_STOPPED) {
            return tn_trainer_stop_owing(t, err);
        }
        TN_TRY(status);
    }
    t->stop = t->stop || steps >= o->max_steps || now - t->begin >= o->max_time;
    if (t->stop) {
        return TN_OK; /* the run's end saves, perhaps another model than this one */
    }
    bool delta = is_due(t, &t->delta_every, now, &t->next_delta);
    bool save_now = t->watch->save != NULL && atomic_exchange(t->watch->save, false);
    if (save_now || is_due(t, &t->ckpt_every, now, &t->next_ckpt)) {
        TN_TRY(tn_trainer_save(t, false, err));
    } else if (delta) {
        TN_TRY(tn_trainer_save(t, true, err));
    }
    if (tn_trainer_is_asked(t)) {
        return tn_trainer_stop(t, err);
    }
    return stop_if_full(t, err);
}

/* Evaluations, checkpoints and signals between two steps. */
static tn_status do_between(tn_trainer *t, tn_error *err)
{
    tn_status status = do_what_is_due(t, err);
    t->looked = t->worker->steps;
    return status;
}

/* Of this rank, or of all ranks. TN_END: when alone, there are none. */
static tn_status first_rows(tn_trainer *t, tn_reader *reader, tn_prior *out, tn_error *err)
{
    if (t->lead == NULL) {
        return tn_reader_prior(reader, out, err);
    }
    const uint32_t epoch = t->state.progress.epoch;
    TN_TRY(tn_leader_prior(t->lead, epoch, err));
    tn_status status = tn_epoch_reader_on_request(t->worker)
                           ? tn_epoch_reader_prior(t->worker, epoch, out, err)
                           : tn_reader_prior(reader, out, err);
    return status == TN_OK || status == TN_END ? tn_leader_add_priors(t->lead, epoch, out, err)
                                               : status;
}

/* The label rate as first value of the output bias, unless the weights came from somewhere. */
static tn_status set_prior(tn_trainer *t, tn_reader *reader, tn_error *err)
{
    const tn_model_common *model = t->run->model.shared;
    bool fresh = t->worker->steps == 0 && t->state.samples == 0 && !t->state.begun;
    if (!fresh || strcmp(model->bias_init, "prior") != 0 || t->worker->output_bias == NULL) {
        return TN_OK;
    }
    tn_prior prior = {0};
    tn_span_begin(t->worker->lane, TN_PHASE_WAIT_DATA);
    tn_status status = first_rows(t, reader, &prior, err);
    tn_span_end(t->worker->lane);
    TN_TRY(status);
    if (prior.weight > 0) { /* else no rank has rows, as it will find */
        tn_worker_set_prior(t->worker, prior.clicks / prior.weight);
    }
    return TN_OK;
}

/* The outcome of a reader that has ended; a signal may have cut it short. */
static tn_status reader_ended(tn_trainer *t, tn_status status, tn_error *err)
{
    bool cut = (status == TN_END || status == TN_E_STOPPED) && tn_trainer_is_asked(t);
    return cut ? tn_trainer_stop(t, err) : status;
}

/* ---- hooks of the steps ---- */

static bool meets(void *arg, uint64_t steps)
{
    tn_trainer *t = arg;
    const bool deals_anew = tn_trainer_hear_peers(t);
    return tn_trainer_is_due(t, steps) || deals_anew;
}

static double factor(void *arg)
{
    const tn_trainer *t = arg;
    return tn_learning_rate_factor(t->run, t->worker->steps, t->end) * t->patience.state.lr_scale;
}

/* Above staleness 0 a turn without a step is one without data, in which nothing was done. */
static tn_status note_turn(void *arg, const tn_step_turn *turn, tn_error *err)
{
    tn_trainer *t = arg;
    const bool is_idle = turn->step == NULL && tn_trainer_is_async(t);
    if (!is_idle) {
        TN_TRY(note_step(t, turn, err));
    }
    if (t->lead != NULL) {
        tn_heartbeat_stats_step(&t->beats, t->worker, turn, t->state.progress.records);
    }
    if (is_idle) {
        tn_heartbeat_stats_state(&t->beats, TN_PEER_WAITING);
    }
    return turn->meets ? TN_OK : tn_trainer_note_save(t, err);
}

/* Does what is due while all stand still, then has them go on. */
static tn_status meet(tn_trainer *t, tn_error *err)
{
    bool has_to_act;
    TN_TRY(tn_trainer_gather_peers(t, &has_to_act, err));
    if (!has_to_act) {
        return TN_OK;
    }
    TN_TRY(do_between(t, err));
    return t->stop ? TN_OK : tn_trainer_start_peers(t, false, err);
}

static tn_status take_steps(tn_trainer *t, tn_error *err)
{
    const tn_step_hooks hooks = {meets, factor, note_turn, t};
    while (!t->stop) {
        tn_status status = tn_step_loop_run(t->steps, &hooks, err);
        if (status == TN_END) {
            TN_TRY(tn_trainer_end_peers(t, err));
            return TN_END;
        }
        TN_TRY(status);
        TN_TRY(meet(t, err));
    }
    /* The run is over, perhaps with nothing to save. */
    return tn_trainer_is_async(t) ? TN_OK : tn_trainer_sum(t, err);
}

/* TN_END: the epoch is over; TN_OK: the run is. */
static tn_status all_steps(tn_trainer *t, tn_error *err)
{
    tn_status status = set_prior(t, tn_step_prefetch_reader(t->data), err);
    if (status == TN_OK) {
        status = tn_trainer_start_peers(t, true, err);
    }
    if (status == TN_OK) {
        status = tn_step_loop_new(&t->steps, t->worker, t->data, err);
    }
    if (status == TN_OK) {
        status = take_steps(t, err);
    }
    tn_step_loop_free(t->steps);
    t->steps = NULL;
    return reader_ended(t, status, err);
}

static void next_epoch(tn_trainer *t)
{
    t->epoch_records = t->state.samples - t->samples_before;
    t->samples_before = t->state.samples;
    t->state.part = NULL;
    t->state.n_parts = 0;
    t->state.epoch_step = t->worker->steps;
    t->state.progress = (tn_progress){.epoch = t->state.progress.epoch + 1};
}

/* Neither this rank nor any other one found one. */
static tn_status no_records(const tn_trainer *t, tn_error *err)
{
    const tn_strs *paths = &t->run->data.train;
    return tn_fail(err, TN_E_DATA, "data.train holds no records: '%s'%s", paths->item[0],
                   paths->n > 1 ? " and others" : "");
}

/* Bad records of all ranks; one process's reader has judged its own. What a rank tells of its
 * records ends with its last batch, so those behind it are added. */
static tn_status judge_bad(const tn_trainer *t, uint64_t samples_before, tn_error *err)
{
    const uint64_t bad = t->met.counts.bad + t->bad_of_others;
    const uint64_t told = t->state.samples - samples_before;
    const uint64_t learned = tn_metrics_rows(t->whole);
    const uint64_t records = told > learned + bad ? told : learned + bad;
    tn_bad_record_limit limit;
    TN_TRY(tn_bad_record_limit_read(t->run->data.bad_records_max, &limit, err));
    return tn_bad_record_limit_end(&limit, records, bad, err);
}

/* Files that hold other bytes than before are an end, or, where data.changed allows it, a line. */
static tn_status check_sources(tn_trainer *t, const tn_sources *was, const tn_sources *now,
                               const char *since, tn_error *err)
{
    tn_text how = {0};
    tn_status status = TN_OK;
    if (tn_sources_differ(was, now, &how)) {
        char line[1200];
        (void)snprintf(line, sizeof line, "the training data have changed %s: %s", since,
                       tn_text_str(&how));
        status = t->run->data.changed == TN_CHANGED_ACCEPT
                     ? tn_report_event(t->report, &t->state, "warn", line, err)
                     : tn_fail(err, TN_E_DATA,
                               "%s\nhint: data.changed=accept learns from them as they are, "
                               "--fresh begins anew",
                               line);
    }
    tn_text_done(&how);
    return status;
}

/* The files as they are when an epoch begins, into `arena`. */
static tn_status look_at_sources(tn_trainer *t, tn_arena *arena, const tn_sources **out,
                                 tn_error *err)
{
    const tn_sources *was = t->state.data != NULL ? t->state.data->sources : NULL;
    const char *since = "since the epoch before";
    TN_TRY(tn_sources_now(out, &t->run->data.train, t->plan->schema, arena, err));
    if (t->state.data == NULL) {
        since = "since the checkpoint";
        TN_TRY(tn_sources_read(&was, &t->past.sources, "sources.jsonl", arena, err));
    }
    return check_sources(t, was, *out, since, err);
}

/* Looks at the files once more when an epoch is over: they may have changed under the reader. */
static tn_status look_again(tn_trainer *t, tn_error *err)
{
    const tn_sources *was = t->state.data->sources;
    const tn_sources *now = tn_sources_again(was, t->map);
    char since[64];
    (void)snprintf(since, sizeof since, "while epoch %u was read", t->state.progress.epoch + 1);
    TN_TRY(check_sources(t, was, now, since, err));
    tn_epoch_parts *map = TN_NEW(t->map, tn_epoch_parts);
    *map = *t->state.data;
    map->sources = now;
    t->state.data = map;
    return TN_OK;
}

/* Does what is due at the end of an epoch. `whole`: it was read from its beginning. */
static tn_status after_epoch(tn_trainer *t, bool whole, tn_error *err)
{
    const tn_progress end = t->state.progress;
    const uint64_t samples_before = t->samples_before;
    const uint64_t epoch_step = t->state.epoch_step;
    TN_TRY(look_again(t, err));
    TN_TRY(tn_trainer_sum(t, err));
    if (whole && t->lead != NULL) {
        TN_TRY(judge_bad(t, samples_before, err));
    }
    if (whole && t->met.counts.records == 0 && t->state.samples == samples_before) {
        return no_records(t, err);
    }
    next_epoch(t);
    uint32_t epoch = t->state.progress.epoch;
    bool last = epoch == t->run->train.epochs;
    if ((t->eval_every.epochs > 0 && epoch % t->eval_every.epochs == 0) || last) {
        tn_status status = tn_trainer_validate(t, err);
        if (status == TN_E_STOPPED) {
            t->state.progress = end; /* so that a resumed run comes here again */
            t->state.epoch_step = epoch_step;
            t->samples_before = samples_before;
            return tn_trainer_stop(t, err);
        }
        TN_TRY(status);
    }
    bool full = t->ckpt_every.epochs > 0 && epoch % t->ckpt_every.epochs == 0;
    bool delta = t->delta_every.epochs > 0 && epoch % t->delta_every.epochs == 0;
    if ((full || delta) && !last && !t->stop && t->unsaved) {
        return tn_trainer_save(t, !full, err); /* the last one is saved with the run's end */
    }
    return TN_OK;
}

/* The steps of an epoch, behind an evaluation that the run before owed. TN_END: it is over. */
static tn_status pass(tn_trainer *t, tn_error *err)
{
    tn_status status =
        tn_step_prefetch_watch(t->data, t->lead != NULL ? NULL : t->watch->stop, err);
    if (status == TN_OK && t->state.eval_owed) {
        status = tn_trainer_validate(t, err);
        status = status == TN_E_STOPPED ? tn_trainer_stop_owing(t, err) : status;
    }
    return status == TN_OK ? all_steps(t, err) : status;
}

static void close_dealer(tn_trainer *t)
{
    if (t->lead != NULL) {
        tn_leader_deal(t->lead, NULL);
    }
    t->reassigned += t->dealer != NULL ? tn_part_dealer_reassigned(t->dealer) : 0;
    tn_part_dealer_close(t->dealer);
    t->dealer = NULL;
    t->returned = 0;
}

static tn_status warn_of_spare_ranks(tn_trainer *t, tn_error *err)
{
    const uint32_t n_ranks = t->plan->owners.n_peers;
    const uint32_t n_parts = t->state.data->n_parts;
    if (n_parts >= n_ranks) {
        return TN_OK;
    }
    char line[160];
    (void)snprintf(
        line, sizeof line,
        "data.train has %u part%s for %u processes, so %u will have no rows: more files, "
        "or a smaller data.part_bytes",
        n_parts, n_parts == 1 ? "" : "s", n_ranks, n_ranks - n_parts);
    return tn_report_event(t->report, &t->state, "warn", line, err);
}

/* A reader of the files that were looked at; they become the files of this epoch. */
static tn_status open_reader(tn_trainer *t, tn_error *err)
{
    const tn_sources *sources = NULL;
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_status status = look_at_sources(t, arena, &sources, err);
    if (status == TN_OK && tn_schedule_ends_with_run(t->run)) {
        const tn_run_state *s = &t->state;
        status = tn_run_end(t->plan, s->progress.epoch, s->epoch_step, &t->end, err);
    }
    if (status == TN_OK) {
        status = tn_epoch_reader_open(&t->data, t->worker, &t->state.progress, &t->state.stand,
                                      &t->dealer, err);
    }
    if (status != TN_OK) {
        tn_arena_free(arena);
        return status;
    }
    tn_arena_free(t->map);
    t->map = arena;
    t->state.data = tn_epoch_parts_of(tn_step_prefetch_reader(t->data), sources, arena);
    t->map_epoch = t->state.progress.epoch;
    return TN_OK;
}

/* Opens the data of an epoch, and deals them to the others. */
static tn_status open_data(tn_trainer *t, tn_error *err)
{
    const bool within = t->state.stand.within;
    close_dealer(t); /* of the epoch before */
    TN_TRY(open_reader(t, err));
    const bool first = !t->opened;
    t->opened = true;
    tn_met_clear(&t->met);
    if (t->lead != NULL && tn_epoch_reader_on_request(t->worker)) {
        tn_leader_deal(t->lead, t->dealer);
    }
    const tn_progress *at = &t->state.progress;
    if (within && t->dealer == NULL && at->part == 0 && at->position == 0) {
        TN_TRY(tn_report_event(t->report, &t->state, "warn",
                               "the place in the epoch is lost with the data: it begins anew",
                               err));
    }
    if (!first) {
        return TN_OK;
    }
    TN_TRY(tn_trainer_check_room(t, err));
    return warn_of_spare_ranks(t, err);
}

tn_status tn_trainer_epoch(tn_trainer *t, tn_error *err)
{
    const bool within = t->state.stand.within;
    t->samples_before = t->state.samples;
    tn_status status = open_data(t, err);
    const tn_progress *at = &t->state.progress;
    const bool fresh = t->dealer == NULL ? at->part == 0 && at->position == 0 : !within;
    if (fresh) {
        tn_metrics_clear(t->epoch_metrics);
    }
    if (status == TN_OK) {
        status = pass(t, err);
    }
    if (t->data != NULL) {
        tn_met_add_reader(&t->met, tn_step_prefetch_reader(t->data), TN_ALL_PARTS);
    }
    tn_step_prefetch_close(t->data);
    t->data = NULL;
    status = status == TN_END ? after_epoch(t, fresh, err) : status;
    t->epoch_records = fresh ? t->epoch_records : 0; /* of the rest of an epoch says nothing */
    return status;
}
