/* failure_detector_state.h - the inside of a pulse, for the files that are it.
 *
 * Silence is measured in waking time: that of the clock but for what lies between two polls beyond
 * gap_ns (failure_detector.h). What people read is in time of the clock.
 */
#ifndef TN_CLUSTER_FAILURE_DETECTOR_STATE_H
#define TN_CLUSTER_FAILURE_DETECTOR_STATE_H

#include "cluster/group/failure_detector.h"
#include "cluster/ledger/running_median.h"

typedef enum tn_pulse_watching {
    TN_PULSE_UNWATCHED, /* from the beginning: oneself, or not in yet */
    TN_PULSE_WELL,
    TN_PULSE_QUIET, /* suspect */
    TN_PULSE_DEAD,
    TN_PULSE_GONE, /* unwatched later */
} tn_pulse_watching;

enum { TN_PULSE_HOST = 64 }; /* what is kept of a host's name, and its NUL */

typedef struct tn_pulse_rank {
    tn_pulse_watching watch;
    bool was_heard;             /* since it is watched */
    bool was_told;              /* that it is stalled */
    uint64_t heard_ns;          /* the last frame; of one never heard, when watching began */
    uint64_t heard_awake;       /* the same in waking time */
    uint64_t silent_ns;         /* how long it was silent before the last frame, if suspect then */
    uint64_t n_beats;           /* 0: nothing below is known */
    uint64_t step, stood_awake; /* since when it has been at this step, or training */
    bool has_pushed;            /* else the next two are nothing */
    uint64_t pushed, at_beat;   /* the number of its last push, now and at its last beat */
    uint64_t state;             /* tn_peer_state */
    uint64_t records, rss_bytes, waits_for;
    double rows_per_s, waiting;
    uint64_t rate_ns, rate_out, rate_in; /* counts of bytes when rates were taken */
    double out_per_s, in_per_s;          /* bytes */
    uint64_t pid;
    char host[TN_PULSE_HOST];
} tn_pulse_rank;

struct tn_pulse {
    tn_pulse_opts opts;
    tn_pulse_rank *rank; /* owned; opts.size */
    tn_recent steps;     /* ns of waking time of a step, of all ranks */
    uint64_t polled_ns, awake;
    bool has_begun;  /* polled_ns is set */
    uint32_t cursor; /* the rank to look at next in this round of polls */
};

#endif
