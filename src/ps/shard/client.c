/* client.c - see client.h. The home shard answers at once, so a call is done when it returns and
 * wait() only tells how it went. */
#include "ps/shard/client.h"

#include "base/core/alloc.h"

struct tn_ps {
    tn_shard *home;
    tn_team *team;
    tn_call next;    /* number of the next call; calls before it are done */
    tn_call waiting; /* how many are not waited for */
    double norm;
    tn_call
        failed; /* first call that failed, or 0; until all are waited for, later ones fail too */
    tn_error err;
};

tn_status tn_ps_open(tn_ps **out, tn_shard *home, tn_team *team, tn_error *err)
{
    *out = NULL;
    tn_ps *ps = tn_try_alloc(1, sizeof *ps, "a client of the parameter servers", err);
    if (ps == NULL) {
        return TN_E_MEMORY;
    }
    ps->home = home;
    ps->team = team;
    ps->next = 1;
    *out = ps;
    return TN_OK;
}

void tn_ps_close(tn_ps *ps)
{
    tn_free(ps);
}

static tn_call finish(tn_ps *ps, tn_status status)
{
    tn_call call = ps->next;
    ps->next = call != UINT32_MAX ? call + 1 : 1;
    ps->waiting++;
    if (status != TN_OK && ps->failed == 0) {
        ps->failed = call;
        ps->err.code = status;
    }
    return call;
}

tn_call tn_ps_pull(tn_ps *ps, const tn_keyset *keys, float *rows)
{
    tn_status status = ps->err.code;
    if (ps->failed == 0) {
        status = tn_shard_pull(ps->home, ps->team, keys, rows, &ps->err);
    }
    return finish(ps, status);
}

tn_call tn_ps_peek(tn_ps *ps, const tn_keyset *keys, float *rows, bool *missing)
{
    tn_shard_peek(ps->home, ps->team, keys, rows, missing);
    return finish(ps, TN_OK);
}

tn_call tn_ps_push(tn_ps *ps, const tn_keyset *keys, const float *grads, const float *dense_grads,
                   const tn_push *push)
{
    tn_status status = ps->err.code;
    if (ps->failed == 0) {
        tn_gradients all = {.keys = keys, .rows = grads, .dense = dense_grads};
        status = tn_shard_push(ps->home, ps->team, &all, push, &ps->norm, &ps->err);
    }
    return finish(ps, status);
}

tn_status tn_ps_wait(tn_ps *ps, tn_call call, tn_error *err)
{
    if (call == 0) {
        return TN_OK;
    }
    TN_ASSERT(ps->waiting > 0);
    ps->waiting--;
    tn_status status = ps->failed != 0 && call >= ps->failed ? ps->err.code : TN_OK;
    if (status != TN_OK && err != NULL) {
        *err = ps->err;
    }
    if (ps->waiting == 0) {
        ps->failed = 0;
    }
    return status;
}

double tn_ps_grad_norm(const tn_ps *ps)
{
    return ps->norm;
}
