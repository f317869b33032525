/* rule.h - how one segment of one group, or the dense vector, is trained: optimizer, options, init.
 */
#pragma once

#include "base/keys/init.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_layout tn_layout;           /* base/keys/record.h */
typedef struct tn_optim tn_optim;             /* ps/optim/optim.h */
typedef struct tn_row_run tn_row_run;         /* likewise */
typedef struct tn_row_options tn_row_options; /* ps/table/row_policy.h */
typedef struct tn_rule_opts tn_rule_opts;     /* likewise */
typedef struct tn_update tn_update;           /* likewise */

typedef struct tn_rule {
    const tn_optim *optim;
    const void *opts;            /* read by optim->choice.fields; begins with tn_rule_opts */
    double clip_row, clip_value; /* resolved; INFINITY: none */
    tn_init init;                /* rows: first values. Dense: unused */
} tn_rule;

/* A key with rules of its own: those of a group from tn_layout.n_groups on, in which it is not. */
typedef struct tn_key_rule {
    uint64_t key;
    uint32_t group;
} tn_key_rule;

/* The rules of a run. rule[group * TN_SEGMENTS_MAX + segment]; all groups of one record agree on
 * the optimizer's state layout (TN_ASSERTed), rates and init may differ. Outlives the table. */
typedef struct tn_rules {
    const tn_layout *layout;
    const tn_rule *rule;
    const tn_key_rule *key; /* n_keys, by rising key */
    uint32_t n_keys;
    const tn_row_options *rows; /* options of row policies; NULL: rows come at once, and stay */
    tn_rule dense;
    double clip_global; /* INFINITY: none */
} tn_rules;

/* The group whose rules train a key of this group. */
static inline uint32_t tn_rules_group(const tn_rules *rules, uint64_t key, uint32_t group)
{
    uint32_t from = 0;
    uint32_t to = rules->n_keys;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        if (rules->key[middle].key == key) {
            return rules->key[middle].group;
        }
        from = rules->key[middle].key < key ? middle + 1 : from;
        to = rules->key[middle].key < key ? to : middle;
    }
    return group;
}

/* One push, as every owner sees it. */
typedef struct tn_push {
    uint64_t step;     /* 0-based step of the run */
    double weight_sum; /* W: grads are of the mean loss; `grad_scale: sum` multiplies by it */
    double lr_factor;  /* schedule * plateau; not for FTRL's alpha */
    uint32_t day;      /* last_seen of the rows */
} tn_push;

static inline const tn_rule_opts *tn_rule_common(const tn_rule *rule)
{
    return rule->opts;
}

/* Weights that are trained together, with the gradient of the batch. */
typedef struct tn_trained {
    size_t n;
    const float *w;    /* NULL: zeros, for a key without a row */
    const float *grad; /* NULL: zeros, for a row outside the batch */
    uint32_t show;     /* occurrences in the batch */
    bool is_row;       /* the row clip is for rows only */
} tn_trained;

/* Whether the rule changes rows outside the batch, by L2 or weight decay with l2_mode: dense. */
bool tn_rule_reaches_all(const tn_rule *rule);

/* True: tn_rule_grad would only copy. */
bool tn_rule_plain(const tn_rule *rule);

/* g[n] := the gradient after scale, L2, value and row clip, times `clip`. Returns its squared norm
 * before the last: not finite if the gradient is not. g may not overlap the gradient. */
double tn_rule_grad(const tn_rule *rule, const tn_push *push, const tn_trained *x, double clip,
                    float *g);

/* The gradients of rows that the same rule trains. */
typedef struct tn_row_grads {
    uint32_t n, dim;                     /* at most TN_ROWS_MAX rows */
    const float *const *w, *const *grad; /* one for each row, as in tn_trained */
    const uint32_t *show;                /* NULL: of rows outside the batch */
    float *g;                            /* n * dim: row after row */
    double *norm2;                       /* n: what tn_rule_grad returns */
} tn_row_grads;

/* The same of every row, with the same bits. True: norm2 is also what g has by now. */
bool tn_rule_row_grads(const tn_rule *rule, const tn_push *push, const tn_row_grads *rows,
                       double clip);

/* Applies the rule, L1 prox and bounds, with the rate and count of u. */
void tn_rule_update(const tn_rule *rule, const tn_update *u, size_t n, float *w,
                    float *const state[], const float *g);

/* The same of every row, with the same bits. */
void tn_rule_update_rows(const tn_rule *rule, const tn_update *u, const tn_row_run *rows);

/* Applies a step to a row outside its batch, for an optimizer with `decay`: that, L1 and bounds. */
void tn_rule_decay(const tn_rule *rule, const tn_update *u, size_t n, float *w);

/* The global clip's factor for a norm: min(1, most / norm). */
double tn_clip_factor(double norm, double most);
