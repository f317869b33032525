/* ranks.c - a process alone as the group of itself, and the kind of group of this build. */
#include "train/group/ranks.h"

#include "train/config/run.h"
#include "train/eval/evaluate.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

/* ---- a process alone ---- */

static tn_status form_alone(void *self, const atomic_bool *stop, tn_error *err)
{
    (void)self;
    (void)stop;
    (void)err;
    return TN_OK;
}

static tn_status do_nothing(void *self, tn_error *err)
{
    (void)self;
    (void)err;
    return TN_OK;
}

static bool close_alone(void *self, tn_status status, const char *why)
{
    (void)self;
    (void)status;
    (void)why;
    return false;
}

static tn_status tell_nobody(void *self, const char *path, tn_error *err)
{
    (void)self;
    (void)path;
    (void)err;
    return TN_OK;
}

static tn_status sweep_alone(void *self, uint32_t day, tn_group_rows *groups, uint32_t n,
                             tn_error *err)
{
    (void)self;
    (void)day;
    (void)groups;
    (void)n;
    (void)err;
    return TN_OK;
}

static tn_status evaluate_alone(void *self, tn_worker *w, const char *data,
                                const tn_eval_request *request, tn_evaluation *out, tn_error *err)
{
    (void)self;
    (void)data;
    return tn_evaluate(w, request, out, err);
}

static void no_sums(void *self, tn_ranks_sums *out)
{
    (void)self;
    *out = (tn_ranks_sums){0};
}

static tn_status no_scores(void *self, tn_metrics *m, tn_error *err)
{
    (void)self;
    (void)err;
    tn_metrics_clear(m);
    return TN_OK;
}

static void no_counts(void *self, tn_held *held, uint64_t epoch, tn_met *met)
{
    (void)self;
    (void)held;
    (void)epoch;
    (void)met;
}

static const tn_ranks_ops alone = {.form = form_alone,
                                   .check = do_nothing,
                                   .close = close_alone,
                                   .load = tell_nobody,
                                   .sweep = sweep_alone,
                                   .evaluate = evaluate_alone,
                                   .export = tell_nobody,
                                   .exported = do_nothing,
                                   .sums = no_sums,
                                   .scores = no_scores,
                                   .counts = no_counts};

const tn_ranks tn_ranks_alone = {.ops = &alone};

tn_status tn_ranks_open(tn_ranks *out, const tn_ranks_opts *opts, tn_error *err)
{
    TN_ASSERT(opts->worker->rank == 0 && opts->worker->plan->owners.n_peers > 0);
    *out = tn_ranks_alone;
    return opts->worker->plan->owners.n_peers == 1 ? TN_OK : tn_group_built()->open(out, opts, err);
}

/* ---- the kind of group ---- */

#define TN_GROUP(name) extern const tn_group_kind tn_group_##name;
#include "train/group/groups.def"
#undef TN_GROUP

const tn_group_kind *tn_group_built(void)
{
    /* One kind, if any, and none. */
    static const tn_group_kind *const built[2] = {
#define TN_GROUP(name) &tn_group_##name,
#include "train/group/groups.def"
#undef TN_GROUP
        &tn_group_none};
    return built[0];
}
