/* attacks.h - peers that break the rules, at one address: strangers with a socket of their own, and
 * members who got in. For tests and benchmarks.
 *
 *     attack_on on = {.z = z, .at = address, .stop = &stop, ..};
 *     for (uint32_t i = 0; i < attack_count(); i++) { attack_at(i)->run(&on); }
 *
 * An attack runs until *stop; nothing in it waits for long.
 */
#pragma once

#include "cluster/net/sockets.h"
#include "cluster/wire/frame.h"

#include <stdatomic.h>

/* What it did so far, for others to look at. */
typedef struct attack_score {
    _Atomic uint64_t strikes; /* connections that were opened, or messages that were sent */
    _Atomic uint64_t cuts;    /* connections that the other side closed */
} attack_score;

typedef struct attack_on {
    const tn_zmq *z;
    tn_endpoint at;
    bool has_keys;               /* who comes there must have one */
    const tn_security *member;   /* of rank `rank`, which is free */
    const tn_security *stranger; /* a key that is not on the list; of attacks that need one */
    uint32_t rank, size;
    uint64_t job, session;
    uint32_t idle;        /* connections that "idle" holds */
    uint64_t flood_bytes; /* that "endless" sends over one connection; 0: no end */
    uint64_t pause_ns;    /* between two messages or connections */
    const atomic_bool *stop;
    attack_score *score;
} attack_on;

typedef enum attack_kind {
    ATTACK_STRANGER, /* nothing of it may reach the program */
    ATTACK_UNLISTED, /* likewise, with keys: needs on->stranger */
    ATTACK_MEMBER    /* its messages arrive */
} attack_kind;

typedef struct attack {
    const char *name;
    attack_kind kind;
    tn_drop drop; /* of a member: what its messages are dropped for; TN_DROP_NONE: they are not */
    void (*run)(const attack_on *on);
} attack;

uint32_t attack_count(void);
const attack *attack_at(uint32_t i);

/* The lists of both files. */
extern const attack attack_strangers[];
extern const uint32_t attack_n_strangers;
extern const attack attack_members[];
extern const uint32_t attack_n_members;

static inline bool attack_is_over(const attack_on *on)
{
    return atomic_load(on->stop);
}
