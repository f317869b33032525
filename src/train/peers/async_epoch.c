/* async_epoch.c - the steps of a rank that waits for no other rank. */
#include "train/peers/async_epoch.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/core/failpoint.h"

#include <stdio.h>

static const uint64_t look_ns = 50000000; /* who waits for data looks at what is due so often */

struct tn_async_epoch {
    tn_worker *w;
    tn_async_worker *async;
    tn_step_prefetch *feeder;
    uint32_t n_ranks;
    bool looks_ahead; /* there are permits for two */
    char point[24];   /* name of the failpoint before each step: "apart.RANK" */
    bool is_over;
    tn_step *next;  /* whose rows were asked for; NULL: none */
    tn_step *taken; /* lent to the caller */
    double waited_s;
};

tn_status tn_async_epoch_new(tn_async_epoch **out, tn_worker *w, tn_peers *peers,
                             tn_step_prefetch *feeder, tn_error *err)
{
    tn_async_epoch *x = tn_try_alloc(1, sizeof *x, "the steps of an epoch", err);
    *out = x;
    if (x == NULL) {
        return TN_E_MEMORY;
    }
    x->w = w;
    x->async = tn_peers_async(peers);
    x->feeder = feeder;
    x->n_ranks = w->plan->owners.n_peers;
    x->looks_ahead = tn_async_permits_of(w->plan->run->cluster.staleness) > 1;
    (void)snprintf(x->point, sizeof x->point, "apart.%u", w->rank);
    return TN_OK;
}

void tn_async_epoch_free(tn_async_epoch *x)
{
    tn_free(x);
}

/* The next batch that weighs anything; x->next is NULL when none is left, or none came by then. */
static tn_status read_next(tn_async_epoch *x, uint64_t until_ns, tn_error *err)
{
    const double begin = tn_clock_s();
    tn_status status = TN_OK;
    x->next = NULL;
    bool late = false;
    while (status == TN_OK && x->next == NULL && !x->is_over && !late) {
        tn_span_begin(x->w->lane, TN_PHASE_WAIT_DATA);
        status = tn_step_prefetch_next_until(x->feeder, until_ns, &x->next, err);
        tn_span_end(x->w->lane);
        late = status == TN_OK && x->next == NULL;
        if (status == TN_OK && !late && x->next->weight_sum == 0) {
            tn_step_prefetch_recycle(x->feeder, x->next);
            x->next = NULL;
        }
    }
    x->is_over = x->is_over || status == TN_END;
    x->waited_s = tn_clock_s() - begin;
    return status == TN_END ? TN_OK : status;
}

static tn_status pull_next(tn_async_epoch *x, uint64_t until_ns, tn_error *err)
{
    TN_TRY(read_next(x, until_ns, err));
    if (x->next == NULL) {
        return TN_OK;
    }
    const tn_step *s = x->next;
    const tn_async_worker_batch batch = {.keys = &s->local->keys,
                                         .rows = s->rows,
                                         .examples = s->batch->rows,
                                         .weight_sum = s->weight_sum};
    return tn_async_worker_pull(x->async, &batch, err);
}

/* Each push of any rank is an update of the own shard. */
static void count_steps(tn_async_epoch *x, uint32_t own)
{
    const uint64_t seen = tn_async_worker_updates(x->async);
    const uint64_t steps = x->w->steps + own;
    x->w->steps = seen > steps ? seen : steps;
}

static tn_status learn(tn_async_epoch *x, tn_step *s, double factor, tn_learned *out, tn_error *err)
{
    tn_worker *w = x->w;
    tn_async_worker_seen seen;
    *out = (tn_learned){0};
    const int failure = tn_failpoint(x->point);
    if (failure != 0) {
        return tn_fail(err, TN_E_IO, "%s: made to fail with %d", x->point, failure);
    }
    TN_TRY(tn_step_compute(w, s, NULL, &out->loss, err));
    const tn_push push = {
        .step = w->steps, .weight_sum = s->weight_sum, .lr_factor = factor, .day = w->day};
    TN_TRY(
        tn_async_worker_push(x->async, w->team, s->grads, tn_params_grads(w->params), &push, err));
    tn_async_worker_take_seen(x->async, &seen);
    out->grad_norm = seen.norm;
    out->staleness = seen.staleness_max;
    count_steps(x, 1);
    tn_step_count(w, s);
    return TN_OK;
}

/* Without data; the group may have ended. */
static tn_status stand_idle(tn_async_epoch *x, const tn_ahead *ahead, tn_turn_taken *out,
                            tn_error *err)
{
    count_steps(x, 0);
    out->waited_s = x->waited_s;
    out->over = x->is_over;
    out->meets = !out->over && ahead->meets != NULL && ahead->meets(ahead->arg, x->w->steps);
    return tn_async_worker_drain(x->async, err);
}

tn_status tn_async_epoch_next(tn_async_epoch *x, const tn_ahead *ahead, tn_turn_taken *out,
                              tn_error *err)
{
    *out = (tn_turn_taken){0};
    if (x->taken != NULL) {
        tn_step_prefetch_recycle(x->feeder, x->taken);
        x->taken = NULL;
    }
    if (x->next == NULL) {
        TN_TRY(pull_next(x, tn_clock_ns() + look_ns, err));
    }
    if (x->next == NULL) {
        return stand_idle(x, ahead, out, err);
    }
    tn_step *s = x->next;
    TN_TRY(tn_async_worker_rows(x->async, x->w->team, err));
    out->waited_s = x->waited_s;
    out->meets = ahead->meets != NULL && ahead->meets(ahead->arg, x->w->steps + 1);
    x->next = NULL;
    if (!out->meets && x->looks_ahead) {
        TN_TRY(pull_next(x, 0, err));
    }
    x->taken = s;
    TN_TRY(learn(x, s, ahead->factor != NULL ? ahead->factor(ahead->arg) : 1, &out->learned, err));
    out->step = s;
    out->rows = (uint64_t)s->batch->rows * x->n_ranks;
    out->weight = s->weight_sum;
    return out->meets ? tn_async_worker_drain(x->async, err) : TN_OK;
}
