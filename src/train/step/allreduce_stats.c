/* allreduce_stats.c - carries statistics of the joint batch between ranks. */
#include "train/step/allreduce_stats.h"

#include <string.h>

static const double *exchange(void *arg, const double *own, uint32_t n)
{
    tn_allreduce_stats *s = arg;
    const double *all = NULL;
    if (s->status == TN_OK) {
        s->status = tn_sync_worker_gather(s->sync, s->team, own, n, &all, &s->err);
    }
    return all;
}

void tn_allreduce_stats_init(tn_allreduce_stats *s, const tn_worker *w, tn_sync_worker *sync)
{
    *s = (tn_allreduce_stats){.sync = sync, .team = w->team};
    s->peers = (tn_feed_peers){.exchange = exchange, .arg = s, .n = w->shares->owners.n_peers};
}

tn_status tn_allreduce_stats_check(const tn_allreduce_stats *s, tn_error *err)
{
    return s->status == TN_OK ? TN_OK : tn_fail(err, s->status, "%s", s->err.text);
}

static size_t floats_of(const tn_param_slice *s)
{
    return (size_t)s->rows * s->cols;
}

void tn_running_take(tn_worker *w)
{
    for (uint32_t i = 0; i < tn_params_count(w->params); i++) {
        const tn_param_slice *s = tn_params_get(w->params, i);
        if (s->state) {
            memcpy(tn_params_weights(w->params) + s->at, tn_params_grads(w->params) + s->at,
                   floats_of(s) * sizeof(float));
        }
    }
}

void tn_running_keep(tn_worker *w)
{
    const size_t begin = w->shares->dense[w->rank];
    const size_t end = w->shares->dense[w->rank + 1];
    for (uint32_t i = 0; i < tn_params_count(w->params); i++) {
        const tn_param_slice *s = tn_params_get(w->params, i);
        const size_t from = s->at > begin ? s->at : begin;
        const size_t to = s->at + floats_of(s) < end ? s->at + floats_of(s) : end;
        if (s->state && from < to) {
            tn_dense_set(w->shard.dense, from - begin, to - from,
                         tn_params_grads(w->params) + from);
        }
    }
}
