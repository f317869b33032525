/* roles.c - see roles.h. */
#include "roles.h"

#include "cli/signals.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { BY_SIGNAL = 200 };

static const struct timespec soon = {.tv_nsec = 1000000};

static int number(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

static const char *variable(const char *name)
{
    const char *value = getenv(name); // NOLINT(concurrency-mt-unsafe): one thread
    return value != NULL ? value : "-";
}

static int rank_of(void)
{
    return number(variable("TNET_RANK"));
}

static void say(int fd, const void *bytes, size_t size)
{
    if (write(fd, bytes, size) != (ssize_t)size) {
        _exit(99);
    }
}

static int play_codes(const char *list)
{
    for (int r = rank_of(); r > 0; r--) {
        list = strchr(list, ',') + 1;
    }
    int code = number(list);
    if (code >= BY_SIGNAL) {
        (void)signal(code - BY_SIGNAL, SIG_DFL);
        (void)raise(code - BY_SIGNAL);
    }
    return code;
}

/* Rank 1 sends its process id to rank 0 by the pipe, which the test does not read. */
static int play_order(int fd, int from)
{
    pid_t first = getpid();
    if (rank_of() == 1) {
        say(fd, &first, sizeof first);
        return 4;
    }
    if (read(from, &first, sizeof first) != (ssize_t)sizeof first) {
        return 99;
    }
    while (kill(first, 0) == 0) { /* a zombie still answers */
        (void)sched_yield();
    }
    return 3;
}

static int play_idle(int fd)
{
    say(fd, "r", 1);
    while (pause() < 0) { /* a signal was handled */
    }
    return 99;
}

static int told_fd;
static volatile sig_atomic_t told_signal;

static void tell_term(int signal)
{
    (void)signal;
    say(told_fd, "T", 1);
}

static int play_deaf(int code, int fd)
{
    if (rank_of() == 0 && code >= 0) {
        return code;
    }
    told_fd = fd;
    (void)signal(SIGTERM, tell_term);
    return play_idle(fd);
}

/* Any thread may run the handler, and libraries have some, so the flag is all there is to wait for.
 */
static int play_watch(int fd)
{
    const atomic_bool *stop = tn_signals_watch_stop();
    say(fd, "r", 1);
    while (!atomic_load(stop)) {
        (void)nanosleep(&soon, NULL);
    }
    return 75;
}

/* The stop comes while nobody watches. */
static int play_late(int fd)
{
    sigset_t waiting;
    say(fd, "r", 1);
    do {
        (void)nanosleep(&soon, NULL);
        (void)sigpending(&waiting);
    } while (sigismember(&waiting, SIGTERM) == 0);
    say(fd, "w", 1);
    return atomic_load(tn_signals_watch_stop()) ? 75 : 99;
}

/* Children that watch for signals have these blocked when they begin. */
static void let_signals_in(void)
{
    sigset_t stops;
    tn_signals_stops(&stops);
    (void)pthread_sigmask(SIG_UNBLOCK, &stops, NULL);
}

static int play_cpus(int fd)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    int failed = sched_getaffinity(0, sizeof set, &set);
    say(fd, &set, sizeof set);
    return failed != 0 ? 99 : 0;
}

static void note_signal(int signal)
{
    told_signal = signal;
}

/* SIGUSR1 was ignored until now. */
static int play_save(int fd)
{
    char digit = (char)('0' + rank_of());
    struct sigaction now;
    (void)sigaction(SIGUSR1, NULL, &now);
    (void)signal(SIGUSR1, note_signal);
    (void)signal(SIGTERM, note_signal);
    say(fd, now.sa_handler == SIG_IGN ? "r" : "!", 1);
    while (told_signal == 0) {
        (void)nanosleep(&soon, NULL);
    }
    say(fd, told_signal == SIGUSR1 ? &digit : "T", 1);
    return 0;
}

static int play_news(int fd)
{
    char line[300];
    if (rank_of() == 0) {
        (void)raise(SIGKILL);
    }
    ssize_t size = recv(number(variable("TNET_NEWS")), line, sizeof line - 1, 0);
    if (size <= 0) {
        return 99;
    }
    line[size] = '\n';
    say(fd, line, (size_t)size + 1);
    return 6;
}

/* The pipe keeps what earlier starts have said. */
static int play_fall(int fd)
{
    enum { STARTS = 6 };
    const char *job = variable("TNET_JOB");
    int kept = 0;
    say(fd, job, strlen(job));
    if (ioctl(fd, FIONREAD, &kept) == 0 && (size_t)kept < STARTS * strlen(job)) {
        (void)raise(SIGKILL);
    }
    return 0;
}

static int play_tell(int argc, char **argv, int fd)
{
    static const char *const names[] = {"TNET_RANK",
                                        "TNET_PEERS",
                                        "TNET_JOB",
                                        "TNET_PARENT",
                                        "TNET_ROOTS",
                                        "TNET_PEER_LIST",
                                        "TNET_ROOT",
                                        "TNET_BIND",
                                        "TNET_PORT",
                                        "TNET_SERVICE",
                                        "PMI_RANK",
                                        "OMPI_COMM_WORLD_RANK",
                                        "PMIX_RANK",
                                        "SLURM_STEP_NODELIST",
                                        "JOB_COMPLETION_INDEX",
                                        "PATH"};
    char text[2000];
    char byte = 0;
    size_t n = 0;
    for (int i = 1; i < argc; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "%s ", argv[i]);
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, " %s=%s;", names[i], variable(names[i]));
    }
    bool has_stdin = read(STDIN_FILENO, &byte, 1) == 1;
    n +=
        (size_t)snprintf(text + n, sizeof text - n, " stdin=%s;\n", has_stdin ? "some" : "nothing");
    say(fd, text, n);
    return 0;
}

bool tn_role_play(int argc, char **argv, int *code)
{
    const char *role = argc > 2 ? argv[1] : "";
    int fd = argc > 2 ? number(argv[argc - 1]) : -1;
    if (strcmp(role, "late") == 0) {
        *code = play_late(fd);
        return true;
    }
    let_signals_in();
    if (strcmp(role, "codes") == 0) {
        *code = play_codes(argv[2]);
    } else if (strcmp(role, "order") == 0) {
        *code = play_order(fd, number(argv[2]));
    } else if (strcmp(role, "deaf") == 0) {
        *code = play_deaf(number(argv[2]), fd);
    } else if (strcmp(role, "watch") == 0) {
        *code = play_watch(fd);
    } else if (strcmp(role, "idle") == 0) {
        *code = play_idle(fd);
    } else if (strcmp(role, "cpus") == 0) {
        *code = play_cpus(fd);
    } else if (strcmp(role, "save") == 0) {
        *code = play_save(fd);
    } else if (strcmp(role, "news") == 0) {
        *code = play_news(fd);
    } else if (strcmp(role, "fall") == 0) {
        *code = play_fall(fd);
    } else if (strcmp(role, "tell") == 0) {
        *code = play_tell(argc, argv, number(argv[2]));
    } else {
        return false;
    }
    return true;
}
