/* test_team.c - every tile once, and nothing left behind. */
#include "support/test.h"

#include "base/thread/team.h"
#include "base/thread/threads.h"
#include "base/trace/trace.h"

#include "support/mallocs.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <unistd.h>

enum { TILES = 1000 };

typedef struct visits {
    uint32_t count[TILES];
} visits;

static void visit(void *job, uint32_t tile)
{
    visits *v = job;
    v->count[tile]++;
}

static tn_team *team_of(uint32_t threads)
{
    tn_team *team = NULL;
    assert_int_equal(tn_team_open(&team, threads, NULL), TN_OK);
    return team;
}

TEST(every_tile_is_done_once_whatever_the_number_of_threads)
{
    for (uint32_t threads = 1; threads <= 5; threads++) {
        tn_team *team FREED(tn_team_close) = team_of(threads);
        visits v = {0};
        for (uint32_t run = 1; run <= 50; run++) {
            (run % 2 == 0 ? tn_team_run : tn_team_run_in_order)(team, TILES, visit, &v);
            for (uint32_t i = 0; i < TILES; i++) {
                assert_int_equal(v.count[i], run);
            }
        }
    }
}

typedef struct order {
    _Atomic uint32_t begun;
    uint32_t before[TILES]; /* how many had begun when this one did */
} order;

static void note_order(void *job, uint32_t tile)
{
    order *o = job;
    o->before[tile] = atomic_fetch_add(&o->begun, 1);
}

TEST(tiles_in_order_are_begun_in_order)
{
    for (uint32_t threads = 1; threads <= 4; threads++) {
        tn_team *team FREED(tn_team_close) = team_of(threads);
        order o = {0};
        tn_team_run_in_order(team, TILES, note_order, &o);
        for (uint32_t i = 0; i < TILES; i++) { /* the others may each have taken one, not begun */
            assert_true(o.before[i] + threads - 1 >= i);
        }
    }
}

TEST(what_a_run_wrote_the_next_run_reads_without_a_lock)
{
    tn_team *team FREED(tn_team_close) = team_of(3);
    for (uint32_t run = 0; run < 3000; run++) {
        visits v = {0}; /* on this stack: nobody may touch it once run() is back */
        uint32_t n = 2 + run % 7;
        tn_team_run(team, n, visit, &v);
        for (uint32_t i = 0; i < n; i++) {
            assert_int_equal(v.count[i], 1);
        }
        assert_int_equal(v.count[n], 0);
    }
}

typedef struct errand {
    _Atomic uint32_t left, done, inside;
} errand;

static bool run_errand(void *arg)
{
    errand *e = arg;
    atomic_fetch_add(&e->inside, 1);
    uint32_t left = atomic_load(&e->left);
    while (left > 0 && !atomic_compare_exchange_weak(&e->left, &left, left - 1)) {
    }
    atomic_fetch_add(&e->done, left > 0);
    atomic_fetch_sub(&e->inside, 1);
    return left > 0;
}

TEST(helpers_without_tiles_do_what_is_set_aside)
{
    tn_team *team FREED(tn_team_close) = team_of(3);
    visits v = {0};
    errand e = {.left = 500};
    tn_team_set_aside(team, run_errand, &e);
    while (atomic_load(&e.done) < 500) { /* every run wakes them */
        tn_team_run(team, TILES, visit, &v);
    }
    tn_team_set_aside(team, NULL, NULL);
    assert_int_equal(atomic_load(&e.inside), 0);
    atomic_store(&e.left, 1000000);
    for (uint32_t run = 0; run < 100; run++) {
        tn_team_run(team, TILES, visit, &v);
    }
    assert_int_equal(atomic_load(&e.left), 1000000); /* nobody comes back to it */
}

TEST(the_caller_and_a_team_of_one_set_nothing_aside)
{
    tn_team *team FREED(tn_team_close) = team_of(1);
    visits v = {0};
    errand e = {.left = 1};
    tn_team_set_aside(team, run_errand, &e);
    tn_team_set_aside(NULL, run_errand, &e);
    tn_team_run(team, TILES, visit, &v);
    assert_int_equal(atomic_load(&e.left), 1);
}

/* One tile for everybody: no thread gets a second one before each has had one. */
typedef struct meeting {
    tn_team *team;
    tn_trace *trace;
    _Atomic uint32_t there;
    _Atomic uint32_t recorded;
} meeting;

static cpu_set_t cpus_of_caller(void)
{
    cpu_set_t set;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    return set;
}

typedef struct processors {
    meeting m;
    cpu_set_t of[2]; /* of the threads that did the two tiles */
} processors;

static void note_processors(void *job, uint32_t tile)
{
    processors *p = job;
    p->of[tile] = cpus_of_caller();
    atomic_fetch_add(&p->m.there, 1);
    while (atomic_load(&p->m.there) % 2 != 0) { /* one tile each */
        (void)sched_yield();
    }
}

static tn_status note_own_processors(void *arg, tn_error *err)
{
    (void)err;
    *(cpu_set_t *)arg = cpus_of_caller();
    return TN_OK;
}

TEST(each_thread_of_a_pinned_team_has_a_processor_of_its_own)
{
    const cpu_set_t before = cpus_of_caller();
    const uint32_t n = tn_cpu_count();
    if (n < 2) {
        skip();
    }
    processors p = {.m.team = team_of(2)};
    assert_int_equal(tn_team_pin(p.m.team, NULL), TN_OK);
    tn_team_run(p.m.team, 2, note_processors, &p);
    cpu_set_t both;
    CPU_OR(&both, &p.of[0], &p.of[1]);
    assert_int_equal(CPU_COUNT(&p.of[0]), 1);
    assert_int_equal(CPU_COUNT(&p.of[1]), 1);
    assert_int_equal(CPU_COUNT(&both), 2);
    CPU_OR(&both, &both, &before);
    assert_true(CPU_EQUAL(&both, &before)); /* none that the process may not use */
    assert_int_equal(tn_cpu_count(), n);

    tn_thread *reader = NULL; /* which the caller starts meanwhile: kept to none */
    cpu_set_t of_reader;
    assert_int_equal(tn_thread_start(&reader, "reader", note_own_processors, &of_reader, NULL),
                     TN_OK);
    assert_int_equal(tn_thread_join(reader, NULL), TN_OK);
    assert_true(CPU_EQUAL(&of_reader, &before));

    tn_team_close(p.m.team);
    const cpu_set_t after = cpus_of_caller();
    assert_true(CPU_EQUAL(&after, &before));
}

TEST(a_team_is_pinned_within_what_the_process_may_use)
{
    tn_error err = {0};
    const cpu_set_t before = cpus_of_caller();
    cpu_set_t last; /* as taskset leaves it */
    CPU_ZERO(&last);
    for (size_t cpu = CPU_SETSIZE; CPU_COUNT(&last) == 0; cpu--) {
        if (CPU_ISSET(cpu - 1, &before)) {
            CPU_SET(cpu - 1, &last);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof last, &last), 0);
    for (uint32_t threads = 1; threads <= 2; threads++) {
        tn_team *team = team_of(threads);
        assert_int_equal(tn_team_pin(team, &err), threads == 1 ? TN_OK : TN_E_IO);
        tn_team_close(team);
        const cpu_set_t after = cpus_of_caller();
        assert_true(CPU_EQUAL(&after, &last));
    }
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(no_team_is_the_calling_thread_alone)
{
    visits v = {0};
    tn_team_run(NULL, TILES, visit, &v);
    assert_int_equal(v.count[0], 1);
    assert_int_equal(v.count[TILES - 1], 1);
    tn_team_close(NULL);
}

TEST(no_tiles_are_no_work)
{
    tn_team *team FREED(tn_team_close) = team_of(2);
    visits v = {0};
    tn_team_run(team, 0, visit, &v);
    assert_int_equal(v.count[0], 0);
}

TEST(a_warm_run_allocates_nothing)
{
    tn_team *team FREED(tn_team_close) = team_of(3);
    visits v = {0};
    tn_team_run(team, TILES, visit, &v);
    uint64_t before = tn_mallocs();
    for (uint32_t run = 0; run < 100; run++) {
        tn_team_run(team, TILES, visit, &v);
    }
    assert_int_equal(tn_mallocs(), before);
}

static uint64_t cpu_us(void)
{
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
    return (uint64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 +
           (uint64_t)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Waits for the helpers to fall asleep: CPU time stands still over a poll(2)-free nap. A team that
 * never sleeps uses 4 x 20 ms in each nap and so fails every one of the tries. */
TEST(an_idle_team_burns_no_processor)
{
    tn_team *team FREED(tn_team_close) = team_of(5);
    visits v = {0};
    tn_team_run(team, TILES, visit, &v);
    bool still = false;
    for (uint32_t i = 0; i < 100 && !still; i++) {
        uint64_t before = cpu_us();
        (void)usleep(20000);
        still = cpu_us() - before < 1000;
    }
    assert_true(still);
    tn_team_run(team, TILES, visit, &v); /* and wakes up again */
    assert_int_equal(v.count[TILES - 1], 2);
}

static void visit_slowly(void *job, uint32_t tile)
{
    for (uint32_t i = 0; i < 50; i++) {
        (void)sched_yield();
    }
    visit(job, tile);
}

TEST(more_threads_than_processors_still_finish)
{
    tn_team *team FREED(tn_team_close) = team_of(32);
    visits v = {0};
    for (uint32_t run = 0; run < 20; run++) {
        tn_team_run(team, 64, visit_slowly, &v);
    }
    for (uint32_t i = 0; i < 64; i++) {
        assert_int_equal(v.count[i], 20);
    }
}

TEST(a_team_that_cannot_be_made_whole_is_not_made)
{
    for (uint64_t nth = 1; nth <= 4; nth++) { /* the team itself, then each helper */
        tn_error err = {0};
        tn_team *team = NULL;
        tn_alloc_fail_at(nth);
        assert_int_equal(tn_team_open(&team, 4, &err), TN_E_MEMORY);
        assert_null(team);
    }
    tn_alloc_fail_at(0);
}

static void meet(void *job, uint32_t tile)
{
    (void)tile;
    meeting *m = job;
    const tn_lane *lane = tn_team_lane(m->team);
    atomic_fetch_add(&m->recorded, lane != NULL && tn_lane_phase(lane) == TN_PHASE_BACKWARD &&
                                       tn_lane_step_of(lane) == 7);
    atomic_fetch_add(&m->there, 1);
    while (atomic_load(&m->there) % 3 != 0) {
        (void)sched_yield();
    }
}

TEST(helpers_are_recorded_in_the_phase_and_step_of_the_caller)
{
    meeting m = {.team = team_of(3)};
    assert_int_equal(tn_trace_open(&m.trace, 64, NULL), TN_OK);
    assert_null(tn_team_lane(m.team));
    tn_team_trace(m.team, m.trace);
    tn_lane *lane = tn_trace_join(m.trace, "main");
    assert_ptr_equal(tn_team_lane(m.team), lane);
    tn_lane_step(lane, 7);
    tn_span_begin(lane, TN_PHASE_BACKWARD);
    for (uint32_t run = 0; run < 5; run++) {
        tn_team_run(m.team, 3, meet, &m);
    }
    tn_span_end(lane);
    assert_int_equal(m.recorded, 15);
    tn_team_run(m.team, 3, meet, &m); /* in no phase: the helpers are in none either */
    assert_int_equal(m.recorded, 15);
    tn_trace_leave(lane);
    tn_trace_end(m.trace);
    tn_team_close(m.team);
    assert_int_equal(tn_trace_lanes(m.trace), 3);
    for (uint32_t i = 0; i < 3; i++) {
        tn_lane_times times;
        tn_trace_times(m.trace, i, &times);
        assert_int_equal(times.phase[TN_PHASE_BACKWARD].calls, i == 0 ? 1 : 5);
        assert_true(times.phase[i == 0 ? TN_PHASE_WAIT_TEAM : TN_PHASE_WAIT_TILES].calls > 0);
    }
    tn_trace_close(m.trace);
}

typedef struct letter {
    uint32_t done; /* no atomic: settle makes it readable */
    _Atomic bool is_open;
    pthread_t by;
} letter;

static bool open_letter(void *arg)
{
    letter *l = arg;
    l->done++;
    l->by = pthread_self();
    atomic_store(&l->is_open, true);
    return true;
}

TEST(what_is_posted_is_done_once_when_it_is_settled)
{
    for (uint32_t threads = 1; threads <= 3; threads++) {
        tn_team *team FREED(tn_team_close) = team_of(threads);
        visits v = {0};
        letter l = {0};
        tn_team_settle(team); /* of nothing */
        for (uint32_t i = 1; i <= 2000; i++) {
            tn_team_post(team, open_letter, &l);
            tn_team_run(team, i % 5, visit, &v);
            tn_team_settle(team);
            assert_int_equal(l.done, i);
        }
    }
}

TEST(a_helper_does_what_is_posted)
{
    tn_team *team FREED(tn_team_close) = team_of(2);
    visits v = {0};
    letter l = {0};
    tn_team_post(team, open_letter, &l);
    while (!atomic_load(&l.is_open)) { /* a helper looks when it has been woken */
        tn_team_run(team, 2, visit, &v);
        (void)sched_yield();
    }
    assert_false(pthread_equal(l.by, pthread_self()));
    tn_team_settle(team);
    assert_int_equal(l.done, 1);
}
