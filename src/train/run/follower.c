/* follower.c - see follower.h. */
#include "train/run/follower.h"

#include "base/core/clock.h"
#include "train/checkpoint/import.h"
#include "train/export/exportrows.h"
#include "train/run/follower_state.h"

#include <string.h>

/* ---- answers ---- */

/* Adds what is met of the epoch so far. */
static void add_met(tn_follower *f, tn_met *to)
{
    tn_met_add(to, &f->met);
    if (f->feeder != NULL) {
        tn_met_add_reader(to, tn_feeder_reader(f->feeder), TN_ALL_PARTS);
    }
}

tn_status tn_follower_tell(tn_follower *f, tn_done_note *note, tn_error *err)
{
    tn_text packed = {0};
    tn_figures figures = {
        .number = ++f->n_told, .epoch = f->epoch, .held = tn_held_of(f->w->shard.table)};
    add_met(f, &figures.met);
    tn_figures_pack(&figures, &packed);
    tn_met_done(&figures.met);
    tn_status status = tn_text_check(&packed, "figures", err);
    if (status == TN_OK) {
        note->figures = (tn_note_bytes){packed.data, packed.size};
        status = tn_group_done(f->group, note, err);
    }
    tn_text_done(&packed);
    return status;
}

tn_status tn_follower_say_done(tn_follower *f, const tn_order_note *order, tn_status status,
                               const tn_error *why, tn_error *err)
{
    tn_done_note note = {.what = order->what,
                         .number = order->number,
                         .status = (uint64_t)status,
                         .text = status == TN_OK ? "" : why->text};
    return tn_follower_tell(f, &note, err);
}

/* Where this rank stands in the epoch. */
static tn_status say_where(tn_follower *f, tn_arena *arena, tn_note_parts *out, tn_error *err)
{
    if (f->asks != NULL) {
        return tn_follower_held(f, arena, out, err);
    }
    uint64_t *list = TN_NEW_ARRAY(arena, uint64_t, 3);
    list[0] = f->progress.part;
    list[1] = 0;
    list[2] = f->progress.position;
    *out = (tn_note_parts){{list, 1}, {list + 1, 1}, {list + 2, 1}};
    return TN_OK;
}

/* ---- orders ---- */

static tn_status sum(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_met met = {0};
    if (strcmp(order->text, TN_TO_THE_END) == 0 && f->apart != NULL) {
        TN_TRY(tn_follower_train(f, true, err));
    }
    f->trains = false;
    add_met(f, &met);
    tn_read_counts counts = {.bad = met.counts.bad};
    tn_met_done(&met);
    TN_TRY(tn_reporter_say(&f->reporter, tn_clock_ns(), err));
    tn_note_parts parts;
    tn_arena *arena = tn_arena_new(1 << 10);
    tn_status status = say_where(f, arena, &parts, err);
    counts.records = f->progress.records;
    if (status == TN_OK) {
        status = tn_follower_say_scores(f, order, f->metrics, &counts, &parts, err);
    }
    tn_arena_free(arena);
    return status;
}

static tn_status load(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_error why = {0};
    tn_beats_state(&f->beats, TN_PEER_LOADING);
    tn_data_stand *stand = order->number != 0 ? &f->stand : NULL;
    const tn_tree *files = f->plan->run->checkpoint.from;
    tn_status status = order->text[0] != '\0'   ? tn_ckptshare_load(f->w, order->text, stand, &why)
                       : tn_tree_is_null(files) ? TN_OK
                                                : tn_import(files, f->w, &why);
    tn_memory_cap_begin(&f->memory);
    if (status == TN_OK && stand != NULL && tn_room_is_over(tn_memory_cap_look(&f->memory))) {
        status = tn_memory_cap_fail(&f->memory, order->text, &why); /* no step fits */
    }
    return tn_follower_say_done(f, order, status, &why, err);
}

static tn_status carry_out(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    switch ((tn_order_what)order->what) {
    case TN_ORDER_START:
        return tn_follower_start(f, order, err);
    case TN_ORDER_GO:
        return tn_follower_go(f, err);
    case TN_ORDER_CUT:
        return sum(f, order, err);
    case TN_ORDER_EVALUATE:
        return tn_follower_evaluate(f, order, err);
    case TN_ORDER_MARK:
        return tn_follower_mark(f, order, err);
    case TN_ORDER_ABANDON:
        return tn_follower_abandon(f, order, err);
    case TN_ORDER_LOAD:
        return load(f, order, err);
    case TN_ORDER_PRIOR:
        return tn_follower_prior(f, order, err);
    case TN_ORDER_RETURN:
        return tn_follower_give_back(f, order, err);
    case TN_ORDER_ROWS: /* of an evaluation that runs */
    case TN_ORDER_EXPORT:
    case TN_ORDER_STOP:
    case TN_ORDER_BYE:
    case TN_ORDERS:
    default:
        return tn_fail(err, TN_E_PEER, "rank 0 orders what no rank can do");
    }
}

static tn_status write_rows(const tn_follower *f, const tn_order_note *order, tn_error *err)
{
    const tn_export_rows rows = {
        .plan = f->plan, .table = f->w->shard.table, .team = f->w->team, .stop = f->watch->stop};
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_export_parts parts;
    tn_status status = tn_export_parts_init(&parts, f->w, order->step, order->text, arena, err);
    if (status == TN_OK) {
        status = tn_export_part_write(&parts, &rows, err);
    }
    tn_arena_free(arena);
    return status;
}

static tn_status export(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_error why = {0};
    tn_beats_state(&f->beats, TN_PEER_SAVING);
    tn_status status = write_rows(f, order, &why);
    return tn_follower_say_done(f, order, status, &why, err);
}

/* One that does not train. */
static tn_status judge(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    return order->what == TN_ORDER_EVALUATE ? tn_follower_evaluate(f, order, err)
           : order->what == TN_ORDER_LOAD   ? load(f, order, err)
           : order->what == TN_ORDER_EXPORT
               ? export(f, order, err)
               : tn_fail(err, TN_E_PEER, "rank 0 orders what no rank can do that does not train");
}

/* One that ended an evaluation comes first. */
static tn_status next_order(tn_follower *f, tn_order_note *out, tn_error *err)
{
    if (f->has_instead) {
        f->has_instead = false;
        *out = f->instead;
        return TN_OK;
    }
    return tn_group_next_order(f->group, tn_clock_ns() + TN_FOLLOWER_LOOK_NS, out, err);
}

static tn_status follow_orders(tn_follower *f, tn_error *err)
{
    for (;;) {
        tn_order_note order;
        tn_status status = next_order(f, &order, err);
        if (status == TN_OK && order.what == TN_ORDER_BYE) {
            return TN_OK;
        }
        if (status == TN_OK) {
            status = f->paths != NULL ? judge(f, &order, err) : carry_out(f, &order, err);
        }
        if (status != TN_OK && status != TN_END) {
            return status;
        }
        f->beats.step = f->w->steps; /* of what was loaded, too */
        tn_beats_state(&f->beats, TN_PEER_WAITING);
        TN_TRY(tn_follower_note_share(f, err));
    }
}

/* ---- a run ---- */

static tn_status open_parts(tn_follower *f, const tn_run_text *text, const tn_binder *b,
                            tn_error *err)
{
    const tn_run *run = f->plan->run;
    tn_metrics_opts metrics = tn_metrics_opts_of(run, f->plan->schema);
    metrics.exact_auc = false; /* progressive ones add up */
    metrics.grouped = false;
    tn_run_dir(&run->run, &f->run_dir);
    TN_TRY(tn_text_check(&f->run_dir, "run.dir", err));
    TN_TRY(tn_metrics_new(&f->metrics, &metrics, err));
    const bool trains = f->paths == NULL;
    const tn_worker_opts worker = {.training = trains,
                                   .compares = !trains,
                                   .fetch = f->fetch != NULL ? f->fetch->item : NULL,
                                   .n_fetch = f->fetch != NULL ? f->fetch->n : 0};
    TN_TRY(tn_worker_new(&f->w, f->plan, &worker, b, err));
    if (trains) {
        tn_memory_cap_init(&f->memory, f->w, 0);
    }
    TN_TRY(tn_peers_open(&f->peers, f->w, text, NULL, err));
    f->group = tn_peers_group(f->peers);
    TN_TRY(tn_reporter_init(&f->reporter, f->group, run->data.negative_sampling, err));
    f->beats = (tn_beats){
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
        tn_watch_told_elsewhere(f->watch, tn_group_is_told_elsewhere(f->group));
    } else if (status != TN_OK) {
        tn_peers_decline(f->plan->run, status, why.text);
    }
    *out = (tn_outcome){0};
    if (f->w != NULL) {
        out->steps = f->w->steps;
        out->samples = f->w->rows;
    }
    tn_follower_end_epoch(f);
    tn_data_stand_done(&f->stand);
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

tn_status tn_follow(const tn_blueprint *plan, const tn_run_text *text, const tn_watch *watch,
                    const tn_binder *b, tn_outcome *out, tn_error *err)
{
    tn_follower f = {.plan = plan, .watch = watch};
    return follow(&f, text, b, out, err);
}

tn_status tn_follow_evaluation(const tn_blueprint *plan, const tn_run_text *text,
                               const tn_watch *watch, const tn_follow_data *data,
                               const tn_binder *b, tn_error *err)
{
    tn_follower f = {.plan = plan, .watch = watch, .paths = data->paths, .fetch = data->fetch};
    tn_outcome out;
    return follow(&f, text, b, &out, err);
}

tn_status tn_follow_export(const tn_blueprint *plan, const tn_run_text *text, const tn_watch *watch,
                           const tn_binder *b, tn_error *err)
{
    const tn_strs none = {0};
    tn_follower f = {.plan = plan, .watch = watch, .paths = &none};
    tn_outcome out;
    return follow(&f, text, b, &out, err);
}
