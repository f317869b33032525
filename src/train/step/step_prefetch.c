/* step_prefetch.c - steps circulate in a ring of slots:
 *
 *     FREE -> PREPARING -> READY -> LENT -> FREE        or FAILED, the last one
 *
 * The lock orders who takes which batch. It is not held while a batch is prepared, so several may
 * be at once; it is held by the owner of the team while it waits for data, and helpers only try it.
 */
#include "train/step/step_prefetch.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/thread/team.h"
#include "base/thread/threads.h"
#include "base/trace/trace.h"
#include "io/read/reader.h"
#include "train/step/model_plan.h"

#include <pthread.h>

/* ---- a thread that stops a reader; a signal handler may only set a flag ---- */

enum { SLICE_NS = 50 * 1000 * 1000 };

struct tn_reader_stopper {
    tn_reader *reader;
    const atomic_bool *flag;
    tn_thread *thread;
    pthread_mutex_t lock; /* guards `over` */
    pthread_cond_t ended; /* over turned true */
    bool over;
};

static tn_status look(void *arg, tn_error *err)
{
    (void)err;
    tn_reader_stopper *s = arg;
    (void)pthread_mutex_lock(&s->lock);
    while (!s->over && !atomic_load(s->flag)) {
        (void)tn_cond_wait_until(&s->ended, &s->lock, tn_clock_ns() + SLICE_NS);
    }
    bool over = s->over;
    (void)pthread_mutex_unlock(&s->lock);
    if (!over) {
        tn_reader_stop(s->reader);
    }
    return TN_OK;
}

tn_status tn_reader_stopper_start(tn_reader_stopper **out, tn_reader *reader,
                                  const atomic_bool *flag, tn_error *err)
{
    *out = NULL;
    tn_reader_stopper *s = NULL;
    TN_TRY(TN_ALLOC(s, 1, "a stopper", err));
    s->reader = reader;
    s->flag = flag;
    (void)pthread_mutex_init(&s->lock, NULL);
    tn_cond_init(&s->ended);
    tn_status status = tn_thread_start(&s->thread, "tnet-stopper", look, s, err);
    if (status != TN_OK) {
        tn_reader_stopper_end(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

void tn_reader_stopper_end(tn_reader_stopper *s)
{
    if (s == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&s->lock);
    s->over = true;
    (void)pthread_cond_signal(&s->ended);
    (void)pthread_mutex_unlock(&s->lock);
    tn_status status = tn_thread_join(s->thread, NULL);
    TN_ASSERT(status == TN_OK);
    (void)pthread_cond_destroy(&s->ended);
    (void)pthread_mutex_destroy(&s->lock);
    tn_free(s);
}

/* ---- steps in a ring ---- */

typedef enum slot_state { FREE, PREPARING, READY, LENT, FAILED } slot_state;

typedef struct slot {
    tn_step *step;
    slot_state state;
} slot;

struct tn_step_prefetch {
    tn_team *team;
    tn_batches batches;
    tn_reader *reader;          /* fills `batches`; or NULL */
    tn_reader_stopper *stopper; /* NULL: nobody can stop it */

    pthread_mutex_t lock;    /* guards all below */
    pthread_cond_t prepared; /* a slot is no longer PREPARING */
    slot *slot;
    uint32_t n_slots;
    uint32_t first; /* the next to hand out */
    uint32_t next;  /* the next to fill */
    tn_status end;  /* TN_OK: there may be more */
    tn_error err;   /* error of `end`, and of a slot that failed */
};

static tn_status next_of_reader(void *from, uint64_t until_ns, tn_batch **out, tn_error *err)
{
    return tn_reader_next_until(from, until_ns, out, err);
}

static void recycle_of_reader(void *from, tn_batch *batch)
{
    tn_reader_recycle(from, batch);
}

static uint32_t after(const tn_step_prefetch *f, uint32_t i)
{
    return i + 1 < f->n_slots ? i + 1 : 0;
}

/* Takes the next batch into the next slot, which is free; NULL: there is none. Locked. */
static slot *take_batch(tn_step_prefetch *f, uint64_t until_ns)
{
    slot *s = &f->slot[f->next];
    tn_batch *batch = NULL;
    tn_status status = f->batches.next(f->batches.from, until_ns, &batch, &f->err);
    if (status != TN_OK) {
        f->end = status;
        return NULL;
    }
    if (batch == NULL) {
        return NULL;
    }
    s->step->batch = batch;
    s->state = PREPARING;
    f->next = after(f, f->next);
    return s;
}

/* Locked before and after, not in between. */
static void prepare(tn_step_prefetch *f, slot *s)
{
    (void)pthread_mutex_unlock(&f->lock);
    tn_error err = {0};
    tn_lane *lane = tn_team_lane(f->team);
    tn_span_begin(lane, TN_PHASE_LOCALIZE);
    tn_status status = tn_step_prepare(s->step, s->step->batch, &err);
    tn_span_end(lane);
    (void)pthread_mutex_lock(&f->lock);
    s->state = status == TN_OK ? READY : FAILED;
    if (status != TN_OK && (f->end == TN_OK || f->end == TN_END)) {
        f->end = status;
        f->err = err;
    }
    (void)pthread_cond_signal(&f->prepared);
}

/* For a helper of the team. */
static bool prepare_aside(void *feeder)
{
    tn_step_prefetch *f = feeder;
    if (pthread_mutex_trylock(&f->lock) != 0) {
        return false;
    }
    slot *s = NULL;
    if (f->end == TN_OK && f->slot[f->next].state == FREE) {
        s = take_batch(f, 0);
    }
    if (s != NULL) {
        prepare(f, s);
    }
    (void)pthread_mutex_unlock(&f->lock);
    return s != NULL;
}

static tn_status make_slots(tn_step_prefetch *f, const tn_step_prefetch_opts *opts, tn_error *err)
{
    f->n_slots = opts->ahead + 1;
    f->slot = tn_try_alloc(f->n_slots, sizeof *f->slot, "steps", err);
    if (f->slot == NULL) {
        f->n_slots = 0;
        return TN_E_MEMORY;
    }
    for (uint32_t i = 0; i < f->n_slots; i++) {
        TN_TRY(tn_step_new(&f->slot[i].step, opts->plan, opts->training, err));
    }
    return TN_OK;
}

static tn_status open_feeder(tn_step_prefetch **out, const tn_step_prefetch_opts *opts,
                             tn_error *err)
{
    TN_ASSERT(opts->ahead > 0);
    tn_step_prefetch *f = NULL;
    TN_TRY(TN_ALLOC(f, 1, "a feeder", err));
    f->team = opts->team;
    (void)pthread_mutex_init(&f->lock, NULL);
    (void)pthread_cond_init(&f->prepared, NULL);
    tn_status status = make_slots(f, opts, err);
    if (status != TN_OK) {
        tn_step_prefetch_close(f);
        return status;
    }
    *out = f;
    return TN_OK;
}

tn_status tn_step_prefetch_open(tn_step_prefetch **out, const tn_step_prefetch_opts *opts,
                                const tn_reader_opts *reader, tn_error *err)
{
    *out = NULL;
    tn_step_prefetch *f = NULL;
    TN_TRY(open_feeder(&f, opts, err));
    tn_status status = tn_reader_open(&f->reader, opts->plan->schema, reader, err);
    if (status != TN_OK) {
        tn_step_prefetch_close(f);
        return status;
    }
    f->batches = (tn_batches){next_of_reader, recycle_of_reader, f->reader};
    *out = f;
    return TN_OK;
}

tn_status tn_step_prefetch_over(tn_step_prefetch **out, const tn_step_prefetch_opts *opts,
                                const tn_batches *batches, tn_error *err)
{
    *out = NULL;
    TN_TRY(open_feeder(out, opts, err));
    (*out)->batches = *batches;
    return TN_OK;
}

tn_status tn_step_prefetch_watch(tn_step_prefetch *f, const atomic_bool *stop, tn_error *err)
{
    TN_ASSERT(f->stopper == NULL && f->reader != NULL);
    return stop != NULL ? tn_reader_stopper_start(&f->stopper, f->reader, stop, err) : TN_OK;
}

/* The first slot that is ready, made here if nobody else did; NULL: the end, or no data by then.
 * Locked. */
static slot *first_ready(tn_step_prefetch *f, uint64_t until_ns)
{
    slot *s = &f->slot[f->first];
    TN_ASSERT(s->state != LENT); /* more steps were taken than there are */
    if (s->state == FREE && f->end == TN_OK) {
        TN_ASSERT(f->first == f->next);
        if (take_batch(f, until_ns) != NULL) {
            prepare(f, s);
        }
    }
    while (s->state == PREPARING) {
        (void)pthread_cond_wait(&f->prepared, &f->lock);
    }
    return s->state == READY ? s : NULL;
}

tn_status tn_step_prefetch_next(tn_step_prefetch *f, tn_step **out, tn_error *err)
{
    return tn_step_prefetch_next_until(f, UINT64_MAX, out, err);
}

tn_status tn_step_prefetch_next_until(tn_step_prefetch *f, uint64_t until_ns, tn_step **out,
                                      tn_error *err)
{
    tn_team_set_aside(f->team, prepare_aside, f);
    (void)pthread_mutex_lock(&f->lock);
    slot *s = first_ready(f, until_ns);
    tn_status status = f->end;
    if (s != NULL) {
        status = TN_OK;
        s->state = LENT;
        f->first = after(f, f->first);
        *out = s->step;
    } else if (status == TN_OK) {
        *out = NULL;
    } else if (status != TN_END && err != NULL) {
        *err = f->err;
    }
    (void)pthread_mutex_unlock(&f->lock);
    return status;
}

void tn_step_prefetch_recycle(tn_step_prefetch *f, tn_step *step)
{
    f->batches.recycle(f->batches.from, step->batch);
    (void)pthread_mutex_lock(&f->lock);
    uint32_t i = 0;
    while (f->slot[i].step != step) {
        i++;
        TN_ASSERT(i < f->n_slots);
    }
    TN_ASSERT(f->slot[i].state == LENT);
    step->batch = NULL;
    f->slot[i].state = FREE;
    (void)pthread_mutex_unlock(&f->lock);
}

tn_reader *tn_step_prefetch_reader(tn_step_prefetch *f)
{
    return f->reader;
}

void tn_step_prefetch_close(tn_step_prefetch *f)
{
    if (f == NULL) {
        return;
    }
    tn_team_set_aside(f->team, NULL, NULL);
    tn_reader_stopper_end(f->stopper);
    tn_reader_close(f->reader);
    for (uint32_t i = 0; i < f->n_slots; i++) {
        tn_step_free(f->slot[i].step);
    }
    tn_free(f->slot);
    (void)pthread_cond_destroy(&f->prepared);
    (void)pthread_mutex_destroy(&f->lock);
    tn_free(f);
}
