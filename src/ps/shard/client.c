/* client.c - the client of a process that holds the whole model. */
#include "ps/shard/client.h"

#include "base/core/alloc.h"
#include "ps/shard/dense.h"
#include "ps/shard/shard.h"

typedef struct alone {
    tn_shard *shard;
    const tn_dense_run *moving;
    uint32_t n_moving;
    tn_client_batch batch; /* pulled, not pushed */
} alone;

static tn_status pull(void *self, const tn_client_batch *batch, tn_error *err)
{
    alone *a = self;
    (void)err;
    a->batch = *batch;
    return TN_OK;
}

static tn_status rows(void *self, tn_team *team, tn_joint_batch *out, tn_error *err)
{
    const alone *a = self;
    *out = (tn_joint_batch){.rows = a->batch.examples, .weight_sum = a->batch.weight_sum};
    return tn_shard_pull(a->shard, team, a->batch.keys, a->batch.rows, err);
}

static tn_status push(void *self, tn_team *team, const tn_client_gradients *grads,
                      const tn_push *how, tn_client_update *out, tn_error *err)
{
    const alone *a = self;
    const tn_gradients all = {a->batch.keys, grads->rows, grads->dense, grads->finite};
    *out = (tn_client_update){.loss = grads->loss};
    TN_TRY(tn_shard_push(a->shard, team, &all, how, &out->norm, err));
    for (uint32_t i = 0; i < a->n_moving; i++) {
        const tn_dense_run *run = &a->moving[i];
        tn_dense_set(a->shard->dense, run->begin, run->end - run->begin, grads->dense + run->begin);
    }
    return TN_OK;
}

static void close_alone(void *self)
{
    tn_free(self);
}

const tn_client_ops tn_client_alone = {
    .pull = pull,
    .rows = rows,
    .push = push,
    .close = close_alone,
};

tn_status tn_client_open_alone(tn_client *out, tn_shard *shard, const tn_dense_run *moving,
                               uint32_t n_moving, tn_error *err)
{
    alone *a = tn_try_alloc(1, sizeof *a, "a client", err);
    *out = (tn_client){&tn_client_alone, a};
    if (a == NULL) {
        return TN_E_MEMORY;
    }
    *a = (alone){.shard = shard, .moving = moving, .n_moving = n_moving};
    return TN_OK;
}

void tn_client_close(tn_client *c)
{
    if (c->self != NULL && c->ops->stop != NULL) {
        c->ops->stop(c->self);
    }
    if (c->self != NULL) {
        c->ops->close(c->self);
    }
    *c = (tn_client){0};
}
