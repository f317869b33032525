/* delay_compensation.c - pulled weights are kept, and late gradients corrected. */
#include "cluster/async/delay_compensation.h"

#include "base/core/compiler.h"
#include "base/keys/keyset.h"
#include "base/keys/record.h"
#include "ps/optim/optim.h"
#include "ps/optim/rule.h"
#include "ps/shard/dense.h"

#include <string.h>

bool tn_delay_is_on(const tn_rules *rules)
{
    if (tn_rule_common(&rules->dense)->dc > 0) {
        return true;
    }
    for (uint32_t g = 0; g < rules->layout->n_groups; g++) {
        const tn_record *record = tn_record_of(rules->layout, g);
        for (uint32_t i = 0; i < record->n_segments; i++) {
            if (tn_rule_common(&rules->rule[g * TN_SEGMENTS_MAX + i])->dc > 0) {
                return true;
            }
        }
    }
    return false;
}

/* The end of the rows of a keyset; those of a slice begin anywhere. */
static size_t end_of(const tn_keyset *keys)
{
    return keys->n > 0 ? keys->at[keys->n] : 0;
}

tn_status tn_delay_keep(tn_owner_floats *d, tn_shard *shard, const tn_keyset *keys,
                        const float *rows, size_t dense, tn_error *err)
{
    TN_TRY(tn_owner_floats_reserve(d, end_of(keys), dense, err));
    if (keys->n > 0) {
        const size_t from = keys->at[0];
        memcpy(d->rows + from, rows + from, (end_of(keys) - from) * sizeof *rows);
    }
    tn_dense_copy(shard->dense, d->dense);
    return TN_OK;
}

/* was := g + dc * g * g * (now - was) */
TN_HOT static void delay_compensate(size_t n, float *restrict was, const float *restrict now,
                                    const float *restrict g, float dc)
{
    for (size_t i = 0; i < n; i++) {
        was[i] = g[i] + dc * g[i] * g[i] * (now[i] - was[i]);
    }
}

static void compensate_rows(tn_owner_floats *d, const float *now, const tn_shard *shard,
                            const tn_gradients *grads)
{
    const tn_keyset *keys = grads->keys;
    for (uint32_t k = 0; k < keys->n; k++) {
        const uint32_t group = keys->group[k];
        const tn_record *record = tn_record_of(shard->rules->layout, group);
        for (uint32_t i = 0; i < record->n_segments; i++) {
            const tn_segment *seg = &record->segment[i];
            const tn_rule *rule = &shard->rules->rule[group * TN_SEGMENTS_MAX + i];
            const size_t at = (size_t)keys->at[k] + seg->at;
            delay_compensate(seg->dim, d->rows + at, now + at, grads->rows + at,
                             (float)tn_rule_common(rule)->dc);
        }
    }
}

tn_status tn_delay_compensate(tn_owner_floats *d, tn_owner_floats *now, tn_shard *shard,
                              tn_team *team, tn_gradients *grads, tn_error *err)
{
    const tn_keyset *keys = grads->keys;
    const double dc = tn_rule_common(&shard->rules->dense)->dc;
    TN_TRY(tn_owner_floats_reserve(now, end_of(keys), d->n_dense, err));
    if (keys->n > 0) {
        tn_shard_peek(shard, team, keys, now->rows, NULL);
        compensate_rows(d, now->rows, shard, grads);
        grads->rows = d->rows;
    }
    if (dc > 0) {
        tn_dense_copy(shard->dense, now->dense);
        delay_compensate(d->n_dense, d->dense, now->dense, grads->dense, (float)dc);
        grads->dense = d->dense;
    }
    return TN_OK;
}
