/* heartbeat_stats.h - what a rank's heartbeats say of it: how fast it is, what it does, what
 * signals want.
 *
 * Figures are of about the last second. One thread.
 */
#pragma once

#include "cluster/group/group.h"

typedef struct tn_memory_cap tn_memory_cap;
typedef struct tn_step_turn tn_step_turn;
typedef struct tn_watch tn_watch;
typedef struct tn_worker tn_worker;

typedef struct tn_heartbeat_stats { /* the first four are set, the rest is 0 */
    tn_group *group;
    const tn_watch *watch; /* its signals are passed on; NULL: nobody's */
    tn_memory_cap *memory; /* is looked at after each step; NULL: nobody's */
    double begin;          /* tn_clock_s() */
    double waited_s;       /* since */
    uint64_t rows;         /* the worker's, then */
    tn_beat_note note;
    uint64_t step;
    bool is_full; /* its memory, after the last step */
} tn_heartbeat_stats;

/* After a step: `records` of the epoch are read. */
void tn_heartbeat_stats_step(tn_heartbeat_stats *b, const tn_worker *w, const tn_step_turn *turn,
                             uint64_t records);

/* While it does something else than training. */
void tn_heartbeat_stats_state(tn_heartbeat_stats *b, tn_peer_state state);
