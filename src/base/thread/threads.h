/* threads.h - named threads that report how they ended.
 *
 * A thread's function returns a status and fills its own error; join hands both over. Every thread
 * of TNet is started here, so that each one flushes denormals to zero (see tn_flush_denormals),
 * blocks the signals that main handles, and has the embedder of its starter (base/core/embedder.h).
 */
#pragma once

#include "base/core/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct tn_thread tn_thread;
typedef tn_status tn_thread_fn(void *arg, tn_error *err);

/* `name` of at most 15 bytes shows in top and gdb. On failure *out is NULL. TN_E_MEMORY: there is
 * no memory for its stack, or the limit of threads is reached; the sentence says which. */
tn_status tn_thread_start(tn_thread **out, const char *name, tn_thread_fn *run, void *arg,
                          tn_error *err) TN_MUST_USE;

/* Whether `n` more threads, TN_THREADS_NEED at most, can be started: starts them all, and ends
 * them. For libraries that start threads of their own and end the process when they cannot; their
 * stacks are then those that are left here. The failure is that of tn_thread_start. */
enum { TN_THREADS_NEED = 8 };
tn_status tn_threads_need(uint32_t n, const char *name, tn_error *err) TN_MUST_USE;

/* Waits for the end, frees the thread and returns what its function returned. NULL: TN_OK. */
tn_status tn_thread_join(tn_thread *thread, tn_error *err) TN_MUST_USE;

/* A condition whose waits may end by the clock of tn_clock_ns. */
void tn_cond_init(pthread_cond_t *cond);
/* Waits for a signal, at most until tn_clock_ns() is `until_ns`; may return early. Returns false
 * when time is up. */
bool tn_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns);

/* Keeps a thread, or with NULL the caller, to the `nth` of the processors that the caller may use,
 * counted from 0. A caller that pins itself alone is kept there: threads that it starts may use all
 * that it could use before, and these are still what it counts and pins to, until it unpins itself.
 * TN_E_IO: there are fewer, or the system refuses. */
tn_status tn_thread_pin(const tn_thread *thread, uint32_t nth, tn_error *err) TN_MUST_USE;
void tn_thread_unpin(void); /* the caller, which need not be pinned */

/* Raises the nice value of the calling thread, and of no other, by `by`. It cannot be lowered again
 * without a privilege. A refusal of the system is ignored. */
void tn_thread_step_back(int by);

/* Sets FTZ and DAZ for the calling thread: decayed rows would otherwise turn denormal and an epoch
 * takes ten times longer. main() calls it first thing. Returns what the mode was, for a library
 * that gives its caller's thread back as it was. */
uint64_t tn_flush_denormals(void);
void tn_float_mode_set(uint64_t mode);

/* Returns the processors that the caller may use, or might if it were not pinned; at least 1. */
uint32_t tn_cpu_count(void);
