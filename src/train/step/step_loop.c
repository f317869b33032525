/* step_loop.c - reads batches ahead, asks for their rows, and learns from them. */
#include "train/step/step_loop.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/failpoint.h"
#include "base/trace/trace.h"
#include "io/rows/batch.h"
#include "ps/table/table.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <stdio.h>

static const uint64_t look_ns = 50000000; /* without data it is looked so often what is due */

struct tn_step_loop {
    tn_worker *w;
    tn_client client;
    tn_step_prefetch *steps;
    bool is_alone;
    char point[24];  /* name of the failpoint before each step: "step.RANK" */
    bool is_over;    /* this rank's data */
    bool is_pulled;  /* `next` was; where steps are joint, perhaps without a batch */
    tn_step *next;   /* its rows were, or are, asked for; NULL: nothing was left, or there yet */
    tn_step *taken;  /* lent to the caller */
    double waited_s; /* for the data of `next` */
    tn_client_waits waits; /* until the last step was done */
    tn_keyset none;        /* keys of a batch without rows */
    uint32_t *no_first;    /* partitions of these: zeros */
};

static tn_client_waits waited(const tn_step_loop *x)
{
    return x->client.ops->waited != NULL ? x->client.ops->waited(x->client.self)
                                         : (tn_client_waits){0};
}

tn_status tn_step_loop_new(tn_step_loop **out, tn_worker *w, tn_step_prefetch *steps, tn_error *err)
{
    TN_ASSERT(w->client.self != NULL);
    *out = NULL;
    tn_step_loop *x = NULL;
    TN_TRY(TN_ALLOC(x, 1, "the steps of an epoch", err));
    x->w = w;
    x->client = w->client;
    x->waits = waited(x);
    x->steps = steps;
    x->is_alone = w->client.ops == &tn_client_alone;
    (void)snprintf(x->point, sizeof x->point, "step.%u", w->rank);
    x->no_first = tn_try_alloc(TN_PARTITIONS + 1, sizeof *x->no_first, "an empty batch", err);
    if (x->no_first == NULL) {
        tn_step_loop_free(x);
        return TN_E_MEMORY;
    }
    tn_table_set_step(w->shard.table, w->steps);
    x->none = (tn_keyset){.owners = &w->plan->owners, .first = x->no_first};
    *out = x;
    return TN_OK;
}

void tn_step_loop_free(tn_step_loop *x)
{
    if (x != NULL) {
        tn_free(x->no_first);
        tn_free(x);
    }
}

/* The next batch; x->next is NULL when none is left, or none came by then. */
static tn_status read_next(tn_step_loop *x, uint64_t until_ns, tn_error *err)
{
    const double begin = tn_clock_s();
    tn_status status = TN_END;
    x->next = NULL;
    if (!x->is_over) {
        tn_span_begin(x->w->lane, TN_PHASE_WAIT_DATA);
        status = tn_step_prefetch_next_until(x->steps, until_ns, &x->next, err);
        tn_span_end(x->w->lane);
    }
    x->is_over = status == TN_END;
    x->waited_s = tn_clock_s() - begin;
    return status == TN_END ? TN_OK : status;
}

static bool meets(const tn_step_hooks *hooks, uint64_t steps)
{
    return hooks->meets != NULL && hooks->meets(hooks->arg, steps);
}

/* Asks for the rows of the next batch, after which `steps` are done. */
static tn_status pull_next(tn_step_loop *x, const tn_step_hooks *hooks, uint64_t steps,
                           uint64_t until_ns, tn_error *err)
{
    const bool is_joint = x->client.ops->is_joint;
    TN_TRY(read_next(x, is_joint ? UINT64_MAX : until_ns, err));
    const tn_step *s = x->next;
    if (!is_joint && s == NULL) {
        return TN_OK;
    }
    const tn_client_batch batch = {.keys = s != NULL ? &s->local->keys : &x->none,
                                   .rows = s != NULL ? s->rows : NULL,
                                   .examples = s != NULL ? s->batch->rows : 0,
                                   .weight_sum = s != NULL ? s->weight_sum : 0,
                                   .meet = is_joint && meets(hooks, steps)};
    TN_TRY(x->client.ops->pull(x->client.self, &batch, err));
    x->is_pulled = true;
    return TN_OK;
}

static tn_status rest(const tn_step_loop *x, tn_error *err)
{
    const tn_client_ops *ops = x->client.ops;
    return ops->rest != NULL ? ops->rest(x->client.self, x->w->team, err) : TN_OK;
}

/* Without data; the group may have ended. */
static tn_status stand_idle(tn_step_loop *x, const tn_step_hooks *hooks, tn_step_turn *out,
                            tn_error *err)
{
    const tn_client_ops *ops = x->client.ops;
    const uint64_t seen = ops->updates != NULL ? ops->updates(x->client.self) : 0;
    x->w->steps = seen > x->w->steps ? seen : x->w->steps;
    out->waited_s = x->waited_s;
    out->over = x->is_over;
    out->meets = !out->over && meets(hooks, x->w->steps);
    return rest(x, err);
}

static tn_client_waits waits_since(tn_step_loop *x)
{
    const tn_client_waits before = x->waits;
    x->waits = waited(x);
    return (tn_client_waits){.rows_s = x->waits.rows_s - before.rows_s,
                             .weights_s = x->waits.weights_s - before.weights_s};
}

static tn_status learn(tn_step_loop *x, tn_step *s, const tn_joint_batch *joint, tn_step_turn *out,
                       tn_error *err)
{
    const int failure = tn_failpoint(x->point);
    return failure != 0 ? tn_fail(err, TN_E_IO, "%s: made to fail with %d", x->point, failure)
                        : tn_step_update(x->w, s, joint, out->factor, &out->learned, err);
}

/* One step. Above staleness 0 it is asked before it whether it is the last one: nothing may be
 * asked for then. One process asks when it is done. */
static tn_status take_step(tn_step_loop *x, const tn_step_hooks *hooks, tn_step_turn *out,
                           tn_error *err)
{
    const tn_client_ops *ops = x->client.ops;
    tn_joint_batch joint;
    tn_step *s = x->next;
    TN_ASSERT(x->is_pulled);
    TN_TRY(ops->rows(x->client.self, x->w->team, &joint, err));
    x->is_pulled = false;
    if (joint.over) {
        out->over = true;
        return rest(x, err);
    }
    out->waited_s = x->waited_s;
    out->meets = joint.meet || (!ops->is_joint && !x->is_alone && meets(hooks, x->w->steps + 1));
    x->next = NULL;
    if (!out->meets && ops->pulls_next) {
        TN_TRY(pull_next(x, hooks, x->w->steps + 1 + (joint.weight_sum > 0), 0, err));
    }
    x->taken = s;
    out->factor = hooks->factor != NULL ? hooks->factor(hooks->arg) : 1;
    if (joint.weight_sum > 0) {
        TN_TRY(learn(x, s, &joint, out, err));
    }
    out->step = s;
    out->rows = ops->is_joint ? joint.rows : joint.rows * x->w->plan->owners.n_peers;
    out->weight = joint.weight_sum;
    out->meets = x->is_alone ? meets(hooks, x->w->steps) : out->meets;
    out->waits = waits_since(x);
    return out->meets ? rest(x, err) : TN_OK;
}

static tn_status take_turn(tn_step_loop *x, const tn_step_hooks *hooks, tn_step_turn *out,
                           tn_error *err)
{
    const double begin = tn_clock_s();
    *out = (tn_step_turn){0};
    tn_lane_step(x->w->lane, x->w->steps);
    if (x->taken != NULL) {
        tn_step_prefetch_recycle(x->steps, x->taken);
        x->taken = NULL;
    }
    if (!x->is_pulled) { /* none was asked for ahead */
        const uint64_t until_ns = x->is_alone ? UINT64_MAX : tn_clock_ns() + look_ns;
        TN_TRY(pull_next(x, hooks, x->w->steps + 1, until_ns, err));
    }
    if (x->next == NULL && !x->client.ops->is_joint) {
        return stand_idle(x, hooks, out, err);
    }
    TN_TRY(take_step(x, hooks, out, err));
    out->took_s = tn_clock_s() - begin - (x->is_alone ? out->waited_s : 0);
    return TN_OK;
}

tn_status tn_step_loop_run(tn_step_loop *x, const tn_step_hooks *hooks, tn_error *err)
{
    for (;;) {
        tn_step_turn turn;
        TN_TRY(take_turn(x, hooks, &turn, err));
        if (turn.over) {
            return TN_END;
        }
        TN_TRY(hooks->note(hooks->arg, &turn, err));
        if (turn.meets) {
            return TN_OK;
        }
    }
}
