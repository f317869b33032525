/* team.c - helpers spin, then yield, then sleep between runs; during one, everybody takes the
 * next tile.
 *
 *     seat 0 | seat 1 | seat 2        n_tiles in even, contiguous shares, one per thread
 *     ticket   | round 32 | tiles of the seat not yet taken 32 |     one atomic word
 *
 * A thread takes the tiles of its own seat first: what it wrote in one run lies in its own cache in
 * the next, when the tiles are for the same rows. Then it takes what is left in others' seats. A
 * run in order has all tiles in seat 0. A tile is taken by lowering a ticket. Whoever succeeds
 * holds the run open until it reports the tile done, so work, job and n_tiles are read after that
 * and need no lock. A run ends when every tile is reported, not when every helper has shown up: a
 * helper that the system has put aside is not waited for, and when it comes back late, the tickets
 * give it nothing.
 *
 * A thread announces that it goes to sleep (`asleep`, `caller_asleep`) before it does; a thread
 * that changes the word looks for sleepers afterwards:
 *
 *     who waits                                   who changes it
 *     asleep = 1;                                 word = next;
 *     while (word == seen)                        if (asleep)
 *         sleep_on(&word, seen);                      wake_all(&word);
 *     asleep = 0;
 *
 * All four accesses are sequentially consistent, so at least one thread sees the write of the
 * other.
 */
#include "base/thread/team.h"

#include "base/core/alloc.h"
#include "base/thread/threads.h"
#include "base/trace/trace.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SPINS = 1500, /* some 50 us: longer than the gap between two operators of a step */
    YIELDS = 20,
};

/* Sleeps while *word is `seen`, until woken; may return early, so the caller looks again. */
static void sleep_on(_Atomic uint32_t *word, uint32_t seen)
{
    /* After EAGAIN or EINTR the caller looks at the word again, as it always does. */
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void wake_all(_Atomic uint32_t *word)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    atomic_signal_fence(memory_order_seq_cst);
#endif
}

/* Waits a bounded while, without sleeping, for *word to differ from `seen`. */
static bool changes(_Atomic uint32_t *word, uint32_t seen, uint32_t spins)
{
    for (uint32_t i = 0; i < spins + YIELDS; i++) {
        if (atomic_load_explicit(word, memory_order_acquire) != seen) {
            return true;
        }
        if (i < spins) {
            pause_briefly();
        } else {
            (void)sched_yield();
        }
    }
    return false;
}

/* State of what tn_team_post hands over: none, or done; nobody has begun it; somebody has. */
typedef enum post_state { POST_NONE, POST_OPEN, POST_TAKEN } post_state;

/* A thread and its share of the tiles; the first is the caller's. */
typedef struct seat {
    _Alignas(TN_CACHE_LINE) _Atomic uint64_t ticket;
    struct tn_team *team;
    tn_thread *thread;
} seat;

struct tn_team {
    _Alignas(TN_CACHE_LINE) _Atomic uint32_t done; /* tiles reported in this run */
    _Atomic uint32_t caller_asleep;
    _Alignas(TN_CACHE_LINE) _Atomic uint32_t round; /* counts the runs, and the close */
    _Atomic uint32_t asleep;                        /* helpers that sleep on `round` */
    _Atomic bool stop;

    tn_tile_fn *work; /* these six: written between two runs, read while holding a tile */
    void *job;
    uint32_t n_tiles;
    bool in_order;  /* all tiles are in the caller's seat */
    tn_phase phase; /* phase of the caller; TN_PHASES: none */
    uint64_t step;
    _Atomic(tn_trace *) trace; /* NULL: nothing is recorded */

    _Alignas(TN_CACHE_LINE) _Atomic(tn_aside_fn *) aside;
    _Atomic uint32_t inside; /* helpers that look at `aside` or are in it */
    void *aside_arg;         /* written while nobody is inside */

    _Alignas(TN_CACHE_LINE) _Atomic uint32_t posted; /* a post_state */
    tn_aside_fn *posted_work;                        /* these two: written while it is NONE */
    void *posted_arg;

    bool is_pinned; /* the caller was, too */
    uint32_t spins; /* 0 when threads outnumber processors */
    uint32_t n_seats;
    seat seat[];
};

/* Returns the first tile of a seat: the shares of seats differ by one tile at most. */
static uint32_t seat_begin(const tn_team *t, uint32_t i)
{
    if (t->in_order) {
        return i == 0 ? 0 : t->n_tiles;
    }
    return (uint32_t)((uint64_t)t->n_tiles * i / t->n_seats);
}

/* Takes a tile of the current run from a seat. Returns false when none is left in it. */
static bool take_tile(tn_team *t, uint32_t from, uint32_t *out)
{
    uint64_t ticket = atomic_load_explicit(&t->seat[from].ticket, memory_order_relaxed);
    while ((uint32_t)ticket > 0) {
        if (atomic_compare_exchange_weak_explicit(&t->seat[from].ticket, &ticket, ticket - 1,
                                                  memory_order_acquire, memory_order_relaxed)) {
            *out = seat_begin(t, from + 1) - (uint32_t)ticket;
            TN_ASSERT(*out < t->n_tiles);
            return true;
        }
    }
    return false;
}

void tn_team_trace(tn_team *team, tn_trace *trace)
{
    TN_ASSERT(atomic_load(&team->trace) == NULL);
    atomic_store(&team->trace, trace);
}

tn_lane *tn_team_lane(const tn_team *team)
{
    return team == NULL ? NULL
                        : tn_trace_here(atomic_load_explicit(&team->trace, memory_order_relaxed));
}

/* Moves a helper that holds a tile from waiting to the phase and step of the caller. */
static void begin_tiles(const tn_team *t, tn_lane *lane)
{
    tn_lane_step(lane, t->step);
    if (t->phase < TN_PHASES) {
        tn_span_next(lane, t->phase);
    } else {
        tn_span_end(lane);
    }
}

static void end_tiles(const tn_team *t, tn_lane *lane)
{
    if (t->phase < TN_PHASES) {
        tn_span_next(lane, TN_PHASE_WAIT_TILES);
    } else {
        tn_span_begin(lane, TN_PHASE_WAIT_TILES);
    }
}

/* Reports `n` tiles as done. Do not touch the run afterwards; it may have ended. */
static void report(tn_team *t, uint32_t n, uint32_t n_tiles)
{
    uint32_t before = atomic_fetch_add(&t->done, n);
    TN_ASSERT(n <= n_tiles && before <= n_tiles - n);
    if (before + n == n_tiles && atomic_load(&t->caller_asleep) != 0) {
        wake_all(&t->done);
    }
}

/* Takes tiles of the own seat first. Reports at most once per call, so that tiles in a row cost one
 * atomic each. `lane` is a helper's that waits for tiles; the caller of run() has none: its phase
 * goes on. */
static void work_on_tiles(tn_team *t, uint32_t own, tn_lane *lane)
{
    uint32_t tile;
    uint32_t n = 0;
    uint32_t n_tiles = 0;
    for (uint32_t i = 0; i < t->n_seats; i++) {
        uint32_t from = own + i < t->n_seats ? own + i : own + i - t->n_seats;
        while (take_tile(t, from, &tile)) {
            if (n == 0 && lane != NULL) {
                begin_tiles(t, lane);
            }
            n_tiles = t->n_tiles;
            t->work(t->job, tile);
            n++;
        }
    }
    if (n > 0 && lane != NULL) {
        end_tiles(t, lane);
    }
    if (n > 0) {
        report(t, n, n_tiles);
    }
}

/* Does the posted work, unless another thread opened it first. */
static bool work_on_post(tn_team *t)
{
    uint32_t open = POST_OPEN;
    if (atomic_load_explicit(&t->posted, memory_order_relaxed) != POST_OPEN ||
        !atomic_compare_exchange_strong(&t->posted, &open, POST_TAKEN)) {
        return false;
    }
    (void)t->posted_work(t->posted_arg);
    atomic_store(&t->posted, POST_NONE);
    return true;
}

void tn_team_post(tn_team *team, tn_aside_fn *work, void *arg)
{
    TN_ASSERT(atomic_load(&team->posted) == POST_NONE);
    team->posted_work = work;
    team->posted_arg = arg;
    atomic_store(&team->posted, POST_OPEN);
}

void tn_team_settle(tn_team *team)
{
    (void)work_on_post(team);
    while (atomic_load(&team->posted) != POST_NONE) {
        (void)sched_yield();
    }
}

/* Does other work, for a helper that has no tiles. tn_team_set_aside changes `aside` and then looks
 * at `inside`; a helper does the reverse, so at least one of them sees the other. */
static bool work_aside(tn_team *t)
{
    if (atomic_load_explicit(&t->aside, memory_order_relaxed) == NULL) {
        return false;
    }
    atomic_fetch_add(&t->inside, 1);
    tn_aside_fn *aside = atomic_load(&t->aside);
    bool worked = aside != NULL && aside(t->aside_arg);
    atomic_fetch_sub(&t->inside, 1);
    return worked;
}

static void sleep_until_round(tn_team *t, uint32_t seen)
{
    atomic_fetch_add(&t->asleep, 1);
    while (atomic_load(&t->round) == seen) {
        sleep_on(&t->round, seen);
    }
    atomic_fetch_sub(&t->asleep, 1);
}

static tn_status helper_main(void *arg, tn_error *err)
{
    (void)err;
    seat *own = arg;
    tn_team *t = own->team;
    uint32_t seen = 0;
    tn_lane *lane = NULL;
    while (!atomic_load(&t->stop)) {
        if (!changes(&t->round, seen, t->spins)) {
            sleep_until_round(t, seen);
        }
        seen = atomic_load(&t->round);
        tn_trace *trace = atomic_load_explicit(&t->trace, memory_order_acquire);
        if (lane == NULL && trace != NULL) {
            lane = tn_trace_join(trace, "team");
            tn_span_begin(lane, TN_PHASE_WAIT_TILES);
        }
        work_on_tiles(t, (uint32_t)(own - t->seat), lane);
        while ((work_on_post(t) || work_aside(t)) && atomic_load(&t->round) == seen) {
        }
    }
    tn_trace_leave(lane);
    return TN_OK;
}

tn_status tn_team_open(tn_team **out, uint32_t threads, tn_error *err)
{
    *out = NULL;
    TN_ASSERT(threads >= 1 && threads <= TN_TEAM_THREADS_MAX);
    tn_team *t = tn_try_alloc(1, sizeof *t + threads * sizeof *t->seat, "a team", err);
    if (t == NULL) {
        return TN_E_MEMORY;
    }
    t->spins = threads <= tn_cpu_count() ? SPINS : 0;
    t->n_seats = threads;
    for (uint32_t i = 0; i < threads; i++) {
        t->seat[i].team = t;
    }
    for (uint32_t i = 1; i < threads; i++) {
        tn_status status =
            tn_thread_start(&t->seat[i].thread, "tnet-team", helper_main, &t->seat[i], err);
        if (status != TN_OK) {
            tn_error_context(err, "thread %u of %u", i + 1, threads);
            tn_team_close(t);
            return status;
        }
    }
    *out = t;
    return TN_OK;
}

tn_status tn_team_pin(tn_team *team, tn_error *err)
{
    for (uint32_t i = 1; i < team->n_seats; i++) {
        TN_TRY(tn_thread_pin(team->seat[i].thread, i, err));
    }
    TN_TRY(tn_thread_pin(NULL, 0, err));
    team->is_pinned = true;
    return TN_OK;
}

static void wake_helpers(tn_team *t)
{
    atomic_fetch_add(&t->round, 1);
    if (atomic_load(&t->asleep) > 0) {
        wake_all(&t->round);
    }
}

void tn_team_close(tn_team *team)
{
    if (team == NULL) {
        return;
    }
    TN_ASSERT(atomic_load(&team->done) == team->n_tiles);
    TN_ASSERT(atomic_load(&team->posted) == POST_NONE);
    atomic_store(&team->stop, true);
    wake_helpers(team);
    for (uint32_t i = 1; i < team->n_seats; i++) {
        tn_status status = tn_thread_join(team->seat[i].thread, NULL);
        TN_ASSERT(status == TN_OK);
    }
    if (team->is_pinned) {
        tn_thread_unpin();
    }
    tn_free(team);
}

void tn_team_set_aside(tn_team *team, tn_aside_fn *aside, void *arg)
{
    if (team == NULL) {
        return;
    }
    atomic_store(&team->aside, NULL);
    while (atomic_load(&team->inside) > 0) {
        (void)sched_yield();
    }
    team->aside_arg = arg;
    atomic_store(&team->aside, aside);
}

/* Waits until all tiles are done; for the caller of run(), which has found no more tiles to take.
 */
static void wait_for_the_rest(tn_team *t, uint32_t n_tiles)
{
    uint32_t done = atomic_load(&t->done);
    while (done != n_tiles) {
        if (!changes(&t->done, done, t->spins)) {
            atomic_store(&t->caller_asleep, 1);
            if (atomic_load(&t->done) == done) {
                sleep_on(&t->done, done);
            }
            atomic_store(&t->caller_asleep, 0);
        }
        done = atomic_load(&t->done);
    }
}

static void run(tn_team *team, uint32_t n_tiles, tn_tile_fn *work, void *job, bool in_order)
{
    tn_lane *lane = n_tiles > 1 ? tn_team_lane(team) : NULL;
    tn_lane_tiles_begin(lane, n_tiles);
    if (team == NULL || team->n_seats == 1 || n_tiles < 2) {
        for (uint32_t tile = 0; tile < n_tiles; tile++) {
            work(job, tile);
        }
        tn_lane_tiles_end(lane);
        return;
    }
    TN_ASSERT(atomic_load(&team->done) == team->n_tiles); /* no run within a run */
    team->work = work;
    team->job = job;
    team->n_tiles = n_tiles;
    team->in_order = in_order;
    team->phase = lane != NULL ? tn_lane_phase(lane) : TN_PHASES;
    team->step = lane != NULL ? tn_lane_step_of(lane) : 0;
    atomic_store(&team->done, 0);
    uint64_t round = (uint64_t)atomic_load(&team->round) + 1;
    for (uint32_t i = 0; i < team->n_seats; i++) {
        uint32_t share = seat_begin(team, i + 1) - seat_begin(team, i);
        atomic_store_explicit(&team->seat[i].ticket, round << 32 | share, memory_order_release);
    }
    wake_helpers(team);

    work_on_tiles(team, 0, NULL);
    tn_lane_tiles_end(lane);
    tn_span_begin(lane, TN_PHASE_WAIT_TEAM);
    wait_for_the_rest(team, n_tiles);
    tn_span_end(lane);
}

void tn_team_run(tn_team *team, uint32_t n_tiles, tn_tile_fn *work, void *job)
{
    run(team, n_tiles, work, job, false);
}

void tn_team_run_in_order(tn_team *team, uint32_t n_tiles, tn_tile_fn *work, void *job)
{
    run(team, n_tiles, work, job, true);
}
