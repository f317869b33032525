/* metrics.h - the quality of a model as integers that merge: threads, slices, peers and restarts
 * give one result in any order.
 *
 * Per row, from the float logit z in double: p = sigmoid(z), l = log loss. Sums are 128-bit
 * integers of rint(x * 2^32), histogram cells u64 of rint(w * 2^16) over 2^20 bins of the logit.
 * Targets other than clicks (base/keys/target.h) take z as the score itself: numbers have p = z,
 * the others no p, and only the order of scores, or their sign, is judged. Metrics that say nothing
 * of the target are not defined.
 *
 *     tn_metrics_add(m, &(tn_scored){.n = rows, .logit = z, .label = y, .weight = w});
 *     tn_metrics_get(m, "auc")         NAN when not defined: null in JSON, n/a in text
 *
 * One thread per object at a time, for get as well: it may sort rows that are kept.
 * A metric is a function tn_metric_<name> and a row in metrics.def.
 */
#pragma once

#include "base/core/error.h"
#include "base/keys/target.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_metrics tn_metrics;

enum { TN_ECE_BINS = 20, TN_ECE_BINS_MAX = 64 };

typedef struct tn_metrics_opts {
    tn_target target;
    bool exact_auc;    /* keep (z, y, w) of every row and sort: auc, intervals, bootstrap */
    bool grouped;      /* keep the rows' groups */
    bool coarse;       /* 2^12 bins: for slices */
    double sampling;   /* share of negatives that were kept in training: p and z are corrected
                         * (numerics section 8); 0 and 1: none */
    double clip;       /* the loss sees p within clip .. 1 - clip; 0: unclipped */
    uint32_t ece_bins; /* equal-width bins of p, at most TN_ECE_BINS_MAX; 0: TN_ECE_BINS */
    uint32_t top_k;    /* rows of a group that ndcg, mrr, recall and hit_rate see; 0: all */
} tn_metrics_opts;

/* Rows with their scores. Everything is lent for the call. */
typedef struct tn_scored {
    uint32_t n;
    const float *logit;
    const float *label;      /* labels of the target; above .5 is a click */
    const float *weight;     /* NULL: all 1; rows of weight 0 add nothing */
    const uint64_t *group;   /* NULL: TN_NO_GROUP for all, which is a group like others */
    const uint32_t *unknown; /* slots that hold keys, but none that the model knows; NULL: 0 of all;
                              * for a calibrator only */
} tn_scored;

tn_status tn_metrics_new(tn_metrics **out, const tn_metrics_opts *opts, tn_error *err) TN_MUST_USE;
void tn_metrics_free(tn_metrics *m); /* NULL is fine */
void tn_metrics_clear(tn_metrics *m);

/* Adds rows. TN_E_DIVERGED: a score is not finite, or of numbers w (z - y)^2 is 2^63 or more;
 * TN_E_LIMIT: so is w (2 y)^2. */
tn_status tn_metrics_add(tn_metrics *m, const tn_scored *rows, tn_error *err) TN_MUST_USE;
/* Merges metrics of the same options, without exact_auc and grouped. */
tn_status tn_metrics_merge(tn_metrics *m, const tn_metrics *other, tn_error *err) TN_MUST_USE;

/* Returns the value of a metric of metrics.def; NAN when it is not defined. The name must exist
 * (see tn_metric_find). */
double tn_metrics_get(const tn_metrics *m, const char *name);
uint64_t tn_metrics_rows(const tn_metrics *m);
/* Returns "no row with a click" or "no row without a click" where rows have one class alone. NULL:
 * they have both, are none, or have labels that are no classes. */
const char *tn_metrics_one_class(const tn_metrics *m);

/* The value of a metric that train.stop takes for the best. */
typedef enum tn_metric_best {
    TN_BEST_SMALLEST,
    TN_BEST_LARGEST,
    TN_BEST_NEAREST_ONE,
    TN_BEST_NONE /* it says how the rows are, not how good the model is */
} tn_metric_best;

typedef struct tn_metric {
    const char *name; /* "auc", "copc", or another name of metrics.def */
    const char *help;
    double (*value)(const tn_metrics *m);
    uint32_t targets; /* a bit 1 << target for each that it judges */
    bool needs_groups;
    tn_metric_best best;
} tn_metric;

extern const tn_metric *const tn_all_metrics[]; /* NULL-terminated */
const tn_metric *tn_metric_find(const char *name);
/* Returns whether the metric of that name, which must exist, judges scores of the target. */
bool tn_metric_fits(const char *name, tn_target target);
tn_target tn_metrics_target(const tn_metrics *m);

/* Return the integers that checkpoints keep in metrics.safetensors. The histogram is [2][bins]:
 * negatives, positives; the sums are [6] pairs, low word first, in the order of numerics section 7.
 * Other counts (rows, bins of ece, mape) begin anew after restore: metrics of them are NAN. */
const uint64_t *tn_metrics_histogram(const tn_metrics *m);
void tn_metrics_sums(const tn_metrics *m, uint64_t out[6][2]);
void tn_metrics_restore(tn_metrics *m, const uint64_t *histogram, const uint64_t *sums);
