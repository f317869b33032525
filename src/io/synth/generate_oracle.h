/* generate_oracle.h - what the planted probability itself reaches: the mark that no model beats.
 *
 * Two readings of each figure. The empirical one takes the labels as thrown, the
 * same rows a model is judged on; the expected one takes every row as p clicks
 * and 1 - p none, so it is free of the throw's noise. Definitions are those of
 * the metrics: exact AUC with ties half, logloss in nats, unclipped.
 */
#ifndef TN_IO_GENERATE_ORACLE_H
#define TN_IO_GENERATE_ORACLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tn_oracle_row {
    double logit;
    bool click;
} tn_oracle_row;

typedef struct tn_oracle {
    uint64_t rows, clicks;
    double auc, auc_expected;         /* NAN when there is one class only */
    double logloss, logloss_expected; /* NAN without rows */
} tn_oracle;

/* Sorts `row`. */
tn_oracle tn_oracle_judge(tn_oracle_row *row, size_t n);

#endif
