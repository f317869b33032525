/* limits.h - how much memory this process may take, and how much it takes; how many files and
 * connections it may have open.
 *
 *     cgroup v2   /proc/self/cgroup "0::/a/b"        memory.max             of /a/b, /a and /
 *     cgroup v1   /proc/self/cgroup "4:memory:/a/b"  memory.limit_in_bytes  the same
 *     RAM         /proc/meminfo      MemTotal
 *     ulimit -v   /proc/self/limits  Max address space (RLIMIT_AS)
 *
 * The kernel ends a process whose resident memory passes the first three, and fails allocations of
 * one whose address space passes the last: two limits for two measures. The mount points of
 * cgroups are in /proc/self/mountinfo. `root` precedes all of these paths: "" for this machine, a
 * tree of files for a test. A file that cannot be read means no limit. Any thread.
 */
#pragma once

#include "base/core/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { TN_MEMORY_BY_SIZE = 32 };

typedef struct tn_memory_limit {
    uint64_t resident;          /* shared with all of the cgroup, or of the machine */
    char by[TN_MEMORY_BY_SIZE]; /* name of the limit that applies: "RAM", "cgroup memory.max" */
    uint64_t address_space;     /* bytes for this process alone */
} tn_memory_limit;              /* UINT64_MAX: none */

void tn_memory_limit_of(const char *root, tn_memory_limit *out);

typedef struct tn_memory_use {
    uint64_t resident, address_space; /* bytes; 0: not known */
} tn_memory_use;

void tn_memory_use_of(const char *root, tn_memory_use *out);

/* Raises the soft limit of open files to the hard one when it is below `n`; `what` needs them: "360
 * peers". The soft limit is often 1024; a process may raise it up to the hard limit, and children
 * inherit both. TN_E_CONFIG: the hard limit is too low as well, and nothing is changed. */
tn_status tn_descriptors_need(uint64_t n, const char *what, tn_error *err) TN_MUST_USE;
