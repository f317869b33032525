/* peak.h - what one core of this machine can multiply and add at most.
 *
 * Every benchmark measures it in its own run and says its figure as a share of it: machines and
 * minutes differ, the share does not.
 */
#ifndef TN_BENCH_PEAK_H
#define TN_BENCH_PEAK_H

/* fp32 multiply-adds times two per second of the calling thread, in 1e9, by the widest vectors that
 * the processor has; the best of `times` runs of some 20 ms. */
double tn_peak_gflops(int times);

/* Name of the vectors used: "avx512", "avx2", "plain". */
const char *tn_peak_kind(void);

#endif
