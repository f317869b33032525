/* rulefields.h - the rows of an optimizer's option table that are the same for all of them.
 *
 *     static const tn_field sgd_fields[] = {
 *         TN_RULE_LR("0.01"), TN_RULE_L1, TN_RULE_L2, TN_RULE_L2_MODE, TN_RULE_CHAIN,
 *         TN_FIELD_END,
 *     };
 *
 * The first row is what the short form `optimizer: 0.1` would set.
 */
#ifndef TN_PS_RULEFIELDS_H
#define TN_PS_RULEFIELDS_H

#include "ps/optim/optim.h"
#include "ps/optim/schedule.h"

extern const char *const tn_l2_modes[];    /* in the order of TN_L2_* */
extern const char *const tn_grad_scales[]; /* in the order of TN_SCALE_* */

#define TN_RULE_LR(fallback) TN_FIELD_F64(tn_rule_opts, lr, fallback, 0, 1e6, "", "learning rate")
#define TN_RULE_L1                                                                                 \
    TN_FIELD_F64(tn_rule_opts, l1, "0", 0, 1e6, "", "L1 penalty: weights shrink towards 0")
#define TN_RULE_L2                                                                                 \
    TN_FIELD_F64(tn_rule_opts, l2, "0", 0, 1e6, "", "L2 penalty: l2 * w is added to the gradient")
#define TN_RULE_L2_MODE                                                                            \
    TN_FIELD_CHOICE(tn_rule_opts, l2_mode, "touched", tn_l2_modes,                                 \
                    "rows that l2 reaches: those of the batch, or all at every step")

/* What the chain in front of every rule reads. */
#define TN_RULE_CHAIN                                                                              \
    TN_FIELD_CHOICE(tn_rule_opts, grad_scale, "none", tn_grad_scales,                              \
                    "gradient of a row: as it is, per occurrence, or of the summed loss"),         \
        TN_FIELD_F64(tn_rule_opts, clip_row, "~", 0, 1e30, "",                                     \
                     "largest norm of a row's gradient; default: train.clip.row"),                 \
        TN_FIELD_F64(tn_rule_opts, clip_value, "~", 0, 1e30, "",                                   \
                     "largest size of a gradient's entry; default: train.clip.value"),             \
        TN_FIELD_F64S(tn_rule_opts, bounds, "~", -1e30, 1e30,                                      \
                      "lowest and highest value of a weight"),                                     \
        TN_FIELD_F64(tn_rule_opts, dc, "0", 0, 1e6, "",                                            \
                     "delay compensation of late gradients where cluster.staleness is not 0; "     \
                     "0.04 is usual"),                                                             \
        TN_FIELD_VARIANT(tn_rule_opts, schedule, "~", tn_schedule_choices,                         \
                         "learning rate over the steps; the dense optimizer's drives rows too")

#endif
