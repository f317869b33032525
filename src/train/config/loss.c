/* loss.c - the list of losses and their options. */
#include "train/config/loss.h"

#include "config/field.h"
#include "config/tree.h"
#include "metrics/metrics.h"
#include "nn/op/ops.h"

#include <math.h>
#include <string.h>

static const char *const reduction_words[] = {"mean", "sum", "rows", NULL};

#define REDUCTION                                                                                  \
    TN_FIELD_CHOICE(tn_loss_opts, reduction, "mean", reduction_words,                              \
                    "gradients divided by the sum of weights, by 1 or by the rows")

static const tn_field bce_fields[] = {
    TN_FIELD_F64(tn_loss_opts, pos_weight, "1", 0, 1e6, "", "factor of the loss of clicks"),
    TN_FIELD_F64(tn_loss_opts, label_smoothing, "0", 0, 1, "", "label y becomes y (1 - e) + e/2"),
    REDUCTION,
    TN_FIELD_END,
};

static const tn_field focal_fields[] = {
    TN_FIELD_F64(tn_loss_opts, gamma, "2", 0, 100, "",
                 "the larger, the less a row counts that is scored right; 0: weighted bce"),
    TN_FIELD_F64(tn_loss_opts, alpha, "0.25", 0, 1, "", "factor of clicks; 1 - alpha of others"),
    REDUCTION,
    TN_FIELD_END,
};

static const tn_field huber_fields[] = {
    TN_FIELD_F64(tn_loss_opts, delta, "1", 1e-9, 1e9, "",
                 "up to this size errors count squared, beyond it linearly"),
    REDUCTION,
    TN_FIELD_END,
};

static const tn_field other_fields[] = {REDUCTION, TN_FIELD_END};

#define CHOICE(id, table, text)                                                                    \
    .choice = {.name = #id,                                                                        \
               .help = (text),                                                                     \
               .fields = (table),                                                                  \
               .size = sizeof(tn_loss_opts),                                                       \
               .impl = &loss_##id},                                                                \
    .op = &tn_op_##id

#define OF_SIDES "eval: {metrics: [auc, accuracy, ctr]}"
#define OF_NUMBERS "eval: {metrics: [rmse, mae, label_mean, prediction_mean]}"
#define OF_ORDERS "eval: {metrics: [pairwise_accuracy, gauc, gauc_skipped]}"

static const tn_loss loss_bce = {
    CHOICE(bce, bce_fields, "binary cross entropy of the logit"),
    .target = TN_TARGET_CLICK,
    .metric = "logloss",
    .watched = "valid.logloss",
};
static const tn_loss loss_focal = {
    CHOICE(focal, focal_fields, "bce that counts rows less the better they are scored (Lin 2017)"),
    .target = TN_TARGET_CLICK,
    .watched = "valid.logloss",
};
static const tn_loss loss_hinge = {
    CHOICE(hinge, other_fields, "labels 0 and 1 at least 1 apart from 0; the sign of z decides"),
    .target = TN_TARGET_SIDE,
    .watched = "valid.auc",
    .defaults = OF_SIDES,
};
static const tn_loss loss_squared_hinge = {
    CHOICE(squared_hinge, other_fields, "the square of hinge"),
    .target = TN_TARGET_SIDE,
    .watched = "valid.auc",
    .defaults = OF_SIDES,
};
static const tn_loss loss_mse = {
    CHOICE(mse, other_fields, "squared error: labels are numbers, z predicts their mean"),
    .target = TN_TARGET_NUMBER,
    .metric = "mse",
    .watched = "valid.rmse",
    .defaults = OF_NUMBERS,
};
static const tn_loss loss_mae = {
    CHOICE(mae, other_fields, "absolute error: labels are numbers, z predicts their median"),
    .target = TN_TARGET_NUMBER,
    .metric = "mae",
    .watched = "valid.mae",
    .defaults = OF_NUMBERS,
};
static const tn_loss loss_huber = {
    CHOICE(huber, huber_fields, "mse for small errors, mae for large ones"),
    .target = TN_TARGET_NUMBER,
    .watched = "valid.mae",
    .defaults = OF_NUMBERS,
};
static const tn_loss loss_pairwise = {
    CHOICE(pairwise, other_fields,
           "of two rows of a batch with one data.group the larger label shall score higher"),
    .target = TN_TARGET_ORDER,
    .watched = "valid.pairwise_accuracy",
    .defaults = OF_ORDERS,
};

const tn_choice *const tn_loss_choices[] = {
    &loss_bce.choice,           &loss_focal.choice,    &loss_hinge.choice,
    &loss_squared_hinge.choice, &loss_mse.choice,      &loss_mae.choice,
    &loss_huber.choice,         &loss_pairwise.choice, NULL,
};

const tn_loss *tn_loss_of(const tn_variant *loss)
{
    const tn_loss *found = loss->choice != NULL ? loss->choice->impl : &loss_bce;
    TN_ASSERT(found->target <= TN_TARGET_ORDER && found->watched != NULL);
    return found;
}

/* By name. NULL: none. */
static const tn_loss *loss_find(const char *name)
{
    for (const tn_choice *const *c = tn_loss_choices; *c != NULL; c++) {
        if (strcmp((*c)->name, name) == 0) {
            return (*c)->impl;
        }
    }
    return NULL;
}

tn_target tn_loss_target(const tn_tree *root)
{
    const tn_tree *t = tn_tree_get(root, "loss");
    t = t != NULL && t->kind == TN_TREE_MAP ? tn_tree_get(t, "type") : t;
    const tn_loss *loss =
        t != NULL && t->kind == TN_TREE_SCALAR && t->text != NULL ? loss_find(t->text) : NULL;
    return loss != NULL ? loss->target : TN_TARGET_CLICK;
}

const char *tn_loss_defaults(const char *name)
{
    const tn_loss *loss = loss_find(name);
    return loss != NULL ? loss->defaults : NULL;
}

double tn_loss_value(const tn_variant *loss, const tn_metrics *m)
{
    const char *metric = tn_loss_of(loss)->metric;
    return metric != NULL ? tn_metrics_get(m, metric) : (double)NAN;
}
