/* calibrator.h - maps from a model's scores to calibrated probabilities, fitted on rows it was not
 * trained on.
 *
 *     tn_platt p;
 *     TN_TRY(tn_platt_fit(&(tn_scored){..}, false, &p, err));   p = sigmoid(a z + b)
 *
 *     tn_isotonic *iso = NULL;
 *     TN_TRY(tn_isotonic_fit(points, n, &iso, err));            rising steps,
 *     tn_isotonic_at(iso, z);                                   served as lines between them
 */
#ifndef TN_METRICS_CALIBRATOR_H
#define TN_METRICS_CALIBRATOR_H

#include "metrics/metrics.h"

typedef struct tn_platt {
    double a, b;
} tn_platt;

/* Weighted maximum likelihood by Newton's method from (1, 0), ridge 1e-9. `smoothed`: targets
 * (P+1)/(P+2) and 1/(N+2) instead of 1 and 0. TN_E_DATA when there is no weight, or one class only.
 */
tn_status tn_platt_fit(const tn_scored *rows, bool smoothed, tn_platt *out,
                       tn_error *err) TN_MUST_USE;
double tn_platt_at(const tn_platt *p, double logit);

/* One score: its weight, and the weight of its clicks (soft ones in part). */
typedef struct tn_iso_point {
    double z, weight, clicks;
} tn_iso_point;

typedef struct tn_isotonic tn_isotonic;

/* Points ascend by z; equal ones were joined. Pools adjacent violators. */
tn_status tn_isotonic_fit(const tn_iso_point *points, uint32_t n, tn_isotonic **out,
                          tn_error *err) TN_MUST_USE;
/* The bins of a histogram as points. */
tn_status tn_isotonic_fit_metrics(const tn_metrics *m, tn_isotonic **out,
                                  tn_error *err) TN_MUST_USE;
void tn_isotonic_free(tn_isotonic *iso); /* NULL is fine */

/* The level of the block that holds z, or of the nearest one. */
double tn_isotonic_level(const tn_isotonic *iso, double z);
/* Linear between the centres of blocks, constant outside: what is served. */
double tn_isotonic_at(const tn_isotonic *iso, double z);

uint32_t tn_isotonic_blocks(const tn_isotonic *iso);

#endif
