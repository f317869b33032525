/* terminal.c - one moving line and log lines on stderr, under one lock. */
#include "cli/terminal.h"

#include "base/codec/utf8.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NAME_BYTES = 24 };

/* A moving line is on the terminal. */
static _Atomic bool line_moves;
/* It may be another process's. */
static _Atomic bool is_shared;
static char own_name[NAME_BYTES]; /* "rank 2"; written before there are threads */

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
    if (atomic_exchange(&line_moves, false) || atomic_load(&is_shared)) {
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

void tn_terminal_clean(const char *text, size_t size, tn_text *out)
{
    for (size_t i = 0; i < size;) {
        const unsigned char c = (unsigned char)text[i];
        const size_t n = tn_utf8_size(text + i, size - i);
        const bool high = n == 2 && c == 0xc2 && (unsigned char)text[i + 1] < 0xa0;
        if (n == 0 || high || c == 0x7f || (c < ' ' && c != '\n' && c != '\t')) {
            tn_text_addf(out, "\\x%02x", high ? (unsigned char)text[i + 1] : c);
        } else {
            tn_text_add(out, text + i, n);
        }
        i += n > 0 ? n : 1;
    }
}

static void print_line(tn_log_level level, const char *line)
{
    static const char *const words[] = {"error: ", "warning: ", "", ""};
    const char *open = own_name[0] != '\0' ? "[" : "";
    const char *close = own_name[0] != '\0' ? "] " : "";
    tn_text clean = {0};
    tn_terminal_clean(line, strlen(line), &clean);
    wipe();
    (void)fprintf(stderr, "%s%s%s%s%s\n", open, own_name, close, words[level],
                  clean.failed ? line : tn_text_str(&clean));
    tn_text_done(&clean);
}

void tn_terminal_share(void)
{
    atomic_store(&is_shared, tn_terminal_is_one());
}

void tn_terminal_rank(uint32_t rank)
{
    (void)snprintf(own_name, sizeof own_name, "rank %u", rank);
    if (rank > 0) {
        tn_terminal_share();
    }
}

const char *tn_terminal_own_name(void)
{
    return own_name;
}

void tn_terminal_log(int verbosity, tn_log_level level)
{
    tn_log_set(print_line, verbosity < 0 ? TN_LOG_WARN : verbosity > 0 ? TN_LOG_DEBUG : level);
}

void tn_terminal_done(void)
{
    wipe();
}
