/* model_orders.c - orders about the model: a rank reads its part of a checkpoint, scores, saves,
 * sweeps and exports. */
#include "cluster/train/follower.h"

#include "base/core/alloc.h"
#include "cluster/train/peers.h"
#include "cluster/train/score_exchange.h"
#include "train/begin/import.h"
#include "train/checkpoint/ckpt_peers.h"
#include "train/checkpoint/ckptfiles.h"
#include "train/config/days.h"
#include "train/config/run.h"
#include "train/eval/evaluate.h"
#include "train/export/exportrows.h"
#include "train/step/model_plan.h"
#include "train/step/row_sweep.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

#include <stdio.h>
#include <string.h>

/* LOAD: reads its part of a checkpoint, or the files of checkpoint.from. */
static tn_status load_part(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_error why = {0};
    tn_heartbeat_stats_state(&f->beats, TN_PEER_LOADING);
    tn_epoch_position *stand = order->number != 0 ? &f->stand : NULL;
    const tn_tree *files = f->plan->run->checkpoint.from;
    tn_status status = order->text[0] != '\0'   ? tn_ckptshare_load(f->w, order->text, stand, &why)
                       : tn_tree_is_null(files) ? TN_OK
                                                : tn_import(files, f->w, NULL, &why);
    tn_memory_cap_begin(&f->memory);
    if (status == TN_OK && stand != NULL && tn_room_is_over(tn_memory_cap_look(&f->memory))) {
        status = tn_memory_cap_fail(&f->memory, order->text, &why); /* no step fits */
    }
    return tn_follower_answer(f, order, status, &why, err);
}

/* ---- scores ---- */

static tn_status send_rows(void *arg, const tn_done_note *note, tn_error *err)
{
    const tn_follower *f = arg;
    return tn_group_done(f->group, note, err);
}

/* This rank scores no more, since a signal asks for the end: rank 0 gets that answer instead of
 * rows, ends its evaluation and saves, unless it has given up already. */
static tn_status refuse_rows(tn_follower *f, const tn_error *why, tn_error *err)
{
    tn_order_note order;
    tn_status status = TN_END;
    while (status == TN_END) {
        status = tn_follower_next_order(f, true, &order, err);
    }
    TN_TRY(status);
    if (order.what == TN_ORDER_ROWS) {
        return tn_follower_answer(f, &order, why->code, why, err);
    }
    f->instead = order;
    f->has_instead = true;
    return TN_OK;
}

/* Rank 0 waits for rows, so a failure is the group's, but for a signal. */
static tn_status hand_over(tn_follower *f, const tn_order_note *order, const tn_eval_request *what,
                           tn_error *err)
{
    const tn_order_note said = *order; /* the next one overwrites its text */
    const bool nodes = (order->more.at[0] & TN_EVALUATES_WITH_NODES) != 0;
    if (nodes && f->fetch == NULL) {
        return tn_fail(err, TN_E_USAGE, "rank 0 fetches nodes that this rank was not told of");
    }
    const tn_score_sender_pass pass = {.w = f->w,
                                       .paths = what->paths,
                                       .rows_max = what->rows_max,
                                       .held = what->held,
                                       .ids = (order->more.at[0] & TN_EVALUATES_WITH_IDS) != 0,
                                       .fetch = nodes ? f->fetch : NULL,
                                       .line = {tn_follower_next_order, send_rows, f}};
    tn_read_counts counts = {0};
    TN_TRY(tn_peers_begin(f->peers, err));
    TN_TRY(tn_peers_refresh(f->peers, err));
    tn_status status = tn_score_sender_run(&pass, &counts, &f->instead, err);
    if (status == TN_E_STOPPED) {
        const tn_error why = *err;
        return refuse_rows(f, &why, err);
    }
    if (status != TN_OK) {
        f->has_instead = status == TN_END;
        return status == TN_END ? TN_OK : status;
    }
    const tn_follower_scores scores = {.counts = counts};
    return tn_follower_scored(f, &said, &scores, err);
}

static tn_status add_up(tn_follower *f, const tn_order_note *order, const tn_eval_request *what,
                        tn_error *err)
{
    tn_evaluation found;
    tn_error why = {0};
    tn_status status = tn_peers_begin(f->peers, &why);
    if (status == TN_OK) {
        status = tn_peers_refresh(f->peers, &why);
    }
    if (status == TN_OK) {
        status = tn_evaluate(f->w, what, &found, &why);
    }
    if (status != TN_OK) {
        return tn_follower_answer(f, order, status, &why, err);
    }
    const tn_follower_scores scores = {.found = &found, .counts = found.counts};
    status = tn_follower_scored(f, order, &scores, err);
    tn_evaluation_done(&found);
    return status;
}

/* EVALUATE: scores its parts, and says what they make or hands over the rows. */
static tn_status evaluate_parts(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    const tn_data_opts *data = &f->plan->run->data;
    const tn_strs *own = strcmp(order->text, "test") == 0 ? &data->test : &data->valid;
    const bool rows = order->more.n > 0 && (order->more.at[0] & TN_EVALUATES_ROWS) != 0;
    tn_eval_request what = {.paths = f->paths != NULL ? f->paths : own};
    what.held = what.paths == &data->valid && data->held != TN_HELD_NONE;
    tn_strs head;
    tn_arena *arena = tn_arena_new(1 << 10);
    const uint64_t day = order->more.n == 3 ? order->more.at[1] : UINT64_MAX;
    if (day <= TN_DAY_MAX || tn_day_is_hour(day)) {
        head = tn_days_paths(&data->pattern, (uint32_t)day, arena);
        what.paths = &head;
        what.rows_max = order->more.at[2];
    }
    f->trains = false;
    tn_heartbeat_stats_state(&f->beats, TN_PEER_EVALUATING);
    tn_status status = rows ? hand_over(f, order, &what, err) : add_up(f, order, &what, err);
    tn_arena_free(arena);
    return status;
}

/* ---- its part of a checkpoint ---- */

static tn_status send_files(tn_follower *f, const tn_ckpt_wrote *wrote, tn_error *err)
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
    tn_done_note note = {.what = TN_ORDER_MARK,
                         .number = f->marked,
                         .text = "",
                         .file = {name, n},
                         .file_bytes = {number, n},
                         .file_crc = {number + n, n},
                         .file_rows = {number + 2UL * n, n},
                         .file_first = {number + 3UL * n, n},
                         .file_last = {number + 4UL * n, n},
                         .records = wrote->rows};
    tn_status status = tn_follower_done(f, &note, err);
    tn_arena_free(arena);
    return status;
}

/* Sends rank 0 the files that were being saved, once they are written. */
static tn_status note_share(tn_follower *f, tn_error *err)
{
    if (f->share == NULL || !tn_ckptshare_written(f->share)) {
        return TN_OK;
    }
    tn_ckpt_wrote wrote;
    tn_error why = {0};
    tn_status status = tn_ckptshare_end(f->share, &wrote, &why);
    if (status == TN_OK) {
        status = send_files(f, &wrote, err);
    } else {
        const tn_order_note order = {.what = TN_ORDER_MARK, .number = f->marked};
        status = tn_follower_answer(f, &order, status, &why, err);
    }
    tn_ckptshare_free(f->share);
    f->share = NULL;
    return status;
}

/* MARK: begins to save. */
static tn_status begin_save(tn_follower *f, const tn_order_note *order, tn_error *err)
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
    f->beside = note_share;
    f->marked = order->number;
    tn_status status = tn_peers_refresh(f->peers, &why);
    if (status == TN_OK) {
        status = tn_ckptshare_begin(&f->share, f->w, tn_text_str(&f->run_dir), &what, &why);
    }
    return status == TN_OK ? TN_OK : tn_follower_answer(f, order, status, &why, err);
}

/* ABANDON: waits for what was begun. */
static tn_status abandon_save(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_ckptshare_free(f->share); /* waits */
    f->share = NULL;
    return tn_follower_answer(f, order, TN_OK, NULL, err);
}

/* ---- rows ---- */

static tn_status count_swept(tn_follower *f, const tn_order_note *order, tn_group_rows *groups,
                             tn_error *err)
{
    const uint32_t n = f->plan->layout->n_groups;
    tn_text packed = {0};
    tn_group_rows_pack(groups, n, &packed);
    tn_status status = tn_text_check(&packed, "counts of rows", err);
    if (status == TN_OK) {
        tn_done_note note = {.what = order->what,
                             .number = order->number,
                             .text = "",
                             .metrics = {packed.data, packed.size}};
        status = tn_follower_done(f, &note, err);
    }
    tn_text_done(&packed);
    return status;
}

/* SWEEP: rows that have expired leave. */
static tn_status sweep_part(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_error why = {0};
    tn_group_rows *groups = NULL;
    tn_status status = order->number <= TN_DAY_MAX
                           ? TN_OK
                           : tn_fail(&why, TN_E_PEER, "rank 0 sweeps on a day that is none");
    if (status == TN_OK) {
        status = TN_ALLOC(groups, f->plan->layout->n_groups + 1, "counts of rows", &why);
    }
    if (status == TN_OK) {
        status =
            tn_table_sweep(f->w->shard.table, f->w->team, (uint32_t)order->number, groups, &why);
    }
    status = status == TN_OK ? count_swept(f, order, groups, err)
                             : tn_follower_answer(f, order, status, &why, err);
    tn_free(groups);
    return status;
}

/* EXPORT: writes its rows. */
static tn_status export(tn_follower *f, const tn_order_note *order, tn_error *err)
{
    tn_error why = {0};
    const tn_export_rows rows = {.plan = f->plan,
                                 .table = f->w->shard.table,
                                 .team = f->w->team,
                                 .day = f->w->loaded_day,
                                 .stop = f->watch->stop};
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_export_parts parts;
    tn_heartbeat_stats_state(&f->beats, TN_PEER_SAVING);
    tn_status status = tn_export_parts_init(&parts, f->w, order->step, order->text, arena, &why);
    if (status == TN_OK) {
        status = tn_export_part_write(&parts, &rows, &why);
    }
    tn_arena_free(arena);
    return tn_follower_answer(f, order, status, &why, err);
}

tn_follow_fn *const tn_model_orders[TN_ORDERS] = {
    [TN_ORDER_LOAD] = load_part,   [TN_ORDER_EVALUATE] = evaluate_parts,
    [TN_ORDER_MARK] = begin_save,  [TN_ORDER_ABANDON] = abandon_save,
    [TN_ORDER_SWEEP] = sweep_part, [TN_ORDER_EXPORT] = export,
};
