/* shard.c - calls of a shard as calls of its table and its dense store. */
#include "ps/shard/shard.h"

#include "base/thread/team.h"
#include "base/trace/trace.h"
#include "ps/optim/rule.h"
#include "ps/shard/dense.h"
#include "ps/table/table.h"

#include <inttypes.h>
#include <math.h>

tn_status tn_shard_pull(tn_shard *s, tn_team *team, const tn_keyset *keys, float *rows,
                        tn_error *err)
{
    tn_lane *lane = tn_team_lane(team);
    tn_span_begin(lane, TN_PHASE_PULL);
    tn_status status = tn_table_pull(s->table, team, keys, rows, err);
    tn_span_end(lane);
    return status;
}

void tn_shard_peek(tn_shard *s, tn_team *team, const tn_keyset *keys, float *rows, bool *missing)
{
    tn_lane *lane = tn_team_lane(team);
    tn_span_begin(lane, TN_PHASE_PULL);
    tn_table_peek(s->table, team, keys, s->missing_init, rows, missing);
    tn_span_end(lane);
}

double tn_shard_norm2(tn_shard *s, tn_team *team, const tn_gradients *grads, const tn_push *push)
{
    tn_lane *lane = tn_team_lane(team);
    tn_span_begin(lane, TN_PHASE_NORM);
    double sum = tn_dense_norm2(s->dense, team, grads->dense, push);
    sum += tn_table_norm2(s->table, team, grads->keys, grads->rows, push);
    tn_span_end(lane);
    return sum;
}

static tn_status check_norm(double norm2, const tn_push *push, tn_error *err)
{
    TN_ASSERT(!(norm2 < 0)); /* a sum of squares, or not a number */
    return isfinite(norm2)
               ? TN_OK
               : tn_fail(err, TN_E_DIVERGED, "the gradient of step %" PRIu64 " is not finite",
                         push->step + 1);
}

tn_status tn_shard_apply(tn_shard *s, tn_team *team, const tn_gradients *grads, const tn_push *push,
                         double norm2, tn_error *err)
{
    TN_TRY(check_norm(norm2, push, err));
    tn_lane *lane = tn_team_lane(team);
    double clip = tn_clip_factor(sqrt(norm2), s->rules->clip_global);
    tn_span_begin(lane, TN_PHASE_PUSH_DENSE);
    tn_dense_push(s->dense, team, grads->dense, push, clip);
    tn_span_next(lane, TN_PHASE_PUSH_ROWS);
    tn_table_push(s->table, team, grads->keys, grads->rows, push, clip);
    tn_span_end(lane);
    return TN_OK;
}

tn_status tn_shard_update(tn_shard *s, tn_team *team, const tn_gradients *grads,
                          const tn_push *push, double *norm2, tn_error *err)
{
    if (isfinite(s->rules->clip_global)) {
        *norm2 = tn_shard_norm2(s, team, grads, push);
        return tn_shard_apply(s, team, grads, push, *norm2, err);
    }
    tn_lane *lane = tn_team_lane(team);
    tn_span_begin(lane, TN_PHASE_NORM);
    *norm2 = tn_dense_norm2(s->dense, team, grads->dense, push);
    tn_span_end(lane);
    TN_TRY(check_norm(*norm2, push, err));
    tn_span_begin(lane, TN_PHASE_PUSH_ROWS);
    *norm2 += tn_table_push_whole(s->table, team, grads->keys, grads->rows, push, grads->finite);
    tn_span_end(lane);
    TN_TRY(check_norm(*norm2, push, err));
    tn_span_begin(lane, TN_PHASE_PUSH_DENSE);
    tn_dense_push(s->dense, team, grads->dense, push, 1);
    tn_span_end(lane);
    return TN_OK;
}

tn_status tn_shard_push(tn_shard *s, tn_team *team, const tn_gradients *grads, const tn_push *push,
                        double *norm, tn_error *err)
{
    double norm2 = 0;
    if (push->weight_sum != 0) {
        TN_TRY(tn_shard_update(s, team, grads, push, &norm2, err));
    }
    *norm = sqrt(norm2);
    return TN_OK;
}
