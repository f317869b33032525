/* adam.h - what Adam and AdamW share. */
#ifndef TN_PS_ADAM_H
#define TN_PS_ADAM_H

#include "ps/optim/rulefields.h"

typedef struct tn_adam_opts {
    tn_rule_opts rule;
    double beta1, beta2, eps;
    uint32_t bias; /* row global none */
} tn_adam_opts;

extern const char *const tn_adam_biases[];

/* Their own rows of an option table; opts begins with tn_adam_opts. */
#define TN_ADAM_FIELDS                                                                             \
    TN_FIELD_F64(tn_adam_opts, beta1, "0.9", 0, 0.999999, "", "share of the old mean"),            \
        TN_FIELD_F64(tn_adam_opts, beta2, "0.999", 0, 0.9999999, "", "share of the old variance"), \
        TN_FIELD_F64(tn_adam_opts, eps, "1e-8", 1e-15, 1, "", "added to the root"),                \
        TN_FIELD_CHOICE(tn_adam_opts, bias, "row", tn_adam_biases,                                 \
                        "count that corrects the first steps of a row: its own, the step, none")

uint32_t tn_adam_states(const void *opts, tn_state out[TN_STATES_MAX]);
void tn_adam_init(const void *opts, size_t n, const float *w, float *const state[]);
void tn_adam_update(const void *opts, const tn_update *u, size_t n, float *w, float *const state[],
                    const float *g);

#endif
