/* signals.h - what signals ask of a run, as a flag that is read between two steps.
 *
 *     SIGINT, SIGTERM   save and end with code 75; a second SIGINT ends at once with 130
 *     SIGUSR1           save and go on
 *     SIGPIPE, SIGXFSZ  ignored: write(2) then says what is wrong
 */
#ifndef TN_CLI_SIGNALS_H
#define TN_CLI_SIGNALS_H

/* First thing in main: ignores the last two, opens /dev/null where 0, 1 or 2 is closed, flushes
 * denormals. */
void tn_signals_start(void);

/* From now on the flag is set. It is TN_ASKED_NOTHING, _STOP or _SAVE of train/trainer.h. */
volatile int *tn_signals_watch(void);

/* The same for a program that has nothing to save: SIGUSR1 does nothing. */
const volatile int *tn_signals_watch_stop(void);

#endif
