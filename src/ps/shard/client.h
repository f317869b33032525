/* client.h - all parameter servers together, as a training thread sees them.
 *
 * Every peer holds one shard of the model (ps/shard/shard.h: its partitions of the table and its
 * range of the dense vector). The client asks each owner for its slice of a keyset; the shard at
 * home answers by a plain function call, and with one process there is no other. One request per
 * peer and step carries all slots. Calls return at once; wait() makes them true:
 *
 *     tn_call pull = tn_ps_pull(ps, &local->keys, rows);
 *     ... work on the batch before ...
 *     TN_TRY(tn_ps_wait(ps, pull, err));
 *
 * keys, rows and grads are lent to a call until it is waited for; every call is waited for once.
 * A pull sees this client's earlier pushes. One client per thread.
 */
#ifndef TN_PS_CLIENT_H
#define TN_PS_CLIENT_H

#include "ps/shard/shard.h"

typedef struct tn_ps tn_ps;
typedef uint32_t tn_call; /* a request in flight; 0 is none */

/* `home` and `team` must outlive the client. On failure *out is NULL. */
tn_status tn_ps_open(tn_ps **out, tn_shard *home, tn_team *team, tn_error *err) TN_MUST_USE;
void tn_ps_close(tn_ps *ps); /* NULL is fine */

/* rows[keys->at[n]] := the rows of `keys`; those admitted now are created. */
tn_call tn_ps_pull(tn_ps *ps, const tn_keyset *keys, float *rows);

/* The same for evaluation: creates nothing, counts nothing. missing[i] (NULL: not wanted): key i
 * has no row and reads as zeros. */
tn_call tn_ps_peek(tn_ps *ps, const tn_keyset *keys, float *rows, bool *missing);

/* Applies grads with the shows and clicks of `keys`, applies dense_grads (the flat vector's), and
 * brings the dense weights up to date: one round trip. The norm of all gradients of the push,
 * before the global clip, is in tn_ps_grad_norm afterwards. */
tn_call tn_ps_push(tn_ps *ps, const tn_keyset *keys, const float *grads, const float *dense_grads,
                   const tn_push *push);

tn_status tn_ps_wait(tn_ps *ps, tn_call call, tn_error *err) TN_MUST_USE;
double tn_ps_grad_norm(const tn_ps *ps);

#endif
