/* v21.h - the eight rows of test vector V21 (docs/numerics.md section 7). */
#pragma once

#include "metrics/metrics.h"

enum { V21_ROWS = 8 };

typedef struct v21 {
    float logit[V21_ROWS];
    float label[V21_ROWS];
    float weight[V21_ROWS];
    uint64_t group[V21_ROWS];      /* 1 1 1 2 2 2 3 3 */
    uint64_t group_last[V21_ROWS]; /* 1 1 1 2 2 2 3 4 */
    tn_scored rows;                /* points into the above; weight and group NULL */
} v21;

/* Logits are the floats whose p is not below the vector's, so that p on the edge of a bin is in it.
 */
void v21_init(v21 *v);

/* Fails the test unless |got - want| <= 1e-6 max(1, |want|): what the vectors ask of floats. */
void assert_close(double got, double want);

/* Metrics of the rows; the test frees them. */
tn_metrics *metrics_of(const tn_metrics_opts *opts, const tn_scored *rows);
