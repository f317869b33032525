/* ownership.c - cutting partitions and the flat vector into shares. */
#include "ps/shard/ownership.h"

#include "base/core/alloc.h"
#include "ps/shard/dense.h"

enum { FLOATS_IN_LINE = TN_CACHE_LINE / sizeof(float) };

typedef struct owned {
    tn_shares shares;
    uint32_t from[TN_PARTITIONS + 1];
    size_t dense[TN_PARTITIONS + 1];
} owned;

void tn_shares_cut(uint32_t n_peers, uint32_t *from)
{
    TN_ASSERT(n_peers > 0 && n_peers <= TN_PARTITIONS);
    for (uint32_t p = 0; p <= n_peers; p++) {
        from[p] = TN_PARTITIONS * p / n_peers;
    }
}

tn_status tn_shares_new(tn_shares **out, uint32_t n_peers, size_t dense, tn_error *err)
{
    TN_ASSERT(n_peers > 0 && n_peers <= TN_PARTITIONS);
    *out = NULL;
    owned *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "the shares of the peers", err));
    tn_shares_cut(n_peers, s->from);
    const size_t lines = dense / FLOATS_IN_LINE + (dense % FLOATS_IN_LINE != 0);
    for (uint32_t p = 0; p <= n_peers; p++) {
        size_t begin = lines / n_peers * p + lines % n_peers * p / n_peers;
        begin *= FLOATS_IN_LINE;
        s->dense[p] = begin < dense ? begin : dense;
    }
    s->shares = (tn_shares){{n_peers, TN_PARTITIONS, s->from}, s->dense};
    TN_ASSERT(s->from[n_peers] == TN_PARTITIONS && s->dense[n_peers] == dense);
    *out = &s->shares;
    return TN_OK;
}

void tn_shares_free(tn_shares *s)
{
    tn_free(s); /* the first member of the allocated struct */
}

uint32_t tn_shares_runs(const tn_shares *s, uint32_t peer, const tn_dense_run *run, uint32_t n,
                        tn_dense_run *out)
{
    TN_ASSERT(peer < s->owners.n_peers);
    const size_t from = s->dense[peer];
    const size_t to = s->dense[peer + 1];
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        size_t begin = run[i].begin > from ? run[i].begin : from;
        size_t end = run[i].end < to ? run[i].end : to;
        if (begin < end) {
            out[kept++] = (tn_dense_run){begin - from, end - from};
        }
    }
    return kept;
}

tn_keyset tn_shares_slice(const tn_keyset *keys, uint32_t peer, uint32_t *first)
{
    const uint32_t *from = keys->owners->from;
    const tn_range own = tn_keys_of_peer(keys, peer);
    for (uint32_t p = 0; p <= keys->owners->n_partitions; p++) {
        uint32_t at = p < from[peer] ? own.from : p > from[peer + 1] ? own.to : keys->first[p];
        first[p] = at - own.from;
    }
    TN_ASSERT(first[keys->owners->n_partitions] == own.to - own.from);
    return (tn_keyset){.owners = keys->owners,
                       .layout = keys->layout,
                       .n = own.to - own.from,
                       .floats = keys->floats,
                       .key = keys->key + own.from,
                       .group = keys->group + own.from,
                       .at = keys->at + own.from,
                       .show = keys->show + own.from,
                       .click = keys->click + own.from,
                       .first = first};
}
