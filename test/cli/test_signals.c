/* test_signals.c - what counts as asking to stop, and how often. */
#include "base/core/stop.h"
#include "cli/signals.h"
#include "support/test.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* How a process ends that watches and gets these signals, ended by 0: 75 when it was asked to stop,
 * 0 when it was not, else the code that a handler ended it with. */
static int end_after(const int *signals)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        tn_signals_start();
        const atomic_bool *stop = tn_signals_watch_stop();
        for (; *signals != 0; signals++) {
            (void)raise(*signals);
        }
        exit(atomic_load(stop) ? 75 : 0); // NOLINT(concurrency-mt-unsafe): one thread
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 200 + WTERMSIG(status);
}

TEST(only_a_second_interrupt_ends_at_once)
{
    assert_int_equal(end_after((const int[]){0}), 0);
    assert_int_equal(end_after((const int[]){SIGUSR1, SIGPIPE, SIGXFSZ, 0}), 0);
    assert_int_equal(end_after((const int[]){SIGTERM, 0}), 75);
    assert_int_equal(end_after((const int[]){SIGINT, 0}), 75);
    assert_int_equal(end_after((const int[]){SIGTERM, SIGTERM, SIGTERM, 0}), 75);
    assert_int_equal(end_after((const int[]){SIGINT, SIGTERM, 0}), 75);
    assert_int_equal(end_after((const int[]){SIGTERM, SIGINT, 0}), 75);
    assert_int_equal(end_after((const int[]){SIGINT, SIGINT, 0}), 130);
    assert_int_equal(end_after((const int[]){SIGTERM, SIGINT, SIGINT, 0}), 130);
}

TEST(a_closed_terminal_asks_to_stop_unless_it_is_ignored)
{
    assert_int_equal(end_after((const int[]){SIGHUP, 0}), 75);
    assert_int_equal(end_after((const int[]){SIGHUP, SIGHUP, SIGTERM, 0}), 75);
    (void)signal(SIGHUP, SIG_IGN); /* as nohup does */
    assert_int_equal(end_after((const int[]){SIGHUP, 0}), 0);
    assert_int_equal(end_after((const int[]){SIGHUP, SIGTERM, 0}), 75);
    (void)signal(SIGHUP, SIG_DFL);
}

/* A parent blocks them until its child watches. */
TEST(a_stop_that_came_before_counts)
{
    sigset_t stops;
    tn_signals_stops(&stops);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)pthread_sigmask(SIG_BLOCK, &stops, NULL);
        (void)kill(getpid(), SIGTERM);
        exit(atomic_load(tn_signals_watch_stop()) ? 75 : 0); // NOLINT(concurrency-mt-unsafe)
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 75);
}

TEST(an_abort_says_where_and_ends_with_1_or_a_core)
{
    struct rlimit before;
    char told[4096] = "";
    int fd = memfd_create("told", 0);
    int screen = dup(STDERR_FILENO);
    assert_true(fd >= 0 && screen >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    assert_int_equal(getrlimit(RLIMIT_CORE, &before), 0);
    struct rlimit core = {0, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_CORE, &core), 0);
    int plain = end_after((const int[]){SIGABRT, 0});
    core.rlim_cur = before.rlim_max > 0; /* one byte: allowed, but nothing is written */
    assert_int_equal(setrlimit(RLIMIT_CORE, &core), 0);
    int cored = end_after((const int[]){SIGABRT, 0});
    assert_int_equal(setrlimit(RLIMIT_CORE, &before), 0);
    assert_true(dup2(screen, STDERR_FILENO) >= 0);
    assert_true(pread(fd, told, sizeof told - 1, 0) > 0);
    assert_int_equal(plain, 1);
    assert_int_equal(cored, before.rlim_max > 0 ? 200 + SIGABRT : 1);
    assert_non_null(strstr(told, "test_cli(")); /* where it was, for addr2line */
    assert_true(close(fd) == 0 && close(screen) == 0);
}

TEST(sigusr1_asks_to_save)
{
    atomic_bool *save = tn_signals_watch_save();
    assert_false(atomic_load(save));
    (void)kill(getpid(), SIGUSR1);
    assert_true(atomic_load(save));
    atomic_store(save, false);
    (void)kill(getpid(), SIGUSR1);
    assert_true(atomic_load(save));
}
