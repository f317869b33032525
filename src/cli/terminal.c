/* terminal.c - see terminal.h. */
#include "cli/terminal.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* A moving line stands on the terminal. */
static _Atomic bool line_moves;

bool tn_terminal_is_one(void)
{
    const char *kind = getenv("TERM"); // NOLINT(concurrency-mt-unsafe): nobody sets it
    bool moves = kind != NULL && strcmp(kind, "dumb") != 0;
    return moves && isatty(STDERR_FILENO) != 0;
}

uint32_t tn_terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
        return 80;
    }
    return size.ws_col;
}

static void wipe(void)
{
    if (atomic_exchange(&line_moves, false)) {
        (void)fputs("\r\033[K", stderr);
    }
}

void tn_terminal_show(void *unused, const char *text, bool transient)
{
    (void)unused;
    if (!transient) {
        wipe();
        (void)fprintf(stderr, "%s%s", text,
                      text[0] != '\0' && text[strlen(text) - 1] == '\n' ? "" : "\n");
        return;
    }
    (void)fprintf(stderr, "\r%s\033[K", text);
    (void)fflush(stderr);
    atomic_store(&line_moves, true);
}

static void print_line(tn_log_level level, const char *line)
{
    static const char *const words[] = {"error: ", "warning: ", "", ""};
    wipe();
    (void)fprintf(stderr, "%s%s\n", words[level], line);
}

void tn_terminal_log(int verbosity, tn_log_level level)
{
    tn_log_set(print_line, verbosity < 0 ? TN_LOG_WARN : verbosity > 0 ? TN_LOG_DEBUG : level);
}

void tn_terminal_done(void)
{
    wipe();
}
