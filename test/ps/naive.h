/* naive.h - the table of rows as a plain list, in double: slow, and right. */
#pragma once

#include "base/keys/record.h"

#include <stdbool.h>
#include <stdint.h>

enum { NAIVE_DIM = 3, NAIVE_ROWS_MAX = 4096 };

/* One row: momentum with L2, or plain descent. */
typedef struct naive_row {
    uint64_t key;
    double w[NAIVE_DIM];
    double m[NAIVE_DIM];
    double show, click;
    uint32_t last_seen;
    uint32_t stamp; /* of the push that touched it last */
} naive_row;

typedef struct naive {
    double lr, mu, l2;
    bool dense; /* l2_mode: dense */
    uint32_t stamp;
    uint32_t n;
    naive_row row[NAIVE_ROWS_MAX];
} naive;

naive_row *naive_find(naive *t, uint64_t key);
naive_row *naive_add(naive *t, uint64_t key);

/* A gradient of one key; false: there is no row. */
bool naive_push(naive *t, uint64_t key, const float *grad, double clip);

/* Squared norm of a key's gradient with L2; the rows that are not in the batch: naive_rest_norm2.
 */
double naive_norm2(naive *t, uint64_t key, const float *grad);
double naive_rest_norm2(const naive *t);

/* After the keys of a push: the others decay. */
void naive_sweep(naive *t, double clip);
