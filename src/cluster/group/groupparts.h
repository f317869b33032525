/* groupparts.h - the parts of an epoch on their way between rank 0, which deals them, and the
 * others.
 *
 *     another rank   ASK {done, id} ────────────────>  rank 0: cluster/ledger/ledger.h
 *                    <──────────────── PART, or WAIT
 *                    <──────────────── PART            by itself, when the wait is over
 *                    BEAT {parts in hand} ─────────>   once a second
 *                    <──────────────── ORDER RETURN    of a straggler
 *                    DONE {parts, positions} ──────>
 *
 * This carries notes; who fills and reads them is train/peers/part_server.h and
 * train/peers/part_client.h.
 */
#ifndef TN_CLUSTER_GROUPPARTS_H
#define TN_CLUSTER_GROUPPARTS_H

#include "base/core/arena.h"
#include "cluster/group/group.h"

/* Who deals parts, on rank 0, or asks for them; what it does not need is NULL. On tn-net, must not
 * wait. Notes are lent. */
typedef struct tn_group_parts {
    void *arg;
    /* Rank 0: an ASK, to be answered by tn_group_deal, perhaps that which was answered before. */
    void (*ask)(void *arg, const tn_frame *frame, const tn_ask_note *note);
    void (*claim)(void *arg, uint32_t rank, const tn_note_parts *held);   /* by a heartbeat */
    void (*returned)(void *arg, uint32_t rank, const tn_done_note *note); /* after RETURN */
    void (*tick)(void *arg, uint64_t now_ns);                             /* ten times a second */
    /* The others: a PART, and what the next heartbeat is to claim; *out lives in the arena. */
    void (*answer)(void *arg, const tn_part_note *note);
    void (*held)(void *arg, tn_arena *arena, tn_note_parts *out);
} tn_group_parts;

/* As tn_group_set_values; until then who asks is told to wait. */
void tn_group_set_parts(tn_group *g, const tn_group_parts *parts);

/* Any thread; they do not wait. To rank 0; to who asked (by itself where ask->sequence is 0); of
 * rank 0 to one rank alone. */
void tn_group_ask(tn_group *g, const tn_ask_note *note);
void tn_group_deal(tn_group *g, const tn_frame *ask, const tn_part_note *note);
void tn_group_order_one(tn_group *g, uint32_t rank, const tn_order_note *order);

/* Rank 0: a rank that is heard of does not do `what` ("has not given back ..."), and counts as
 * lost. Any thread. */
void tn_group_lose(tn_group *g, uint32_t rank, const char *what);

#endif
