/* hostlist.h - Slurm's short ways of writing many hosts and many numbers.
 *
 *     n[01-03,7],gpu5            n01 n02 n03 n7 gpu5
 *     r[1-2]n[0-1]-ib            r1n0-ib r1n1-ib r2n0-ib r2n1-ib
 *     2(x3),1                    2 2 2 1
 *
 * Digits keep the width of the first number. Order is kept, nothing is sorted. What is returned
 * lives in `arena`.
 */
#ifndef TN_CLUSTER_HOSTLIST_H
#define TN_CLUSTER_HOSTLIST_H

#include "base/core/arena.h"

#include <stdint.h>

enum { TN_HOSTS_MAX = 65536 };

/* The hosts of a list; *n of them. TN_E_CONFIG: it is empty, cannot be read, or holds more than
 * TN_HOSTS_MAX. */
tn_status tn_hostlist_read(const char *text, tn_arena *arena, const char *const **out, uint32_t *n,
                           tn_error *err) TN_MUST_USE;

/* The counts of "2(x3),1", from 1 to TN_HOSTS_MAX of them and each at least 1. */
tn_status tn_counts_read(const char *text, tn_arena *arena, const uint32_t **out, uint32_t *n,
                         tn_error *err) TN_MUST_USE;

#endif
