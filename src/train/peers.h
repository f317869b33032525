/* peers.h - the other processes of a run, as its trainer sees them: one group, the values of a
 * training step (ps/sync.h), rows for evaluation (ps/peek.h).
 *
 *     TN_TRY(tn_peers_open(&p, w, text, err));     listens; others may come or not
 *     TN_TRY(tn_peers_form(p, stop, err));         all are in
 *     .. weights are loaded, or drawn ..
 *     TN_TRY(tn_peers_begin(p, err));              values can be asked for, from step w->steps on
 *     tn_peers_close(p);
 *
 * Belongs to the worker's thread.
 */
#ifndef TN_TRAIN_PEERS_H
#define TN_TRAIN_PEERS_H

#include "ps/group.h"
#include "ps/sync.h"
#include "train/trainer.h"
#include "train/worker.h"

typedef struct tn_peers tn_peers;

/* As the roster of the run says, which has more than one process. `watch` (NULL: nobody) sees the
 * table of peers, on rank 0. `w`, `text` and `watch` must outlive it. On failure *out is NULL. */
tn_status tn_peers_open(tn_peers **out, tn_worker *w, const tn_run_text *text,
                        const tn_watch *watch, tn_error *err) TN_MUST_USE;
void tn_peers_close(tn_peers *p); /* NULL is fine */

tn_status tn_peers_form(tn_peers *p, const atomic_bool *stop, tn_error *err) TN_MUST_USE;

/* Does nothing when it has begun. */
tn_status tn_peers_begin(tn_peers *p, tn_error *err) TN_MUST_USE;

tn_group *tn_peers_group(tn_peers *p);
tn_sync *tn_peers_sync(tn_peers *p);

#endif
