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

/* Whether it beats an earlier value, if there was one. */
static bool beats(const tn_train_opts *opts, const tn_evaluated *what, bool seen, double earlier)
{
    const double delta = opts->stop.min_delta;
    const tn_metric_best best = tn_metric_find(what->monitor)->best;
    TN_ASSERT(best != TN_BEST_NONE); /* refused with the configuration */
    if (best == TN_BEST_NEAREST_ONE) {
        return !seen || fabs(what->value - 1) < fabs(earlier - 1) - delta;
    }
    return !seen || (best == TN_BEST_LARGEST ? what->value > earlier + delta
                                             : what->value < earlier - delta);
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
    tn_verdict v = {.best = beats(opts, what, s->seen, s->best)};
    if (v.best) {
        s->seen = true;
        s->best = what->value;
        s->step = what->step;
    }
    if (what->is_early) {
        return v;
    }
    if (beats(opts, what, s->has_counted, s->counted)) {
        s->has_counted = true;
        s->counted = what->value;
        s->bad = 0;
        return v;
    }
    s->bad++;
    v.reduced = reduce(opts, s);
    v.stop = tn_early_stopping_is_over(opts, s);
    return v;
}
