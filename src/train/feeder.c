/* feeder.c - steps circulate between two queues; see feeder.h. */
#include "train/feeder.h"

#include "base/alloc.h"
#include "base/queue.h"
#include "base/threads.h"
#include "train/stopper.h"

struct tn_feeder {
    tn_reader *reader;
    tn_queue *ready; /* prepared steps, to the consumer */
    tn_queue *idle;  /* steps to be used again */
    tn_step **step;  /* all of them */
    uint32_t n_steps;
    tn_trace *trace;
    const char *name; /* of the thread's lane */
    tn_thread *thread;
    tn_stopper *stopper; /* NULL: nobody can stop it */
};

/* Fills a step with the next batch. */
static tn_status fill(tn_feeder *f, tn_step *step, tn_lane *lane, tn_error *err)
{
    tn_batch *batch = NULL;
    tn_span_begin(lane, TN_PHASE_WAIT_INPUT);
    tn_status status = tn_reader_next(f->reader, &batch, err);
    tn_span_end(lane);
    TN_TRY(status);
    tn_span_begin(lane, TN_PHASE_LOCALIZE);
    status = tn_step_prepare(step, batch, err);
    tn_span_end(lane);
    return status;
}

/* An idle step to be filled; false: the feeder closes. */
static bool take_idle(tn_feeder *f, tn_lane *lane, tn_step **out)
{
    void *item = NULL;
    tn_span_begin(lane, TN_PHASE_WAIT_ROOM);
    bool got = tn_queue_pop(f->idle, &item);
    tn_span_end(lane);
    *out = item;
    return got;
}

/* Fills steps until the data ends, something fails or the feeder closes. */
static tn_status feed(void *arg, tn_error *err)
{
    tn_feeder *f = arg;
    tn_status status = TN_OK;
    tn_step *step = NULL;
    tn_lane *lane = tn_trace_join(f->trace, f->name);
    uint64_t steps = 0;
    while (status == TN_OK && take_idle(f, lane, &step)) {
        status = fill(f, step, lane, err);
        if (status == TN_OK && !tn_queue_push(f->ready, step)) { /* has room for every step */
            break;
        }
        tn_lane_step(lane, ++steps);
    }
    tn_trace_leave(lane);
    tn_queue_close(f->ready);
    return status;
}

static tn_status make_steps(tn_feeder *f, const tn_blueprint *plan, bool training, tn_error *err)
{
    TN_TRY(tn_queue_new(&f->ready, f->n_steps, err));
    TN_TRY(tn_queue_new(&f->idle, f->n_steps, err));
    for (uint32_t i = 0; i < f->n_steps; i++) {
        TN_TRY(tn_step_new(&f->step[i], plan, training, err));
        bool pushed = tn_queue_push(f->idle, f->step[i]);
        TN_ASSERT(pushed);
    }
    return TN_OK;
}

tn_status tn_feeder_open(tn_feeder **out, const tn_blueprint *plan, const tn_reader_opts *opts,
                         uint32_t ahead, tn_error *err)
{
    *out = NULL;
    tn_feeder *f = tn_try_alloc(1, sizeof *f, "a feeder", err);
    if (f == NULL) {
        return TN_E_MEMORY;
    }
    f->trace = opts->trace;
    f->name = opts->training ? "feeder" : "eval feeder";
    f->n_steps = ahead + 1;
    f->step = tn_alloc(f->n_steps, sizeof(void *), "steps");
    tn_status status = make_steps(f, plan, opts->training, err);
    if (status == TN_OK) {
        status = tn_reader_open(&f->reader, plan->schema, opts, err);
    }
    if (status == TN_OK) {
        status = tn_thread_start(&f->thread, "tnet-feeder", feed, f, err);
    }
    if (status != TN_OK) {
        tn_feeder_close(f);
        return status;
    }
    *out = f;
    return TN_OK;
}

tn_status tn_feeder_watch(tn_feeder *f, const atomic_bool *stop, tn_error *err)
{
    TN_ASSERT(f->stopper == NULL);
    return stop != NULL ? tn_stopper_start(&f->stopper, f->reader, stop, err) : TN_OK;
}

tn_status tn_feeder_next(tn_feeder *f, tn_step **out, tn_error *err)
{
    void *item = NULL;
    if (tn_queue_pop(f->ready, &item)) {
        *out = item;
        return TN_OK;
    }
    tn_thread *thread = f->thread;
    f->thread = NULL;
    tn_status status = tn_thread_join(thread, err); /* TN_END, or what went wrong */
    return status == TN_OK ? TN_END : status;
}

void tn_feeder_recycle(tn_feeder *f, tn_step *step)
{
    tn_reader_recycle(f->reader, step->batch);
    step->batch = NULL;
    bool pushed = tn_queue_push(f->idle, step);
    (void)pushed; /* closed: the step is freed with the feeder */
}

tn_reader *tn_feeder_reader(tn_feeder *f)
{
    return f->reader;
}

void tn_feeder_close(tn_feeder *f)
{
    if (f == NULL) {
        return;
    }
    tn_stopper_end(f->stopper);
    if (f->idle != NULL) {
        tn_queue_close(f->idle);
    }
    if (f->ready != NULL) {
        tn_queue_close(f->ready);
    }
    tn_status status = tn_thread_join(f->thread, NULL);
    (void)status; /* its failure was reported, or nobody waits for it any more */
    tn_reader_close(f->reader);
    for (uint32_t i = 0; i < f->n_steps; i++) {
        tn_step_free(f->step[i]);
    }
    tn_free(f->step);
    tn_queue_free(f->ready);
    tn_queue_free(f->idle);
    tn_free(f);
}
