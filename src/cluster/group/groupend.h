/* groupend.h - how a group ends: all ranks with one status and one sentence, told by one of them.
 *
 *     a rank fails     tn_group_fail    ──> rank 0 ──> all: tn_group_check
 *     a rank is lost   rank 0 notices; of rank 0 that is lost, all others do
 *     it cannot form   a rank gives up, is stopped, or does not fit: in hellos and answers to them
 *
 * The first reason stays. Part of cluster/group/group.h, which includes this. Any thread, but for
 * closing.
 */
#ifndef TN_CLUSTER_GROUPEND_H
#define TN_CLUSTER_GROUPEND_H

#include "base/core/error.h"

#include <stdbool.h>

typedef struct tn_group tn_group;

/* This rank fails: all end with that status, and the sentence names the rank. */
void tn_group_fail(tn_group *g, tn_status status, const char *why);

/* TN_OK, or how the group ended: the sentence begins with the rank at fault. */
tn_status tn_group_check(tn_group *g, tn_error *err) TN_MUST_USE;

/* It ended, and another rank tells people why: the one that failed; of a lost rank, rank 0; of rank
 * 0 that is lost, rank 1. For ranks that share a terminal. */
bool tn_group_is_told_elsewhere(tn_group *g);

/* What was posted is given 2 s to be acknowledged. When the group was not formed, rank 0 tells the
 * others so, and another rank that failed tells rank 0: until all are told, for at most 3 s, after
 * a failure up to 10 s since it was opened. Letters may be closed later. NULL is fine. */
void tn_group_close(tn_group *g);

#endif
