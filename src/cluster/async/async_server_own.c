/* async_server_own.c - one update of the shard, and the requests of its own rank. */
#include "cluster/async/async_server_state.h"

#include <math.h>

/* Running statistics have no gradient: what stands in its place is their new value. */
static void move(tn_freeserve *s, const float *dense)
{
    for (uint32_t i = 0; i < s->n_moving; i++) {
        const tn_dense_run *run = &s->moving[i];
        tn_dense_set(s->opts.shard->dense, run->begin, run->end - run->begin, dense + run->begin);
    }
}

tn_status tn_free_apply(tn_freeserve *s, tn_free_update *u, tn_pushed_here *out, tn_error *err)
{
    tn_shard *shard = s->opts.shard;
    u->push.step = atomic_fetch_add(&s->updates, 1);
    const float *moved = u->grads.dense;
    if (s->delays) {
        TN_TRY(tn_delay_compensate(u->delayed, u->now, shard, u->team, &u->grads, err));
    }
    const bool told = isfinite(shard->rules->clip_global) && u->norm > 0;
    const double norm2 =
        told ? u->norm * u->norm : tn_shard_norm2(shard, u->team, &u->grads, &u->push);
    TN_TRY(tn_shard_apply(shard, u->team, &u->grads, &u->push, norm2, err));
    move(s, moved);
    *out = (tn_pushed_here){.norm = sqrt(norm2), .staleness = u->push.step - u->pulled};
    return TN_OK;
}

tn_status tn_freeserve_pull(tn_freeserve *s, tn_team *team, uint32_t place, const tn_keyset *keys,
                            float *rows, tn_error *err)
{
    TN_ASSERT(place < s->opts.permits);
    tn_free_own *own = &s->own[place];
    own->keys = tn_shares_slice(keys, s->opts.rank, own->first);
    own->updates = atomic_load(&s->updates);
    TN_TRY(tn_shard_pull(s->opts.shard, team, &own->keys, rows, err));
    return s->delays ? tn_delay_keep(&own->delayed, s->opts.shard, &own->keys, rows, s->dense, err)
                     : TN_OK;
}

tn_status tn_freeserve_push(tn_freeserve *s, tn_team *team, const tn_own_push *own,
                            tn_pushed_here *out, tn_error *err)
{
    TN_ASSERT(own->place < s->opts.permits);
    tn_free_own *pulled = &s->own[own->place];
    tn_free_update u = {.team = team,
                        .grads = {&pulled->keys, own->rows, own->dense},
                        .push = *own->push,
                        .norm = own->norm,
                        .pulled = pulled->updates,
                        .delayed = &pulled->delayed,
                        .now = &s->own_now};
    return tn_free_apply(s, &u, out, err);
}

uint64_t tn_freeserve_updates(const tn_freeserve *s)
{
    return atomic_load(&s->updates);
}

uint32_t tn_freeserve_open_pulls(tn_freeserve *s)
{
    uint32_t n = 0;
    (void)pthread_mutex_lock(&s->lock);
    for (uint32_t r = 0; r < s->n_ranks; r++) {
        for (uint32_t i = 0; i < s->opts.permits; i++) {
            n += s->rank[r].place[i].state != TN_FREE_PLACE;
        }
    }
    (void)pthread_mutex_unlock(&s->lock);
    return n;
}
