/* touch.h - what memory itself can do, measured in the run that uses it as a limit. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { TN_LINE = 64 };

/* Rows per second, in millions, of `rows` rows (32768 at most) of `lines` lines each at random
 * places of `bytes` bytes, fetched 64 ahead; the best of many rounds, which no walk over such rows
 * exceeds. */
double tn_random_rows(uint64_t bytes, uint32_t rows, uint32_t lines, bool change);

/* GB/s of writing one byte into every page of fresh memory, the best of four. */
double tn_first_touch(void);
