/* owner_messages.h - an owner's side of a batch's messages: requests are checked and read, replies
 * are written. The worker's side is cluster/exchange/batch_messages.h.
 *
 *     any    tn_owner_admits          new, duplicate or refused
 *     PULL   tn_owner_pull_read       keys         rows      tn_reply_rows     ROWS
 *     PUSH   tn_owner_gradients_read  gradients    weights   tn_reply_dense    DENSE
 *     SHARE                                                  tn_reply_noted    NOTED
 *
 * cluster/sync/sync_server.h and cluster/async/async_server.h say when each happens. A read returns
 * 0, or the tn_refusal for tn_reply_refuse. Where memory is missing that is TN_REFUSE_SILENTLY: no
 * reply is sent, and the request is retransmitted. Functions keep no state but what is passed to
 * them: any thread, one at a time for each struct.
 */
#pragma once

#include "cluster/exchange/exchange.h"
#include "cluster/wire/key_codec.h"
#include "cluster/wire/request_headers.h"

enum { TN_REFUSE_SILENTLY = 1 << 16 }; /* above all of tn_refusal */

/* ---- requests ---- */

/* A pull: zeros to begin with, used again. */
typedef struct tn_owner_pull {
    tn_pull_params params;
    tn_keyblock block;
} tn_owner_pull;

uint32_t tn_owner_pull_read(tn_owner_pull *p, const tn_exchange *x,
                            const tn_frame *request) TN_MUST_USE;
uint32_t tn_owner_pull_floats(const tn_owner_pull *p); /* floats of the keys' rows */
void tn_owner_pull_done(tn_owner_pull *p);

/* Gradients of a push, or weights: zeros to begin with, used again. */
typedef struct tn_owner_floats {
    float *rows, *dense; /* laid out by the pull's keys; n_dense of the shard's range */
    size_t rows_max, dense_max, n_dense;
} tn_owner_floats;

/* Reads the push that belongs to `pull`. The caller has checked the count of dense gradients. */
uint32_t tn_owner_gradients_read(tn_owner_floats *g, const tn_frame *request,
                                 const tn_owner_pull *pull) TN_MUST_USE;
tn_status tn_owner_floats_reserve(tn_owner_floats *f, size_t n_rows, size_t n_dense,
                                  tn_error *err) TN_MUST_USE;
void tn_owner_floats_done(tn_owner_floats *f);

/* ---- replies ---- */

/* The way of replies. `answer` takes one over; `request` as in tn_link_answer. */
typedef struct tn_reply_path {
    tn_out_messages *pool;
    void (*answer)(void *arg, const tn_frame *request, tn_out_message *reply);
    void *arg;
} tn_reply_path;

void tn_reply_by_link(void *link, const tn_frame *request, tn_out_message *reply); /* an `answer` */

/* Checks a request. Returns false when it is refused, as stale or too far ahead. *again: it was
 * applied already. */
bool tn_owner_admits(const tn_reply_path *to, const tn_dedup *dedup, const tn_frame *request,
                     bool *again) TN_MUST_USE;

/* Send a refusal or an acknowledgement. Without memory both send nothing: the request is
 * retransmitted. */
void tn_reply_refuse(const tn_reply_path *to, const tn_frame *request, uint32_t refusal);
void tn_reply_noted(const tn_reply_path *to, const tn_frame *request);

typedef struct tn_rows_reply {
    uint32_t code; /* TN_MEET, or 0 */
    tn_rows_params params;
    uint32_t n_keys, n_floats;
    const float *rows; /* n_floats */
} tn_rows_reply;

/* Floats travel as the request says. Refuses with DIVERGED when one is not finite. */
tn_status tn_reply_rows(const tn_reply_path *to, const tn_frame *request, const tn_rows_reply *what,
                        tn_error *err) TN_MUST_USE;
tn_status tn_reply_dense(const tn_reply_path *to, const tn_frame *request,
                         const tn_dense_params *params, const float *weights, size_t n,
                         tn_error *err) TN_MUST_USE;
