/* bench_stream.c - P19, C6: a whole training process that reads a stream which this program writes.
 *
 *     bench_stream [--json] P19 TNET_TRAIN FOLDER [SECONDS]      default 20 seconds of rows
 *     bench_stream [--json] C6 TNET_TRAIN FOLDER
 *
 *     P19    the process's resident memory after a million rows and at the end, over the same keys;
 *            how many rows that were depends on the machine
 *     C6     its share of a core while the stream is silent
 *
 * Rows are libffm text of 8 slots with 1000 ids each; the model is an FM.
 */
#include "base/core/clock.h"
#include "base/core/number.h"
#include "base/math/key.h"
#include "figure.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOTS = 8, IDS = 1000, ROW_BYTES = 128, BLOCK_ROWS = 4096, PATH = 512, MILLION = 1000000 };

typedef struct child {
    pid_t pid;
    int to; /* its standard input */
    uint64_t rows;
} child;

static void fail(const char *why)
{
    (void)fprintf(stderr, "bench_stream: %s\n", why);
    exit(1); // NOLINT(concurrency-mt-unsafe): one thread
}

static void write_config(const char *path, const char *folder)
{
    FILE *f = fopen(path, "w");
    if (f == NULL) {
        fail("cannot write a configuration into FOLDER");
    }
    (void)fprintf(f, "run: {name: stream, dir: %s/stream}\n", folder);
    (void)fputs("data: {format: libffm, train: '-', shuffle: 0}\nslots:\n", f);
    for (int i = 0; i < SLOTS; i++) {
        (void)fprintf(f, "  - {name: s%d, field: %d}\n", i, i);
    }
    (void)fputs("embedding: {dim: 8}\nmodel: {type: fm}\ntrain: {batch: 1024}\n"
                "checkpoint: {every: never, resume: never}\nlog: {jsonl: false}\n",
                f);
    if (fclose(f) != 0) {
        fail("cannot write a configuration into FOLDER");
    }
}

static child start(const char *program, const char *folder)
{
    char path[PATH];
    int ends[2];
    (void)snprintf(path, sizeof path, "%.400s/stream.yaml", folder);
    write_config(path, folder);
    if (pipe(ends) != 0) {
        fail("no pipe");
    }
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(ends[0], STDIN_FILENO);
        (void)close(ends[0]);
        (void)close(ends[1]);
        if (freopen("/dev/null", "w", stdout) != NULL &&
            freopen("/dev/null", "w", stderr) != NULL) {
            (void)execl(program, program, path, (char *)NULL);
        }
        _exit(1);
    }
    (void)close(ends[0]);
    if (pid < 0) {
        fail("no process");
    }
    return (child){pid, ends[1], 0};
}

static char *put_number(char *at, uint64_t x)
{
    char digit[24];
    int n = 0;
    do {
        digit[n++] = (char)('0' + x % 10);
        x /= 10;
    } while (x > 0);
    while (n > 0) {
        *at++ = digit[--n];
    }
    return at;
}

static void write_block(child *c)
{
    static char text[BLOCK_ROWS * ROW_BYTES];
    char *at = text;
    for (uint32_t i = 0; i < BLOCK_ROWS; i++, c->rows++) {
        uint64_t draw = tn_mix(c->rows);
        *at++ = (char)('0' + draw % 4 / 3);
        for (uint64_t s = 0; s < SLOTS; s++) {
            *at++ = ' ';
            at = put_number(at, s);
            *at++ = ':';
            at = put_number(at, tn_mix(draw + s) % IDS);
            memcpy(at, ":1", 2);
            at += 2;
        }
        *at++ = '\n';
    }
    for (const char *from = text; from < at;) {
        ssize_t n = write(c->to, from, (size_t)(at - from));
        if (n < 0 && errno != EINTR) {
            fail("the program that trains has ended");
        }
        from += n > 0 ? n : 0;
    }
}

/* The rest of a line of /proc/PID/status, as a number. */
static double status_of(pid_t pid, const char *name)
{
    char line[PATH];
    (void)snprintf(line, sizeof line, "/proc/%d/status", (int)pid);
    FILE *f = fopen(line, "r");
    double value = (double)NAN;
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            value = strtod(line + strlen(name), NULL);
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return value;
}

/* Seconds of processor time so far: the 14th and 15th word of /proc/PID/stat. */
static double cpu_of(pid_t pid)
{
    char line[2 * PATH];
    unsigned long user = 0;
    unsigned long system = 0;
    (void)snprintf(line, sizeof line, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(line, "r");
    const char *behind =
        f != NULL && fgets(line, sizeof line, f) != NULL ? strrchr(line, ')') : NULL;
    // NOLINTNEXTLINE(cert-err34-c): the kernel's own numbers
    if (behind == NULL || sscanf(behind + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                                 &user, &system) != 2) {
        fail("no /proc of the program that trains");
    }
    (void)fclose(f);
    return (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}

static void end(const child *c)
{
    int status = 0;
    (void)close(c->to);
    if (waitpid(c->pid, &status, 0) != c->pid || status != 0) {
        fail("the program that trains has failed");
    }
}

static void memory(const char *program, const char *folder, double seconds, bool json)
{
    child c = start(program, folder);
    double from = tn_clock_s();
    double first = 0;
    char what[ROW_BYTES];
    while (tn_clock_s() - from < seconds || c.rows < 2 * (uint64_t)MILLION) {
        write_block(&c);
        if (first == 0 && c.rows >= MILLION) {
            first = status_of(c.pid, "VmRSS:");
        }
    }
    double last = status_of(c.pid, "VmRSS:");
    double rate = (double)c.rows / (tn_clock_s() - from);
    end(&c);
    (void)snprintf(what, sizeof what,
                   "resident memory, stream of %.1f M rows (%.0f k rows/s; 1e9: %.1f h)",
                   1e-6 * (double)c.rows, 1e-3 * rate, 1e9 / rate / 3600);
    tn_figure_print(&(tn_figure){.row = "P19",
                                 .what = what,
                                 .unit = "MB",
                                 .is = tn_spread_one(last / 1024),
                                 .yardstick = first / 1024,
                                 .yardstick_is = "MB after 1 M rows",
                                 .target = 1.02,
                                 .aim = TN_AIM_YARDSTICK,
                                 .at_most = true},
                    json);
}

static void idle(const char *program, const char *folder, bool json)
{
    enum { TURNS = 5, BLOCKS = 16, SETTLE_US = 1000000 };
    static tn_samples share;
    child c = start(program, folder);
    for (int i = 0; i < BLOCKS; i++) {
        write_block(&c);
    }
    (void)usleep(SETTLE_US);
    for (int i = 0; i < TURNS; i++) {
        double cpu = cpu_of(c.pid);
        double from = tn_clock_s();
        (void)usleep(SETTLE_US);
        tn_sample(&share, 100 * (cpu_of(c.pid) - cpu) / (tn_clock_s() - from));
    }
    end(&c);
    tn_figure_print(&(tn_figure){.row = "C6",
                                 .what = "waiting for data: share of a core",
                                 .unit = "%",
                                 .is = tn_spread_of(&share),
                                 .target = 2,
                                 .at_most = true},
                    json);
}

int main(int argc, char **argv)
{
    bool json = tn_json_wanted(&argc, argv);
    double seconds = 20;
    if (argc > 4 && tn_read_f64(argv[4], strlen(argv[4]), &seconds) != TN_NUM_OK) {
        argc = 0;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    if (argc > 3 && strcmp(argv[1], "P19") == 0) {
        memory(argv[2], argv[3], seconds, json);
    } else if (argc == 4 && strcmp(argv[1], "C6") == 0) {
        idle(argv[2], argv[3], json);
    } else {
        (void)fputs("usage: bench_stream [--json] P19 TNET_TRAIN FOLDER [SECONDS]\n"
                    "       bench_stream [--json] C6 TNET_TRAIN FOLDER\n",
                    stderr);
        return 2;
    }
    return 0;
}
