/* room.c - keeps the table within bounds: rows that expire leave, a run that is full ends. */
#include "base/core/arena.h"
#include "base/core/clock.h"
#include "base/file/file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/module.h"
#include "train/run/saver.h"
#include "train/step/memory_cap.h"
#include "train/step/row_sweep.h"

/* ---- memory_cap ---- */

static bool is_full(void *self, const tn_run_now *now)
{
    tn_memory_cap *m = self;
    return now->epoch->is_full || tn_memory_cap_look(m) != TN_ROOM_ENOUGH;
}

/* Saves the run, which ends with TN_E_MEMORY. */
static tn_status stop_full(const tn_memory_cap *m, const tn_run_now *now, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_saver *s = now->saver;
    TN_TRY(tn_saver_save_last(s, true, err));
    TN_TRY(tn_path_join(tn_checkpoints_dir(s->checkpoints), s->saved.name, path, err));
    return tn_memory_cap_fail(m, path, err);
}

/* Looks at the memory of this rank, and at what the others say of theirs. */
static tn_status end_if_full(void *self, tn_run_now *now, tn_error *err)
{
    tn_memory_cap *m = self;
    if (tn_memory_cap_look(m) == TN_ROOM_AFTER_SAVE) {
        TN_TRY(tn_saver_end(now->saver, err));
        (void)tn_memory_cap_look(m);
    }
    const bool full = now->epoch->is_full || tn_room_is_over(m->room);
    return full ? stop_full(m, now, err) : TN_OK;
}

static tn_status open_cap(void *self, tn_run_now *now, tn_error *err)
{
    now->memory = self;
    return tn_memory_cap_init(self, now->worker, 0, err);
}

/* A run that was stopped for want of memory, and has no more now, makes no step. */
static tn_status begin_cap(void *self, tn_run_now *now, tn_error *err)
{
    tn_memory_cap_begin(self);
    return !now->stops && tn_run_goes_on(now) ? end_if_full(self, now, err) : TN_OK;
}

extern const tn_module tn_module_memory_cap;
const tn_module tn_module_memory_cap = {
    .name = "memory_cap",
    .size = sizeof(tn_memory_cap),
    .due = is_full,
    .at = {[TN_AT_OPEN] = open_cap, [TN_AT_BEGIN] = begin_cap, [TN_AT_ROOM] = end_if_full},
};

/* ---- sweep ---- */

/* Sweeps on the worker's day, while all ranks wait and nothing is being saved. */
static tn_status sweep_rows(tn_run_now *now, tn_error *err)
{
    const tn_epoch *e = now->epoch;
    const tn_worker *w = now->worker;
    const uint32_t day = w->day;
    const uint32_t n = now->plan->layout->n_groups;
    const double begin = tn_clock_s();
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_report_sweep swept = {
        .day = day, .groups = TN_NEW_ARRAY(arena, tn_group_rows, n + 1), .state = now->state};
    TN_ASSERT(e->data == NULL);
    tn_status status = tn_table_sweep(w->shard.table, w->team, day, swept.groups, err);
    if (status == TN_OK) {
        status = e->ranks.ops->sweep(e->ranks.self, day, swept.groups, n, err);
    }
    swept.seconds = tn_clock_s() - begin;
    swept.aged = tn_table_total(w->shard.table).aged;
    if (status == TN_OK) {
        status = tn_report_swept(now->report, &swept, err);
    }
    tn_arena_free(arena);
    return status;
}

/* A run over days sweeps once a day. */
static tn_status sweep_after_epoch(void *self, tn_run_now *now, tn_error *err)
{
    (void)self;
    if (!tn_rows_come_and_go(now->plan) || (tn_run_has_days(now) && !tn_run_is_last(now))) {
        return TN_OK;
    }
    TN_TRY(tn_saver_end(now->saver, err)); /* its rows may not leave meanwhile */
    TN_TRY(sweep_rows(now, err));
    tn_saver_set_unsaved(now->saver); /* a checkpoint of the last step has rows that left */
    return TN_OK;
}

extern const tn_module tn_module_sweep;
const tn_module tn_module_sweep = {.name = "sweep", .at = {[TN_AT_EPOCH] = sweep_after_epoch}};
