/* signals.c - see signals.h. */
#include "cli/signals.h"

#include "base/threads.h"

#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_SECOND_SIGINT = 130 };

static atomic_bool stop_asked; /* no lock, so that handlers may set it */
static atomic_bool save_asked;
static_assert(ATOMIC_BOOL_LOCK_FREE == 2, "a handler may not wait");

static void on_stop(int signal)
{
    if (atomic_exchange(&stop_asked, true) && signal == SIGINT) {
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

void tn_signals_start(void)
{
    handle(SIGPIPE, SIG_IGN);
    handle(SIGXFSZ, SIG_IGN);
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            int got = open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY); /* the lowest free: fd */
            (void)got;
        }
    }
    tn_flush_denormals();
}

const atomic_bool *tn_signals_watch_stop(void)
{
    handle(SIGINT, on_stop);
    handle(SIGTERM, on_stop);
    handle(SIGUSR1, SIG_IGN);
    return &stop_asked;
}

atomic_bool *tn_signals_watch_save(void)
{
    handle(SIGUSR1, on_save);
    return &save_asked;
}
