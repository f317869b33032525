/* failure_detector.h - which ranks are alive: heartbeats, the events that their absence
 * causes, and sentences about these.
 *
 *     0 s           5 s           15 s
 *     received ---- suspect ------ lost            LOST is final until the rank is watched anew
 *       ^------------ back
 *
 * Rank 0 watches all others, the others watch rank 0. Any frame proves life; a heartbeat also has
 * the state of its rank. A rank that sends heartbeats, is training and whose step does not change
 * for 30 s, or for 20 times as long as a step usually takes here, is stalled: that is reported
 * once, until it moves.
 *
 *     tn_failure_detector_watch(d, rank, now)                  it is welcome, or was started again
 *     tn_failure_detector_received(d, rank, beat, step, now)   every frame; NULL: no heartbeat
 *     while (tn_failure_detector_poll(d, now, &event))         ten times a second
 *         tn_failure_event_text(d, &event, &text)              log it; LOST: end the group
 *
 * Times are nanoseconds of one monotonic clock. A process that was stopped itself must not take the
 * others for dead when it goes on and their heartbeats are still unread: of the time between two
 * polls at most `gap_ns` counts as silence. So a process that polls rarely waits longer.
 *
 * All calls except poll and table are O(1); in a round of polls each is O(1) on average.
 * Only new allocates, about 250 bytes for each rank. Ranks are below `size`, which the caller has
 * checked; all else may come from outside. One thread.
 */
#pragma once

#include "base/core/text.h"
#include "cluster/wire/control_messages.h"

#define TN_FAILURE_SUSPECT_NS UINT64_C(5000000000)
#define TN_FAILURE_LOST_NS UINT64_C(15000000000)
#define TN_FAILURE_STALL_NS UINT64_C(30000000000)
#define TN_FAILURE_GAP_NS UINT64_C(1000000000)

enum { TN_FAILURE_STALL_STEPS = 20 };

typedef enum tn_failure_kind {
    TN_FAILURE_SUSPECT,
    TN_FAILURE_BACK, /* suspect no more */
    TN_FAILURE_LOST,
    TN_FAILURE_STALLED,
} tn_failure_kind;

typedef struct tn_failure_event {
    tn_failure_kind kind;
    uint32_t rank;
    /* BACK: length of its silence; STALLED: time since its last step; else: begin of its silence */
    uint64_t ns;
    uint64_t step; /* step of its worker, by its last beat */
} tn_failure_event;

typedef struct tn_failure_detector tn_failure_detector;

/* Makes a detector for a group of `size`; `gap_ns` is more than the time between polls. The other
 * limits are timers (tn_silence_ns). Nobody is watched yet. TN_E_MEMORY. */
tn_status tn_failure_detector_new(tn_failure_detector **out, uint32_t size, uint64_t gap_ns,
                                  tn_error *err) TN_MUST_USE;
void tn_failure_detector_free(tn_failure_detector *p); /* NULL is fine */

/* Names a rank for texts and the table. The host is copied, cut and made printable; pid 0: not
 * known. */
void tn_failure_detector_name(tn_failure_detector *p, uint32_t rank, const char *host,
                              uint64_t pid);

/* Watches a rank from now on, as if a frame of it had just come; nothing is kept of a former start
 * of it. */
void tn_failure_detector_watch(tn_failure_detector *p, uint32_t rank, uint64_t now_ns);

/* Takes note of a frame of a rank. `beat` is NULL for all but beats; step is that of a beat, else
 * not looked at. Ranks that are not watched may beat as well, for the table: one's own. */
void tn_failure_detector_received(tn_failure_detector *p, uint32_t rank, const tn_beat_note *beat,
                                  uint64_t step, uint64_t now_ns);

/* Notes a push of its step `number`: its progress between two beats, for texts. */
void tn_failure_detector_pushed(tn_failure_detector *p, uint32_t rank, uint64_t number);

/* Finds the next event up to now, each once, by rank. Returns false when that was all. */
bool tn_failure_detector_poll(tn_failure_detector *p, uint64_t now_ns, tn_failure_event *out);

/* Appends an event's sentence: "rank 2 (host 'b', pid 4711) is silent for 5.0 s, at step 310". */
void tn_failure_event_text(const tn_failure_detector *p, const tn_failure_event *event,
                           tn_text *out);

/* Appends the same for a rank that is gone for another reason:
 * "rank 2 (host 'b', pid 4711) was last heard of 15.2 s ago at step 310". */
void tn_failure_lost_text(const tn_failure_detector *p, uint32_t rank, uint64_t now_ns,
                          tn_text *out);

/* Appends a heading, a line for each rank that ever sent a heartbeat or is watched, and one of
 * totals of the last beats of all ranks that are neither suspect nor lost. */
void tn_failure_detector_table(const tn_failure_detector *p, uint64_t now_ns, tn_text *out);
