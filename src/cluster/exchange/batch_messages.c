/* batch_messages.c - a worker's PULL and PUSH messages of one batch, and the rows that come back.
 */
#include "cluster/exchange/batch_messages.h"

#include "base/core/alloc.h"
#include "ps/table/row.h"

#include <inttypes.h>
#include <string.h>

tn_status tn_owner_slices_begin(tn_owner_slices *s, uint32_t n_ranks, const tn_keyset *keys,
                                float *rows, tn_error *err)
{
    const char *what = "the keys of a batch";
    if (s->of == NULL) {
        TN_TRY(TN_ALLOC(s->of, n_ranks, what, err));
    }
    TN_TRY(TN_RESERVE(s->index, s->index_max, keys->n, what, err));
    TN_TRY(TN_RESERVE(s->scratch, s->scratch_max, 2 * (size_t)keys->n, what, err));
    s->keys = keys;
    s->rows = rows;
    s->n_rows = 0;
    for (uint32_t r = 0; r < n_ranks; r++) {
        s->of[r].has_rows = false;
    }
    return TN_OK;
}

void tn_owner_slices_done(tn_owner_slices *s)
{
    tn_free(s->of);
    tn_free(s->index);
    tn_free(s->scratch);
    *s = (tn_owner_slices){0};
}

tn_status tn_owner_slices_pull(tn_owner_slices *s, const tn_exchange *x, uint32_t owner,
                               const tn_pull_params *params, tn_out_message **out, tn_error *err)
{
    const tn_range own = tn_keys_of_peer(s->keys, owner);
    tn_owner_slice *of = &s->of[owner];
    tn_out_message *p = NULL;
    of->order = tn_keyblock_sort(s->keys, owner, s->scratch, s->index + own.from);
    TN_ASSERT(of->order.n == own.to - own.from);
    TN_ASSERT(params->examples > 0 || params->weight_sum == 0);
    const tn_keyblock_shape shape = tn_keyblock_measure(s->keys, of->order);
    TN_TRY(tn_out_message_take(&p, x->pool, TN_PULL_PARAMS + shape.bytes, err));
    of->floats = shape.floats;
    p->frame.type = TN_FRAME_PULL;
    p->frame.flags = tn_frame_flags(x->values, x->values);
    p->frame.count[TN_KEYS] = of->order.n;
    p->frame.count[TN_ROW_FLOATS] = shape.floats;
    memcpy(tn_out_message_payload(p), params, TN_PULL_PARAMS);
    tn_keyblock_write(s->keys, of->order, &shape, tn_out_message_payload(p) + TN_PULL_PARAMS);
    *out = p;
    return TN_OK;
}

bool tn_owner_slices_rows(tn_owner_slices *s, uint32_t owner, const tn_frame *answer, bool some)
{
    tn_owner_slice *x = &s->of[owner];
    const tn_values kind = tn_frame_row_values(answer->flags);
    const uint32_t n = answer->count[TN_ROW_FLOATS];
    if (x->has_rows || n != (some ? x->floats : 0)) {
        return false;
    }
    if (n > 0 && tn_values_scatter(kind, answer->payload + TN_ROWS_PARAMS, s->keys, x->order,
                                   s->rows) != TN_VALUES_FINITE) {
        return false;
    }
    x->has_rows = true;
    x->sequence = answer->sequence;
    s->n_rows++;
    return true;
}

static size_t write_dense(const tn_slices_gradients *grads, tn_values kind, size_t from, size_t n,
                          char *to)
{
    if (n == 0) {
        return TN_VALUES_FINITE;
    }
    TN_ASSERT(grads->residual != NULL || kind == TN_VALUES_F32);
    return kind == TN_VALUES_F32
               ? tn_values_write(kind, grads->dense + from, n, to)
               : tn_values_write_fed(kind, grads->dense + from, n, grads->residual + from, to);
}

tn_status tn_owner_slices_push(const tn_owner_slices *s, const tn_exchange *x, uint32_t owner,
                               const tn_slices_gradients *grads, tn_out_message **out,
                               tn_error *err)
{
    const tn_owner_slice *of = &s->of[owner];
    const tn_range own = tn_keys_of_peer(s->keys, owner);
    const size_t from = x->shares->dense[owner];
    const size_t n_dense = grads->dense != NULL ? x->shares->dense[owner + 1] - from : 0;
    const size_t row_bytes = of->floats * tn_values_bytes(x->values);
    TN_ASSERT(of->order.n == own.to - own.from); /* the keys of its pull */
    TN_ASSERT(grads->push->day <= TN_ROW_DAY_MAX);
    tn_out_message *p = NULL;
    TN_TRY(tn_out_message_take(
        &p, x->pool, TN_PUSH_PARAMS + row_bytes + n_dense * tn_values_bytes(x->values), err));
    p->frame.type = TN_FRAME_PUSH;
    p->frame.flags = tn_frame_flags(x->values, x->values);
    p->frame.count[TN_KEYS] = of->order.n;
    p->frame.count[TN_ROW_FLOATS] = of->floats;
    p->frame.count[TN_DENSE_FLOATS] = (uint32_t)n_dense;
    char *to = tn_out_message_payload(p);
    const tn_push_params params = {.pull = of->sequence,
                                   .lr_factor = grads->push->lr_factor,
                                   .day = grads->push->day,
                                   .norm = (float)grads->norm,
                                   .loss = grads->loss};
    memcpy(to, &params, sizeof params);
    to += TN_PUSH_PARAMS;
    if (tn_values_gather(x->values, s->keys, of->order, grads->rows, to) != TN_VALUES_FINITE ||
        write_dense(grads, x->values, from, n_dense, to + row_bytes) != TN_VALUES_FINITE) {
        tn_out_message_drop(p);
        return tn_fail(err, TN_E_DIVERGED, "the gradient of step %" PRIu64 " is not finite",
                       grads->push->step + 1);
    }
    *out = p;
    return TN_OK;
}
