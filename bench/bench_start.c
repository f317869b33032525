/* bench_start.c - P15: how long a program takes from its start to the end of its first step, and
 * its memory.
 *
 *     bench_start [--json] PROGRAM CONFIG [key=value ..]
 *     bench_start [--json] --size NAME PROGRAM              its bytes on disk; strip it first
 *     bench_start --faults PROGRAM [ARGUMENT ..]            a number: its page faults
 *
 * Runs PROGRAM eleven times for one step of training without checkpoints and evaluation, and once
 * for none: wall time of the whole process, and the peak RSS of a run that only reads its
 * configuration and builds its model.
 *
 * Page faults are those that no disk took part in, the least of five runs. Huge pages are off, so
 * that they count the memory that is touched: .ci/check-instructions compares them.
 */
#include "base/core/clock.h"
#include "base/core/error.h"
#include "figure.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RUNS = 11, FAULT_RUNS = 5, ARGS_MAX = 64 };

typedef struct ran {
    double ms;
    double rss_mb;
    long faults;
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
    return (ran){1e3 * (tn_clock_s() - begin), (double)usage.ru_maxrss / 1024, usage.ru_minflt};
}

static void print(const char *what, const char *unit, tn_spread is, double target, bool json)
{
    tn_figure_print(
        &(tn_figure){
            .row = "P15", .what = what, .unit = unit, .is = is, .target = target, .at_most = true},
        json);
}

static int print_size(const char *name, const char *path, bool json)
{
    struct stat about;
    char what[64];
    if (stat(path, &about) != 0) {
        (void)fprintf(stderr, "bench_start: no file '%s'\n", path);
        return 1;
    }
    (void)snprintf(what, sizeof what, "%.40s, stripped", name);
    print(what, "MB", tn_spread_one(1e-6 * (double)about.st_size), 5, json);
    return 0;
}

static int print_faults(char *const *argv)
{
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) { /* what it runs inherits this */
        (void)fputs("bench_start: huge pages cannot be switched off\n", stderr);
        return 1;
    }
    long least = LONG_MAX;
    for (int i = 0; i < FAULT_RUNS; i++) {
        long faults = run_once(argv).faults;
        least = faults < least ? faults : least;
    }
    (void)printf("%ld\n", least);
    return 0;
}

int main(int argc, char **argv)
{
    static char common[][32] = {"train.max_steps=1", "checkpoint.every=never",  "data.valid=~",
                                "data.test=~",       "checkpoint.resume=never", "log.jsonl=false"};
    enum { COMMON = sizeof common / sizeof common[0] };
    char *args[ARGS_MAX + 1] = {NULL};
    int n = 0;
    bool json = tn_json_wanted(&argc, argv);
    if (argc == 4 && strcmp(argv[1], "--size") == 0) {
        return print_size(argv[2], argv[3], json);
    }
    if (argc >= 3 && strcmp(argv[1], "--faults") == 0) {
        return print_faults(argv + 2);
    }
    if (argc < 3 || argc + COMMON > ARGS_MAX) {
        (void)fputs("usage: bench_start [--json] PROGRAM CONFIG [key=value ..]\n", stderr);
        return 2;
    }
    for (int i = 1; i < argc; i++) {
        args[n++] = argv[i];
    }
    for (int i = 0; i < COMMON; i++) {
        args[n++] = common[i];
    }
    static tn_samples ms;
    double rss = 0;
    for (int i = 0; i < RUNS; i++) {
        ran r = run_once(args);
        tn_sample(&ms, r.ms);
        rss = r.rss_mb;
    }
    char plan[] = "--print-graph";
    args[n++] = plan;
    ran idle = run_once(args);
    print("process start to the end of its first step", "ms", tn_spread_of(&ms), 100, json);
    print("resident memory before data", "MB", tn_spread_one(idle.rss_mb), 30, json);
    print("resident memory after the first step", "MB", tn_spread_one(rss), (double)NAN, json);
    return 0;
}
