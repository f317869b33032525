/* loss_focal.c - focal loss (Lin 2017): rows count less the better they are scored.
 *
 *     l         y f(z, a) + (1 - y) f(-z, 1 - a),  f(m, a) = a q^g sp(-m), q = sigmoid(-m)
 *     dl / dz   y f'(z, a) - (1 - y) f'(-z, 1 - a),  f'(m, a) = -a q^g (g (1 - q) sp(-m) + q)
 *
 * The paper has it for y of 0 and 1; between them it is the mean of both. q^g is e^(-g sp(m)): no
 * logarithm of a probability anywhere.
 */
#include "config/field.h"
#include "nn/loss/rowloss.h"
#include "nn/vec/vecmath.h"

typedef struct focal_opts {
    double gamma, alpha;
} focal_opts;

static const tn_field fields[] = {
    TN_FIELD_F64(focal_opts, gamma, "2", 0, 100, "",
                 "the larger, the less a row counts that is scored right; 0: weighted bce"),
    TN_FIELD_F64(focal_opts, alpha, "0.25", 0, 1, "", "factor of clicks; 1 - alpha of others"),
    TN_FIELD_END,
};

/* Returns f(m, share) and its derivative. */
static tn_row_loss side_of(tn_real gamma, tn_real share, tn_real m)
{
    const tn_real tail = tn_log1p_of(tn_exp_of(-tn_abs_of(m)));
    const tn_real up = (m > 0 ? m : 0) + tail;    /* sp(m) */
    const tn_real down = (m < 0 ? -m : 0) + tail; /* sp(-m) */
    const tn_real factor = share * tn_exp_of(-gamma * up);
    const tn_real slope = gamma * tn_sigmoid_of(m) * down + tn_sigmoid_of(-m);
    return (tn_row_loss){factor * down, -factor * slope};
}

TN_ROW_LOSS_OF focal_of(const void *opts, tn_real z, tn_real y)
{
    const focal_opts *o = opts;
    const tn_real gamma = (tn_real)o->gamma;
    const tn_row_loss none = {0, 0};
    const tn_row_loss click = y > 0 ? side_of(gamma, (tn_real)o->alpha, z) : none;
    const tn_row_loss other = y < 1 ? side_of(gamma, (tn_real)(1 - o->alpha), -z) : none;
    return (tn_row_loss){y * click.l + (1 - y) * other.l, y * click.dz - (1 - y) * other.dz};
}

TN_ROW_LOSS(focal)
const tn_loss tn_loss_focal = {
    TN_ROW_LOSS_MEMBERS(focal, "bce that counts rows less the better they are scored (Lin 2017)"),
    TN_LOSS_OPTIONS(fields, focal_opts, {.gamma = 2, .alpha = 0.25}),
    .op.formula = "l = a_t (1 - p_t)^g sp(-s z)",
    .op.flops_each = 90,
    .target = TN_TARGET_CLICK,
    .watched = "valid.logloss",
};
