/* crash.h - runs a protocol that writes files and breaks it at every point.
 *
 * A protocol is `run`, which works in the folder it is given and calls tn_crash_saved(n) whenever
 * it tells its user that n is saved; `check` then loads what is left and asserts the promise for
 * the last n that was told (0: none). Three ways to break it, each in folders of its own:
 *
 *   kill     a child runs it and is killed at the 1st, 2nd, .. system call of the file module
 *   fail     the nth call fails once, or from then on: EIO, ENOSPC, EDQUOT, EMFILE, short writes
 *   states   it runs once while the file module's operations are logged with their data; then
 *            folders are built as a power cut may leave them: any subset of the operations that
 *            no fsync covers yet is missing, writes are cut short
 *
 * An operation is covered when a later fsync of the same file (data) or folder (names) returned
 * before the cut. Without a fsync of its folder even a synced file may have no name.
 */
#pragma once

#include "base/core/error.h"

#include <stdint.h>

typedef struct tn_crash_case {
    tn_status (*run)(const char *dir, void *ctx, tn_error *err);
    void (*check)(const char *dir, uint64_t saved, void *ctx);
    void *ctx;
} tn_crash_case;

/* For `run`: n is saved from now on. */
void tn_crash_saved(uint64_t n);

/* Each returns how many broken runs or states there are; those of rounds.h are checked. */
uint32_t tn_crash_kill_everywhere(const tn_crash_case *test);
uint32_t tn_crash_fail_everywhere(const tn_crash_case *test);
uint32_t tn_crash_states(const tn_crash_case *test, uint32_t samples, uint64_t seed);
