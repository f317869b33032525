/* children.c - starts children and looks after them until the last has ended. */
#include "cluster/launch/children.h"

#include "base/core/arena.h"
#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/core/number.h"
#include "base/core/stop.h"
#include "base/file/file.h"
#include "cluster/launch/launcher.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { VARIABLE_BYTES = 48, NO_PROGRAM = 127 };

/* ---- one process, from fork to exec: between these are system calls only ---- */

typedef struct spawn {
    const tn_children_opts *opts;
    uint32_t rank;
    int news;         /* the child's end of a socket that brings news of the other children */
    char *const *env; /* NULL-terminated */
} spawn;

/* Names the group and the rank in it; nobody sets these for a process alone. */
static const char *const group_names[] = {"TNET_RANK", "TNET_PEERS", "TNET_PEER_LIST", "TNET_ROOT",
                                          NULL};

/* How a group finds its parent and its machines. */
static const char *const other_names[] = {"TNET_PARENT", "TNET_NEWS", "TNET_JOB", "TNET_BIND",
                                          NULL};

static bool names(const char *variable, const char *const *list)
{
    size_t size = strcspn(variable, "=");
    while (*list != NULL && (strlen(*list) != size || strncmp(*list, variable, size) != 0)) {
        list++;
    }
    return *list != NULL;
}

/* Returns whether a variable names a child of another group than its own: a task of srun may well
 * start a group on its machine, whose ranks are not Slurm's. */
static bool is_foreign(const char *variable)
{
    bool is = names(variable, group_names) || names(variable, other_names);
    for (const tn_launcher *const *at = tn_launchers; *at != NULL; at++) {
        is = is || names(variable, (*at)->variables);
    }
    return is;
}

const char *tn_spawn_other_launcher(void)
{
    for (const char *const *at = group_names; *at != NULL; at++) {
        const char *value = getenv(*at); // NOLINT(concurrency-mt-unsafe): nobody sets it
        if (value != NULL && value[0] != '\0') {
            return *at;
        }
    }
    return NULL;
}

bool tn_spawn_is_child(void)
{
    const char *parent = getenv("TNET_PARENT"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    uint64_t pid = 0;
    return parent != NULL && tn_read_u64(parent, strlen(parent), &pid) == TN_NUM_OK &&
           pid == (uint64_t)getppid();
}

int tn_spawn_news(void)
{
    const char *news = getenv("TNET_NEWS"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    uint64_t fd = 0;
    const bool is_given = tn_spawn_is_child() && news != NULL &&
                          tn_read_u64(news, strlen(news), &fd) == TN_NUM_OK && fd <= INT_MAX;
    return is_given ? (int)fd : 0;
}

/* This process's environment with the child's own variables, and without what launchers of other
 * groups set. The texts live in the arena and in `environ`. */
static char *const *make_env(const spawn *s, tn_arena *arena)
{
    enum { OWN = 5 };
    uint32_t given = 0;
    while (environ != NULL && environ[given] != NULL) {
        given++;
    }
    char **env = TN_NEW_ARRAY(arena, char *, (size_t)given + OWN + 1);
    char *own = TN_NEW_ARRAY(arena, char, (size_t)OWN *VARIABLE_BYTES);
    (void)snprintf(own, VARIABLE_BYTES, "TNET_RANK=%" PRIu32, s->rank);
    (void)snprintf(own + VARIABLE_BYTES, VARIABLE_BYTES, "TNET_PEERS=%" PRIu32, s->opts->n);
    (void)snprintf(own + (size_t)2 * VARIABLE_BYTES, VARIABLE_BYTES, "TNET_JOB=%016" PRIx64,
                   s->opts->job);
    (void)snprintf(own + (size_t)3 * VARIABLE_BYTES, VARIABLE_BYTES, "TNET_PARENT=%ld",
                   (long)getpid());
    (void)snprintf(own + (size_t)4 * VARIABLE_BYTES, VARIABLE_BYTES, "TNET_NEWS=%d", s->news);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < given; i++) {
        if (!is_foreign(environ[i])) {
            env[kept++] = environ[i];
        }
    }
    for (uint32_t i = 0; i < OWN; i++) {
        env[kept++] = own + (size_t)i * VARIABLE_BYTES;
    }
    env[kept] = NULL;
    return env;
}

/* The nth of the processors that belongs to the rank; where there are fewer than children, several
 * share one. What the system refuses is left undone: it is a matter of speed. */
static void take_part_of_cpus(uint32_t rank, uint32_t n)
{
    cpu_set_t all;
    cpu_set_t own;
    CPU_ZERO(&all);
    CPU_ZERO(&own);
    if (sched_getaffinity(0, sizeof all, &all) != 0) {
        return;
    }
    uint32_t cpus = (uint32_t)CPU_COUNT(&all);
    uint32_t first = (uint32_t)((uint64_t)cpus * rank / n);
    uint32_t end = (uint32_t)((uint64_t)cpus * (rank + 1) / n);
    end = end > first ? end : first + 1;
    for (uint32_t cpu = 0, nth = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all)) {
            if (nth >= first && nth < end) {
                CPU_SET(cpu, &own);
            }
            nth++;
        }
    }
    (void)sched_setaffinity(0, sizeof own, &own);
}

/* Between fork and exec; returns only when there is nothing to run. */
static void become(const spawn *s, pid_t parent, const sigset_t *mask)
{
    (void)signal(SIGUSR1, SIG_IGN);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent) {
        return; /* the parent is gone already, and sends no signal */
    }
    if (s->rank > 0) {
        int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) {
            return;
        }
    }
    if (s->news > 0 && fcntl(s->news, F_SETFD, 0) != 0) {
        return;
    }
    if (s->opts->part_cpus) {
        take_part_of_cpus(s->rank, s->opts->n);
    }
    (void)pthread_sigmask(SIG_SETMASK, mask, NULL);
    (void)execve(s->opts->path, s->opts->words, s->env);
}

/* Forks; the child becomes what it is to be, or reports why not. A stop waits until the child's own
 * handlers are set, which save what there is to save. */
static pid_t fork_child(const spawn *s, int fd)
{
    sigset_t all;
    sigset_t mask;
    sigset_t own;
    pid_t parent = getpid();
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &mask);
    s->opts->stops(&own);
    (void)sigorset(&own, &own, &mask);
    pid_t child = fork();
    int failure = errno;
    if (child == 0) {
        become(s, parent, &own);
        failure = errno;
        ssize_t told = send(fd, &failure, sizeof failure, MSG_NOSIGNAL);
        _exit(told == (ssize_t)sizeof failure ? NO_PROGRAM : EXIT_FAILURE);
    }
    (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
    errno = failure;
    return child;
}

/* Returns why there was no exec, which the child reports; 0: a successful exec closed its end. */
static int read_failure(int fd)
{
    int failure = 0;
    ssize_t got = 0;
    do {
        got = recv(fd, &failure, sizeof failure, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof failure ? failure : 0;
}

/* The child runs the program when this returns. Rank 0 keeps stdin, others read nothing there.
 * SIGUSR1 is ignored and signals that ask for the end are blocked until the child watches them
 * (cli/signals.h). */
static tn_status start_one(const spawn *s, pid_t *pid, tn_error *err)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        return tn_fail(err, TN_E_IO, "cannot start rank %u: %s", s->rank, strerrordesc_np(errno));
    }
    pid_t child = fork_child(s, ends[1]);
    int failure = errno;
    (void)close(ends[1]);
    failure = child < 0 ? failure : read_failure(ends[0]);
    (void)close(ends[0]);
    if (failure == 0) {
        *pid = child;
        return TN_OK;
    }
    while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR) {
    }
    return tn_fail(err, TN_E_IO, "cannot start rank %u, '%s': %s", s->rank, s->opts->path,
                   strerrordesc_np(failure));
}

/* ---- all of them ---- */

enum { FAULT = 1, LOST = 6, STOPPED = 75, SECOND_SIGINT = 130, NEWS_BYTES = 200 };

/* Signals since the last look; no lock, so that handlers may set them. */
static atomic_uint interrupts;
static atomic_bool stop_asked;
static atomic_bool save_asked;
static atomic_int bell = -1;
static_assert(ATOMIC_INT_LOCK_FREE == 2 && ATOMIC_BOOL_LOCK_FREE == 2, "a handler may not wait");

/* How far children have ended. */
typedef struct ending {
    int cause;        /* first code that is not 0, 6 or 75; 0: none */
    bool lost;        /* one was killed or ended with 6 */
    bool stopped;     /* one ended with 75 */
    bool interrupted; /* killed at the user's word */
} ending;

typedef struct group {
    tn_children_opts own; /* as given; of a restart with its words and its job */
    const tn_children_opts *opts;
    pid_t *pid; /* n; 0: has ended */
    int *news;  /* n: this end of each child's socket */
    uint32_t n_alive;
    uint32_t first; /* rank whose end began the grace */
    bool grace;     /* deadline_ns counts */
    bool killed;    /* all that were alive at the deadline */
    uint64_t deadline_ns;
    bool fell;           /* one was killed, and nobody had asked it to end */
    bool stopping;       /* children were sent their signal */
    uint32_t interrupts; /* how many there were */
    ending ending;
    uint32_t n_restarts;
    uint64_t *restart_ns; /* opts->restarts: when each of the last ones was */
} group;

static void on_signal(int signal)
{
    int failure = errno;
    if (signal == SIGINT) {
        (void)atomic_fetch_add(&interrupts, 1U);
    } else if (signal == SIGTERM || signal == SIGHUP) {
        atomic_store(&stop_asked, true);
    } else if (signal == SIGUSR1) {
        atomic_store(&save_asked, true);
    } /* SIGCHLD: the bell is all */
    int fd = atomic_load(&bell);
    if (fd >= 0) {
        (void)eventfd_write(fd, 1);
    }
    errno = failure;
}

static void hang_bell(int fd)
{
    static const int signals[] = {SIGCHLD, SIGINT, SIGTERM, SIGUSR1, SIGHUP};
    struct sigaction action;
    struct sigaction now;
    atomic_store(&interrupts, 0U);
    atomic_store(&stop_asked, false);
    atomic_store(&save_asked, false);
    atomic_store(&bell, fd);
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    (void)sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        bool ignored = sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN;
        if (signals[i] != SIGHUP || !ignored) { /* nohup means the children, too */
            (void)sigaction(signals[i], &action, NULL);
        }
    }
}

static void signal_all(const group *g, int signal)
{
    for (uint32_t r = 0; r < g->opts->n; r++) {
        if (g->pid[r] != 0) {
            (void)kill(g->pid[r], signal); /* one that has just ended is a zombie, still its own */
        }
    }
}

static void begin_grace(group *g, uint32_t rank)
{
    if (!g->grace) {
        g->grace = true;
        g->first = rank;
        g->deadline_ns = tn_clock_ns() + (uint64_t)(g->opts->grace_s * 1e9);
    }
}

/* Reports the end to the others now rather than after a silence; whoever cannot be reached is
 * ending itself. */
static void tell_others(const group *g, uint32_t rank, const char *sentence)
{
    char line[NEWS_BYTES];
    int size = snprintf(line, sizeof line, "%u %s", rank, sentence);
    for (uint32_t r = 0; size > 0 && r < g->opts->n; r++) {
        if (g->pid[r] != 0) {
            (void)send(g->news[r], line, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
        }
    }
}

/* Whether the group may start again now: fewer restarts than there may be lie within the time. */
static bool may_restart(const group *g)
{
    const uint32_t most = g->opts->restarts;
    const double since = (double)tn_clock_ns() * 1e-9 - g->opts->restart_s;
    return g->opts->again != NULL && most > 0 && !g->stopping &&
           (g->n_restarts < most || (double)g->restart_ns[g->n_restarts % most] * 1e-9 < since);
}

/* It could not report its end itself. */
static void tell_end(const group *g, uint32_t rank, pid_t pid, int code, int signal)
{
    char line[NEWS_BYTES];
    const char *what = sigdescr_np(signal);
    if (g->killed || g->ending.interrupted) {
        return;
    }
    if (signal != 0) {
        (void)snprintf(line, sizeof line, "rank %u (pid %d) was killed by signal %d (%s)", rank,
                       (int)pid, signal, what != NULL ? what : "of real time");
        tn_log(may_restart(g) ? TN_LOG_WARN : TN_LOG_ERROR, "%s%s", line,
               may_restart(g) ? ""
                              : "\nhint: start the same command again; training goes on from the "
                                "newest checkpoint");
    } else {
        (void)snprintf(line, sizeof line, "rank %u (pid %d) ended with code %d", rank, (int)pid,
                       code);
    }
    tell_others(g, rank, line);
}

/* One has ended: what it means for the whole, and for the others. */
static void count_end(group *g, uint32_t rank, pid_t pid, int status)
{
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    if (g->stopping && (signal == SIGTERM || signal == SIGINT)) {
        code = STOPPED; /* it came before the child was ready to save */
        signal = 0;
    }
    if (signal != 0 || code == FAULT) {
        tell_end(g, rank, pid, code, signal);
    }
    bool stopped = code == STOPPED;
    bool lost = signal != 0 || code == LOST;
    g->fell = g->fell || (signal != 0 && !g->stopping);
    bool cause = !lost && !stopped && code != 0;
    g->ending.stopped = g->ending.stopped || stopped;
    g->ending.lost = g->ending.lost || lost;
    g->ending.cause = cause && g->ending.cause == 0 ? code : g->ending.cause;
    if (lost || cause || rank == 0) {
        begin_grace(g, rank);
    }
}

/* Passes on what has come. Before an end is counted, too: a Ctrl-C that ends a child has reached
 * this process by then. */
static void take_signals(group *g)
{
    uint32_t n = atomic_exchange(&interrupts, 0U);
    bool stop = atomic_exchange(&stop_asked, false);
    g->interrupts += n;
    if (atomic_exchange(&save_asked, false) && g->pid[0] != 0) {
        (void)kill(g->pid[0], SIGUSR1);
    }
    if (n > 0 && g->interrupts > 1) {
        g->ending.interrupted = true;
        signal_all(g, SIGKILL);
    } else if (n > 0 || stop) {
        g->stopping = true;
        signal_all(g, SIGTERM);
    }
}

static void reap(group *g)
{
    for (uint32_t r = 0; r < g->opts->n; r++) {
        int status = 0;
        if (g->pid[r] == 0) {
            continue;
        }
        pid_t got = waitpid(g->pid[r], &status, WNOHANG);
        TN_ASSERT(got == 0 || got == g->pid[r]); /* nobody else waits for them */
        if (got != 0) {
            pid_t pid = g->pid[r];
            take_signals(g);
            g->pid[r] = 0;
            g->n_alive--;
            count_end(g, r, pid, status);
        }
    }
}

static void end_grace(group *g)
{
    for (uint32_t r = 0; r < g->opts->n && !g->ending.interrupted; r++) {
        if (g->pid[r] != 0) {
            tn_log(TN_LOG_ERROR, "rank %u (pid %d) does not end, %g s after rank %u did: killed", r,
                   (int)g->pid[r], g->opts->grace_s, g->first);
        }
    }
    g->killed = true;
    signal_all(g, SIGKILL);
}

/* Until the bell rings, or until the deadline: false. Children bound their own waits; without a
 * deadline there is nothing to give up for. */
static bool wait_for_bell(const group *g, int fd)
{
    uint64_t now = tn_clock_ns();
    uint64_t left = g->deadline_ns > now ? g->deadline_ns - now : 0;
    struct timespec wait = {.tv_sec = (time_t)(left / 1000000000U),
                            .tv_nsec = (long)(left % 1000000000U)};
    struct pollfd one = {.fd = fd, .events = POLLIN};
    bool bounded = g->grace && !g->killed;
    int got = ppoll(&one, 1, bounded ? &wait : NULL, NULL);
    TN_ASSERT(got >= 0 || errno == EINTR);
    if (got > 0) {
        eventfd_t rung = 0;
        (void)eventfd_read(fd, &rung);
    }
    return got != 0;
}

static void look_after(group *g, int fd)
{
    while (g->n_alive > 0) {
        bool in_time = wait_for_bell(g, fd);
        take_signals(g);
        reap(g);
        if (!in_time) {
            end_grace(g);
        }
    }
}

static int group_code(const ending *e)
{
    if (e->interrupted) {
        return SECOND_SIGINT;
    }
    if (e->cause != 0) {
        return e->cause;
    }
    return e->lost ? LOST : e->stopped ? STOPPED : 0;
}

static void kill_started(group *g)
{
    for (uint32_t r = 0; r < g->opts->n; r++) {
        if (g->pid[r] != 0) {
            (void)kill(g->pid[r], SIGKILL);
            while (waitpid(g->pid[r], NULL, 0) < 0 && errno == EINTR) {
            }
        }
    }
}

static tn_status start_all(group *g, tn_arena *arena, tn_error *err)
{
    const tn_children_opts *o = g->opts;
    for (uint32_t r = 0; r < o->n; r++) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
            return tn_fail(err, TN_E_IO, "cannot start rank %u: %s", r, strerrordesc_np(errno));
        }
        spawn s = {.opts = o, .rank = r, .news = ends[1]};
        s.env = make_env(&s, arena);
        tn_status status = start_one(&s, &g->pid[r], err);
        (void)close(ends[1]);
        g->news[r] = ends[0];
        TN_TRY(status);
        g->n_alive++;
    }
    return TN_OK;
}

static void close_news(const group *g)
{
    for (uint32_t r = 0; r < g->opts->n; r++) {
        if (g->news[r] > 0) {
            (void)close(g->news[r]);
            g->news[r] = 0;
        }
    }
}

/* Returns whether the group is to start again, and makes it ready for that. */
static bool begin_again(group *g)
{
    const ending *e = &g->ending;
    if (!g->fell || e->cause != 0 || e->stopped || e->interrupted || !may_restart(g)) {
        return false;
    }
    g->restart_ns[g->n_restarts++ % g->opts->restarts] = tn_clock_ns();
    tn_log(TN_LOG_WARN,
           "the group starts again and goes on from the newest checkpoint (restart %" PRIu32
           "; at most %" PRIu32 " within %.0f s, by cluster.restarts)",
           g->n_restarts, g->opts->restarts, g->opts->restart_s);
    close_news(g);
    g->own.words = g->own.again;
    g->own.job = tn_random_id();
    g->fell = g->grace = g->killed = false;
    g->ending = (ending){.cause = 0};
    return true;
}

/* Starts them and looks after them, again and again where they fall. */
static tn_status run_group(group *g, int fd, tn_arena *arena, tn_error *err)
{
    tn_status status = TN_OK;
    do {
        status = start_all(g, arena, err);
        if (status == TN_OK) {
            look_after(g, fd);
        } else {
            kill_started(g);
        }
    } while (status == TN_OK && begin_again(g));
    return status;
}

tn_status tn_children_run(const tn_children_opts *opts, int *code, tn_error *err)
{
    TN_ASSERT(opts->n > 0 && opts->n <= TN_CHILDREN_MAX && opts->grace_s >= 0);
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) {
        return tn_fail(err, TN_E_IO, "cannot look after processes: %s", strerrordesc_np(errno));
    }
    tn_arena *arena = tn_arena_new(1 << 14);
    group g = {.own = *opts,
               .pid = TN_NEW_ARRAY(arena, pid_t, opts->n),
               .news = TN_NEW_ARRAY(arena, int, opts->n),
               .restart_ns = TN_NEW_ARRAY(arena, uint64_t, (size_t)opts->restarts + 1)};
    g.opts = &g.own;
    hang_bell(fd);
    tn_status status = tn_stop_is(NULL) /* a signal that came before the bell hung */
                           ? tn_fail(err, TN_E_STOPPED, "stopped by a signal; no rank has begun")
                           : run_group(&g, fd, arena, err);
    *code = status == TN_OK ? group_code(&g.ending) : *code;
    atomic_store(&bell, -1);
    (void)close(fd);
    close_news(&g);
    tn_arena_free(arena);
    return status;
}
