/* loss_errors.c - losses of numbers, by the error e = z - y.
 *
 *              l                                      dl / dz
 *     mse      e^2                                    2 e
 *     mae      |e|                                    sign e
 *     huber    e^2 / 2, beyond d: d (|e| - d / 2)     e within +-d
 */
#include "config/field.h"
#include "nn/loss/rowloss.h"
#include "nn/vec/vecmath.h"

#define METRICS "eval: {metrics: [rmse, mae, label_mean, prediction_mean]}"

TN_ROW_LOSS_OF mse_of(const void *opts, tn_real z, tn_real y)
{
    (void)opts;
    const tn_real e = z - y;
    return (tn_row_loss){e * e, 2 * e};
}

TN_ROW_LOSS(mse)
const tn_loss tn_loss_mse = {
    TN_ROW_LOSS_MEMBERS(mse, "squared error: labels are numbers, z predicts their mean"),
    .op.formula = "l = (z - y)^2",
    .op.flops_each = 3,
    .target = TN_TARGET_NUMBER,
    .metric = "mse",
    .watched = "valid.rmse",
    .defaults = METRICS,
};

TN_ROW_LOSS_OF mae_of(const void *opts, tn_real z, tn_real y)
{
    (void)opts;
    const tn_real e = z - y;
    return (tn_row_loss){tn_abs_of(e), (tn_real)((e > 0) - (e < 0))};
}

TN_ROW_LOSS(mae)
const tn_loss tn_loss_mae = {
    TN_ROW_LOSS_MEMBERS(mae, "absolute error: labels are numbers, z predicts their median"),
    .op.formula = "l = |z - y|",
    .op.flops_each = 2,
    .target = TN_TARGET_NUMBER,
    .metric = "mae",
    .watched = "valid.mae",
    .defaults = METRICS,
};

typedef struct huber_opts {
    double delta;
} huber_opts;

static const tn_field huber_fields[] = {
    TN_FIELD_F64(huber_opts, delta, "1", 1e-9, 1e9, "",
                 "up to this size errors count squared, beyond it linearly"),
    TN_FIELD_END,
};

TN_ROW_LOSS_OF huber_of(const void *opts, tn_real z, tn_real y)
{
    const tn_real d = (tn_real)((const huber_opts *)opts)->delta;
    const tn_real e = z - y;
    const tn_real size = tn_abs_of(e);
    return size <= d ? (tn_row_loss){e * e / 2, e}
                     : (tn_row_loss){d * (size - d / 2), e > 0 ? d : -d};
}

TN_ROW_LOSS(huber)
const tn_loss tn_loss_huber = {
    TN_ROW_LOSS_MEMBERS(huber, "mse for small errors, mae for large ones"),
    TN_LOSS_OPTIONS(huber_fields, huber_opts, {.delta = 0.5}),
    .op.formula = "l = (z - y)^2 / 2, linear beyond d",
    .op.flops_each = 5,
    .target = TN_TARGET_NUMBER,
    .watched = "valid.mae",
    .defaults = METRICS,
};
