/* room.c - ends a run with a checkpoint before its memory is full. */
#include "train/run/module.h"

#include "base/file/file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/run/epoch.h"
#include "train/run/saver.h"
#include "train/step/memory_cap.h"

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

const tn_module tn_module_memory_cap = {
    .name = "memory_cap",
    .size = sizeof(tn_memory_cap),
    .due = is_full,
    .at = {[TN_AT_OPEN] = open_cap, [TN_AT_BEGIN] = begin_cap, [TN_AT_ROOM] = end_if_full},
};
