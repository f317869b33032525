/* heartbeat_stats.c - fills the heartbeats of a rank. */
#include "cluster/train/heartbeat_stats.h"

#include "base/core/clock.h"
#include "base/machine/limits.h"
#include "train/step/memory_cap.h"
#include "train/step/step_loop.h"
#include "train/step/watch.h"
#include "train/step/worker.h"

static void tell(tn_heartbeat_stats *b)
{
    const tn_watch *watch = b->watch;
    if (watch != NULL && watch->stop != NULL && atomic_load(watch->stop)) {
        b->note.asks = TN_ASKS_STOP;
    } else if (b->is_full) {
        b->note.asks = TN_ASKS_ROOM;
    } else if (watch != NULL && watch->save != NULL && atomic_exchange(watch->save, false)) {
        b->note.asks = TN_ASKS_SAVE;
    }
    tn_group_set_beat(b->group, &b->note, b->step);
    b->note.asks = TN_ASKS_NOTHING;
}

void tn_heartbeat_stats_step(tn_heartbeat_stats *b, const tn_worker *w, const tn_step_turn *turn,
                             uint64_t records)
{
    const double now = tn_clock_s();
    const double seconds = now - b->begin;
    b->waited_s += turn->waited_s + turn->waits.rows_s + turn->waits.weights_s;
    b->note.state = TN_PEER_TRAINING;
    b->note.records = records;
    b->step = w->steps;
    b->is_full = b->memory != NULL && tn_room_is_over(tn_memory_cap_look(b->memory));
    if (seconds >= 1) {
        b->note.rows_per_s = (double)(w->rows - b->rows) / seconds;
        b->note.waiting = b->waited_s < seconds ? b->waited_s / seconds : 1;
        tn_memory_use use;
        tn_memory_use_of("", &use);
        b->note.rss_bytes = use.resident;
        b->begin = now;
        b->rows = w->rows;
        b->waited_s = 0;
    }
    tell(b);
}

void tn_heartbeat_stats_state(tn_heartbeat_stats *b, tn_peer_state state)
{
    b->note.state = state;
    tell(b);
}
