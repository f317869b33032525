/* group.h - a peer in its group: one link for all messages, the members, their heartbeats, and the
 * orders of rank 0.
 *
 *     tn_group_open   binds, starts tn-net
 *     tn_group_form   hello ..  .. welcome: all are in, and know each other
 *     rank 0:         order to all ──> each carries it out ──> done, from all
 *     tn_group_close  rank 0 said bye, or the group has failed
 *
 * Requests for values share the link; their messages go to tn_group_values. Every rank sends a
 * heartbeat each second: a rank that is silent for 15 s is lost. A lost rank, or one that fails,
 * ends the group: from then on every call returns the same status and sentence on all ranks, and
 * nothing waits any more. One order is under way at a time, and rank 0 waits until every other rank
 * has it.
 *
 * Calls are for the thread that trains, except for those that say otherwise.
 */
#pragma once

#include "base/core/arena.h"
#include "base/keys/keyset.h"
#include "cluster/launch/membership.h"
#include "cluster/net/link.h"
#include "cluster/wire/control_messages.h"

#include <stdatomic.h>

typedef struct tn_group tn_group;

/* Receives the table (tn_group_table) of rank 0 periodically; on tn-net. */
typedef struct tn_group_table_opts {
    void (*show)(void *arg, const char *table); /* NULL: nobody */
    void *arg;
    uint64_t every_ns;
} tn_group_table_opts;

typedef struct tn_group_opts {
    const tn_zmq *zmq; /* these must outlive the group */
    const tn_membership *membership;
    const tn_security *security;
    const tn_owners *owners;
    /* version, config_hash, structure, cpu, threads; the rest is filled in. With a status
     * and its text the rank only says why it does not join. */
    tn_hello_note hello;
    double start_timeout_s;
    int news; /* socket on which the parent of all ranks reports a rank that ended: "RANK SENTENCE";
                 0: none */
    tn_group_table_opts table;
} tn_group_opts;

/* Raises the limit of open files where it is too low: a rank of a group of `size` may open three
 * connections to each other rank, beside its files. TN_E_CONFIG: it cannot be raised. */
tn_status tn_group_make_room(uint32_t size, tn_error *err) TN_MUST_USE;

/* Makes room, and listens where the membership says; no other rank is needed yet. On failure *out
 * is NULL. */
tn_status tn_group_open(tn_group **out, const tn_group_opts *opts, tn_error *err) TN_MUST_USE;

/* Waits until all are in. TN_E_PEER after the timeout, with who is missing; TN_E_STOPPED. A rank
 * that fails before, is stopped, or does not fit (version, configuration) ends it on all ranks. */
tn_status tn_group_form(tn_group *g, const atomic_bool *stop, tn_error *err) TN_MUST_USE;

/* ---- values ---- */

/* Receives messages that are not the group's own: PULL PUSH SHARE PEEK, and ROWS DENSE REFUSED
 * NOTED. On tn-net, must not wait. */
typedef struct tn_group_values {
    void *arg;
    void (*request)(void *arg, tn_in_message *incoming);
    void (*answer)(void *arg, tn_in_message *incoming);
    void (*ended)(void *arg, tn_status status, const char *why); /* the group; perhaps twice */
    uint32_t (*waits_for)(void *arg); /* 1 + the rank whose values are waited for; 0: none */
} tn_group_values;

/* Sets who has the values. NULL: none; then messages are dropped, and retransmitted. Returns when
 * no function of the former values runs any more. */
void tn_group_set_values(tn_group *g, const tn_group_values *values);

tn_link *tn_group_link(tn_group *g);
tn_out_messages *tn_group_out_messages(tn_group *g);
/* Returns the dedups of every rank; on tn-net, the own one by its worker. */
tn_dedup *tn_group_dedup(tn_group *g);

/* ---- orders ---- */

/* Orders, by rank 0. Returns when all others have it. */
tn_status tn_group_order(tn_group *g, const tn_order_note *order, tn_error *err) TN_MUST_USE;

/* Rank 0, any thread: waits until all others have said DONE to that order; `take` (NULL: nobody)
 * gets each, in rank order. The first that failed is the status. */
typedef tn_status tn_done_take(void *arg, uint32_t rank, const tn_done_note *note, tn_error *err);
tn_status tn_group_await(tn_group *g, const tn_order_note *order, tn_done_take *take, void *arg,
                         tn_error *err) TN_MUST_USE;

/* Orders one rank alone, by rank 0, and waits until that rank has said DONE, which `take` gets.
 * Returns what the rank or `take` says, or how the group ended. */
tn_status tn_group_have_done(tn_group *g, uint32_t rank, const tn_order_note *order,
                             tn_done_take *take, void *arg, tn_error *err) TN_MUST_USE;

/* Waits, on the others, for the next order, until `deadline_ns` of tn_clock_ns; TN_END: none came.
 * The text is lent until the next call. STOP is an order that ends the group: its status. */
tn_status tn_group_next_order(tn_group *g, uint64_t deadline_ns, tn_order_note *out,
                              tn_error *err) TN_MUST_USE;

bool tn_group_has_order(tn_group *g); /* the next one would not be waited for */

/* The others, any thread. */
tn_status tn_group_done(tn_group *g, const tn_done_note *note, tn_error *err) TN_MUST_USE;

/* ---- life ---- */

/* Sets the contents of the next heartbeats; bytes sent and received are filled in. `step`: of the
 * worker. */
void tn_group_set_beat(tn_group *g, const tn_beat_note *beat, uint64_t step);

/* Returns, on rank 0, whether another rank asks for `what`; clears the request. */
bool tn_group_is_asked(tn_group *g, tn_peer_ask what);

/* Sends, from the others, what this rank has learned. It reaches rank 0 once, unless the group
 * ends. */
void tn_group_report(tn_group *g, const tn_report_note *note);

/* Rank 0: `take` gets the reports, on tn-net; it must not wait or call the group. NULL: none. */
typedef void tn_report_take(void *arg, uint32_t rank, const tn_report_note *note);
void tn_group_set_reports(tn_group *g, tn_report_take *take, void *arg);

/* Appends a line per peer, and the sum of rows per second. */
void tn_group_table(tn_group *g, tn_text *out);

/* ---- the parts of an epoch ----
 *
 *     another rank   ASK {done, id} ────────────────>  rank 0: cluster/ledger/ledger.h
 *                    <──────────────── PART, or WAIT
 *                    <──────────────── PART            by itself, when the wait is over
 *                    BEAT {parts in hand} ─────────>   once a second
 *                    <──────────────── ORDER RETURN    of a straggler
 *                    DONE {parts, positions} ──────>
 *
 * The group carries these messages; cluster/train/part_dealer.h and cluster/train/part_client.h
 * fill and read them. */

/* The dealer of parts on rank 0, or the reader that asks for them; functions that it does not need
 * are NULL. On tn-net, must not wait. Notes are lent. */
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

/* Sets who deals parts, as tn_group_set_values; until then every ASK is answered WAIT. */
void tn_group_set_parts(tn_group *g, const tn_group_parts *parts);

/* Send without waiting, on any thread: an ASK to rank 0; a PART to the rank of `ask` (unasked where
 * ask->sequence is 0); an ORDER of rank 0 to one rank. */
void tn_group_ask(tn_group *g, const tn_ask_note *note);
void tn_group_deal(tn_group *g, const tn_frame *ask, const tn_part_note *note);
void tn_group_order_one(tn_group *g, uint32_t rank, const tn_order_note *order);

/* Counts, on rank 0, a rank that is alive as lost, since it does not do `what` ("has not given back
 * ..."). Any thread. */
void tn_group_lose(tn_group *g, uint32_t rank, const char *what);

/* ---- the end ----
 *
 *     a rank fails     tn_group_fail    ──> rank 0 ──> all: tn_group_check
 *     a rank is lost   rank 0 notices; of rank 0 that is lost, all others do
 *     it cannot form   a rank gives up, is stopped, or does not fit: in hellos and answers to them
 *
 * All ranks end with one status and one sentence, and one of them reports it to people. The first
 * reason stays. Any thread, except for closing. */

/* This rank fails: all end with that status, and the sentence names the rank. */
void tn_group_fail(tn_group *g, tn_status status, const char *why);

/* Returns TN_OK, or how the group ended: the sentence begins with the rank at fault. */
tn_status tn_group_check(tn_group *g, tn_error *err) TN_MUST_USE;

/* Returns whether the group ended by this status and another rank reports it to people: the rank
 * that failed; rank 0, if a rank is lost; rank 1, if rank 0 is lost. A rank that fails after
 * another one was stopped reports its failure itself. For ranks that share a terminal. */
bool tn_group_is_reported_elsewhere(tn_group *g, tn_status status);

/* Waits 2 s for requests to be acknowledged. When the group was not formed, rank 0 sends the reason
 * to the others, and a rank that failed sends it to rank 0: until all have it, for at most 3 s,
 * after a failure up to 10 s since it was opened. Messages may be closed later. NULL is fine. */
void tn_group_close(tn_group *g);
