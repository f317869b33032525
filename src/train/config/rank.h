/* rank.h - which of several equal processes this one is: cluster.peers and the launcher's word. */
#pragma once

#include "base/core/error.h"
#include "config/values.h"

typedef struct tn_run tn_run;

/* Fills rank, size and membership of run->cluster, before the plan is made; what they point at
 * lives in b->arena. `tree` is the configuration that `run` was bound from. Faults go to b->diag
 * (TN_E_CONFIG): the rank is not known, or the configuration asks for what several
 * processes cannot do. `folder`, in run.dir, is where the group meets, apart from one that trains
 * there; NULL: in run.dir itself. */
tn_status tn_rank_find(const tn_binder *b, const tn_tree *tree, tn_run *run, const char *folder,
                       tn_error *err) TN_MUST_USE;

/* Before `peers` processes are started on this machine: raises the limit of open files where they
 * need it, and makes the folder where they meet. TN_E_CONFIG: the limit is too low; TN_E_CKPT:
 * others are at work there, or, `folder` being NULL, in run.dir itself. So faults are reported
 * once; the same locks refuse a process that comes a moment later. */
tn_status tn_rank_prepare(const tn_run *run, uint32_t peers, const char *folder,
                          tn_error *err) TN_MUST_USE;
