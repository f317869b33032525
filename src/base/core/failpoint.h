/* failpoint.h - places where a test build can be made to fail.
 *
 *     int failure = tn_failpoint("io.write");      0, an errno, or TN_FAIL_SHORT
 *
 * Rules come from the environment variable TNET_FAIL or from tn_failpoint_set:
 *
 *     ckpt.before_rename:kill      every pass of this point; the first one ends the process
 *     io#17:EIO                    the 17th pass of any point that is "io" or begins with "io."
 *     io.fsync#3+:ENOSPC           the 3rd and all later ones
 *     link.answer%7:error          the 7th, 14th, 21st ..
 *     io#2:short,io#9:sleep=50     several rules; each counts for itself
 *
 * Actions: kill (SIGKILL), stop (SIGTERM, and no failure), error (EIO), short (half of a write, a
 * message twice), sleep[=milliseconds], or the name of an errno. Without TN_FAILPOINTS (preset
 * `release`) nothing of this exists. Any thread.
 */
#pragma once

#include "base/core/error.h"

#include <stdint.h>

enum { TN_FAIL_SHORT = -1, TN_FAIL_RULES_MAX = 8 };

#if defined(TN_FAILPOINTS)

int tn_failpoint(const char *name);

/* Replaces all rules and sets their counters to 0; NULL or "" removes them. TN_E_USAGE. */
tn_status tn_failpoint_set(const char *text, tn_error *err) TN_MUST_USE;

/* Returns the number of points that the process has passed so far, whatever their name. */
uint64_t tn_failpoint_passed(void);

#else

static inline int tn_failpoint(const char *name)
{
    (void)name;
    return 0;
}

#endif
