/* ckpt_peers.c - a rank above 0 writes its part of a checkpoint on a thread of its own. */
#include "train/checkpoint/ckpt_peers.h"

#include "base/core/alloc.h"
#include "base/thread/threads.h"
#include "train/checkpoint/ckpt_moment.h"
#include "train/checkpoint/ckptfiles.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum { NICE = 10 }; /* of the thread that writes while training goes on, as rank 0's */

struct tn_ckptshare {
    tn_ckpt_own own;
    tn_ckpt_files files;
    tn_thread *thread; /* NULL: it was written at once, or is joined .. */
    tn_status status;  /* .. with this outcome */
    tn_error err;
    _Atomic bool written;
    char folder[TN_PATH_SIZE];
};

static tn_status write_files(tn_ckptshare *s, tn_error *err)
{
    TN_TRY(tn_ckpt_write_own(&s->own, &s->files, err));
    return tn_dir_sync(s->folder, err);
}

static tn_status write_behind(void *arg, tn_error *err)
{
    TN_ASSERT(!atomic_load(&((const tn_ckptshare *)arg)->written));
    tn_ckptshare *s = arg;
    tn_status status = write_files(s, err);
    tn_cut_close(s->own.moment->rows); /* after a failure: nobody need wait for it any more */
    s->own.moment->rows = NULL;
    atomic_store(&s->written, true);
    return status;
}

static tn_status write_on_thread(void *arg, tn_error *err)
{
    tn_thread_step_back(NICE);
    return write_behind(arg, err);
}

/* An order comes from another process. */
static tn_status check_order(const tn_ckptshare *s, const tn_worker *w, const tn_ckpt_order *order,
                             tn_error *err)
{
    if (order->step != w->steps) {
        return tn_fail(err, TN_E_PEER,
                       "a checkpoint of step %" PRIu64 " is ordered, this rank stands at %" PRIu64,
                       order->step, w->steps);
    }
    if (!tn_path_is_dir(s->folder)) {
        return tn_fail(err, TN_E_IO,
                       "no folder '%s' for this rank's part of a checkpoint\nhint: run.dir must be "
                       "one folder for all peers",
                       s->folder);
    }
    if (order->delta && !tn_table_knows_changes(w->shard.table)) {
        return tn_fail(err, TN_E_MEMORY, "no memory was left to note which rows have changed");
    }
    return TN_OK;
}

static tn_status prepare(tn_ckptshare *s, tn_worker *w, const char *run_dir,
                         const tn_ckpt_order *order, tn_error *err)
{
    const size_t length = strnlen(order->folder, sizeof order->folder);
    if (length == 0 || length == sizeof order->folder || strchr(order->folder, '/') != NULL ||
        order->folder[0] == '.') {
        return tn_fail(err, TN_E_PEER, "a checkpoint is ordered into a folder without a name");
    }
    TN_ASSERT(length < sizeof s->folder);
    TN_TRY(tn_path_join(run_dir, order->folder, s->folder, err));
    if (w->plan->run->checkpoint.delta_every != NULL) {
        TN_TRY(tn_table_track(w->shard.table, err)); /* the next may be a delta */
    }
    TN_TRY(check_order(s, w, order, err));
    s->own = (tn_ckpt_own){.folder = s->folder,
                           .head = {.run_id = order->run_id,
                                    .step = order->step,
                                    .base_step = order->base_step,
                                    .delta = order->delta}};
    const tn_moment_from from = {.w = w, .delta = order->delta};
    TN_TRY(tn_moment_take(&s->own.moment, &from, err));
    tn_ckpt_files_init(&s->files, s->own.moment->arena, &w->shares->owners);
    return TN_OK;
}

tn_status tn_ckptshare_begin(tn_ckptshare **out, tn_worker *w, const char *run_dir,
                             const tn_ckpt_order *order, tn_error *err)
{
    *out = NULL;
    tn_ckptshare *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "a part of a checkpoint", err));
    tn_status status = prepare(s, w, run_dir, order, err);
    if (status != TN_OK) {
        tn_ckptshare_free(s);
        return status;
    }
    if (tn_thread_start(&s->thread, "tn-save", write_on_thread, s, NULL) != TN_OK) {
        s->status = write_behind(s, &s->err); /* then training waits */
    }
    *out = s;
    return TN_OK;
}

bool tn_ckptshare_written(const tn_ckptshare *s)
{
    return atomic_load(&s->written);
}

static void wait_for(tn_ckptshare *s)
{
    if (s->thread != NULL) {
        s->status = tn_thread_join(s->thread, &s->err);
        s->thread = NULL;
    }
}

tn_status tn_ckptshare_end(tn_ckptshare *s, tn_ckpt_wrote *out, tn_error *err)
{
    wait_for(s);
    TN_ASSERT(atomic_load(&s->written));
    if (s->status != TN_OK) {
        if (err != NULL) {
            *err = s->err;
        }
        return s->status;
    }
    TN_ASSERT(s->files.n_told == 1 && s->files.n > 0);
    *out = (tn_ckpt_wrote){.rank = s->own.moment->rank,
                           .rows = s->files.rows,
                           .n_files = s->files.n,
                           .file = s->files.file};
    return TN_OK;
}

void tn_ckptshare_free(tn_ckptshare *s)
{
    if (s != NULL) {
        wait_for(s);
        tn_moment_free(s->own.moment);
        tn_free(s);
    }
}
