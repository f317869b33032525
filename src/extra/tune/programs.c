/* programs.c - fork, exec, poll. */
#include "extra/tune/programs.h"

#include "base/core/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_PROGRAM = 127, BY_SIGNAL = 128, LOOK_MS = 100, OUT_MAX = 1 << 24, TAIL = 1 << 14 };

/* ---- one program ---- */

/* Never returns. Between fork and exec: system calls only. */
_Noreturn static void become(char *const *words, const int *out, const int *log)
{
    const int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigset_t none;
    (void)sigemptyset(&none);
    (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (in >= 0 && dup2(in, STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0 &&
        dup2(log[1], STDERR_FILENO) >= 0) {
        (void)execv(words[0], words);
    }
    _Exit(NO_PROGRAM);
}

static void close_pipe(int *fd)
{
    for (uint32_t i = 0; i < 2; i++) {
        (void)(fd[i] >= 0 ? close(fd[i]) : 0);
        fd[i] = -1;
    }
}

static tn_program_run *free_place(tn_programs *p)
{
    uint32_t i = 0;
    while (i < p->n && p->run[i].pid != 0) {
        i++;
    }
    TN_ASSERT(i < TN_PROGRAMS_MAX);
    p->n = i == p->n ? i + 1 : p->n;
    return &p->run[i];
}

tn_status tn_programs_start(tn_programs *p, uint32_t id, char *const *words, tn_error *err)
{
    int out[2] = {-1, -1};
    int log[2] = {-1, -1};
    pid_t pid = -1;
    if (pipe2(out, O_CLOEXEC) == 0 && pipe2(log, O_CLOEXEC) == 0) {
        pid = fork();
    }
    if (pid == 0) {
        become(words, out, log);
    }
    if (pid < 0) {
        const int why = errno;
        close_pipe(out);
        close_pipe(log);
        return tn_fail(err, TN_E_IO, "cannot start '%s': %s", words[0], strerrordesc_np(why));
    }
    (void)close(out[1]);
    (void)close(log[1]);
    p->running++;
    *free_place(p) = (tn_program_run){.id = id,
                                      .pid = pid,
                                      .pipe = {out[0], log[0]},
                                      .said = {{.size_max = OUT_MAX}, {.size_max = OUT_MAX}}};
    return TN_OK;
}

/* ---- what they print ---- */

/* Keeps the last half of a log that has grown too long. */
static void keep_tail(tn_text *log)
{
    if (log->size >= 2 * (size_t)TAIL) {
        memmove(log->data, log->data + log->size - TAIL, TAIL);
        log->size = TAIL;
    }
}

static void read_some(tn_program_run *r, uint32_t i)
{
    char bytes[1 << 14];
    const ssize_t got = read(r->pipe[i], bytes, sizeof bytes);
    if (got > 0) {
        tn_text_add(&r->said[i], bytes, (size_t)got);
        (void)(i == 1 ? keep_tail(&r->said[1]) : (void)0);
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
        (void)close(r->pipe[i]);
        r->pipe[i] = -1;
    }
}

/* Waits for anything that they print, or for the end of a pipe. */
static void read_all(tn_programs *p, int timeout_ms)
{
    struct pollfd fds[2 * TN_PROGRAMS_MAX];
    uint32_t of[2 * TN_PROGRAMS_MAX];
    nfds_t n = 0;
    for (uint32_t i = 0; i < 2 * p->n; i++) {
        const tn_program_run *r = &p->run[i / 2];
        if (r->pid != 0 && r->pipe[i % 2] >= 0) {
            of[n] = i;
            fds[n++] = (struct pollfd){.fd = r->pipe[i % 2], .events = POLLIN};
        }
    }
    if (poll(fds, n, timeout_ms) > 0) {
        for (nfds_t k = 0; k < n; k++) {
            if (fds[k].revents != 0) {
                read_some(&p->run[of[k] / 2], of[k] % 2);
            }
        }
    }
}

/* ---- their end ---- */

/* Copies the first line that names an error, else the last line. */
static void copy_reason(const tn_text *log, char *out, size_t size)
{
    const char *line = tn_text_str(log);
    for (const char *at = line; *at != '\0';) {
        const size_t length = strcspn(at, "\n");
        line = length > 0 ? at : line;
        if (memmem(at, length, "error: ", strlen("error: ")) != NULL) {
            break;
        }
        at += length + (at[length] == '\n');
    }
    (void)snprintf(out, size, "%.*s", (int)strcspn(line, "\n"), line);
}

/* Returns whether a program has ended; its place is free then. */
static bool reap(tn_programs *p, uint32_t i, tn_program_end *out)
{
    tn_program_run *r = &p->run[i];
    int how = 0;
    if (r->pid == 0 || r->pipe[0] >= 0 || r->pipe[1] >= 0 || waitpid(r->pid, &how, 0) != r->pid) {
        return false;
    }
    *out = (tn_program_end){.id = r->id,
                            .code = WIFEXITED(how) ? WEXITSTATUS(how) : BY_SIGNAL + WTERMSIG(how),
                            .out = r->said[0]};
    copy_reason(&r->said[1], out->reason, sizeof out->reason);
    tn_text_done(&r->said[1]);
    r->pid = 0;
    p->running--;
    return true;
}

tn_status tn_programs_wait(tn_programs *p, const atomic_bool *stop, double until,
                           tn_program_end *out, tn_error *err)
{
    while (!atomic_load(stop) && tn_clock_s() < until) {
        for (uint32_t i = 0; i < p->n; i++) {
            if (reap(p, i, out)) {
                return TN_OK;
            }
        }
        read_all(p, LOOK_MS);
    }
    return tn_fail(err, TN_E_STOPPED, "stopped while programs run");
}

void tn_programs_end(tn_programs *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        (void)(p->run[i].pid != 0 ? kill(p->run[i].pid, SIGTERM) : 0);
    }
    for (uint32_t i = 0; i < p->n; i++) {
        tn_program_end end;
        while (p->run[i].pid != 0) {
            read_all(p, LOOK_MS);
            if (reap(p, i, &end)) {
                tn_text_done(&end.out);
            }
        }
    }
}
