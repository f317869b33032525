/* touch.h - what memory itself can do, measured in the run that uses it as a limit. */
#ifndef TN_BENCH_TOUCH_H
#define TN_BENCH_TOUCH_H

#include <stdbool.h>
#include <stdint.h>

enum { TN_LINE = 64 };

/* Lines per second, in millions, of `lines` lines (32768 at most) at random places of `bytes`
 * bytes, fetched 64 ahead. */
double tn_random_lines(uint64_t bytes, uint32_t lines, bool change);

/* GB/s of writing one byte into every page of fresh memory. */
double tn_first_touch(void);

#endif
