/* peers.h - the other processes of a run, as its trainer sees them: one group, the worker's client
 * for training steps (ps/shard/client.h), rows for evaluation (cluster/exchange/eval_pull.h).
 *
 *     TN_TRY(tn_peers_open(&p, w, text, err));     listens; others may come or not
 *     TN_TRY(tn_peers_form(p, stop, err));         all are in
 *     .. weights are loaded, or drawn ..
 *     TN_TRY(tn_peers_begin(p, err));              values can be asked for, from step w->steps on
 *     tn_peers_close(p);
 *
 * Belongs to the worker's thread.
 */
#pragma once

#include "cluster/group/group.h"

typedef struct tn_run tn_run;
typedef struct tn_run_text tn_run_text;
typedef struct tn_watch tn_watch;
typedef struct tn_worker tn_worker;

typedef struct tn_peers tn_peers;

#define TN_TO_THE_END "to the end" /* text of a cut: after all of the epoch is read */

/* As the membership of the run says, which has more than one process. `watch` (NULL: nobody) sees
 * the table of peers, on rank 0. `w`, `text`, `watch` must outlive it. On failure *out is NULL. */
tn_status tn_peers_open(tn_peers **out, tn_worker *w, const tn_run_text *text,
                        const tn_watch *watch, tn_error *err) TN_MUST_USE;
void tn_peers_close(tn_peers *p); /* NULL is fine */

/* As in tn_group_kind. */
void tn_peers_decline(const tn_run *run, tn_status status, const char *why);

tn_status tn_peers_form(tn_peers *p, const atomic_bool *stop, tn_error *err) TN_MUST_USE;

/* From now on w->client is that of the run's staleness, until this is closed. Does nothing when it
 * has begun. */
tn_status tn_peers_begin(tn_peers *p, tn_error *err) TN_MUST_USE;

tn_group *tn_peers_group(tn_peers *p);

/* At a meeting: the worker's weights and steps are those of all owners now. */
tn_status tn_peers_refresh(tn_peers *p, tn_error *err) TN_MUST_USE;
