/* modelnet.h - messages and timers of a simulated group, in the order of a simulated clock.
 *
 * Everything that happens is a message with a time; those of equal time come in the order in which
 * they were put. All randomness is drawn here, from one stream: a seed is a run.
 */
#pragma once

#include "cluster/ledger/ledger.h"

#define NET_MS UINT64_C(1000000)
#define NET_SECOND UINT64_C(1000000000)
#define NET_ANY UINT64_MAX

enum { NET_HELD = 3 };

typedef enum net_kind {
    NET_TICK, /* timers, of one rank */
    NET_COMPUTED,
    NET_KILL,
    NET_RESTART,
    NET_RECONNECT,
    NET_CUT,
    NET_PULL, /* requests with an id */
    NET_PUSH,
    NET_ASK,
    NET_RETURN,
    NET_RETURNED,
    NET_ANSWER,
    NET_BEAT, /* neither */
} net_kind;

typedef struct net_message {
    net_kind kind;
    net_kind request; /* that an ANSWER answers */
    uint64_t session; /* set by net_put */
    uint32_t from, to;
    uint64_t incarnation; /* of the sender; of the rank that a timer is for */
    uint64_t meant;       /* ANSWER: the incarnation that asked */
    uint64_t sequence;
    uint64_t connection; /* that it travels on; NET_ANY: arrives on any */
    uint64_t batch, first;
    uint32_t n; /* PULL, PUSH: records first .. first + n - 1 */
    uint32_t n_held;
    tn_ledger_held
        held[NET_HELD]; /* ASK: done; RETURN, RETURNED: the part; BEAT: what is claimed */
    tn_ledger_answer answer;
    tn_ledger_deal deal;
} net_message;

typedef struct net_event {
    uint64_t at_ns, number;
    net_message message;
} net_event;

typedef struct net {
    net_event *heap; /* owned */
    uint32_t n, room;
    uint64_t now_ns, number;
    uint64_t
        session; /* what was put in an earlier one does not arrive, but for what befalls ranks */
    uint64_t stream, drawn;
} net;

void net_init(net *x, uint64_t seed);
void net_done(net *x);

uint64_t net_draw(net *x, uint64_t n); /* 0 .. n - 1 */
bool net_chance(net *x, double p);

void net_put(net *x, uint64_t at_ns, const net_message *message);

/* The next message; the clock moves to it. False: there is none. */
bool net_take(net *x, net_message *out);
