/* loss_quantile.c - the loss whose best score is a quantile of the labels: the loss of the recipe's
 * test. e = z - y.
 *
 *     l         (1 - q) e above y, -q e below it
 *     dl / dz   1 - q above y, -q below it
 */
#include "config/field.h"
#include "nn/loss/rowloss.h"

typedef struct quantile_opts {
    double level;
} quantile_opts;

static const tn_field fields[] = {
    TN_FIELD_F64(quantile_opts, level, "0.5", 0, 1, "", "share of labels that are below the score"),
    TN_FIELD_END,
};

TN_ROW_LOSS_OF quantile_of(const void *opts, tn_real z, tn_real y)
{
    const tn_real q = (tn_real)((const quantile_opts *)opts)->level;
    const tn_real slope = z > y ? 1 - q : -q;
    return (tn_row_loss){slope * (z - y), slope};
}

TN_ROW_LOSS(quantile)
const tn_loss tn_loss_quantile = {
    TN_ROW_LOSS_MEMBERS(quantile, "labels are numbers, z predicts a quantile of them"),
    TN_LOSS_OPTIONS(fields, quantile_opts, {.level = 0.8}),
    .op.formula = "l = max((1 - q) (z - y), q (y - z))",
    .op.flops_each = 3,
    .target = TN_TARGET_NUMBER,
    .watched = "valid.mae",
    .defaults = "eval: {metrics: [mae, label_mean, prediction_mean]}",
};
