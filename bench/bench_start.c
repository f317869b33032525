/* bench_start.c - P15: how long a program takes from its start to the end of its first step, and
 * its memory.
 *
 *     bench_start PROGRAM CONFIG [key=value ..]
 *
 * Runs PROGRAM eleven times for one step of training without checkpoints and evaluation, and once
 * for none; prints one JSON line: wall time of the whole process in ms (median, least, largest)
 * beside the limit, and the peak RSS of a run that only reads its configuration and builds its
 * model.
 */
#include "base/clock.h"
#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 11, ARGS_MAX = 64 };

typedef struct ran {
    double ms;
    double rss_mb;
} ran;

static ran run_once(char *const *argv)
{
    double begin = tn_clock_s();
    pid_t pid = fork();
    if (pid == 0) {
        if (freopen("/dev/null", "w", stderr) != NULL &&
            freopen("/dev/null", "w", stdout) != NULL) {
            (void)execv(argv[0], argv);
        }
        _exit(1);
    }
    int status = 0;
    struct rusage usage;
    if (pid < 0 || wait4(pid, &status, 0, &usage) != pid || status != 0) {
        (void)fprintf(stderr, "bench_start: '%s' failed\n", argv[0]);
        exit(1); // NOLINT(concurrency-mt-unsafe): one thread
    }
    return (ran){1e3 * (tn_clock_s() - begin), (double)usage.ru_maxrss / 1024};
}

static int ascending(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return *x < *y ? -1 : *x > *y;
}

int main(int argc, char **argv)
{
    static char common[][32] = {"train.max_steps=1", "checkpoint.every=never",  "data.valid=~",
                                "data.test=~",       "checkpoint.resume=never", "log.jsonl=false"};
    enum { COMMON = sizeof common / sizeof common[0] };
    char *args[ARGS_MAX + 1] = {NULL};
    int n = 0;
    if (argc < 3 || argc + COMMON > ARGS_MAX) {
        (void)fputs("usage: bench_start PROGRAM CONFIG [key=value ..]\n", stderr);
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        args[n++] = argv[i];
    }
    for (int i = 0; i < COMMON; i++) {
        args[n++] = common[i];
    }
    double ms[RUNS];
    double rss = 0;
    for (int i = 0; i < RUNS; i++) {
        ran r = run_once(args);
        ms[i] = r.ms;
        rss = r.rss_mb;
    }
    char plan[] = "--print-graph";
    args[n++] = plan;
    ran idle = run_once(args);
    qsort(ms, RUNS, sizeof *ms, ascending);
    (void)printf(
        "{\"bench\":\"P15\",\"first_step_ms\":%.0f,\"min\":%.0f,\"max\":%.0f,\"limit_ms\":100,"
        "\"rss_first_step_mb\":%.1f,\"rss_configured_mb\":%.1f,\"limit_mb\":30}\n",
        ms[RUNS / 2], ms[0], ms[RUNS - 1], rss, idle.rss_mb);
    return 0;
}
