/* signals.h - what signals ask of a run, as flags that are read between two steps.
 *
 *     SIGINT, SIGTERM,  save and end with code 75; a second SIGINT ends at once with 130
 *     SIGHUP            (the terminal was closed; where it is ignored, as by nohup, it stays so)
 *     SIGUSR1           save and go on
 *     SIGPIPE, SIGXFSZ  ignored: write(2) then says what is wrong
 *     SIGABRT           a bug was noticed: prints a backtrace; ends with 1, with 6 where libzmq has
 *                       called abort, or, where the process may leave a core (ulimit -c), by the
 *                       signal and with a core
 */
#pragma once

#include <signal.h>
#include <stdatomic.h>

/* The first call in main: handles the last three, opens /dev/null where 0, 1 or 2 is closed,
 * flushes denormals. */
void tn_signals_start(void);

/* The first three. Who starts a program that watches them leaves them blocked for it. */
void tn_signals_stops(sigset_t *out);

/* From now on these signals set the flag that is returned, which is the process's
 * (base/core/stop.h), also those that came before and were blocked until now. */
const atomic_bool *tn_signals_watch_stop(void);

/* From now on SIGUSR1, which did nothing before, sets this flag; whoever saves clears it again. */
atomic_bool *tn_signals_watch_save(void);

/* For programs with nothing to save: SIGINT, SIGTERM and SIGHUP end the process as they always do,
 * and this half-written file, whether it is there or not, with it. */
void tn_signals_remove(const char *path);
