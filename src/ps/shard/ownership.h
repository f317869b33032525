/* ownership.h - what each peer owns of a model: a run of partitions and a range of the flat vector.
 *
 *     partitions     0 .. 255    256 .. 511   512 .. 767   768 .. 1023      4 peers
 *     flat vector    0 .. 95     96 .. 191    192 .. 287   288 .. 370
 *
 * The cuts depend on the number of peers and on sizes only. Ranges begin on a cache line, wherever
 * parameters begin and end; a range may be empty. Fixed while a run lasts; read by any thread.
 */
#pragma once

#include "base/core/error.h"
#include "base/keys/keyset.h"

#include <stddef.h>

typedef struct tn_dense_run tn_dense_run; /* ps/shard/dense.h */

typedef struct tn_shares {
    tn_owners owners;
    const size_t *dense; /* n_peers + 1: peer p owns dense[p] .. dense[p+1] - 1, in floats */
} tn_shares;

/* Peer p of n owns the partitions from[p] .. from[p + 1] - 1. */
void tn_shares_cut(uint32_t n_peers, uint32_t *from);

/* 1 to TN_PARTITIONS peers, a flat vector of `dense` floats. On failure *out is NULL. */
tn_status tn_shares_new(tn_shares **out, uint32_t n_peers, size_t dense, tn_error *err) TN_MUST_USE;
void tn_shares_free(tn_shares *s); /* NULL is fine */

/* The parts of run[n] in peer p's range, counted from its beginning. out[] has room for n; returns
 * how many. */
uint32_t tn_shares_runs(const tn_shares *s, uint32_t peer, const tn_dense_run *run, uint32_t n,
                        tn_dense_run *out);

/* The part of a keyset that a peer owns, as a keyset: same arrays, but `first`, which is written to
 * first[0 .. n_partitions]. Rows and gradients stay those of `keys`. */
tn_keyset tn_shares_slice(const tn_keyset *keys, uint32_t peer, uint32_t *first);
