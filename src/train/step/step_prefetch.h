/* step_prefetch.h - prepared steps from a reader, made ahead by threads of the team that have
 * nothing to do.
 *
 *     reader -> batch -> [localize] -> slots in order -> tn_step_prefetch_next
 *
 *     while ((status = tn_step_prefetch_next(f, &step, &err)) == TN_OK) {
 *         ... learn or score ...
 *         tn_step_prefetch_recycle(f, step);
 *     }
 *
 * One feeder is one pass. The steps come in the order of the reader, whichever thread made them. It
 * has no thread of its own: all processors of the machine may belong to the team already. Helpers
 * of the team that find no tile prepare a batch that is ready; when none of them did,
 * tn_step_prefetch_next does it itself. So a step takes work / threads, with the preparation in the
 * work.
 *
 * next and recycle are called by the thread that owns the team.
 */
#pragma once

#include "train/step/step.h"

#include <stdatomic.h>

typedef struct tn_reader tn_reader;
typedef struct tn_reader_opts tn_reader_opts; /* io/read/reader.h */
typedef struct tn_team tn_team;

typedef struct tn_step_prefetch tn_step_prefetch;

typedef struct tn_step_prefetch_opts {
    const tn_model_plan *plan;
    tn_team *team;  /* NULL: the caller alone */
    uint32_t ahead; /* steps kept ready, at least 1 */
    bool training;
} tn_step_prefetch_opts;

/* A source of batches. */
typedef struct tn_batches {
    /* The next one, lent until recycled; TN_END after the last. *out is NULL when none is ready by
     * `until_ns` of tn_clock_ns. Calls do not overlap. */
    tn_status (*next)(void *from, uint64_t until_ns, tn_batch **out, tn_error *err);
    void (*recycle)(void *from, tn_batch *batch);
    void *from; /* outlives the feeder */
} tn_batches;

/* Opens a reader with `reader`, which is the feeder's. On failure *out is NULL. */
tn_status tn_step_prefetch_open(tn_step_prefetch **out, const tn_step_prefetch_opts *opts,
                                const tn_reader_opts *reader, tn_error *err) TN_MUST_USE;
/* The same over any batches. */
tn_status tn_step_prefetch_over(tn_step_prefetch **out, const tn_step_prefetch_opts *opts,
                                const tn_batches *batches, tn_error *err) TN_MUST_USE;
void tn_step_prefetch_close(tn_step_prefetch *f); /* at any time; NULL is fine */

/* From now on a thread looks at *stop; when it turns true the reader stops, also one that waits for
 * data that do not come: what is ready follows, then TN_E_STOPPED (or TN_END, at the end). NULL:
 * nothing. At most once per feeder with a reader; `stop` must outlive it. */
tn_status tn_step_prefetch_watch(tn_step_prefetch *f, const atomic_bool *stop,
                                 tn_error *err) TN_MUST_USE;

/* TN_END after the last step. A failure comes after the steps before it, and again when called
 * again. */
tn_status tn_step_prefetch_next(tn_step_prefetch *f, tn_step **out, tn_error *err) TN_MUST_USE;
/* The same, but waits for data until `until_ns` of tn_clock_ns at most (0: not at all): *out is
 * NULL when there were none by then. */
tn_status tn_step_prefetch_next_until(tn_step_prefetch *f, uint64_t until_ns, tn_step **out,
                                      tn_error *err) TN_MUST_USE;
void tn_step_prefetch_recycle(tn_step_prefetch *f, tn_step *step);

tn_reader *tn_step_prefetch_reader(tn_step_prefetch *f); /* NULL: it is over other batches */

/* A thread that stops a reader when a flag turns true. A thread that waits for data cannot look at
 * a flag, and data that do not come would keep a signal waiting for ever. */
typedef struct tn_reader_stopper tn_reader_stopper;

/* Both must outlive it. On failure *out is NULL. */
tn_status tn_reader_stopper_start(tn_reader_stopper **out, tn_reader *reader,
                                  const atomic_bool *flag, tn_error *err) TN_MUST_USE;
void tn_reader_stopper_end(tn_reader_stopper *s); /* does not wait for the flag; NULL is fine */
