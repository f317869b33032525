/* ranking.h - the distinct scores in ascending order, whatever their source, and curves over them.
 *
 *     tn_walk w = tn_walk_begin(m);
 *     tn_cell c;
 *     while (tn_walk_next(&w, &c))
 *         ...                           c.neg, c.pos: weight of either class at this score
 *                                       w.total_neg, w.total_pos: of all
 *
 * Scores are histogram bins (2^-15 of a logit wide, or 2^-7 when coarse) or, with exact_auc, the
 * logits themselves. Weights are integers, 2^16 or 2^24 for weight 1; both totals stay below 2^62,
 * so that 2 * pos * neg fits 128 bits. Nothing is allocated.
 */
#pragma once

#include "metrics/kept_rows.h"
#include "metrics/metrics.h"

typedef struct tn_cell {
    double z; /* middle of the bin, or the score */
    uint64_t neg, pos;
} tn_cell;

typedef struct tn_walk {
    const uint64_t *cell; /* the histogram, or NULL */
    uint32_t n_bins;
    const tn_kept_row *row;
    size_t n_rows;
    size_t at;
    double shift;
    double unit; /* cell weight of weight 1 */
    uint64_t total_neg, total_pos;
} tn_walk;

/* Begins a walk over everything seen. */
tn_walk tn_walk_begin(const tn_metrics *m);
bool tn_walk_next(tn_walk *w, tn_cell *out);

/* A point of the ROC curve and of the precision-recall curve. */
typedef struct tn_curve_point {
    double threshold; /* p: rows at or above it are called clicks */
    double tpr, fpr;  /* recall is tpr */
    double precision; /* NAN where nothing is called a click */
} tn_curve_point;

/* Writes points at thresholds downwards from above all scores to the lowest, at most `n` >= 2,
 * about evenly spread over tpr + fpr. Returns how many; 0 with one class. */
uint32_t tn_curve_of(const tn_metrics *m, uint32_t n, tn_curve_point *out);
