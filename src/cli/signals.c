/* signals.c - see signals.h. */
#include "cli/signals.h"

#include "base/threads.h"
#include "train/trainer.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_SECOND_SIGINT = 130 };

static volatile int asked = TN_ASKED_NOTHING;

static void on_stop(int signal)
{
    if (asked == TN_ASKED_STOP && signal == SIGINT) {
        _exit(EXIT_SECOND_SIGINT);
    }
    asked = TN_ASKED_STOP;
}

static void on_save(int signal)
{
    (void)signal;
    if (asked == TN_ASKED_NOTHING) {
        asked = TN_ASKED_SAVE;
    }
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

volatile int *tn_signals_watch(void)
{
    handle(SIGINT, on_stop);
    handle(SIGTERM, on_stop);
    handle(SIGUSR1, on_save);
    return &asked;
}

const volatile int *tn_signals_watch_stop(void)
{
    (void)tn_signals_watch();
    handle(SIGUSR1, SIG_IGN);
    return &asked;
}
