/* clock.h - time: monotonic for measuring and for deadlines, wall for log files only. */
#pragma once

#include <stdint.h>

uint64_t tn_clock_ns(void); /* CLOCK_MONOTONIC */
double tn_clock_s(void);    /* the same in seconds */
double tn_wall_s(void);     /* Unix seconds, with fraction */
uint32_t tn_wall_day(void); /* days since 1970-01-01, UTC */

/* Returns the length of a timer of `ns` in this build: in test builds the environment variable
 * TNET_FAST divides all timers. */
uint64_t tn_timer_ns(uint64_t ns);

/* Returns the same for a silence after which a peer or a server counts as lost. TNET_SILENCE
 * divides it in the place of TNET_FAST: a test that wants short pauses on a busy machine sets it to
 * 1. */
uint64_t tn_silence_ns(uint64_t ns);
