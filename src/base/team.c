/* team.c - helpers spin, then yield, then sleep between runs; during one, everybody takes the
 * next tile.
 *
 *     ticket   | round 32 | tiles not yet taken 32 |     one atomic word
 *
 * A tile is taken by lowering the ticket. Whoever succeeds holds the run open until it reports the
 * tile done, so work, job and n_tiles are read after that and need no lock. A run ends when every
 * tile is reported, not when every helper has shown up: a helper that the system has put aside is
 * not waited for, and when it comes back late, the ticket gives it nothing.
 *
 * Who goes to sleep says so first (`asleep`, `caller_asleep`) and then lets futex(2) look at the
 * word again; who changes the word looks for sleepers afterwards. All four are sequentially
 * consistent, so one of the two always sees the other.
 */
#include "base/team.h"

#include "base/alloc.h"
#include "base/threads.h"

#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SPINS = 1500, /* some 50 us: longer than the gap between two operators of a step */
    YIELDS = 20
};

struct tn_team {
    _Alignas(TN_CACHE_LINE) _Atomic uint64_t ticket;
    _Alignas(TN_CACHE_LINE) _Atomic uint32_t done; /* tiles reported in this run */
    _Atomic uint32_t caller_asleep;
    _Alignas(TN_CACHE_LINE) _Atomic uint32_t round; /* counts the runs, and the close */
    _Atomic uint32_t asleep;                        /* helpers that sleep on `round` */
    _Atomic bool stop;

    tn_tile_fn *work; /* these five: written between two runs, read while holding a tile */
    void *job;
    uint32_t n_tiles;
    tn_phase phase; /* that the caller is in; TN_PHASES: none */
    uint64_t step;
    _Atomic(tn_trace *) trace; /* NULL: nothing is recorded */

    uint32_t spins; /* 0 when threads outnumber processors */
    uint32_t n_helpers;
    tn_thread *helper[];
};

static void futex_wait(_Atomic uint32_t *word, uint32_t seen)
{
    /* EAGAIN and EINTR both mean: look again, and so does every caller. */
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void futex_wake_all(_Atomic uint32_t *word)
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
static bool changed_soon(_Atomic uint32_t *word, uint32_t seen, uint32_t spins)
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

/* Takes a tile of the current run. False: there is none left. */
static bool take_tile(tn_team *t, uint32_t *out)
{
    uint64_t ticket = atomic_load_explicit(&t->ticket, memory_order_relaxed);
    while ((uint32_t)ticket > 0) {
        if (atomic_compare_exchange_weak_explicit(&t->ticket, &ticket, ticket - 1,
                                                  memory_order_acquire, memory_order_relaxed)) {
            *out = t->n_tiles - (uint32_t)ticket;
            return true;
        }
    }
    return false;
}

void tn_team_trace(tn_team *team, tn_trace *trace)
{
    atomic_store(&team->trace, trace);
}

tn_lane *tn_team_lane(const tn_team *team)
{
    return team == NULL ? NULL
                        : tn_trace_here(atomic_load_explicit(&team->trace, memory_order_relaxed));
}

/* For a helper that holds a tile: from waiting to what the caller does, in the caller's step. */
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

/* Says that `n` tiles are done. Must be the last touch of the run: it may be over now. */
static void report(tn_team *t, uint32_t n, uint32_t n_tiles)
{
    uint32_t before = atomic_fetch_add(&t->done, n);
    TN_ASSERT(n <= n_tiles && before <= n_tiles - n);
    if (before + n == n_tiles && atomic_load(&t->caller_asleep) != 0) {
        futex_wake_all(&t->done);
    }
}

/* At most one report per call, so that tiles in a row cost one atomic each. `lane` is a helper's
 * that waits for tiles; the caller of run() has none here, its phase goes on. */
static void work_on_tiles(tn_team *t, tn_lane *lane)
{
    uint32_t tile;
    uint32_t n = 0;
    uint32_t n_tiles = 0;
    while (take_tile(t, &tile)) {
        if (n == 0 && lane != NULL) {
            begin_tiles(t, lane);
        }
        n_tiles = t->n_tiles;
        t->work(t->job, tile);
        n++;
    }
    if (n > 0 && lane != NULL) {
        end_tiles(t, lane);
    }
    if (n > 0) {
        report(t, n, n_tiles);
    }
}

static void sleep_until_round(tn_team *t, uint32_t seen)
{
    atomic_fetch_add(&t->asleep, 1);
    while (atomic_load(&t->round) == seen) {
        futex_wait(&t->round, seen);
    }
    atomic_fetch_sub(&t->asleep, 1);
}

static tn_status helper_main(void *team, tn_error *err)
{
    (void)err;
    tn_team *t = team;
    uint32_t seen = 0;
    tn_lane *lane = NULL;
    while (!atomic_load(&t->stop)) {
        if (!changed_soon(&t->round, seen, t->spins)) {
            sleep_until_round(t, seen);
        }
        seen = atomic_load(&t->round);
        tn_trace *trace = atomic_load_explicit(&t->trace, memory_order_acquire);
        if (lane == NULL && trace != NULL) {
            lane = tn_trace_join(trace, "team");
            tn_span_begin(lane, TN_PHASE_WAIT_TILES);
        }
        work_on_tiles(t, lane);
    }
    tn_trace_leave(lane);
    return TN_OK;
}

tn_status tn_team_open(tn_team **out, uint32_t threads, tn_error *err)
{
    *out = NULL;
    TN_ASSERT(threads >= 1 && threads <= TN_TEAM_THREADS_MAX);
    tn_team *t = tn_try_alloc(1, sizeof *t + (threads - 1) * sizeof(tn_thread *), "a team", err);
    if (t == NULL) {
        return TN_E_MEMORY;
    }
    t->spins = threads <= tn_cpu_count() ? SPINS : 0;
    while (t->n_helpers < threads - 1) {
        tn_status status =
            tn_thread_start(&t->helper[t->n_helpers], "tnet-team", helper_main, t, err);
        if (status != TN_OK) {
            tn_error_context(err, "thread %u of %u", t->n_helpers + 2, threads);
            tn_team_close(t);
            return status;
        }
        t->n_helpers++;
    }
    *out = t;
    return TN_OK;
}

static void wake_helpers(tn_team *t)
{
    atomic_fetch_add(&t->round, 1);
    if (atomic_load(&t->asleep) > 0) {
        futex_wake_all(&t->round);
    }
}

void tn_team_close(tn_team *team)
{
    if (team == NULL) {
        return;
    }
    atomic_store(&team->stop, true);
    wake_helpers(team);
    for (uint32_t i = 0; i < team->n_helpers; i++) {
        tn_status status = tn_thread_join(team->helper[i], NULL);
        TN_ASSERT(status == TN_OK);
    }
    tn_free(team);
}

static void run_alone(uint32_t n_tiles, tn_tile_fn *work, void *job)
{
    for (uint32_t tile = 0; tile < n_tiles; tile++) {
        work(job, tile);
    }
}

/* For the caller of run(), which has found no more tiles to take. */
static void wait_for_the_rest(tn_team *t, uint32_t n_tiles)
{
    uint32_t done = atomic_load(&t->done);
    while (done != n_tiles) {
        if (!changed_soon(&t->done, done, t->spins)) {
            atomic_store(&t->caller_asleep, 1);
            if (atomic_load(&t->done) == done) {
                futex_wait(&t->done, done);
            }
            atomic_store(&t->caller_asleep, 0);
        }
        done = atomic_load(&t->done);
    }
}

void tn_team_run(tn_team *team, uint32_t n_tiles, tn_tile_fn *work, void *job)
{
    if (team == NULL || team->n_helpers == 0 || n_tiles < 2) {
        run_alone(n_tiles, work, job);
        return;
    }
    team->work = work;
    team->job = job;
    team->n_tiles = n_tiles;
    tn_lane *lane = tn_team_lane(team);
    team->phase = lane != NULL ? tn_lane_phase(lane) : TN_PHASES;
    team->step = lane != NULL ? tn_lane_step_of(lane) : 0;
    atomic_store(&team->done, 0);
    uint64_t round = (uint64_t)atomic_load(&team->round) + 1;
    atomic_store_explicit(&team->ticket, round << 32 | n_tiles, memory_order_release);
    wake_helpers(team);

    work_on_tiles(team, NULL);
    tn_span_begin(lane, TN_PHASE_WAIT_TEAM);
    wait_for_the_rest(team, n_tiles);
    tn_span_end(lane);
}
