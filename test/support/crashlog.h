/* crashlog.h - the log of file operations, and the folders that a power cut makes of it.
 *
 * Paths are resolved when an operation is logged, so that each one is about inodes: a name in a
 * folder appears, moves or goes; bytes of a file are written. Only what happens below the folder
 * given to tn_crashlog_start is logged, and that folder must be empty then.
 */
#pragma once

#include <stdint.h>

typedef struct tn_crashlog tn_crashlog;

tn_crashlog *tn_crashlog_start(const char *dir);
void tn_crashlog_stop(tn_crashlog *log); /* the log can be replayed from now on */
void tn_crashlog_free(tn_crashlog *log);

void tn_crashlog_mark(tn_crashlog *log, uint64_t saved);
uint32_t tn_crashlog_count(const tn_crashlog *log); /* operations and marks */

typedef struct tn_crash_cut {
    uint32_t at;        /* the first `at` operations were issued before the cut */
    uint32_t keep_of_8; /* odds that an uncovered one reached the disk: 0 none .. 8 all */
    uint64_t seed;
} tn_crash_cut;

/* Builds the state in the empty folder `dir`; returns the last mark before the cut, or 0. */
uint64_t tn_crashlog_replay(const tn_crashlog *log, const tn_crash_cut *cut, const char *dir);
