/* early_stopping.c - compares each evaluation with the best. */
#include "train/step/early_stopping.h"

#include "metrics/metrics.h"
#include "ps/optim/optim.h"
#include "train/config/run.h"

#include <math.h>
#include <string.h>

static const char prefix[] = "valid.";

void tn_early_stopping_init(tn_early_stopping *p, const tn_train_opts *opts,
                            tn_early_stopping_state *state)
{
    const char *monitor = opts->stop.monitor;
    if (monitor == NULL && !isnan(opts->reduce_on_plateau.factor)) {
        monitor = opts->reduce_on_plateau.monitor;
        monitor = monitor != NULL ? monitor : "valid.auc";
    }
    const tn_rule_opts *rule = opts->optimizer.opts;
    *state = (tn_early_stopping_state){.lr_scale = 1};
    *p = (tn_early_stopping){.opts = opts, .base_lr = rule->lr, .state = state};
    if (monitor != NULL) {
        p->metric = monitor + strlen(prefix);
        p->larger_is_better = tn_metric_find(p->metric)->larger_is_better;
    }
}

bool tn_early_stopping_is_over(const tn_early_stopping *p)
{
    return p->opts->stop.monitor != NULL && p->state->bad >= p->opts->stop.patience;
}

static bool beats(const tn_early_stopping *p, double value)
{
    double delta = p->opts->stop.min_delta;
    if (isnan(value)) {
        return false;
    }
    if (!p->state->seen) {
        return true;
    }
    return p->larger_is_better ? value > p->state->best + delta : value < p->state->best - delta;
}

/* True when the rate became smaller. */
static bool reduce(tn_early_stopping *p)
{
    const tn_plateau_opts *o = &p->opts->reduce_on_plateau;
    tn_early_stopping_state *s = p->state;
    if (isnan(o->factor) || s->bad % o->patience != 0) {
        return false;
    }
    double least = fmin(1, o->min_lr / p->base_lr);
    double scale = fmax(s->lr_scale * o->factor, least);
    bool smaller = scale < s->lr_scale;
    s->lr_scale = scale;
    return smaller;
}

tn_verdict tn_early_stopping_add(tn_early_stopping *p, double value, uint64_t step)
{
    tn_early_stopping_state *s = p->state;
    if (p->metric == NULL) {
        return (tn_verdict){0};
    }
    if (beats(p, value)) {
        s->seen = true;
        s->best = value;
        s->step = step;
        s->bad = 0;
        return (tn_verdict){.best = true};
    }
    s->bad++;
    bool reduced = reduce(p);
    return (tn_verdict){.reduced = reduced, .stop = tn_early_stopping_is_over(p)};
}
