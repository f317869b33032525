/* batch_messages.h - the messages of one batch: a slice of its keys to each owner, rows back, a
 * slice of its gradients to each owner.
 *
 *     tn_owner_slices_begin                     the keys of a batch, the place of its rows
 *     tn_owner_slices_pull    per owner         a PULL; keys ascending, their order is kept
 *     tn_owner_slices_rows    per owner         the floats of a ROWS to their places
 *     tn_owner_slices_push    per owner         a PUSH that names the pull, gradients in that order
 *
 * cluster/sync/sync_client.h and cluster/async/async_client.h share it. One thread at a time.
 */
#pragma once

#include "cluster/exchange/exchange.h"
#include "cluster/wire/key_codec.h"
#include "cluster/wire/request_headers.h"
#include "ps/optim/rule.h"

/* The part of a batch that belongs to one owner. */
typedef struct tn_owner_slice {
    tn_key_order order;
    uint32_t floats;
    uint64_t sequence; /* sequence of its answer, and so of the pull */
    bool has_rows;
} tn_owner_slice;

/* Zeros to begin with; used again for batch after batch. */
typedef struct tn_owner_slices {
    const tn_keyset *keys; /* lent until the push is written, as are rows */
    float *rows;           /* at keys->at */
    tn_owner_slice *of;    /* n_ranks */
    uint32_t *index;       /* indexes of the slices' orders */
    tn_key_place *scratch; /* two of each key */
    size_t index_max, scratch_max;
    uint32_t n_rows; /* owners that have answered */
} tn_owner_slices;

tn_status tn_owner_slices_begin(tn_owner_slices *s, uint32_t n_ranks, const tn_keyset *keys,
                                float *rows, tn_error *err) TN_MUST_USE;
void tn_owner_slices_done(tn_owner_slices *s);

tn_status tn_owner_slices_pull(tn_owner_slices *s, const tn_exchange *x, uint32_t owner,
                               const tn_pull_params *params, tn_out_message **out,
                               tn_error *err) TN_MUST_USE;

/* Takes the rows of an answer. Returns false when it does not fit the pull, or its rows have come.
 * `some`: it must have rows. */
bool tn_owner_slices_rows(tn_owner_slices *s, uint32_t owner, const tn_frame *answer,
                          bool some) TN_MUST_USE;

/* Gradients of a batch. */
typedef struct tn_slices_gradients {
    const float *rows;  /* at keys->at */
    const float *dense; /* gradients of the whole flat vector; NULL: none */
    float *residual;   /* in 16 bits: the rounding errors of dense gradients, which are added to the
                          next ones (error feedback) */
    double norm, loss; /* as in tn_push_params */
    const tn_push *push;
} tn_slices_gradients;

/* Writes gradients. TN_E_DIVERGED: one is not finite, or not so in 16 bits. */
tn_status tn_owner_slices_push(const tn_owner_slices *s, const tn_exchange *x, uint32_t owner,
                               const tn_slices_gradients *grads, tn_out_message **out,
                               tn_error *err) TN_MUST_USE;
