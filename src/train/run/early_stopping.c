/* early_stopping.c - compares a value with the best, and counts those that are no better. */
#include "train/run/early_stopping.h"

#include "metrics/metrics.h"
#include "ps/optim/optim.h"
#include "train/config/run.h"

#include <math.h>

bool tn_early_stopping_is_over(const tn_train_opts *opts, const tn_early_stopping_state *s)
{
    const tn_stop_opts *stop = &opts->stop;
    return stop->monitor != NULL && s->bad >= stop->patience;
}

static bool beats(const tn_train_opts *opts, const tn_early_stopping_state *s,
                  const tn_evaluated *what)
{
    const double delta = opts->stop.min_delta;
    const tn_metric_best best = tn_metric_find(what->monitor)->best;
    TN_ASSERT(best != TN_BEST_NONE); /* refused with the configuration */
    if (best == TN_BEST_NEAREST_ONE) {
        return !s->seen || fabs(what->value - 1) < fabs(s->best - 1) - delta;
    }
    return !s->seen || (best == TN_BEST_LARGEST ? what->value > s->best + delta
                                                : what->value < s->best - delta);
}

/* True when the rate became smaller. */
static bool reduce(const tn_train_opts *opts, tn_early_stopping_state *s)
{
    const tn_plateau_opts *o = &opts->reduce_on_plateau;
    const tn_rule_opts *dense = opts->optimizer.opts;
    if (isnan(o->factor) || s->bad % o->patience != 0) {
        return false;
    }
    const double least = fmin(1, o->min_lr / dense->lr);
    const double scale = fmax(s->lr_scale * o->factor, least);
    const bool smaller = scale < s->lr_scale;
    s->lr_scale = scale;
    return smaller;
}

tn_verdict tn_early_stopping_add(const tn_train_opts *opts, tn_early_stopping_state *s,
                                 const tn_evaluated *what)
{
    TN_ASSERT(what->monitor != NULL && s->lr_scale > 0);
    if (isnan(what->value)) {
        return (tn_verdict){.unknown = true};
    }
    if (beats(opts, s, what)) {
        s->seen = true;
        s->best = what->value;
        s->step = what->step;
        s->bad = 0;
        return (tn_verdict){.best = true};
    }
    if (what->is_early) {
        return (tn_verdict){0};
    }
    s->bad++;
    const bool reduced = reduce(opts, s);
    return (tn_verdict){.reduced = reduced, .stop = tn_early_stopping_is_over(opts, s)};
}
