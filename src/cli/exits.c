/* exits.c - prints the message of a failure, and returns its exit code. */
#include "cli/exits.h"

#include "cli/terminal.h"
#include "config/diag.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Returns whether the first line has ": error: " after a place. */
static bool has_place(const char *text)
{
    const char *severity = strstr(text, ": error: ");
    const char *end = strchr(text, '\n');
    return severity != NULL && (end == NULL || severity < end);
}

/* Returns the bytes of "rank 2: " before a text that rank 2 itself reports. */
static size_t own_prefix(const char *text, const char *rank)
{
    const size_t size = strlen(rank);
    const bool own =
        size > 0 && strncmp(text, rank, size) == 0 && strncmp(text + size, ": ", 2) == 0;
    return own ? size + 2 : 0;
}

/* Says what takes less memory, where nothing is said yet. */
static void hint_memory(const char *text, tn_text *out)
{
    struct rlimit most;
    if (strstr(text, "out of memory") == NULL || strstr(text, "hint: ") != NULL) {
        return;
    }
    tn_text_adds(out, "hint: ");
    if (getrlimit(RLIMIT_AS, &most) == 0 && most.rlim_cur != RLIM_INFINITY) {
        tn_text_addf(out, "'ulimit -v' allows %llu kB; ", (unsigned long long)most.rlim_cur >> 10);
    }
    tn_text_adds(out,
                 "a lower train.threads, data.readers, train.batch or data.shuffle takes less\n");
}

void tn_exit_message(tn_text *out, const char *program, const tn_error *err)
{
    const char *text = err->text[0] != '\0' ? err->text : "failed without a message";
    if (!has_place(text)) {
        const char *rank = tn_terminal_own_name();
        text += own_prefix(text, rank);
        tn_text_addf(out, "%s%s%s: error: ", program, rank[0] != '\0' ? ": " : "", rank);
    }
    tn_text_adds(out, text);
    if (text[strlen(text) - 1] != '\n') {
        tn_text_addc(out, '\n');
    }
    hint_memory(text, out);
}

/* stderr is the last resort: nobody can report that it fails. */
static void print(const tn_text *text)
{
    tn_text clean = {0};
    tn_terminal_clean(tn_text_str(text), text->size, &clean);
    const tn_text *shown = clean.failed ? text : &clean;
    (void)fwrite(tn_text_str(shown), 1, shown->size, stderr);
    (void)fflush(stderr);
    tn_text_done(&clean);
}

int tn_exit_with(const char *program, const tn_error *err)
{
    tn_text message = {0};
    tn_exit_message(&message, program, err);
    print(&message);
    tn_text_done(&message);
    return tn_exit_code(err->code);
}

int tn_exit_diag(const char *program, const tn_diag *diag)
{
    print(&diag->text);
    tn_error err = {0};
    return tn_diag_check(diag, &err) == TN_OK ? 0 : tn_exit_with(program, &err);
}

/* As `head` ends when it has seen enough. */
static bool reader_is_gone(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO};
    return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

int tn_exit_done(const char *program, int code)
{
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0) {
        return code;
    }
    if (errno == EPIPE || (errno == 0 && reader_is_gone())) {
        return code != 0 ? code : tn_exit_code(TN_E_IO);
    }
    tn_error err = {0};
    (void)tn_fail(&err, TN_E_IO, "cannot write to stdout: %s",
                  errno != 0 ? strerrordesc_np(errno) : "an earlier write failed");
    int failed = tn_exit_with(program, &err);
    return code != 0 ? code : failed;
}
