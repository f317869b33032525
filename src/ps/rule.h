/* rule.h - how one segment of one group, or the dense vector, is trained: optimizer, options, init. */
#ifndef TN_PS_RULE_H
#define TN_PS_RULE_H

#include "base/init.h"
#include "base/record.h"
#include "ps/optim.h"

typedef struct tn_rule {
    const tn_optim *optim;
    const void *opts;      /* of optim->fields; begins with tn_rule_opts */
    double clip_row, clip_value; /* resolved; INFINITY: none */
    tn_init init;          /* rows: first values. Dense: unused */
} tn_rule;

/* The rules of a run. rule[group * TN_SEGMENTS_MAX + segment]; all groups of one record agree on
 * the optimizer's state layout (TN_ASSERTed), rates and init may differ. Outlives the table. */
typedef struct tn_rules {
    const tn_layout *layout;
    const tn_rule *rule;
    tn_rule dense;
    double clip_global; /* INFINITY: none */
} tn_rules;

/* One push, as every owner sees it. */
typedef struct tn_push {
    uint64_t step;      /* 0-based step of the run */
    double weight_sum;  /* W: grads are of the mean loss; `grad_scale: sum` multiplies by it */
    double lr_factor;   /* schedule * plateau; not for FTRL's alpha */
    uint32_t day;       /* last_seen of the rows */
} tn_push;

static inline const tn_rule_opts *tn_rule_common(const tn_rule *rule)
{
    return rule->opts;
}

#endif
