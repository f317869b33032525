/* signals.c - handlers that only set flags, and the last words of a crash. */
#include "cli/signals.h"

#include "base/core/stop.h"
#include "base/file/file.h"
#include "base/thread/threads.h"

#include <assert.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { EXIT_BUG = 1, EXIT_PEER = 6, EXIT_SECOND_SIGINT = 130 };

static const int stops[] = {SIGINT, SIGTERM, SIGHUP};

static atomic_bool stop_asked; /* no lock, so that handlers may set it */
static atomic_bool sigint_seen;
static atomic_bool save_asked;
static atomic_bool leftover_is_set;
static char leftover[TN_PATH_SIZE]; /* a file that a signal removes */
static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "a handler may not wait");

/* Ctrl-C reaches a child of --peers twice: from the terminal, and from its parent as a SIGTERM, in
 * any order. So only interrupts count. */
static void on_stop(int signal)
{
    atomic_store(&stop_asked, true);
    if (signal == SIGINT && atomic_exchange(&sigint_seen, true)) {
        _exit(EXIT_SECOND_SIGINT);
    }
}

static void on_save(int signal)
{
    (void)signal;
    atomic_store(&save_asked, true);
}

static void handle(int signal, void (*handler)(int))
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(signal, &action, NULL);
}

/* As nohup has it, of SIGHUP. */
static bool is_ignored(int signal)
{
    struct sigaction now;
    return sigaction(signal, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

void tn_signals_stops(sigset_t *out)
{
    (void)sigemptyset(out);
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        (void)sigaddset(out, stops[i]);
    }
}

/* Whether it is ZeroMQ that has called abort, of the C library. */
static bool is_of_zeromq(void *const *frame, int n)
{
    bool in_c = false;
    for (int i = 0; i < n; i++) {
        Dl_info at;
        const bool known = dladdr(frame[i], &at) != 0;
        const bool is_c = known && strstr(at.dli_fname, "/libc.so") != NULL;
        if (in_c && !is_c) {
            return known && strstr(at.dli_fname, "/libzmq.so") != NULL;
        }
        in_c = is_c;
    }
    return false;
}

/* An assertion, here or in a library, has said what is wrong. The addresses say from where it was
 * called, to addr2line. Scripts go by the code, and where a core is wanted there is none. */
static void on_abort(int signal)
{
    enum { FRAMES_MAX = 64 };
    void *frame[FRAMES_MAX];
    struct rlimit core;
    const int n = backtrace(frame, FRAMES_MAX);
    const bool is_lost = is_of_zeromq(frame, n);
    backtrace_symbols_fd(frame, n, STDERR_FILENO);
    if (is_lost) {
        (void)dprintf(
            STDERR_FILENO,
            "tnet: ZeroMQ, a library, ended this process by the assertion above\n"
            "hint: start the same command again; training goes on from the newest checkpoint\n");
    }
    if (getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_cur == 0) {
        _exit(is_lost ? EXIT_PEER : EXIT_BUG);
    }
    handle(signal, SIG_DFL);
    (void)raise(signal); /* as in on_end */
}

static void on_end(int signal)
{
    if (atomic_load(&leftover_is_set)) {
        tn_remove_in_handler(leftover);
    }
    handle(signal, SIG_DFL);
    (void)raise(signal); /* comes when this returns, and ends the process as it would have */
}

void tn_signals_remove(const char *path)
{
    atomic_store(&leftover_is_set, false);
    TN_ASSERT(strlen(path) < sizeof leftover);
    memcpy(leftover, path, strlen(path) + 1);
    atomic_store(&leftover_is_set, true);
    for (size_t i = 0; i < sizeof stops / sizeof stops[0]; i++) {
        if (!is_ignored(stops[i])) {
            handle(stops[i], on_end);
        }
    }
}

void tn_signals_start(void)
{
    handle(SIGPIPE, SIG_IGN);
    handle(SIGXFSZ, SIG_IGN);
    void *frame;
    (void)backtrace(&frame, 1); /* takes memory the first time, which a handler may not */
    handle(SIGABRT, on_abort);
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            int got = open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY); /* the lowest free: fd */
            (void)got;
        }
    }
    (void)tn_flush_denormals();
}

const atomic_bool *tn_signals_watch_stop(void)
{
    sigset_t set;
    handle(SIGINT, on_stop);
    handle(SIGTERM, on_stop);
    if (!is_ignored(SIGHUP)) {
        handle(SIGHUP, on_stop);
    }
    handle(SIGUSR1, SIG_IGN);
    tn_signals_stops(&set);
    tn_stop_set(&stop_asked);
    (void)pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    return &stop_asked;
}

atomic_bool *tn_signals_watch_save(void)
{
    handle(SIGUSR1, on_save);
    return &save_asked;
}
