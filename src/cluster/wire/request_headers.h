/* request_headers.h - the fixed fields in front of keys and floats, in requests for values and in
 * replies to them.
 *
 *     PULL   0 u64 examples    8 f64 weight_sum                        16 keys (key_codec.h)
 *     PUSH   0 u64 pull        8 f64 lr_factor  16 u32 day
 *           20 f32 norm       24 f64 loss                              32 gradients
 *     ROWS   0 u64 first       8 u64 examples   16 f64 weight_sum      24 rows
 *     DENSE  0 f64 grad_norm   8 u64 staleness  16 f64 loss            24 weights
 *
 * A pull has all that its owner must know of a batch except the gradients; a push names the pull
 * and brings those. The structs lie in memory as in the message, so a sender copies them. `get`
 * reads the first bytes of a payload that tn_frame_read has found long enough. It returns
 * TN_DROP_PARAMS, and leaves *out alone, when a number is not finite or (except for a loss)
 * negative, when there is weight without examples, when no pull is named, or when rows cannot hold
 * the day.
 *
 * After the floats of ROWS that answer a PEEK with TN_FRAME_MISSING there is a bit for each key,
 * the first in bit 0 of the first byte; 1: the key has no row. Pure functions, any thread.
 */
#pragma once

#include "cluster/wire/frame.h"

typedef struct tn_pull_params {
    uint64_t examples; /* in the batch; 0: an empty one, which takes part in the step */
    double weight_sum; /* W of the batch: sum of the examples' weights */
} tn_pull_params;

typedef struct tn_push_params {
    uint64_t pull;    /* sequence of the pull whose keys the gradients belong to */
    double lr_factor; /* as in tn_push, ps/optim/rule.h */
    uint32_t day;
    float norm;  /* norm of all gradients of the push, before the global clip; 0: not known */
    double loss; /* the rank's part of the joint batch's mean; 0 above staleness 0 */
} tn_push_params;

/* The joint batch of all ranks at staleness 0; zeros at any other, and to a PEEK. */
typedef struct tn_rows_params {
    uint64_t first; /* place of the rank's first example in it */
    uint64_t examples;
    double weight_sum;
} tn_rows_params;

typedef struct tn_dense_params {
    double grad_norm;   /* norm of all gradients of the step, before the global clip */
    uint64_t staleness; /* updates of this shard between the pull and this push */
    double loss;        /* loss of the joint batch, before the update; 0 above staleness 0 */
} tn_dense_params;

_Static_assert(sizeof(tn_pull_params) == TN_PULL_PARAMS &&
                   sizeof(tn_push_params) == TN_PUSH_PARAMS &&
                   sizeof(tn_rows_params) == TN_ROWS_PARAMS &&
                   sizeof(tn_dense_params) == TN_DENSE_PARAMS,
               "structs are as the bytes");

tn_drop tn_pull_params_get(tn_pull_params *out, const char *payload) TN_MUST_USE;
tn_drop tn_push_params_get(tn_push_params *out, const char *payload) TN_MUST_USE;
tn_drop tn_rows_params_get(tn_rows_params *out, const char *payload) TN_MUST_USE;
tn_drop tn_dense_params_get(tn_dense_params *out, const char *payload) TN_MUST_USE;

/* Reads a SHARE: n doubles. TN_DROP_VALUES: one is not finite. */
tn_drop tn_share_get(double *out, uint32_t n, const char *payload) TN_MUST_USE;

/* Bits for n keys, in the order of the message; `to` has room for (n + 7) / 8 bytes. */
void tn_missing_put(char *to, const bool *missing, uint32_t n);

/* Sets missing[order.index[i]] := bit i. TN_DROP_MISSING: bits after the last key. */
tn_drop tn_missing_get(bool *missing, tn_key_order order, const char *from) TN_MUST_USE;
