/* scale.h - a group of N ranks in one process, without sockets: what bench_scale measures.
 *
 *     scalebatch.c      the keys of a rank's batch, as a localizer leaves them
 *     scalevalues.c     a step's keys and floats: one worker with all owners, one owner with all
 *                       ranks
 *     scalecontrol.c    rank 0: hellos, heartbeats, parts, reports, orders
 *
 * Messages are those of a run, byte for byte; who would receive one from the network finds it in
 * memory. Times are processor time of one thread. Anything that fails is a bug and ends the
 * program.
 */
#pragma once

#include "cluster/wire/frame.h"
#include "cluster/wire/key_codec.h"
#include "figure.h"
#include "ps/shard/ownership.h"

enum {
    TN_SCALE_EXAMPLES = 1024, /* of a rank in a step */
    TN_SCALE_SLOTS = 26,
    TN_SCALE_IDS = 25000, /* of a slot, drawn by Zipf's law */
    TN_SCALE_WIDTH = 9,   /* floats of a row: 1 wide, 8 deep */
    TN_SCALE_DENSE = 200000,
    TN_SCALE_VALUES = TN_SCALE_EXAMPLES * TN_SCALE_SLOTS,
    TN_SCALE_FLOATS = TN_SCALE_VALUES * TN_SCALE_WIDTH,
};

double tn_scale_cpu_s(void); /* of this thread */

/* A message, sealed. Zeros: none yet. */
typedef struct tn_scale_message {
    char *bytes;
    size_t size, room;
} tn_scale_message;

/* Room for a payload; returns where it goes. The message is whole after tn_scale_seal. */
char *tn_scale_payload(tn_scale_message *m, size_t bytes);
void tn_scale_seal(tn_scale_message *m,
                   const tn_frame *frame); /* of bytes and sequence: set here */
void tn_scale_message_done(tn_scale_message *m);

/* What a receiver does first. */
void tn_scale_open(const tn_scale_message *m, uint32_t n_ranks, tn_frame *out);

/* Each rank's batches are its own, and the same every time. */
typedef struct tn_scale_batch {
    uint64_t key[TN_SCALE_VALUES];
    uint16_t group[TN_SCALE_VALUES];
    uint32_t at[TN_SCALE_VALUES], show[TN_SCALE_VALUES], click[TN_SCALE_VALUES];
    uint32_t first[TN_PARTITIONS + 1], index[TN_SCALE_VALUES];
    tn_key_place scratch[2 * TN_SCALE_VALUES];
    tn_keyset keys;
} tn_scale_batch;

void tn_scale_batch_fill(tn_scale_batch *b, const tn_owners *owners, uint32_t rank);

/* One step at N ranks: milliseconds, and bytes to others. */
typedef struct tn_scale_step {
    tn_samples worker;              /* all messages of one worker, to and from every owner */
    tn_samples owner;               /* all messages of one owner, from and to every rank */
    tn_samples shard;               /* its pull, sums and update of the joint batch */
    double keys, joint;             /* of a batch; of the owner's share of the joint one */
    double sent, received;          /* by one peer, as worker and as owner */
    double per_key;                 /* bytes of keys in a pull, per key, frames included */
    double pull, push, rows, dense; /* parts of `sent` */
} tn_scale_step;
void tn_scale_step_measure(tn_scale_step *s, uint32_t n_ranks, uint32_t steps);

/* Rank 0's control. */
typedef struct tn_scale_control {
    tn_samples form_ms;             /* all hellos and welcomes */
    tn_samples beats_ms;            /* a second of heartbeats and of looking who is silent */
    tn_samples deal_us;             /* a part: asked for, and the one before done */
    tn_samples report_us;           /* sums and metrics of a rank, merged into the total */
    tn_samples cut_ms;              /* orders to all, what all have sent and applied */
    tn_samples table_ms;            /* the table for people */
    double hello, welcome;          /* bytes, all */
    double beat, deal, report, cut; /* of a second; of a part; of a rank's report; of a cut */
    /* Bytes of memory for each rank: .. */
    double rendezvous, detector, ledger; /* the ledger with 16 parts each */
    double link, owner;                  /* structs; without buffers */
    double metrics;                      /* what it reported last */
} tn_scale_control;
void tn_scale_control_measure(tn_scale_control *c, uint32_t n_ranks, uint32_t rounds);
