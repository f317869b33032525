/* shard.c - see shard.h. */
#include "ps/shard.h"

#include <inttypes.h>
#include <math.h>

tn_status tn_shard_pull(tn_shard *s, tn_team *team, const tn_keyset *keys, float *rows,
                        tn_error *err)
{
    return tn_table_pull(s->table, team, keys, rows, err);
}

void tn_shard_peek(tn_shard *s, tn_team *team, const tn_keyset *keys, float *rows, bool *missing)
{
    tn_table_peek(s->table, team, keys, s->missing_init, rows, missing);
}

tn_status tn_shard_push(tn_shard *s, tn_team *team, const tn_gradients *grads, const tn_push *push,
                        double *norm, tn_error *err)
{
    if (push->weight_sum == 0) {
        *norm = 0;
        return TN_OK;
    }
    double sum = tn_dense_norm2(s->dense, team, grads->dense, push);
    sum += tn_table_norm2(s->table, team, grads->keys, grads->rows, push);
    double all = sqrt(sum);
    if (!isfinite(all)) {
        return tn_fail(err, TN_E_DIVERGED, "the gradient of step %" PRIu64 " is not finite",
                       push->step);
    }
    double clip = tn_clip_factor(all, s->rules->clip_global);
    tn_dense_push(s->dense, team, grads->dense, push, clip);
    tn_table_push(s->table, team, grads->keys, grads->rows, push, clip);
    *norm = all;
    return TN_OK;
}
