/* machine_peak.h - what this machine can multiply and add at most, and move from and to memory.
 *
 * Every benchmark and every profile measures the peak in its own run and reports its result as a
 * share of it, since shares can be compared between machines.
 */
#pragma once

#include "base/core/error.h"

#include <stdint.h>

/* Returns fp32 multiply-adds times two per second of the calling thread, in 1e9, by the widest
 * vectors that the processor has; the best of `times` runs of some 20 ms. */
double tn_peak_gflops(int times);

/* The peaks of `threads` threads together, measured for about `seconds`. */
typedef struct tn_peaks {
    double gflops; /* as above */
    double bytes;  /* per second, read and written, of arrays that no cache holds */
} tn_peaks;
tn_status tn_peaks_measure(uint32_t threads, double seconds, tn_peaks *out,
                           tn_error *err) TN_MUST_USE;

/* Returns the name of the vectors used: "avx512", "avx2", "plain". */
const char *tn_peak_kind(void);
