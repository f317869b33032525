/* incoming_row.c - one row's floats: places, first values, fresh states. */
#include "train/begin/incoming_row.h"

#include "base/core/alloc.h"
#include "base/math/rng.h"
#include "ps/optim/rule.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <string.h>

tn_place_in_row tn_incoming_place(const tn_incoming *in, uint32_t group, uint32_t segment)
{
    const tn_layout *layout = in->w->plan->layout;
    TN_ASSERT(group < layout->n_groups);
    return tn_table_place(in->w->shard.table, layout->group[group].record, segment);
}

/* Returns the end of the last array of a segment. */
static uint32_t end_of(const tn_place_in_row *p, uint32_t dim)
{
    uint32_t end = p->w + dim;
    for (uint32_t i = 0; i < p->n_states; i++) {
        const uint32_t words = p->spec[i].per_row || p->spec[i].count ? 1 : dim;
        end = p->state[i] + words > end ? p->state[i] + words : end;
    }
    return end;
}

/* Words of a row. */
static uint32_t floats_of(const tn_worker *w, uint32_t record)
{
    const tn_record *r = &w->plan->layout->record[record];
    uint32_t end = 0;
    for (uint32_t s = 0; s < r->n_segments; s++) {
        const tn_place_in_row p = tn_table_place(w->shard.table, record, s);
        const uint32_t own = end_of(&p, r->segment[s].dim);
        end = own > end ? own : end;
    }
    return end;
}

tn_status tn_incoming_open(tn_incoming *in, tn_worker *w, tn_error *err)
{
    const tn_layout *layout = w->plan->layout;
    uint32_t most = 1;
    *in = (tn_incoming){.w = w};
    TN_TRY(TN_ALLOC(in->most, layout->n_records + 1, "sizes of rows", err));
    for (uint32_t r = 0; r < layout->n_records; r++) {
        in->most[r] = floats_of(w, r);
        most = in->most[r] > most ? in->most[r] : most;
    }
    TN_TRY(TN_ALLOC(in->data, most, "a row", err));
    return TN_ALLOC(in->packed, most, "a row", err);
}

void tn_incoming_done(tn_incoming *in)
{
    tn_free(in->data);
    tn_free(in->packed);
    tn_free(in->most);
    *in = (tn_incoming){0};
}

void tn_incoming_begin(const tn_incoming *in, uint32_t group)
{
    TN_ASSERT(in->data != NULL && group < in->w->plan->layout->n_groups);
    const uint32_t record = in->w->plan->layout->group[group].record;
    memset(in->data, 0, in->most[record] * sizeof *in->data);
}

static const tn_rule *rule_of(const tn_incoming *in, uint32_t group, uint32_t segment)
{
    return &in->w->plan->rules->rule[(size_t)group * TN_SEGMENTS_MAX + segment];
}

void tn_incoming_draw(const tn_incoming *in, uint32_t group, uint32_t segment, uint64_t key)
{
    TN_ASSERT(segment < tn_record_of(in->w->plan->layout, group)->n_segments);
    const tn_segment *s = &tn_record_of(in->w->plan->layout, group)->segment[segment];
    const uint64_t seed = in->w->plan->run->run.seed;
    const uint64_t stream = tn_stream_next(tn_stream2(seed, TN_RNG_ROW, tn_name64(s->name)), key);
    float *w = in->data + tn_incoming_place(in, group, segment).w;
    tn_init_rows(&rule_of(in, group, segment)->init, 1, &stream, s->dim, &w);
}

void tn_incoming_fresh(const tn_incoming *in, uint32_t group, uint32_t segment)
{
    const tn_rule *rule = rule_of(in, group, segment);
    const tn_place_in_row p = tn_incoming_place(in, group, segment);
    float *state[TN_STATES_MAX] = {NULL};
    TN_ASSERT(p.n_states <= TN_STATES_MAX);
    for (uint32_t i = 0; i < p.n_states; i++) {
        state[i] = in->data + p.state[i];
    }
    const uint32_t dim = tn_record_of(in->w->plan->layout, group)->segment[segment].dim;
    tn_optim_init(rule->optim, rule->opts, dim, in->data + p.w, state);
}

static bool is_own(const tn_worker *w, uint64_t key)
{
    const uint32_t *own = w->shares->owners.from + w->rank;
    const uint32_t partition = tn_partition_of(key, TN_PARTITIONS);
    return partition >= own[0] && partition < own[1];
}

uint16_t tn_incoming_all(const tn_incoming *in, uint32_t group)
{
    return (uint16_t)((1U << tn_record_of(in->w->plan->layout, group)->n_segments) - 1);
}

/* Copies the floats of the segments that are there, one after the other. Returns how many. */
static uint32_t pack(const tn_incoming *in, const tn_row_view *row)
{
    const tn_record *r = tn_record_of(in->w->plan->layout, row->group);
    uint32_t n = 0;
    for (uint32_t s = 0; s < r->n_segments; s++) {
        const tn_place_in_row p = tn_incoming_place(in, row->group, s);
        if ((row->present >> s & 1) != 0) {
            const uint32_t size = end_of(&p, r->segment[s].dim) - p.w;
            memcpy(in->packed + n, in->data + p.w, size * sizeof *in->data);
            n += size;
        }
    }
    return n;
}

tn_status tn_incoming_put(const tn_incoming *in, const tn_row_view *row, tn_error *err)
{
    TN_ASSERT(row->group < in->w->plan->layout->n_groups);
    TN_ASSERT((row->present & ~(uint32_t)tn_incoming_all(in, row->group)) == 0);
    tn_row_view packed = *row;
    packed.n_floats = pack(in, row);
    packed.data = in->packed;
    return is_own(in->w, row->key) ? tn_table_restore(in->w->shard.table, &packed, err) : TN_OK;
}

tn_status tn_incoming_remove(const tn_incoming *in, uint64_t key, uint32_t group, tn_error *err)
{
    if (!is_own(in->w, key)) {
        return TN_OK;
    }
    tn_refill r;
    tn_refill_begin(&r, in->w->shard.table, tn_partition_of(key, TN_PARTITIONS));
    const tn_status status = tn_refill_remove(&r, key, (uint16_t)group, err);
    tn_refill_end(&r);
    return status;
}
