/* model.h - a group of ranks without threads and sockets, in which messages meet with every fault.
 *
 * Each rank is a worker and a shard. Workers get parts from rank 0's ledger and go through their
 * records in batches: a PULL to each owner, computing, a PUSH to each owner. Shards count: record i
 * adds 1 to key mix(i) at its owner, and to dense element i mod D at its owner; a pull counts the
 * same as a show. once, resend and ledger are the real ones; the link is the model's:
 *
 *     worker, rank 0 -> tn_retransmit -> [drop, delay, repeat, reorder, reconnect]
 *                              ^                                           |
 *                              |                                           v
 *                 answers, with the same faults <------- shard <------- tn_dedup
 *
 * At a cut no batch is begun until all requests are acknowledged; then the state of everything is
 * kept, as a checkpoint would, and every record must count once if the ledger's manifest covers it,
 * else not at all (reliability I3). A killed rank comes back with a new incarnation:
 *
 *     exact      a new session: shards, once, resend and ledger go back to the last cut
 *     relaxed    the others go on, its shard is empty, its parts are dealt again
 *
 * In the end every record must have counted exactly once; with relaxed recovery the bounds of I4
 * must hold. A run that does not end fails with what everybody waits for.
 */
#pragma once

#include "cluster/ledger/ledger.h"

typedef struct model_faults {
    double drop;        /* of a message */
    double drop_answer; /* of an answer, besides */
    double repeat;      /* a copy comes up to 10 s later */
    double reorder;     /* overtakes what was sent before */
    uint32_t reconnects;
    uint32_t kills; /* relaxed: not of rank 0; they come back up to 20 s later */
    uint32_t cuts;  /* exact only */
} model_faults;

typedef struct model_opts {
    uint64_t seed;
    uint32_t ranks, parts, records_max; /* of a part: 0 .. records_max */
    uint32_t batch;
    tn_ledger_mode mode;
    bool relaxed;
    uint32_t slow; /* the last rank computes so many times slower; 0, 1: as fast as the others */
    model_faults faults;
} model_opts;

typedef struct model_result {
    uint64_t records;
    uint64_t end_ns, events;
    uint64_t repeated;     /* requests that a shard had applied already */
    uint64_t stale;        /* messages of former incarnations */
    uint64_t returned;     /* parts that stragglers gave back */
    uint64_t kills;        /* that happened */
    uint64_t cuts;         /* that were not abandoned */
    uint64_t rollbacks;    /* to a cut in which there were records */
    uint64_t extra;        /* times that records counted more than once */
    uint64_t updates_lost; /* acknowledged requests that went with a lost shard */
    uint64_t idle_ranks;   /* that never had a part */
} model_result;

/* Runs to the end and checks; fails the test with the seed. */
model_result model_run(const model_opts *opts);
