/* groupone.h - an order of rank 0 to one rank alone; for all of them see group.h.
 */
#ifndef TN_CLUSTER_GROUPONE_H
#define TN_CLUSTER_GROUPONE_H

#include "cluster/group/group.h"

/* Rank 0: orders it and waits until that rank has said DONE, which `take` gets. Returns what the
 * rank or `take` says, or how the group ended. */
tn_status tn_group_have_done(tn_group *g, uint32_t rank, const tn_order_note *order,
                             tn_done_take *take, void *arg, tn_error *err) TN_MUST_USE;

#endif
