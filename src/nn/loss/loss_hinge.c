/* loss_hinge.c - hinge, max(0, m) with m = 1 - s z and s = 2 y - 1, and its square.
 *
 *                      l              dl / dz
 *     hinge            max(0, m)      -s where m > 0
 *     squared_hinge    max(0, m)^2    -2 s max(0, m)
 */
#include "nn/loss/rowloss.h"

#define METRICS "eval: {metrics: [auc, accuracy, ctr]}"

TN_ROW_LOSS_OF hinge_of(const void *opts, tn_real z, tn_real y)
{
    (void)opts;
    const tn_real s = 2 * y - 1;
    const tn_real m = 1 - s * z;
    return m > 0 ? (tn_row_loss){m, -s} : (tn_row_loss){0, 0};
}

TN_ROW_LOSS(hinge)
const tn_loss tn_loss_hinge = {
    TN_ROW_LOSS_MEMBERS(hinge, "labels 0 and 1 at least 1 apart from 0; the sign of z decides"),
    .op.formula = "l = max(0, 1 - s z)",
    .op.flops_each = 4,
    .target = TN_TARGET_SIDE,
    .watched = "valid.auc",
    .defaults = METRICS,
};

TN_ROW_LOSS_OF squared_hinge_of(const void *opts, tn_real z, tn_real y)
{
    const tn_row_loss h = hinge_of(opts, z, y);
    return (tn_row_loss){h.l * h.l, 2 * h.l * h.dz};
}

TN_ROW_LOSS(squared_hinge)
const tn_loss tn_loss_squared_hinge = {
    TN_ROW_LOSS_MEMBERS(squared_hinge, "the square of hinge"),
    .op.formula = "l = max(0, 1 - s z)^2",
    .op.flops_each = 5,
    .target = TN_TARGET_SIDE,
    .watched = "valid.auc",
    .defaults = METRICS,
};
