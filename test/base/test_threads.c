/* test_threads.c - threads that report how they ended. */
#include "support/test.h"

#include "base/thread/threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct seen {
    char name[16];
    bool hears_sigint;
    float denormal;
} seen;

static tn_status look_around(void *arg, tn_error *err)
{
    (void)err;
    seen *s = arg;
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    s->hears_sigint = sigismember(&blocked, SIGINT) == 0;
    volatile float small = 1e-38F;
    s->denormal = small * 0.1F;
    return TN_OK;
}

static tn_status give_up(void *arg, tn_error *err)
{
    return tn_fail(err, TN_E_DATA, "no %s", (const char *)arg);
}

static tn_status tell_name(void *arg, tn_error *err)
{
    pthread_barrier_t *named = arg;
    (void)pthread_barrier_wait(named);
    char name[16];
    (void)pthread_getname_np(pthread_self(), name, sizeof name);
    return tn_fail(err, TN_E_DATA, "%s", name);
}

TEST(join_hands_over_status_and_error)
{
    tn_error err = {0};
    tn_thread *t = NULL;
    char what[] = "rows";
    assert_int_equal(tn_thread_start(&t, "reader-0", give_up, what, &err), TN_OK);
    assert_int_equal(tn_thread_join(t, &err), TN_E_DATA);
    assert_int_equal(err.code, TN_E_DATA);
    assert_string_equal(err.text, "no rows");
}

TEST(a_thread_bears_its_name)
{
    tn_error err = {0};
    tn_thread *t = NULL;
    pthread_barrier_t named;
    pthread_barrier_init(&named, NULL, 2);
    assert_int_equal(tn_thread_start(&t, "fifteen-letters", tell_name, &named, &err), TN_OK);
    (void)pthread_barrier_wait(&named);
    assert_int_equal(tn_thread_join(t, &err), TN_E_DATA);
    assert_string_equal(err.text, "fifteen-letters");
    pthread_barrier_destroy(&named);
}

TEST(a_thread_flushes_denormals_and_hears_no_signals)
{
    tn_thread *t = NULL;
    seen s = {.hears_sigint = true, .denormal = 1};
    assert_int_equal(tn_thread_start(&t, "look", look_around, &s, NULL), TN_OK);
    assert_int_equal(tn_thread_join(t, NULL), TN_OK);
    assert_false(s.hears_sigint);
    assert_true(fpclassify(s.denormal) == FP_ZERO);

    sigset_t blocked; /* the starter hears them as before */
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    assert_false(sigismember(&blocked, SIGINT));
}

TEST(joining_nothing_is_fine)
{
    assert_int_equal(tn_thread_join(NULL, NULL), TN_OK);
}

TEST(no_memory_is_reported)
{
    tn_error err = {0};
    tn_thread *t = NULL;
    tn_alloc_fail_at(1);
    assert_int_equal(tn_thread_start(&t, "never", look_around, NULL, &err), TN_E_MEMORY);
    assert_null(t);
}

/* A process of its own, whose limit stays its own. */
static void run_apart(bool (*play)(void))
{
    int status = 0;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        _exit(play() ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static bool limit(__rlimit_resource_t what, rlim_t n)
{
    const struct rlimit to = {n, n};
    return setrlimit(what, &to) == 0;
}

/* Stacks larger than all addresses: a limit of them would stop a sanitizer, too. */
static bool play_no_stack(void)
{
    pthread_attr_t large;
    tn_error err = {0};
    tn_thread *t = NULL;
    seen s = {0};
    return pthread_attr_init(&large) == 0 &&
           pthread_attr_setstacksize(&large, (size_t)1 << 50) == 0 &&
           pthread_setattr_default_np(&large) == 0 &&
           tn_thread_start(&t, "never", look_around, &s, &err) == TN_E_MEMORY && t == NULL &&
           strstr(err.text, "cannot start thread 'never': out of memory: ") == err.text &&
           tn_threads_need(2, "ZeroMQ", &err) == TN_E_MEMORY;
}

TEST(a_thread_without_room_for_its_stack_is_told)
{
    run_apart(play_no_stack);
}

/* Root and its like may have as many as they want. */
static bool play_no_more(void)
{
    tn_error err = {0};
    tn_thread *t = NULL;
    seen s = {0};
    return limit(RLIMIT_NPROC, 0) && (geteuid() != 0 || setresuid(65534, 65534, 65534) == 0) &&
           tn_thread_start(&t, "never", look_around, &s, &err) == TN_E_MEMORY && t == NULL &&
           strstr(err.text, "cannot start thread 'never': the limit of threads is reached\n") ==
               err.text &&
           strstr(err.text, "ulimit -u") != NULL;
}

TEST(a_limit_of_threads_is_told)
{
    run_apart(play_no_more);
}

TEST(threads_that_are_needed_are_there_at_once)
{
    tn_error err = {0};
    assert_int_equal(tn_threads_need(0, "ZeroMQ", &err), TN_OK);
    assert_int_equal(tn_threads_need(TN_THREADS_NEED, "ZeroMQ", &err), TN_OK);
    for (uint64_t nth = 1; nth <= 3; nth++) { /* those that were started end */
        tn_alloc_fail_at(nth);
        assert_int_equal(tn_threads_need(3, "ZeroMQ", &err), TN_E_MEMORY);
    }
}

static tn_status wait_for_release(void *arg, tn_error *err)
{
    (void)err;
    while (!atomic_load((_Atomic bool *)arg)) {
        (void)sched_yield();
    }
    return TN_OK;
}

static tn_status count_my_processors(void *arg, tn_error *err)
{
    (void)err;
    *(uint32_t *)arg = tn_cpu_count();
    return TN_OK;
}

TEST(a_pinned_thread_keeps_to_one_processor)
{
    tn_error err = {0};
    _Atomic bool released = false;
    uint32_t others = tn_cpu_count();
    tn_thread *t = NULL;
    assert_int_equal(tn_thread_start(&t, "pinned", wait_for_release, &released, &err), TN_OK);
    for (uint32_t nth = 0; nth < others; nth++) {
        assert_int_equal(tn_thread_pin(t, nth, &err), TN_OK);
    }
    assert_int_equal(tn_thread_pin(t, others, &err), TN_E_IO);
    assert_non_null(strstr(err.text, "cannot keep a thread to processor"));
    atomic_store(&released, true);
    assert_int_equal(tn_thread_join(t, &err), TN_OK);
    uint32_t count = 0; /* nobody else is kept */
    assert_int_equal(tn_thread_start(&t, "free", count_my_processors, &count, &err), TN_OK);
    assert_int_equal(tn_thread_join(t, &err), TN_OK);
    assert_int_equal(count, others);
}

TEST(there_is_at_least_one_processor)
{
    assert_in_range(tn_cpu_count(), 1, 65536);
}

static tn_status step_back(void *arg, tn_error *err)
{
    (void)err;
    int *nice = arg;
    nice[0] = getpriority(PRIO_PROCESS, 0);
    tn_thread_step_back(3);
    nice[1] = getpriority(PRIO_PROCESS, 0);
    tn_thread_step_back(100);
    nice[2] = getpriority(PRIO_PROCESS, 0);
    return TN_OK;
}

TEST(a_thread_that_steps_back_does_so_alone)
{
    int nice[3] = {0};
    tn_thread *t = NULL;
    int own = getpriority(PRIO_PROCESS, 0);
    assert_int_equal(tn_thread_start(&t, "behind", step_back, nice, NULL), TN_OK);
    assert_int_equal(tn_thread_join(t, NULL), TN_OK);
    assert_int_equal(getpriority(PRIO_PROCESS, 0), own);
    assert_int_equal(nice[0], own);
    assert_int_equal(nice[1], own + 3 < 19 ? own + 3 : 19);
    assert_int_equal(nice[2], 19);
}
