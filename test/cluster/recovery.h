/* recovery.h - what ranks that come back would need of tn_dedup and tn_retransmit; the model of
 * faults (model.h) has such ranks, the program ends the group instead.
 */
#pragma once

#include "cluster/net/retransmit.h"
#include "cluster/wire/dedup.h"

/* From a manifest: all up to `low` are applied, nothing above. */
void recovery_restore(tn_dedup *o, uint64_t incarnation, uint64_t low);

/* The shard lost its memory and the sender has not: of all below `next` only those in open[0..n),
 * ascending, are still to come (recovery_open); the others count as applied, though what they
 * changed may be missing. False, and nothing is changed, when the numbers are not such a list. */
bool recovery_adopt(tn_dedup *o, uint64_t incarnation, uint64_t next, const uint64_t *open,
                    uint32_t n);

/* Sequences that lie below an applied one and are not applied themselves. At the mark of a cut
 * there is none, and `low` is what the sender has sent. */
uint64_t recovery_holes(const tn_dedup *o);

/* A sender whose last number before was `low`. */
void recovery_init(tn_retransmit *r, uint64_t seed, uint64_t timeout_ns, uint64_t low);

/* A new connection to the destination: what was in flight on the old one is gone. */
void recovery_reconnected(tn_retransmit *r);

/* The numbers that are kept, ascending; returns how many. */
uint32_t recovery_open(const tn_retransmit *r, uint64_t out[TN_RETRANSMIT_MAX]);

/* How many requests were acknowledged so far. */
uint64_t recovery_acknowledged(const tn_retransmit *r);
