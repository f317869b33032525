/* dense.h - this peer's range of the flat vector of dense weights, with optimizer state. */
#ifndef TN_PS_DENSE_H
#define TN_PS_DENSE_H

#include "base/team.h"
#include "ps/rule.h"

/* A run of the flat vector that the optimizer trains; the rest (running statistics, frozen biases,
 * gaps) is only stored. */
typedef struct tn_dense_run {
    size_t begin, end;
} tn_dense_run;

typedef struct tn_dense_store tn_dense_store;

/* `weights` (size floats) is the flat vector itself, lent for the store's life: in one process the
 * worker's copy is the shard's. Runs ascend; copied. */
tn_status tn_dense_new(tn_dense_store **out, const tn_rule *rule, float *weights, size_t size,
                       const tn_dense_run *runs, uint32_t n_runs, tn_error *err) TN_MUST_USE;
void tn_dense_free(tn_dense_store *d);

double tn_dense_norm2(tn_dense_store *d, tn_team *team, const float *grads, const tn_push *push);
void tn_dense_push(tn_dense_store *d, tn_team *team, const float *grads, const tn_push *push, double clip);

/* For snapshots: state arrays as long as the vector (zeros outside the runs), and the count of updates. */
uint32_t tn_dense_states(const tn_dense_store *d, tn_state out[TN_STATES_MAX]);
float *tn_dense_state(tn_dense_store *d, uint32_t i);
uint64_t tn_dense_t(const tn_dense_store *d);
void tn_dense_set_t(tn_dense_store *d, uint64_t t);
void tn_dense_reset(tn_dense_store *d); /* fresh state for the present weights */

#endif
