/* dense.h - this peer's range of the flat vector of dense weights, with optimizer state.
 *
 * norm2, push, copy and set may be called by several threads; a lock lets in one at a time. */
#pragma once

#include "base/core/error.h"
#include "ps/optim/optim.h"

#include <stddef.h>
#include <stdint.h>

typedef struct tn_push tn_push; /* ps/optim/rule.h */
typedef struct tn_rule tn_rule; /* likewise */
typedef struct tn_team tn_team; /* base/thread/team.h */

/* A run of the flat vector that the optimizer trains; the rest (running statistics, frozen biases,
 * gaps) is only stored. */
typedef struct tn_dense_run {
    size_t begin, end;
} tn_dense_run;

typedef struct tn_dense_opts {
    const tn_rule *rule; /* must outlive the store */
    float *weights;      /* the flat vector itself, lent for the store's life: in one process the
                            worker's copy is the shard's */
    size_t size;
    const tn_dense_run *runs; /* ascending; copied */
    uint32_t n_runs;
} tn_dense_opts;

typedef struct tn_dense_store tn_dense_store;

/* Fresh state for the weights as they are now. TN_E_CONFIG: a rule for rows only. */
tn_status tn_dense_new(tn_dense_store **out, const tn_dense_opts *opts, tn_error *err) TN_MUST_USE;
void tn_dense_free(tn_dense_store *d);

/* Squared norm of the gradient (long as the vector) after scale, L2 and value clip, in double. */
double tn_dense_norm2(tn_dense_store *d, tn_team *team, const float *grads, const tn_push *push);

/* One update with the gradient times `clip`. */
void tn_dense_push(tn_dense_store *d, tn_team *team, const float *grads, const tn_push *push,
                   double clip);

/* Between two updates: copies the whole vector to `to`; sets values that no optimizer makes. */
void tn_dense_copy(tn_dense_store *d, float *to);
void tn_dense_set(tn_dense_store *d, size_t at, size_t n, const float *values);

/* For snapshots: state arrays as long as the vector (zeros outside the runs), and the count of
 * updates. */
uint32_t tn_dense_states(const tn_dense_store *d, tn_state out[TN_STATES_MAX]);
float *tn_dense_state(tn_dense_store *d, uint32_t i);
uint64_t tn_dense_t(const tn_dense_store *d);
void tn_dense_set_t(tn_dense_store *d, uint64_t t);
void tn_dense_reset(tn_dense_store *d); /* fresh state for the present weights */
