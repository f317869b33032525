/* threads.c - pthreads with a name, blocked signals and an error to take home. */
#include "base/thread/threads.h"

#include "base/core/alloc.h"
#include "base/core/embedder.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

struct tn_thread {
    pthread_t id;
    tn_thread_fn *run;
    void *arg;
    const tn_embedder *embedder; /* the starter's */
    tn_status status;            /* written by the thread, read after the join */
    tn_error err;
};

static void *thread_main(void *arg)
{
    tn_thread *t = arg;
    (void)tn_flush_denormals();
    (void)tn_embedder_enter(t->embedder);
    t->status = t->run(t->arg, &t->err);
    return NULL;
}

/* Processors that the calling thread could use before it was pinned; empty while it is not pinned.
 */
static _Thread_local cpu_set_t unpinned;

/* Finds the processors that the calling thread may use, or might if it were not pinned. */
static int allowed_cpus(cpu_set_t *out)
{
    *out = unpinned;
    return CPU_COUNT(out) > 0 || sched_getaffinity(0, sizeof *out, out) == 0 ? 0 : errno;
}

/* Signals belong to main: a thread inherits its starter's mask, so it is full for a moment. It
 * would inherit the one processor of a pinned starter, too. */
static int create_free_thread(tn_thread *t)
{
    sigset_t all;
    sigset_t before;
    pthread_attr_t how;
    sigfillset(&all);
    (void)pthread_attr_init(&how);
    int failure = CPU_COUNT(&unpinned) > 0
                      ? pthread_attr_setaffinity_np(&how, sizeof unpinned, &unpinned)
                      : 0;
    if (failure == 0) {
        pthread_sigmask(SIG_SETMASK, &all, &before);
        failure = pthread_create(&t->id, &how, thread_main, t);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    (void)pthread_attr_destroy(&how);
    return failure;
}

/* Finds out why a thread did not start. pthread_create says EAGAIN for both reasons: whether there
 * is room for a stack is tried. */
static tn_status cannot_start(const char *name, int failure, tn_error *err)
{
    pthread_attr_t how;
    size_t stack = 0;
    if (failure != EAGAIN && failure != ENOMEM) {
        return tn_fail(err, TN_E_IO, "cannot start thread '%s': %s", name,
                       strerrordesc_np(failure));
    }
    (void)pthread_attr_init(&how);
    (void)pthread_attr_getstacksize(&how, &stack);
    (void)pthread_attr_destroy(&how);
    void *room = mmap(NULL, stack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        return tn_fail(err, TN_E_MEMORY,
                       "cannot start thread '%s': out of memory: %zu kB for its stack\n"
                       "hint: raise ulimit -v, or lower ulimit -s, by which stacks are as large",
                       name, stack >> 10);
    }
    (void)munmap(room, stack);
    return tn_fail(err, TN_E_MEMORY,
                   "cannot start thread '%s': the limit of threads is reached\n"
                   "hint: raise ulimit -u or pids.max of the cgroup, or lower train.threads",
                   name);
}

tn_status tn_thread_start(tn_thread **out, const char *name, tn_thread_fn *run, void *arg,
                          tn_error *err)
{
    *out = NULL;
    TN_ASSERT(name != NULL && strlen(name) <= 15);
    TN_ASSERT(run != NULL);
    tn_thread *t = NULL;
    TN_TRY(TN_ALLOC(t, 1, "a thread", err));
    t->run = run;
    t->arg = arg;
    t->embedder = tn_embedder_here();
    int failure = create_free_thread(t);
    if (failure != 0) {
        tn_free(t);
        return cannot_start(name, failure, err);
    }
    /* Named here, so that the name is set when start returns; only people read it. */
    (void)pthread_setname_np(t->id, name);
    *out = t;
    return TN_OK;
}

tn_status tn_thread_join(tn_thread *thread, tn_error *err)
{
    if (thread == NULL) {
        return TN_OK;
    }
    int failure = pthread_join(thread->id, NULL);
    TN_ASSERT(failure == 0);
    tn_status status = thread->status;
    if (status != TN_OK && err != NULL) {
        *err = thread->err;
    }
    tn_free(thread);
    return status;
}

/* Ends when the starter releases the lock. */
static tn_status wait_at(void *arg, tn_error *err)
{
    (void)err;
    pthread_mutex_t *gate = arg;
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return TN_OK;
}

tn_status tn_threads_need(uint32_t n, const char *name, tn_error *err)
{
    TN_ASSERT(n <= TN_THREADS_NEED);
    tn_thread *threads[TN_THREADS_NEED] = {NULL};
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    tn_status status = TN_OK;
    pthread_mutex_lock(&gate);
    for (uint32_t i = 0; i < n && status == TN_OK; i++) {
        status = tn_thread_start(&threads[i], name, wait_at, &gate, err);
    }
    pthread_mutex_unlock(&gate);
    for (uint32_t i = 0; i < n; i++) {
        const tn_status ended = tn_thread_join(threads[i], NULL);
        TN_ASSERT(ended == TN_OK);
    }
    return status;
}

void tn_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;
    (void)pthread_condattr_init(&monotonic);
    int failure = pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    TN_ASSERT(failure == 0);
    (void)pthread_cond_init(cond, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
}

bool tn_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, uint64_t until_ns)
{
    const uint64_t ns_per_s = 1000000000;
    const struct timespec until = {(time_t)(until_ns / ns_per_s), (long)(until_ns % ns_per_s)};
    int failure = pthread_cond_timedwait(cond, lock, &until);
    TN_ASSERT(failure == 0 || failure == ETIMEDOUT);
    return failure == 0;
}

tn_status tn_thread_pin(const tn_thread *thread, uint32_t nth, tn_error *err)
{
    cpu_set_t all;
    cpu_set_t one;
    CPU_ZERO(&one);
    int failure = allowed_cpus(&all);
    uint32_t left = nth;
    for (size_t cpu = 0; failure == 0 && cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++) {
        if (CPU_ISSET(cpu, &all) && left-- == 0) {
            CPU_SET(cpu, &one);
        }
    }
    if (failure == 0) { /* an empty set is EINVAL */
        pthread_t id = thread != NULL ? thread->id : pthread_self();
        failure = pthread_setaffinity_np(id, sizeof one, &one);
    }
    if (failure != 0) {
        return tn_fail(err, TN_E_IO, "cannot keep a thread to processor %u of %u: %s", nth + 1,
                       tn_cpu_count(), strerrordesc_np(failure));
    }
    unpinned = thread == NULL ? all : unpinned;
    return TN_OK;
}

void tn_thread_unpin(void)
{
    if (CPU_COUNT(&unpinned) > 0) { /* a refusal of the system is ignored: it only costs speed */
        (void)pthread_setaffinity_np(pthread_self(), sizeof unpinned, &unpinned);
        CPU_ZERO(&unpinned);
    }
}

/* Changes the thread, not the process: Linux keeps a nice value for each. */
void tn_thread_step_back(int by)
{
    TN_ASSERT(by >= 0);
    errno = 0;
    int now = getpriority(PRIO_PROCESS, 0); /* -1 is a value */
    if (errno == 0) {
        (void)setpriority(PRIO_PROCESS, 0, now + by); /* the system keeps it below 20 */
    }
}

#if defined(__x86_64__)
enum { FLUSH_TO_ZERO = 0x8000, DENORMALS_ARE_ZERO = 0x0040 };
static const uint64_t flushing = FLUSH_TO_ZERO | DENORMALS_ARE_ZERO;
#else
static const uint64_t flushing = UINT64_C(1) << 24;
#endif

uint64_t tn_flush_denormals(void)
{
    uint64_t mode = 0;
#if defined(__x86_64__)
    mode = _mm_getcsr();
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
#endif
    tn_float_mode_set(mode | flushing); // cppcheck-suppress badBitmaskCheck
    return mode;
}

void tn_float_mode_set(uint64_t mode)
{
#if defined(__x86_64__)
    _mm_setcsr((unsigned)mode);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(mode));
#else
    (void)mode;
#endif
}

uint32_t tn_cpu_count(void)
{
    cpu_set_t set;
    if (allowed_cpus(&set) == 0 && CPU_COUNT(&set) > 0) {
        return (uint32_t)CPU_COUNT(&set);
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than the set can hold */
    return online > 0 ? (uint32_t)online : 1;
}
