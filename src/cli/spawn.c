/* spawn.c - see spawn.h. */
#include "cli/spawn.h"

#include "base/core/number.h"
#include "cli/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VARIABLE_BYTES = 48, NO_PROGRAM = 127 };

/* Which group, and who in it; nobody sets these for a process alone. */
static const char *const group_names[] = {"TNET_RANK", "TNET_PEERS", "TNET_PEER_LIST", "TNET_ROOT",
                                          NULL};

/* How the machines of a group find each other, and what makes a launcher known to
 * cluster/launch/launcher.h: a task of srun may well start a group of its own on its machine, whose
 * ranks are not Slurm's. */
static const char *const other_names[] = {"TNET_PARENT",
                                          "TNET_NEWS",
                                          "TNET_JOB",
                                          "TNET_BIND",
                                          "TNET_PORT",
                                          "TNET_SERVICE",
                                          "OMPI_COMM_WORLD_RANK",
                                          "PMI_RANK",
                                          "PMIX_RANK",
                                          "SLURM_STEP_NODELIST",
                                          "JOB_COMPLETION_INDEX",
                                          NULL};

static bool names(const char *variable, const char *const *list)
{
    size_t size = strcspn(variable, "=");
    while (*list != NULL && (strlen(*list) != size || strncmp(*list, variable, size) != 0)) {
        list++;
    }
    return *list != NULL;
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

char *const *tn_spawn_env(const tn_spawn *s, uint64_t job, tn_arena *arena)
{
    enum { OWN = 5 };
    uint32_t given = 0;
    while (environ != NULL && environ[given] != NULL) {
        given++;
    }
    char **env = TN_NEW_ARRAY(arena, char *, (size_t)given + OWN + 1);
    char *own = TN_NEW_ARRAY(arena, char, (size_t)OWN *VARIABLE_BYTES);
    (void)snprintf(own, VARIABLE_BYTES, "TNET_RANK=%" PRIu32, s->rank);
    (void)snprintf(own + VARIABLE_BYTES, VARIABLE_BYTES, "TNET_PEERS=%" PRIu32, s->n);
    (void)snprintf(own + (size_t)2 * VARIABLE_BYTES, VARIABLE_BYTES, "TNET_JOB=%016" PRIx64, job);
    (void)snprintf(own + (size_t)3 * VARIABLE_BYTES, VARIABLE_BYTES, "TNET_PARENT=%ld",
                   (long)getpid());
    (void)snprintf(own + (size_t)4 * VARIABLE_BYTES, VARIABLE_BYTES, "TNET_NEWS=%d", s->news);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < given; i++) {
        if (!names(environ[i], group_names) && !names(environ[i], other_names)) {
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
static void become(const tn_spawn *s, pid_t parent, const sigset_t *mask)
{
    (void)signal(SIGUSR1, SIG_IGN);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent) {
        return; /* the parent is gone already, and nobody will tell */
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
    if (s->part_cpus) {
        take_part_of_cpus(s->rank, s->n);
    }
    (void)pthread_sigmask(SIG_SETMASK, mask, NULL);
    (void)execve(s->path, s->words, s->env);
}

/* As fork, and the child becomes what it is to be, or tells why not. Until its own handlers stand,
 * which saves what there is to save, a stop waits. */
static pid_t fork_child(const tn_spawn *s, int fd)
{
    sigset_t all;
    sigset_t mask;
    sigset_t own;
    pid_t parent = getpid();
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &mask);
    tn_signals_stops(&own);
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

/* Why there was no exec, which the child tells; 0: its end was closed by a successful one. */
static int read_failure(int fd)
{
    int failure = 0;
    ssize_t got = 0;
    do {
        got = recv(fd, &failure, sizeof failure, 0);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof failure ? failure : 0;
}

tn_status tn_spawn_one(const tn_spawn *s, pid_t *pid, tn_error *err)
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
    return tn_fail(err, TN_E_IO, "cannot start rank %u, '%s': %s", s->rank, s->path,
                   strerrordesc_np(failure));
}
