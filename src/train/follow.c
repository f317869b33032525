/* follow.c - see follow.h. */
#include "train/follow.h"

#include "base/clock.h"
#include "train/apart.h"
#include "train/beats.h"
#include "train/checkpoint.h"
#include "train/ckptshare.h"
#include "train/partdealer.h"
#include "train/peermetrics.h"
#include "train/together.h"
#include "train/trainfeed.h"

#include <stdio.h>
#include <string.h>

static const uint64_t look_ns = 50000000; /* at what goes on beside the orders */

typedef struct follower {
    const tn_blueprint *plan;
    const tn_watch *watch;
    const tn_strs *paths; /* of data to evaluate, and nothing else; NULL: the run's */
    tn_worker *w;
    tn_peers *peers;
    tn_group *group;
    tn_text run_dir;
    tn_beats beats;

    tn_data_stand stand;   /* where in an epoch the run goes on, until that is begun */
    tn_partdealer *dealer; /* of that epoch; NULL: parts are dealt by rank alone */
    tn_feeder *feeder;     /* of the epoch that runs; NULL: none */
    tn_together *steps;    /* at staleness 0; else NULL .. */
    tn_apart *apart;       /* .. as this is at 0 */
    bool is_over;          /* its data, apart */
    double lr_scale;
    uint32_t epoch;
    tn_progress progress;
    tn_metrics *metrics; /* progressive, of the epoch */

    tn_ckptshare *share; /* of the checkpoint that is being saved; NULL: none */
    uint64_t marked;     /* its number */
} follower;

/* ---- answers ---- */

/* An order that failed here fails there; one that did not is done. */
static tn_status say_done(follower *f, const tn_order_note *order, tn_status status,
                          const tn_error *why, tn_error *err)
{
    const tn_done_note note = {.what = order->what,
                               .number = order->number,
                               .status = (uint64_t)status,
                               .text = status == TN_OK ? "" : why->text};
    return tn_group_done(f->group, &note, err);
}

/* The same with what was scored, and where the epoch stands. */
static tn_status say_scores(follower *f, const tn_order_note *order, const tn_metrics *metrics,
                            const tn_read_counts *counts, tn_error *err)
{
    const uint64_t part = f->progress.part;
    const uint64_t position = f->progress.position;
    const uint64_t attempt = 0;
    tn_text packed = {0};
    tn_metrics_pack(metrics, &packed);
    tn_status status = tn_text_check(&packed, "metrics", err);
    if (status == TN_OK) {
        const tn_done_note note = {.what = order->what,
                                   .number = order->number,
                                   .text = "",
                                   .parts = {{&part, 1}, {&attempt, 1}, {&position, 1}},
                                   .records = counts->records,
                                   .bad = counts->bad,
                                   .metrics = {packed.data, packed.size}};
        status = tn_group_done(f->group, &note, err);
    }
    tn_text_done(&packed);
    return status;
}

/* ---- checkpoints ---- */

static tn_status say_files(follower *f, const tn_ckpt_wrote *wrote, tn_error *err)
{
    enum { FIELDS = 5 };
    const uint32_t n = wrote->n_files;
    tn_arena *arena = tn_arena_new(1 << 12);
    const char **name = TN_NEW_ARRAY(arena, const char *, n + 1);
    uint64_t *number = TN_NEW_ARRAY(arena, uint64_t, (size_t)FIELDS * n + 1);
    for (uint32_t i = 0; i < n; i++) {
        const tn_manifest_file *file = &wrote->file[i];
        const uint64_t of_file[FIELDS] = {file->bytes, file->crc, file->rows, file->first,
                                          file->last};
        name[i] = file->name;
        for (uint32_t k = 0; k < FIELDS; k++) {
            number[k * n + i] = of_file[k];
        }
    }
    const tn_done_note note = {.what = TN_ORDER_MARK,
                               .number = f->marked,
                               .text = "",
                               .file = {name, n},
                               .file_bytes = {number, n},
                               .file_crc = {number + n, n},
                               .file_rows = {number + 2UL * n, n},
                               .file_first = {number + 3UL * n, n},
                               .file_last = {number + 4UL * n, n},
                               .records = wrote->rows};
    tn_status status = tn_group_done(f->group, &note, err);
    tn_arena_free(arena);
    return status;
}

/* What was being saved, if it is written. */
static tn_status note_share(follower *f, tn_error *err)
{
    if (f->share == NULL || !tn_ckptshare_written(f->share)) {
        return TN_OK;
    }
    tn_ckpt_wrote wrote;
    tn_error why = {0};
    tn_status status = tn_ckptshare_end(f->share, &wrote, &why);
    if (status == TN_OK) {
        status = say_files(f, &wrote, err);
    } else {
        const tn_order_note order = {.what = TN_ORDER_MARK, .number = f->marked};
        status = say_done(f, &order, status, &why, err);
    }
    tn_ckptshare_free(f->share);
    f->share = NULL;
    return status;
}

static tn_status mark(follower *f, const tn_order_note *order, tn_error *err)
{
    if (order->more.n != 3 || strlen(order->text) >= sizeof((tn_ckpt_order *)NULL)->folder) {
        return tn_fail(err, TN_E_PEER, "rank 0 does not say what to save");
    }
    tn_ckpt_order what = {.ordinal = order->number,
                          .run_id = order->more.at[0],
                          .step = order->step,
                          .base_step = order->more.at[1],
                          .delta = order->more.at[2] != 0};
    (void)snprintf(what.folder, sizeof what.folder, "%s", order->text);
    tn_error why = {0};
    tn_ckptshare_free(f->share);
    f->marked = order->number;
    tn_status status = tn_peers_refresh(f->peers, &why);
    if (status == TN_OK) {
        status = tn_ckptshare_begin(&f->share, f->w, tn_text_str(&f->run_dir), &what, &why);
    }
    return status == TN_OK ? TN_OK : say_done(f, order, status, &why, err);
}

static tn_status abandon(follower *f, const tn_order_note *order, tn_error *err)
{
    tn_ckptshare_free(f->share); /* waits */
    f->share = NULL;
    return say_done(f, order, TN_OK, NULL, err);
}

/* ---- epochs ---- */

static void end_epoch(follower *f)
{
    tn_together_free(f->steps);
    tn_apart_free(f->apart);
    tn_feeder_close(f->feeder);
    tn_partdealer_close(f->dealer);
    f->steps = NULL;
    f->apart = NULL;
    f->is_over = false;
    f->feeder = NULL;
    f->dealer = NULL;
}

static tn_status begin_epoch(follower *f, uint32_t epoch, tn_error *err)
{
    end_epoch(f);
    f->epoch = epoch;
    f->progress = (tn_progress){.epoch = epoch};
    tn_metrics_clear(f->metrics);
    TN_TRY(tn_training_feeder(&f->feeder, f->w, &f->progress, &f->stand, &f->dealer, err));
    if (tn_peers_async(f->peers) != NULL) {
        return tn_apart_new(&f->apart, f->w, f->peers, f->feeder, err);
    }
    return tn_together_new(&f->steps, f->w, f->peers, f->feeder, err);
}

static tn_status note_step(follower *f, const tn_turn_taken *turn, tn_error *err)
{
    if (turn->step == NULL) {
        return TN_OK;
    }
    const tn_batch *batch = turn->step->batch;
    const tn_scored rows = {.n = batch->rows,
                            .logit = f->w->train_logit->val,
                            .label = batch->label,
                            .weight = batch->weight};
    f->progress = batch->progress;
    return tn_metrics_add(f->metrics, &rows, err);
}

static bool has_order(void *arg, uint64_t steps)
{
    (void)steps;
    const follower *f = arg;
    return tn_group_has_order(f->group);
}

static double factor(void *arg)
{
    const follower *f = arg;
    return f->lr_scale * tn_learning_rate_factor(f->plan->run, f->w->steps);
}

/* Until all meet, or, apart, until rank 0 orders something; `to_the_end`: not before nothing is
 * left. */
static tn_status train(follower *f, bool to_the_end, tn_error *err)
{
    const tn_ahead ahead = {.meets = to_the_end ? NULL : has_order, .factor = factor, .arg = f};
    const tn_ahead led = {0};
    tn_turn_taken turn = {.over = f->is_over};
    while (!turn.over && !turn.meets) {
        tn_lane_step(f->w->lane, f->w->steps);
        TN_TRY(f->apart != NULL ? tn_apart_next(f->apart, &ahead, &turn, err)
                                : tn_together_next(f->steps, &led, &turn, err));
        TN_TRY(note_step(f, &turn, err));
        TN_TRY(note_share(f, err));
        tn_beats_step(&f->beats, f->w, &turn, f->progress.records);
    }
    f->is_over = f->apart != NULL && turn.over;
    return TN_OK;
}

static tn_status start(follower *f, const tn_order_note *order, tn_error *err)
{
    tn_error why = {0};
    tn_status status = TN_OK;
    if (order->more.n == 1) {
        memcpy(&f->lr_scale, order->more.at, sizeof f->lr_scale);
    }
    if (order->text[0] != '\0') {
        status = tn_worker_set_bias(f->w, order->text, &why);
    }
    if (status == TN_OK) {
        status = tn_peers_begin(f->peers, &why);
    }
    if (status == TN_OK && (f->feeder == NULL || f->epoch != order->number)) {
        status = begin_epoch(f, (uint32_t)order->number, &why);
    }
    TN_TRY(say_done(f, order, status, &why, err));
    return status == TN_OK ? train(f, false, err) : TN_OK; /* rank 0 ends the group */
}

/* ---- orders ---- */

static tn_status sum(follower *f, const tn_order_note *order, tn_error *err)
{
    tn_read_counts counts = {0};
    if (strcmp(order->text, TN_TO_THE_END) == 0 && f->apart != NULL) {
        TN_TRY(train(f, true, err));
    }
    if (f->feeder != NULL) {
        tn_reader_counts(tn_feeder_reader(f->feeder), &counts);
    }
    counts.records = f->progress.records;
    return say_scores(f, order, f->metrics, &counts, err);
}

static tn_status evaluate(follower *f, const tn_order_note *order, tn_error *err)
{
    const tn_data_opts *data = &f->plan->run->data;
    const tn_strs *own = strcmp(order->text, "test") == 0 ? &data->test : &data->valid;
    const tn_eval_request request = {.paths = f->paths != NULL ? f->paths : own};
    tn_evaluation found;
    tn_error why = {0};
    tn_beats_state(&f->beats, TN_PEER_EVALUATING);
    tn_status status = tn_peers_begin(f->peers, &why);
    if (status == TN_OK) {
        status = tn_peers_refresh(f->peers, &why);
    }
    if (status == TN_OK) {
        status = tn_evaluate(f->w, &request, &found, &why);
    }
    if (status != TN_OK) {
        return say_done(f, order, status, &why, err);
    }
    status = say_scores(f, order, found.metrics, &found.counts, err);
    tn_evaluation_done(&found);
    return status;
}

static tn_status load(follower *f, const tn_order_note *order, tn_error *err)
{
    tn_error why = {0};
    tn_beats_state(&f->beats, TN_PEER_LOADING);
    tn_status status =
        tn_ckptshare_load(f->w, order->text, order->number != 0 ? &f->stand : NULL, &why);
    return say_done(f, order, status, &why, err);
}

static tn_status carry_out(follower *f, const tn_order_note *order, tn_error *err)
{
    switch ((tn_order_what)order->what) {
    case TN_ORDER_START:
        return start(f, order, err);
    case TN_ORDER_CUT:
        return sum(f, order, err);
    case TN_ORDER_EVALUATE:
        return evaluate(f, order, err);
    case TN_ORDER_MARK:
        return mark(f, order, err);
    case TN_ORDER_ABANDON:
        return abandon(f, order, err);
    case TN_ORDER_LOAD:
        return load(f, order, err);
    case TN_ORDER_RETURN:
    case TN_ORDER_EXPORT:
    case TN_ORDER_STOP:
    case TN_ORDER_BYE:
    case TN_ORDERS:
    default:
        return tn_fail(err, TN_E_PEER, "rank 0 orders what no rank can do");
    }
}

/* One that does not train. */
static tn_status judge(follower *f, const tn_order_note *order, tn_error *err)
{
    return order->what == TN_ORDER_EVALUATE ? evaluate(f, order, err)
           : order->what == TN_ORDER_LOAD
               ? load(f, order, err)
               : tn_fail(err, TN_E_PEER, "rank 0 orders what no rank can do that evaluates");
}

static tn_status follow_orders(follower *f, tn_error *err)
{
    for (;;) {
        tn_order_note order;
        tn_status status = tn_group_next_order(f->group, tn_clock_ns() + look_ns, &order, err);
        if (status == TN_OK && order.what == TN_ORDER_BYE) {
            return TN_OK;
        }
        if (status == TN_OK) {
            status = f->paths != NULL ? judge(f, &order, err) : carry_out(f, &order, err);
        }
        if (status != TN_OK && status != TN_END) {
            return status;
        }
        tn_beats_state(&f->beats, TN_PEER_WAITING);
        TN_TRY(note_share(f, err));
    }
}

/* ---- a run ---- */

static tn_status open_parts(follower *f, const tn_run_text *text, const tn_binder *b, tn_error *err)
{
    const tn_run *run = f->plan->run;
    tn_metrics_opts metrics = tn_metrics_opts_of(run, f->plan->schema);
    tn_run_dir(&run->run, &f->run_dir);
    TN_TRY(tn_text_check(&f->run_dir, "run.dir", err));
    TN_TRY(tn_metrics_new(&f->metrics, &metrics, err));
    const bool trains = f->paths == NULL;
    const tn_worker_opts worker = {.training = trains, .compares = !trains};
    TN_TRY(tn_worker_new(&f->w, f->plan, &worker, b, err));
    TN_TRY(tn_peers_open(&f->peers, f->w, text, NULL, err));
    f->group = tn_peers_group(f->peers);
    f->beats = (tn_beats){.group = f->group, .watch = f->watch, .begin = tn_clock_s()};
    return tn_peers_form(f->peers, f->watch->stop, err);
}

static tn_status follow(follower *f, const tn_run_text *text, const tn_binder *b, uint64_t *steps,
                        tn_error *err)
{
    tn_error why = {0};
    tn_status status = open_parts(f, text, b, &why);
    if (status == TN_OK) {
        status = follow_orders(f, &why);
    }
    if (status != TN_OK && f->group != NULL) {
        tn_group_fail(f->group, status, why.text);
        status = tn_group_check(f->group, &why); /* the first reason, which may be another's */
    }
    *steps = f->w != NULL ? f->w->steps : 0;
    end_epoch(f);
    tn_data_stand_done(&f->stand);
    tn_ckptshare_free(f->share);
    tn_peers_close(f->peers);
    tn_worker_free(f->w);
    tn_metrics_free(f->metrics);
    tn_text_done(&f->run_dir);
    if (status != TN_OK && err != NULL) {
        *err = why;
    }
    return status;
}

tn_status tn_follow(const tn_blueprint *plan, const tn_run_text *text, const tn_watch *watch,
                    const tn_binder *b, tn_outcome *out, tn_error *err)
{
    follower f = {.plan = plan, .watch = watch};
    *out = (tn_outcome){0};
    return follow(&f, text, b, &out->steps, err);
}

tn_status tn_follow_evaluation(const tn_blueprint *plan, const tn_run_text *text,
                               const tn_watch *watch, const tn_strs *paths, const tn_binder *b,
                               tn_error *err)
{
    follower f = {.plan = plan, .watch = watch, .paths = paths};
    uint64_t steps;
    return follow(&f, text, b, &steps, err);
}
