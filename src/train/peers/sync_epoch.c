/* sync_epoch.c - the steps that all ranks make together. */
#include "train/peers/sync_epoch.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "train/step/allreduce_stats.h"

struct tn_sync_epoch {
    tn_worker *w;
    tn_sync_worker *sync;
    tn_step_prefetch *feeder;
    bool is_over;               /* this rank's data */
    bool pulled;                /* `next` was */
    tn_step *next;              /* whose rows were, or are, asked for; NULL: nothing was left */
    tn_step *taken;             /* lent to the caller */
    double waited_s;            /* for the data of `next` */
    tn_sync_worker_waits waits; /* until the last step was done */
    tn_keyset none;             /* of a batch without rows */
    uint32_t at[1];             /* its places .. */
    uint32_t *no_first;         /* .. and its partitions: zeros */
};

tn_status tn_sync_epoch_new(tn_sync_epoch **out, tn_worker *w, tn_peers *peers,
                            tn_step_prefetch *feeder, tn_error *err)
{
    *out = NULL;
    tn_sync_epoch *x = tn_try_alloc(1, sizeof *x, "the steps of an epoch", err);
    if (x == NULL) {
        return TN_E_MEMORY;
    }
    x->w = w;
    x->sync = tn_peers_sync(peers);
    x->waits = tn_sync_worker_waited(x->sync);
    x->feeder = feeder;
    x->no_first = tn_try_alloc(TN_PARTITIONS + 1, sizeof *x->no_first, "an empty batch", err);
    if (x->no_first == NULL) {
        tn_sync_epoch_free(x);
        return TN_E_MEMORY;
    }
    x->none = (tn_keyset){.owners = &w->plan->owners, .at = x->at, .first = x->no_first};
    *out = x;
    return TN_OK;
}

void tn_sync_epoch_free(tn_sync_epoch *x)
{
    if (x != NULL) {
        tn_free(x->no_first);
        tn_free(x);
    }
}

static tn_status read_next(tn_sync_epoch *x, tn_error *err)
{
    const double begin = tn_clock_s();
    tn_status status = TN_END;
    x->next = NULL;
    if (!x->is_over) {
        tn_span_begin(x->w->lane, TN_PHASE_WAIT_DATA);
        status = tn_step_prefetch_next(x->feeder, &x->next, err);
        tn_span_end(x->w->lane);
    }
    x->is_over = status == TN_END;
    x->waited_s = tn_clock_s() - begin;
    return status == TN_END ? TN_OK : status;
}

/* Asks for the rows of the next batch, after which `steps` are done. */
static tn_status pull_next(tn_sync_epoch *x, const tn_ahead *ahead, uint64_t steps, tn_error *err)
{
    TN_TRY(read_next(x, err));
    const tn_step *s = x->next;
    const tn_sync_worker_batch batch = {.keys = s != NULL ? &s->local->keys : &x->none,
                                        .rows = s != NULL ? s->rows : NULL,
                                        .examples = s != NULL ? s->batch->rows : 0,
                                        .weight_sum = s != NULL ? s->weight_sum : 0,
                                        .meet = ahead->meets != NULL &&
                                                ahead->meets(ahead->arg, steps)};
    TN_TRY(tn_sync_worker_pull(x->sync, &batch, err));
    x->pulled = true;
    return TN_OK;
}

static tn_status learn(tn_sync_epoch *x, tn_step *s, const tn_joint_batch *joint, double factor,
                       tn_learned *out, tn_error *err)
{
    tn_worker *w = x->w;
    tn_sync_worker_learned own = {0};
    tn_sync_worker_step all;
    if (s != NULL) {
        TN_TRY(tn_step_compute(w, s, joint, &own.loss, err));
        own.rows = s->grads;
        own.dense = tn_params_grads(w->params);
    } else {
        TN_TRY(tn_step_compute_none(w, joint, err));
    }
    tn_running_keep(w);
    const tn_push push = {
        .step = w->steps, .weight_sum = joint->weight_sum, .lr_factor = factor, .day = w->day};
    TN_TRY(tn_sync_worker_push(x->sync, &own, &push, err));
    TN_TRY(tn_sync_worker_weights(x->sync, w->team, &all, err));
    *out = (tn_learned){.loss = all.loss, .grad_norm = all.norm};
    tn_running_take(w);
    w->steps++;
    if (s != NULL) {
        tn_step_count(w, s);
    }
    return TN_OK;
}

static void give_back(tn_sync_epoch *x)
{
    if (x->taken != NULL) {
        tn_step_prefetch_recycle(x->feeder, x->taken);
        x->taken = NULL;
    }
}

static tn_sync_worker_waits waits_since(tn_sync_epoch *x)
{
    const tn_sync_worker_waits before = x->waits;
    x->waits = tn_sync_worker_waited(x->sync);
    return (tn_sync_worker_waits){.rows_s = x->waits.rows_s - before.rows_s,
                                  .weights_s = x->waits.weights_s - before.weights_s};
}

tn_status tn_sync_epoch_next(tn_sync_epoch *x, const tn_ahead *ahead, tn_turn_taken *out,
                             tn_error *err)
{
    tn_joint_batch joint;
    *out = (tn_turn_taken){0};
    give_back(x);
    if (!x->pulled) {
        TN_TRY(pull_next(x, ahead, x->w->steps + 1, err));
    }
    TN_TRY(tn_sync_worker_rows(x->sync, x->w->team, &joint, err));
    x->pulled = false;
    if (joint.over) {
        out->over = true;
        return tn_sync_worker_rest(x->sync, x->w->team, err);
    }
    tn_step *s = x->next;
    out->waited_s = x->waited_s;
    if (!joint.meet) {
        TN_TRY(pull_next(x, ahead, x->w->steps + 1 + (joint.weight_sum > 0), err));
    }
    if (joint.weight_sum > 0) {
        TN_TRY(learn(x, s, &joint, ahead->factor != NULL ? ahead->factor(ahead->arg) : 1,
                     &out->learned, err));
    }
    x->taken = s;
    out->step = s;
    out->rows = joint.rows;
    out->weight = joint.weight_sum;
    out->meets = joint.meet;
    out->waits = waits_since(x);
    return out->meets ? tn_sync_worker_rest(x->sync, x->w->team, err) : TN_OK;
}
