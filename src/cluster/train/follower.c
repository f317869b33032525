/* follower.c - a rank other than 0: carries out the orders of rank 0 until it says BYE. */
#include "cluster/train/follower.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "cluster/train/part_client.h"
#include "cluster/train/peers.h"
#include "nn/graph/op.h"
#include "train/checkpoint/ckpt_peers.h"
#include "train/config/days.h"
#include "train/config/run.h"
#include "train/config/run_tasks.h"
#include "train/eval/task_results.h"
#include "train/report/report.h"
#include "train/run/epoch_reader.h"
#include "train/step/model_plan.h"
#include "train/step/step.h"
#include "train/step/step_loop.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <stdio.h>
#include <string.h>

#define LOOK_NS UINT64_C(50000000) /* between two looks at work beside the orders */

/* ---- answers ---- */

/* Adds what is met of the epoch so far. */
static void add_met(tn_follower *f, tn_met *to)
{
    tn_met_add(to, &f->met);
    if (f->feeder != NULL) {
        tn_met_add_reader(to, tn_step_prefetch_reader(f->feeder), TN_ALL_PARTS);
    }
}

tn_status tn_follower_done(tn_follower *f, tn_done_note *note, tn_error *err)
{
    tn_text packed = {0};
    tn_rank_counts figures = {
        .number = ++f->n_told, .epoch = f->epoch, .held = tn_held_of(f->w->shard.table)};
    add_met(f, &figures.met);
    tn_rank_counts_pack(&figures, &packed);
    tn_met_done(&figures.met);
    tn_status status = tn_text_check(&packed, "figures", err);
    if (status == TN_OK) {
        note->figures = (tn_note_bytes){packed.data, packed.size};
        status = tn_group_done(f->group, note, err);
    }
    tn_text_done(&packed);
    return status;
}

tn_status tn_follower_answer(tn_follower *f, const tn_order_note *order, tn_status status,
                             const tn_error *why, tn_error *err)
{
    tn_done_note note = {.what = order->what,
                         .number = order->number,
                         .status = (uint64_t)status,
                         .text = status == TN_OK ? "" : why->text};
    return tn_follower_done(f, &note, err);
}

/* Does what an order has begun and is to go on beside the orders. */
static tn_status look_beside(tn_follower *f, tn_error *err)
{
    return f->beside != NULL ? f->beside(f, err) : TN_OK;
}

/* ---- its parts of an epoch ---- */

static const uint64_t again_ns = 1000000000; /* a rank that waits for a part asks again */
static const uint64_t settle_ns = 100000000; /* looks whether the group still is one */

static void stop_reading(tn_follower *f)
{
    tn_step_loop_free(f->steps);
    tn_step_prefetch_close(f->feeder);
    f->steps = NULL;
    f->feeder = NULL;
}

static void end_epoch(tn_follower *f)
{
    stop_reading(f);
    tn_epoch_dealer_close(&f->dealer);
    if (f->asks != NULL) {
        tn_group_set_parts(f->group, NULL);
    }
    tn_part_client_close(f->asks);
    f->is_over = false;
    f->asks = NULL;
    f->records = 0;
    tn_met_done(&f->met);
}

static void send_ask(void *arg, const tn_ask_note *note)
{
    tn_group_ask(arg, note);
}

static void open_asks(tn_follower *f)
{
    const tn_part_client_opts opts = {
        .epoch = f->epoch, .again_ns = tn_timer_ns(again_ns), .ask = send_ask, .arg = f->group};
    tn_group_parts parts;
    f->asks = tn_part_client_open(&opts);
    tn_part_client_bind(f->asks, &parts);
    tn_group_set_parts(f->group, &parts);
    f->cut_for = tn_epoch_cut_for(f->w, f->epoch, &f->stand);
    tn_epoch_position_done(&f->stand); /* rank 0's ledger has it */
}

/* Parts that rank 0 deals. */
static tn_status read_on_request(tn_follower *f, tn_error *err)
{
    const tn_dealer *dealer = tn_part_client_dealer(f->asks);
    TN_TRY(tn_epoch_reader_open_dealt(&f->feeder, f->w, f->epoch, f->cut_for, dealer, err));
    return tn_step_loop_new(&f->steps, f->w, f->feeder, err);
}

static tn_status open_epoch(tn_follower *f, uint32_t epoch, tn_error *err)
{
    if (f->feeder != NULL && f->epoch == epoch) {
        return TN_OK;
    }
    end_epoch(f);
    f->epoch = epoch;
    f->progress = (tn_progress){.epoch = epoch};
    tn_metrics_clear(f->metrics);
    if (f->is_async) {
        open_asks(f);
        return read_on_request(f, err);
    }
    return tn_epoch_reader_open(&f->feeder, f->w, &f->progress, &f->stand, &f->dealer, err);
}

static tn_status begin_epoch(tn_follower *f, uint32_t epoch, tn_error *err)
{
    TN_TRY(open_epoch(f, epoch, err));
    return f->steps != NULL ? TN_OK : tn_step_loop_new(&f->steps, f->w, f->feeder, err);
}

static tn_status first_rows(tn_follower *f, uint32_t epoch, tn_prior *out, tn_error *err)
{
    if (f->is_async) {
        return tn_epoch_reader_prior(f->w, epoch, out, err);
    }
    TN_TRY(open_epoch(f, epoch, err));
    return tn_reader_prior(tn_step_prefetch_reader(f->feeder), out, err);
}

/* The day that rank 0 says: the data to learn from, and the stamp of rows. */
static void set_day(tn_follower *f, uint64_t day)
{
    if (day <= TN_DAY_MAX || tn_day_is_hour(day)) {
        tn_worker_set_day(f->w, (uint32_t)day);
    }
}

/* PRIOR: opens an epoch, and answers with the sums of its first rows. */
static tn_status send_prior(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_prior prior = {0};
    tn_error why = {0};
    if (order->more.n == 1) {
        set_day(f, order->more.at[0]);
    }
    tn_status status = first_rows(f, (uint32_t)order->number, &prior, &why);
    if (status != TN_OK && status != TN_END) {
        return tn_follower_answer(f, order, status, &why, err);
    }
    const tn_done_note note = {.what = order->what,
                               .number = order->number,
                               .text = "",
                               .metrics = {(const char *)prior.task, sizeof prior.task},
                               .clicks = prior.clicks,
                               .weight = prior.weight};
    return tn_group_done(f->group, &note, err);
}

static tn_status note_step(tn_follower *f, const tn_step_turn *turn, tn_error *err)
{
    const tn_batch *batch = turn->step->batch;
    tn_read_counts counts;
    f->progress = batch->progress;
    tn_met_add_labels(&f->met, tn_run_tasks_of(f->plan->run), batch);
    f->progress.records += f->records;
    if (f->asks != NULL) {
        tn_part_client_note(f->asks, &batch->progress);
    }
    tn_reader_counts(tn_step_prefetch_reader(f->feeder), &counts);
    const tn_reporter_step step = {.rows = batch->rows,
                                   .learned = f->is_async ? &turn->learned : NULL,
                                   .weight = turn->weight,
                                   .epoch = f->epoch,
                                   .records = f->progress.records,
                                   .bad = f->met.counts.bad + counts.bad};
    return tn_reporter_add(&f->reporter, &step, tn_clock_ns(), err);
}

static bool has_order(void *arg, uint64_t steps)
{
    (void)steps;
    const tn_follower *f = arg;
    return tn_group_has_order(f->group);
}

static double factor(void *arg)
{
    const tn_follower *f = arg;
    return f->lr_scale * tn_learning_rate_factor(f->plan->run, f->w->steps, f->end);
}

static tn_status note_turn(void *arg, const tn_step_turn *turn, tn_error *err)
{
    tn_follower *f = arg;
    TN_TRY(turn->step != NULL ? note_step(f, turn, err) : TN_OK);
    TN_TRY(look_beside(f, err));
    tn_heartbeat_stats_step(&f->beats, f->w, turn, f->progress.records);
    if (turn->step == NULL && f->is_async) {
        tn_heartbeat_stats_state(&f->beats, TN_PEER_WAITING); /* for a part */
    }
    return TN_OK;
}

/* Trains until all meet; at staleness above 0 until rank 0 orders something; to_the_end: until
 * nothing is left. */
static tn_status train(tn_follower *f, bool to_the_end, tn_error *err)
{
    const bool led = !f->is_async; /* rank 0 says with each step what follows, and how fast */
    const tn_step_hooks hooks = {.meets = led || to_the_end ? NULL : has_order,
                                 .factor = led ? NULL : factor,
                                 .note = note_turn,
                                 .arg = f};
    if (f->is_over) {
        return TN_OK;
    }
    tn_status status = tn_step_loop_run(f->steps, &hooks, err);
    f->is_over = f->is_async && status == TN_END;
    return status == TN_END ? look_beside(f, err) : status;
}

/* START: the epoch goes on, or begins; until all meet. Above staleness 0 it goes on with GO. */
static tn_status start(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_error why = {0};
    const uint32_t n_tasks = tn_tasks_count(tn_run_tasks_of(f->plan->run));
    if (order->more.n == 3 || order->more.n == 3 + n_tasks) {
        memcpy(&f->lr_scale, order->more.at, sizeof f->lr_scale);
        f->end = order->more.at[1];
        set_day(f, order->more.at[2]);
    }
    if (order->more.n > 3 && order->more.n == 3 + n_tasks) {
        double bias[TN_TASKS_MAX];
        memcpy(bias, order->more.at + 3, n_tasks * sizeof *bias);
        tn_worker_set_biases(f->w, bias);
    }
    tn_status status = tn_peers_begin(f->peers, &why);
    if (status == TN_OK) {
        status = begin_epoch(f, (uint32_t)order->number, &why);
    }
    TN_TRY(tn_follower_answer(f, order, status, &why, err));
    f->trains = status == TN_OK && !f->is_async; /* if not, GO follows or the end */
    return f->trains ? train(f, false, err) : TN_OK;
}

/* GO: trains at staleness above 0, until rank 0 orders something. */
static tn_status go(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    (void)order;
    if (!f->is_async || f->steps == NULL) {
        return tn_fail(err, TN_E_PEER, "rank 0 orders to go on before it said with what");
    }
    f->trains = true;
    return train(f, false, err);
}

/* ---- giving parts back ---- */

static tn_status settle(tn_follower *f, tn_error *err)
{
    while (!tn_part_client_settle(f->asks, tn_clock_ns() + settle_ns)) {
        TN_TRY(tn_group_check(f->group, err));
    }
    return TN_OK;
}

/* RETURN: gives back the parts it holds, and goes on with others where it was training. */
static tn_status give_back(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    if (f->asks != NULL && f->epoch == order->number && !f->is_over) {
        tn_reader *reader = tn_step_prefetch_reader(f->feeder);
        tn_step_loop_free(f->steps);
        f->steps = NULL;
        tn_reader_quit(reader); /* so that no part is over between these two */
        tn_met_add_reader(&f->met, reader, tn_part_client_ended(f->asks));
        stop_reading(f);
        TN_TRY(settle(f, err));
        f->records += tn_part_client_records(f->asks);
        f->progress.records = f->records;
        tn_arena *arena = tn_arena_new(1 << 10);
        tn_done_note note = {.what = TN_ORDER_RETURN, .number = order->number, .text = ""};
        tn_part_client_give_back(f->asks, arena, &note.parts);
        tn_status status = tn_group_done(f->group, &note, err);
        tn_arena_free(arena);
        TN_TRY(status);
        TN_TRY(read_on_request(f, err));
    }
    return f->trains ? train(f, false, err) : TN_OK;
}

/* ---- scores ---- */

tn_status tn_follower_scored(tn_follower *f, const tn_order_note *order,
                             const tn_follower_scores *scores, tn_error *err)
{
    tn_text packed = {0};
    tn_task_results_pack(scores->found, &packed);
    tn_status status = tn_text_check(&packed, "metrics", err);
    if (status == TN_OK) {
        tn_done_note note = {.what = order->what,
                             .number = order->number,
                             .text = "",
                             .parts = scores->parts,
                             .records = scores->counts.records,
                             .bad = scores->counts.bad,
                             .metrics = {packed.data, packed.size}};
        status = tn_follower_done(f, &note, err);
    }
    tn_text_done(&packed);
    return status;
}

tn_status tn_follower_next_order(void *arg, bool wait, tn_order_note *out, tn_error *err)
{
    tn_follower *f = arg;
    if (!wait && !tn_group_has_order(f->group)) {
        return TN_END;
    }
    tn_heartbeat_stats_state(&f->beats, TN_PEER_EVALUATING);
    TN_TRY(look_beside(f, err));
    TN_TRY(tn_group_next_order(f->group, tn_clock_ns() + LOOK_NS, out, err));
    if (out->what != TN_ORDER_RETURN) {
        return TN_OK;
    }
    TN_TRY(give_back(f, out, err)); /* it came late, and changes nothing here */
    return TN_END;
}

/* ---- orders ---- */

/* Lists this rank's position in the epoch. */
static tn_status own_position(tn_follower *f, tn_arena *arena, tn_note_parts *out, tn_error *err)
{
    if (f->asks != NULL) { /* its parts, once rank 0 knows which are over */
        TN_TRY(settle(f, err));
        f->progress.records = f->records + tn_part_client_records(f->asks);
        tn_part_client_held(f->asks, arena, out);
        return TN_OK;
    }
    uint64_t *list = TN_NEW_ARRAY(arena, uint64_t, 3);
    list[0] = f->progress.part;
    list[1] = 0;
    list[2] = f->progress.position;
    *out = (tn_note_parts){{list, 1}, {list + 1, 1}, {list + 2, 1}};
    return TN_OK;
}

static tn_status sum(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_met met = {0};
    if (strcmp(order->text, TN_TO_THE_END) == 0 && f->is_async && f->steps != NULL) {
        TN_TRY(train(f, true, err));
    }
    f->trains = false;
    add_met(f, &met);
    tn_read_counts counts = {.bad = met.counts.bad};
    tn_met_done(&met);
    TN_TRY(tn_reporter_say(&f->reporter, tn_clock_ns(), err));
    const tn_evaluation learned = {.metrics = f->metrics};
    tn_follower_scores scores = {.found = &learned, .counts = counts};
    tn_arena *arena = tn_arena_new(1 << 10);
    tn_status status = own_position(f, arena, &scores.parts, err);
    scores.counts.records = f->progress.records;
    if (status == TN_OK) {
        status = tn_follower_scored(f, order, &scores, err);
    }
    tn_arena_free(arena);
    return status;
}

static tn_status carry_out(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    static tn_follow_fn *const own[TN_ORDERS] = {
        [TN_ORDER_START] = start,      [TN_ORDER_GO] = go,
        [TN_ORDER_CUT] = sum,          [TN_ORDER_PRIOR] = send_prior,
        [TN_ORDER_RETURN] = give_back,
    };
    static const bool judges[TN_ORDERS] = {
        [TN_ORDER_EVALUATE] = true, [TN_ORDER_LOAD] = true, [TN_ORDER_EXPORT] = true};
    const bool trains = f->paths == NULL;
    const bool known =
        order->what < TN_ORDERS && (trains ? order->what != TN_ORDER_EXPORT : judges[order->what]);
    tn_follow_fn *run = NULL;
    if (known) {
        run = own[order->what] != NULL ? own[order->what] : tn_model_orders[order->what];
    }
    return run != NULL ? run(f, order, err)
                       : tn_fail(err, TN_E_PEER, "rank 0 orders what no rank can do%s",
                                 trains ? "" : " that does not train");
}

static tn_status follow_orders(tn_follower *f, tn_error *err)
{
    for (;;) {
        tn_order_note order = f->instead; /* one that ended an evaluation comes first */
        tn_status status = TN_OK;
        if (!f->has_instead) {
            status = tn_group_next_order(f->group, tn_clock_ns() + LOOK_NS, &order, err);
        }
        f->has_instead = false;
        if (status == TN_OK && order.what == TN_ORDER_BYE) {
            return TN_OK;
        }
        if (status == TN_OK) {
            status = carry_out(f, &order, err);
        }
        if (status != TN_OK && status != TN_END) {
            return status;
        }
        f->beats.step = f->w->steps; /* also after a load */
        tn_heartbeat_stats_state(&f->beats, TN_PEER_WAITING);
        TN_TRY(look_beside(f, err));
    }
}

/* ---- a run ---- */

static tn_status open_parts(tn_follower *f, const tn_run_text *text, const tn_binder *b,
                            tn_error *err)
{
    const tn_run *run = f->plan->run;
    tn_metrics_opts metrics = tn_metrics_opts_of(run);
    metrics.exact_auc = false; /* progressive ones add up */
    metrics.grouped = false;
    tn_run_dir(&run->run, &f->run_dir);
    TN_TRY(tn_text_check(&f->run_dir, "run.dir", err));
    TN_TRY(tn_metrics_new(&f->metrics, &metrics, err));
    const bool trains = f->paths == NULL;
    f->is_async = run->cluster.staleness > 0;
    const tn_worker_opts worker = {.training = trains,
                                   .compares = !trains,
                                   .fetch = f->fetch != NULL ? f->fetch->item : NULL,
                                   .n_fetch = f->fetch != NULL ? f->fetch->n : 0};
    TN_TRY(tn_worker_new(&f->w, f->plan, &worker, b, err));
    f->w->metrics[0] = f->metrics;
    if (trains) {
        TN_TRY(tn_memory_cap_init(&f->memory, f->w, 0, err));
    }
    TN_TRY(tn_peers_open(&f->peers, f->w, text, NULL, err));
    f->group = tn_peers_group(f->peers);
    TN_TRY(tn_reporter_init(&f->reporter, f->group, &metrics, err));
    f->w->metrics[1] = f->reporter.metrics;
    f->beats = (tn_heartbeat_stats){
        .group = f->group, .watch = f->watch, .memory = &f->memory, .begin = tn_clock_s()};
    return tn_peers_form(f->peers, f->watch->stop, err);
}

static tn_status follow(tn_follower *f, const tn_run_text *text, const tn_binder *b,
                        tn_outcome *out, tn_error *err)
{
    tn_error why = {0};
    tn_status status = open_parts(f, text, b, &why);
    if (status == TN_OK) {
        status = follow_orders(f, &why);
    }
    if (status != TN_OK && f->group != NULL) {
        tn_group_fail(f->group, status, why.text);
        status = tn_group_check(f->group, &why); /* the first reason, which may be another's */
        tn_watch_told_elsewhere(f->watch, tn_group_is_reported_elsewhere(f->group, status));
    } else if (status != TN_OK) {
        tn_peers_decline(f->plan->run, status, why.text);
    }
    *out = (tn_outcome){0};
    if (f->w != NULL) {
        out->steps = f->w->steps;
        out->samples = f->w->rows;
    }
    end_epoch(f);
    tn_epoch_position_done(&f->stand);
    tn_ckptshare_free(f->share);
    tn_peers_close(f->peers);
    tn_worker_free(f->w);
    tn_metrics_free(f->metrics);
    tn_reporter_done(&f->reporter);
    tn_met_done(&f->met);
    tn_text_done(&f->run_dir);
    if (status != TN_OK && err != NULL) {
        *err = why;
    }
    return status;
}

tn_status tn_follower_run(const tn_model_plan *plan, const tn_run_text *text, const tn_watch *watch,
                          const tn_binder *b, tn_outcome *out, tn_error *err)
{
    tn_follower f = {.plan = plan, .watch = watch};
    return follow(&f, text, b, out, err);
}

tn_status tn_follower_serve(const tn_model_plan *plan, const tn_run_text *text,
                            const tn_watch *watch, const tn_rank_data *data, const tn_binder *b,
                            tn_error *err)
{
    const tn_strs none = {0};
    tn_follower f = {.plan = plan,
                     .watch = watch,
                     .paths = data != NULL ? data->paths : &none,
                     .fetch = data != NULL ? data->fetch : NULL};
    tn_outcome out;
    return follow(&f, text, b, &out, err);
}
