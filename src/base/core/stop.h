/* stop.h - the flag by which this process is asked to end, for waits that were given none.
 *
 *     tn_stop_set(&asked);                        src/cli, when it begins to watch signals
 *     while (!done && !tn_stop_is(NULL)) ..       a library that waits for a server
 *
 * What may be stopped for reasons of its own, as a reader, is given a flag and heeds that one
 * alone. Any thread; the flag must outlive all waits.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

void tn_stop_set(const atomic_bool *flag); /* NULL: nobody asks, as in the beginning */

/* Says that a group of processes that this one belongs to ends, or wants to: waits end as if the
 * flag were set.
 */
void tn_stop_by_group(bool ends);

/* Returns whether to end: *own, or, where that is NULL, the flag of the thread's embedder
 * (base/core/embedder.h); of a thread without one the flag of the process, or its group. */
bool tn_stop_is(const atomic_bool *own);
