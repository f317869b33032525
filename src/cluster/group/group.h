/* group.h - a peer among its peers: one link for all they say, who is in, who is alive, and what
 * rank 0 has all of them do.
 *
 *     tn_group_open   binds, starts tn-net
 *     tn_group_form   hello ..  .. welcome: all are in, and know each other
 *     rank 0:         order to all ──> each carries it out ──> done, from all
 *     tn_group_close  rank 0 said bye, or the group has failed (cluster/group/groupend.h)
 *
 * Requests for values share the link; their letters go to tn_group_values. Every rank beats once a
 * second: who is silent for 15 s is lost. A lost rank, or one that fails, ends the group: every
 * call returns the same status and sentence from then on, on all ranks, and nothing waits any more.
 * One order is under way at a time, and rank 0 waits until every other rank has it.
 *
 * Calls are for the thread that trains, but for those that say otherwise.
 */
#ifndef TN_CLUSTER_GROUP_H
#define TN_CLUSTER_GROUP_H

#include "base/keys/keyset.h"
#include "cluster/group/groupend.h"
#include "cluster/launch/membership.h"
#include "cluster/net/link.h"
#include "cluster/wire/control_structs.h"

#include <stdatomic.h>

typedef struct tn_group tn_group;

/* Who gets the table (tn_group_table) of rank 0 every so often; on tn-net. */
typedef struct tn_group_table_opts {
    void (*show)(void *arg, const char *table); /* NULL: nobody */
    void *arg;
    uint64_t every_ns;
} tn_group_table_opts;

typedef struct tn_group_opts {
    const tn_zmq *zmq; /* these must outlive the group */
    const tn_roster *roster;
    const tn_security *security;
    const tn_owners *owners;
    /* version, config_hash, structure, cpu, threads; the rest is filled in. A status and its text:
     * of a rank that only says why it does not come, and is in no group. */
    tn_hello_note hello;
    double start_timeout_s;
    int news; /* where whoever started all writes "RANK SENTENCE" of one that is gone; 0: nobody */
    tn_group_table_opts table;
} tn_group_opts;

/* A rank of so many may open three connections to each other, beside its files: the limit of open
 * files is raised where it is lower. TN_E_CONFIG: it cannot be. */
tn_status tn_group_make_room(uint32_t size, tn_error *err) TN_MUST_USE;

/* Makes room, and listens where the roster says. Nobody else is needed yet. On failure *out is
 * NULL.
 */
tn_status tn_group_open(tn_group **out, const tn_group_opts *opts, tn_error *err) TN_MUST_USE;

/* Waits until all are in. TN_E_PEER after the timeout, with who is missing; TN_E_STOPPED. A rank
 * that fails before, is stopped, or does not fit (version, configuration) ends it on all ranks. */
tn_status tn_group_form(tn_group *g, const atomic_bool *stop, tn_error *err) TN_MUST_USE;

/* ---- values ---- */

/* Who takes what is not the group's own: PULL PUSH SHARE PEEK, and ROWS DENSE REFUSED NOTED. On
 * tn-net, must not wait. */
typedef struct tn_group_values {
    void *arg;
    void (*request)(void *arg, tn_letter *letter);
    void (*answer)(void *arg, tn_letter *letter);
    void (*ended)(void *arg, tn_status status, const char *why); /* the group; perhaps twice */
    uint32_t (*waits_for)(void *arg); /* 1 + the rank whose values are waited for; 0: none */
} tn_group_values;

/* NULL: nobody; then letters are dropped, and come again. Returns when the one before is in no
 * call any more. */
void tn_group_set_values(tn_group *g, const tn_group_values *values);

tn_link *tn_group_link(tn_group *g);
tn_parcels *tn_group_parcels(tn_group *g);
tn_once *tn_group_once(tn_group *g); /* of every rank; on tn-net, the own one by its worker */

/* ---- orders ---- */

/* Rank 0. Returns when all others have it. */
tn_status tn_group_order(tn_group *g, const tn_order_note *order, tn_error *err) TN_MUST_USE;

/* Rank 0, any thread: waits until all others have said DONE to that order; `take` (NULL: nobody)
 * gets each, in rank order. The first that failed is the status. */
typedef tn_status tn_done_take(void *arg, uint32_t rank, const tn_done_note *note, tn_error *err);
tn_status tn_group_await(tn_group *g, const tn_order_note *order, tn_done_take *take, void *arg,
                         tn_error *err) TN_MUST_USE;

/* The others: waits for the next order, until `deadline_ns` of tn_clock_ns; TN_END: none came. The
 * text is lent until the next call. STOP is an order that ends the group: its status. */
tn_status tn_group_next_order(tn_group *g, uint64_t deadline_ns, tn_order_note *out,
                              tn_error *err) TN_MUST_USE;

bool tn_group_has_order(tn_group *g); /* the next one would not be waited for */

/* The others, any thread. */
tn_status tn_group_done(tn_group *g, const tn_done_note *note, tn_error *err) TN_MUST_USE;

/* ---- life ---- */

/* What the next beats say; bytes sent and received are filled in. `step`: of the worker. */
void tn_group_tell(tn_group *g, const tn_beat_note *beat, uint64_t step);

/* Rank 0: whether a signal to another rank wants that; the question is forgotten then. */
bool tn_group_is_asked(tn_group *g, tn_peer_ask what);

/* The others: what this rank has learned. It reaches rank 0 once, unless the group ends. */
void tn_group_report(tn_group *g, const tn_report_note *note);

/* Rank 0: who gets reports, on tn-net; must not wait, nor call the group. NULL: nobody any more. */
typedef void tn_report_take(void *arg, uint32_t rank, const tn_report_note *note);
void tn_group_set_reports(tn_group *g, tn_report_take *take, void *arg);

/* A line per peer; sum of rows per second. */
void tn_group_table(tn_group *g, tn_text *out);
double tn_group_rate(tn_group *g);

#endif
