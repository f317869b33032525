/* descriptors.h - how many files and connections this process may have open at once.
 *
 *     TN_TRY(tn_descriptors_need(1200, "360 peers", err));
 *
 * A system gives a process a soft limit, often 1024, and a hard one up to which it may raise that
 * by itself. Children inherit both. Any thread.
 */
#ifndef TN_BASE_DESCRIPTORS_H
#define TN_BASE_DESCRIPTORS_H

#include "base/core/error.h"

#include <stdint.h>

/* `n` will be open at once, for `what`. Where the soft limit is lower it is raised to the hard one.
 * TN_E_CONFIG: that is lower, too, and nothing is changed. */
tn_status tn_descriptors_need(uint64_t n, const char *what, tn_error *err) TN_MUST_USE;

#endif
