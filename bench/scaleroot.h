/* scaleroot.h - rank 0 of a group that is simulated, for scalecontrol.c and scalereports.c.
 */
#ifndef TN_BENCH_SCALEROOT_H
#define TN_BENCH_SCALEROOT_H

#include "base/core/arena.h"
#include "base/core/text.h"
#include "cluster/group/failure_detector.h"
#include "cluster/group/rendezvous.h"
#include "cluster/ledger/ledger.h"
#include "scale.h"

typedef struct tn_scale_root {
    uint32_t n;
    tn_scale_control *out;
    tn_shares *shares;
    tn_arena *arena; /* of the note that was read last */
    tn_rendezvous *rendezvous;
    tn_failure_detector *detector;
    tn_ledger *ledger;
    tn_text note;
    tn_scale_message *hello, *beat; /* of each rank */
    tn_scale_message message;       /* the latest that was written */
    uint64_t now;
} tn_scale_root;

void tn_scale_note_write(tn_scale_root *w, tn_frame_type type, uint32_t rank, const void *note,
                         tn_scale_message *m);

/* What the note holds lives until the next one is read. */
void tn_scale_note_read(tn_scale_root *w, const tn_scale_message *m, tn_frame *frame, void *note);

/* Memory in use, large pieces that the system gave included. */
double tn_scale_bytes(void);

void tn_scale_reports_measure(tn_scale_root *w, uint32_t rounds);
void tn_scale_cuts_measure(tn_scale_root *w, uint32_t rounds);

#endif
