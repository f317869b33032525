/* owner_messages.c - an owner reads PULL and PUSH, and writes ROWS, DENSE, NOTED and REFUSED. */
#include "cluster/exchange/owner_messages.h"

#include "base/core/alloc.h"

#include <string.h>

/* ---- requests ---- */

uint32_t tn_owner_pull_read(tn_owner_pull *p, const tn_exchange *x, const tn_frame *request)
{
    const tn_keyblock_rules rules = {&x->shares->owners, x->layout, x->rank};
    if (tn_pull_params_get(&p->params, request->payload) != TN_DROP_NONE) {
        return TN_REFUSAL_DAMAGED;
    }
    const tn_drop why = tn_keyblock_read(&p->block, request->payload + TN_PULL_PARAMS,
                                         request->bytes - TN_PULL_PARAMS, request->count, &rules);
    if (why == TN_DROP_MEMORY) {
        return TN_REFUSE_SILENTLY;
    }
    return why == TN_DROP_NONE ? 0 : TN_REFUSAL_DAMAGED;
}

uint32_t tn_owner_pull_floats(const tn_owner_pull *p)
{
    return p->block.keys.floats;
}

void tn_owner_pull_done(tn_owner_pull *p)
{
    tn_keyblock_done(&p->block);
}

tn_status tn_owner_floats_reserve(tn_owner_floats *f, size_t n_rows, size_t n_dense, tn_error *err)
{
    const char *what = "values of a rank";
    f->n_dense = n_dense;
    TN_TRY(TN_RESERVE(f->rows, f->rows_max, n_rows, what, err));
    return TN_RESERVE(f->dense, f->dense_max, n_dense, what, err);
}

uint32_t tn_owner_gradients_read(tn_owner_floats *g, const tn_frame *request,
                                 const tn_owner_pull *pull)
{
    const size_t n = request->count[TN_ROW_FLOATS];
    const size_t n_dense = request->count[TN_DENSE_FLOATS];
    const tn_values kind = tn_frame_row_values(request->flags);
    const char *from = request->payload + TN_PUSH_PARAMS;
    if (request->count[TN_KEYS] != pull->block.keys.n || n != tn_owner_pull_floats(pull)) {
        return TN_REFUSAL_DAMAGED;
    }
    if (tn_owner_floats_reserve(g, n, n_dense, NULL) != TN_OK) {
        return TN_REFUSE_SILENTLY;
    }
    if (tn_values_read(kind, from, n, g->rows) != TN_VALUES_FINITE ||
        tn_values_read(tn_frame_dense_values(request->flags), from + n * tn_values_bytes(kind),
                       n_dense, g->dense) != TN_VALUES_FINITE) {
        return TN_REFUSAL_DIVERGED;
    }
    return 0;
}

void tn_owner_floats_done(tn_owner_floats *f)
{
    tn_free(f->rows);
    tn_free(f->dense);
}

/* ---- replies ---- */

void tn_reply_by_link(void *link, const tn_frame *request, tn_out_message *reply)
{
    tn_link_answer(link, request, reply);
}

/* Sends a reply without payload. */
static void reply_short(const tn_reply_path *to, const tn_frame *request, tn_frame_type type,
                        uint32_t code)
{
    tn_out_message *p = NULL;
    if (tn_out_message_take(&p, to->pool, 0, NULL) == TN_OK) {
        p->frame.type = type;
        p->frame.code = code;
        to->answer(to->arg, request, p);
    }
}

void tn_reply_refuse(const tn_reply_path *to, const tn_frame *request, uint32_t refusal)
{
    if (refusal != TN_REFUSE_SILENTLY) {
        reply_short(to, request, TN_FRAME_REFUSED, refusal);
    }
}

void tn_reply_noted(const tn_reply_path *to, const tn_frame *request)
{
    reply_short(to, request, TN_FRAME_NOTED, 0);
}

bool tn_owner_admits(const tn_reply_path *to, const tn_dedup *dedup, const tn_frame *request,
                     bool *again)
{
    const tn_dedup_verdict verdict = tn_dedup_check(dedup, request->incarnation, request->sequence);
    if (verdict == TN_DEDUP_STALE || verdict == TN_DEDUP_BEYOND) {
        tn_reply_refuse(to, request,
                        verdict == TN_DEDUP_STALE ? TN_REFUSAL_INCARNATION : TN_REFUSAL_BEYOND);
        return false;
    }
    *again = verdict == TN_DEDUP_REPEATED;
    return true;
}

static void send_floats(const tn_reply_path *to, const tn_frame *request, tn_out_message *p,
                        size_t written)
{
    if (written != TN_VALUES_FINITE) {
        tn_out_message_drop(p);
        tn_reply_refuse(to, request, TN_REFUSAL_DIVERGED);
        return;
    }
    to->answer(to->arg, request, p);
}

tn_status tn_reply_rows(const tn_reply_path *to, const tn_frame *request, const tn_rows_reply *what,
                        tn_error *err)
{
    const tn_values kind = tn_frame_row_values(request->flags);
    const uint64_t n = what->n_floats;
    tn_out_message *p = NULL;
    TN_TRY(tn_out_message_take(&p, to->pool, TN_ROWS_PARAMS + n * tn_values_bytes(kind), err));
    p->frame.type = TN_FRAME_ROWS;
    p->frame.flags = tn_frame_flags(kind, TN_VALUES_F32);
    p->frame.code = what->code;
    p->frame.count[TN_KEYS] = what->n_keys;
    p->frame.count[TN_ROW_FLOATS] = what->n_floats;
    char *payload = tn_out_message_payload(p);
    memcpy(payload, &what->params, TN_ROWS_PARAMS);
    send_floats(to, request, p, tn_values_write(kind, what->rows, n, payload + TN_ROWS_PARAMS));
    return TN_OK;
}

tn_status tn_reply_dense(const tn_reply_path *to, const tn_frame *request,
                         const tn_dense_params *params, const float *weights, size_t n,
                         tn_error *err)
{
    const tn_values kind = tn_frame_dense_values(request->flags);
    tn_out_message *p = NULL;
    TN_TRY(tn_out_message_take(&p, to->pool, TN_DENSE_PARAMS + n * tn_values_bytes(kind), err));
    p->frame.type = TN_FRAME_DENSE;
    p->frame.flags = tn_frame_flags(TN_VALUES_F32, kind);
    p->frame.count[TN_DENSE_FLOATS] = (uint32_t)n;
    char *payload = tn_out_message_payload(p);
    memcpy(payload, params, TN_DENSE_PARAMS);
    send_floats(to, request, p, tn_values_write(kind, weights, n, payload + TN_DENSE_PARAMS));
    return TN_OK;
}
