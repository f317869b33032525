/* machine.h - on which processor a benchmark ran, and what all its cores can multiply at once. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* fp32 multiply-adds times two per second, in 1e9, of `threads` threads at the same time, over
 * `ms` milliseconds: what was to be had in that moment, which on a shared machine is less than the
 * peak. *peak, unless NULL: raised to the best 20 ms of each thread added up, which no product of
 * this run exceeds. At most 1024 threads. */
double tn_machine_gflops(uint32_t threads, uint32_t ms, double *peak);

/* The name of the processor. */
const char *tn_machine_name(void);

/* From now on this thread and those that it starts have the first n of its processors; 0: all. */
void tn_machine_use_cores(uint32_t n);

/* One line: processor, cores, vectors, peak of one core and of all, best of a few moments. */
void tn_machine_print(bool json);

/* Largest resident size of this process so far, in MB. */
double tn_machine_rss_mb(void);

/* Seconds of processor time that this process took so far, of all its threads. */
double tn_machine_cpu_s(void);

/* The same of the calling thread alone. */
double tn_machine_thread_s(void);

/* A turn of a measurement. It is disturbed when others, programs and the host alike, take more than
 * .08 of a core meanwhile: all that the processors work by /proc/stat, stolen time included, less
 * this process's own time. A disturbed turn is made again, up to three times, and its least
 * disturbed try counts.
 *
 *     tn_turn t = {0};
 *     do {
 *         tn_turn_begin(&t);
 *     } while (tn_turn_end(&t, a rate));                t.rate
 */
typedef struct tn_turn {
    uint32_t tries;
    double rate, others;    /* of the least disturbed try so far; others: cores */
    double wall, cpu, busy; /* where this try began */
} tn_turn;
void tn_turn_begin(tn_turn *t);
bool tn_turn_end(tn_turn *t, double rate); /* whether to make it again */

/* Turns since the call before: of how many a try was made again, how often in all, and how many
 * stayed disturbed. tn_figure_print tells. */
typedef struct tn_turns {
    uint32_t n, tries, disturbed;
} tn_turns;
tn_turns tn_turns_take(void);
