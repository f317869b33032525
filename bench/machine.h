/* machine.h - on which processor a benchmark ran, and what all its cores can multiply at once. */
#ifndef TN_BENCH_MACHINE_H
#define TN_BENCH_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

/* fp32 multiply-adds times two per second, in 1e9, of `threads` threads at the same time, over
 * `ms` milliseconds: what was to be had in that moment, which on a shared machine is less than the
 * peak. At most 1024 threads. */
double tn_machine_gflops(uint32_t threads, uint32_t ms);

/* One line: processor, cores, vectors, peak of one core and of all, best of a few moments. */
void tn_machine_print(bool json);

/* Largest resident size of this process so far, in MB. */
double tn_machine_rss_mb(void);

/* Seconds of processor time that this process took so far, of all its threads. */
double tn_machine_cpu_s(void);

/* Seconds that all processors worked so far for anybody, the time that a host took from them
 * included; what is not this process's own disturbs a measurement. 0: not known. */
double tn_machine_busy_s(void);

/* From here ..                                  tn_lap lap = tn_lap_begin();
 * .. to there: what a rate per second of that   rate = train(..);
 * time is per second of processor time.         rate = tn_lap_per_cpu(lap, rate);
 *
 * For ratios of work done by one core on a machine whose cores are wanted by others, too. */
typedef struct tn_lap {
    double wall, cpu;
} tn_lap;
tn_lap tn_lap_begin(void);
double tn_lap_per_cpu(tn_lap from, double rate);

#endif
