/* run_loss.c - the loss of a run by its configuration and by its metrics. */
#include "train/config/run_loss.h"

#include "base/core/error.h"
#include "config/tree.h"
#include "metrics/metrics.h"
#include "nn/loss/loss.h"

#include <math.h>

tn_target tn_loss_target(const tn_tree *root)
{
    const tn_tree *t = tn_tree_get(root, "loss");
    t = t != NULL && t->kind == TN_TREE_MAP ? tn_tree_get(t, "type") : t;
    const bool named = t != NULL && t->kind == TN_TREE_SCALAR && t->text != NULL;
    const tn_loss *loss = named ? tn_loss_find(t->text) : NULL;
    return loss != NULL ? loss->target : tn_loss_find(TN_LOSS_DEFAULT)->target;
}

const char *tn_loss_defaults(const char *name)
{
    const tn_loss *loss = tn_loss_find(name);
    return loss != NULL ? loss->defaults : NULL;
}

const char *tn_loss_for(tn_target target)
{
    const tn_choice *const *c = tn_loss_choices;
    while (*c != NULL && ((const tn_loss *)(*c)->impl)->target != target) {
        c++;
    }
    TN_ASSERT(*c != NULL); /* every target has a loss */
    return (*c)->name;
}

double tn_run_loss_value(const tn_run *run, const tn_metrics *m)
{
    const char *metric = tn_loss_of(&run->loss)->metric;
    return metric != NULL ? tn_metrics_get(m, metric) : (double)NAN;
}
