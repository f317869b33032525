/* apart.c - see apart.h. */
#include "train/apart.h"

#include "base/alloc.h"
#include "base/clock.h"

struct tn_apart {
    tn_worker *w;
    tn_async *async;
    tn_feeder *feeder;
    uint32_t n_ranks;
    bool looks_ahead; /* there are permits for two */
    bool is_over;
    tn_step *next;  /* whose rows were asked for; NULL: none */
    tn_step *taken; /* lent to the caller */
    double waited_s;
};

tn_status tn_apart_new(tn_apart **out, tn_worker *w, tn_peers *peers, tn_feeder *feeder,
                       tn_error *err)
{
    tn_apart *x = tn_try_alloc(1, sizeof *x, "the steps of an epoch", err);
    *out = x;
    if (x == NULL) {
        return TN_E_MEMORY;
    }
    x->w = w;
    x->async = tn_peers_async(peers);
    x->feeder = feeder;
    x->n_ranks = w->plan->owners.n_peers;
    x->looks_ahead = tn_permits_of(w->plan->run->cluster.staleness) > 1;
    return TN_OK;
}

void tn_apart_free(tn_apart *x)
{
    tn_free(x);
}

/* The next batch that weighs anything; x->next is NULL when none is left. */
static tn_status read_next(tn_apart *x, tn_error *err)
{
    const double begin = tn_clock_s();
    tn_status status = TN_OK;
    x->next = NULL;
    while (status == TN_OK && x->next == NULL && !x->is_over) {
        tn_span_begin(x->w->lane, TN_PHASE_WAIT_DATA);
        status = tn_feeder_next(x->feeder, &x->next, err);
        tn_span_end(x->w->lane);
        if (status == TN_OK && x->next->weight_sum == 0) {
            tn_feeder_recycle(x->feeder, x->next);
            x->next = NULL;
        }
    }
    x->is_over = x->is_over || status == TN_END;
    x->waited_s = tn_clock_s() - begin;
    return status == TN_END ? TN_OK : status;
}

static tn_status pull_next(tn_apart *x, tn_error *err)
{
    TN_TRY(read_next(x, err));
    if (x->next == NULL) {
        return TN_OK;
    }
    const tn_step *s = x->next;
    const tn_async_batch batch = {.keys = &s->local->keys,
                                  .rows = s->rows,
                                  .examples = s->batch->rows,
                                  .weight_sum = s->weight_sum};
    return tn_async_pull(x->async, &batch, err);
}

static tn_status learn(tn_apart *x, tn_step *s, double factor, tn_learned *out, tn_error *err)
{
    tn_worker *w = x->w;
    tn_async_seen seen;
    *out = (tn_learned){0};
    TN_TRY(tn_step_compute(w, s, NULL, &out->loss, err));
    const tn_push push = {
        .step = w->steps, .weight_sum = s->weight_sum, .lr_factor = factor, .day = w->day};
    TN_TRY(tn_async_push(x->async, w->team, s->grads, tn_params_grads(w->params), &push, err));
    tn_async_take_seen(x->async, &seen);
    out->grad_norm = seen.norm;
    out->staleness = seen.staleness_max;
    w->steps += x->n_ranks;
    tn_step_count(w, s);
    return TN_OK;
}

tn_status tn_apart_next(tn_apart *x, const tn_ahead *ahead, tn_turn_taken *out, tn_error *err)
{
    *out = (tn_turn_taken){0};
    if (x->taken != NULL) {
        tn_feeder_recycle(x->feeder, x->taken);
        x->taken = NULL;
    }
    if (x->next == NULL) {
        TN_TRY(pull_next(x, err));
    }
    if (x->next == NULL) {
        out->over = true;
        return tn_async_drain(x->async, err);
    }
    tn_step *s = x->next;
    TN_TRY(tn_async_rows(x->async, x->w->team, err));
    out->waited_s = x->waited_s;
    out->meets = ahead->meets != NULL && ahead->meets(ahead->arg, x->w->steps + x->n_ranks);
    x->next = NULL;
    if (!out->meets && x->looks_ahead) {
        TN_TRY(pull_next(x, err));
    }
    x->taken = s;
    TN_TRY(learn(x, s, ahead->factor != NULL ? ahead->factor(ahead->arg) : 1, &out->learned, err));
    out->step = s;
    out->rows = (uint64_t)s->batch->rows * x->n_ranks;
    out->weight = s->weight_sum;
    return out->meets ? tn_async_drain(x->async, err) : TN_OK;
}
