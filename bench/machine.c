/* machine.c - see machine.h. */
#include "machine.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/machine/machine_peak.h"
#include "base/thread/threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { PIECE_MS = 20, NAME = 128 }; /* tn_peak_gflops takes that long */

typedef struct share {
    uint32_t pieces;
    double gflops, best;
} share;

static tn_status multiply(void *arg, tn_error *err)
{
    share *s = arg;
    (void)err;
    for (uint32_t i = 0; i < s->pieces; i++) {
        double now = tn_peak_gflops(1);
        s->gflops += now / s->pieces;
        s->best = now > s->best ? now : s->best;
    }
    return TN_OK;
}

double tn_machine_gflops(uint32_t threads, uint32_t ms, double *peak)
{
    tn_thread **thread = tn_alloc(threads, sizeof(tn_thread *), "threads");
    share *s = tn_alloc(threads, sizeof *s, "shares of threads");
    tn_error err = {0};
    double sum = 0;
    double best = 0;
    for (uint32_t i = 0; i < threads; i++) {
        s[i] = (share){.pieces = ms > PIECE_MS ? ms / PIECE_MS : 1};
        tn_status status =
            i > 0 ? tn_thread_start(&thread[i], "peak", multiply, &s[i], &err) : TN_OK;
        TN_ASSERT(status == TN_OK);
    }
    tn_status own = multiply(&s[0], &err);
    TN_ASSERT(own == TN_OK);
    for (uint32_t i = 0; i < threads; i++) {
        tn_status status = i > 0 ? tn_thread_join(thread[i], &err) : TN_OK;
        TN_ASSERT(status == TN_OK);
        sum += s[i].gflops;
        best += s[i].best;
    }
    tn_free(thread);
    tn_free(s);
    if (peak != NULL && best > *peak) {
        *peak = best;
    }
    return sum;
}

const char *tn_machine_name(void)
{
    static char name[NAME];
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    (void)snprintf(name, NAME, "unknown");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            (void)snprintf(name, NAME, "%.*s", (int)strcspn(colon + 2, "\n\""), colon + 2);
            break;
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return name;
}

void tn_machine_use_cores(uint32_t n)
{
    static cpu_set_t all; /* what the process began with */
    cpu_set_t some;
    if (CPU_COUNT(&all) == 0) {
        int bad = pthread_getaffinity_np(pthread_self(), sizeof all, &all);
        TN_ASSERT(bad == 0);
    }
    CPU_ZERO(&some);
    for (size_t i = 0; i < CPU_SETSIZE && (uint32_t)CPU_COUNT(&some) < n; i++) {
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &some);
        }
    }
    int bad = pthread_setaffinity_np(pthread_self(), sizeof all, n > 0 ? &some : &all);
    TN_ASSERT(bad == 0);
}

void tn_machine_print(bool json)
{
    enum { MOMENTS = 5, MOMENT_MS = 40 };
    double one = 0;
    double all = 0;
    uint32_t cores = tn_cpu_count();
    for (int i = 0; i < MOMENTS; i++) {
        (void)tn_machine_gflops(1, MOMENT_MS, &one);
        (void)tn_machine_gflops(cores, MOMENT_MS, &all);
    }
    (void)printf(json ? "{\"row\":\"machine\",\"cpu\":\"%s\",\"cores\":%u,\"vectors\":\"%s\","
                        "\"peak_gflops_core\":%.1f,\"peak_gflops_all\":%.1f}\n"
                      : "# %s, %u cores, %s: FMA peak %.0f GFLOP/s on one core, %.0f on all\n",
                 tn_machine_name(), cores, tn_peak_kind(), one, all);
    (void)fflush(stdout);
}

static struct rusage usage_now(void)
{
    struct rusage u = {0};
    int bad = getrusage(RUSAGE_SELF, &u);
    TN_ASSERT(bad == 0);
    return u;
}

double tn_machine_rss_mb(void)
{
    return (double)usage_now().ru_maxrss / 1024;
}

double tn_machine_cpu_s(void)
{
    struct rusage u = usage_now();
    return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

double tn_machine_thread_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Seconds that all processors worked so far for anybody, the time that a host took from them
 * included. 0: not known. */
static double busy_s(void)
{
    static const char wanted[] = "cpu %lf %lf %lf %*f %*f %lf %lf %lf";
    FILE *f = fopen("/proc/stat", "r");
    double user = 0;
    double nice = 0;
    double system = 0;
    double irq = 0;
    double soft = 0;
    double stolen = 0;
    /* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it */
    int n = f == NULL ? 0 : fscanf(f, wanted, &user, &nice, &system, &irq, &soft, &stolen);
    if (f != NULL) {
        (void)fclose(f);
    }
    return n == 6 ? (user + nice + system + irq + soft + stolen) / (double)sysconf(_SC_CLK_TCK) : 0;
}

static tn_turns so_far;

void tn_turn_begin(tn_turn *t)
{
    t->wall = tn_clock_s();
    t->cpu = tn_machine_cpu_s();
    t->busy = busy_s();
}

bool tn_turn_end(tn_turn *t, double rate)
{
    enum { TRIES = 4 };
    const double quiet = .08;
    double own = tn_machine_cpu_s() - t->cpu;
    double others = (busy_s() - t->busy - own) / (tn_clock_s() - t->wall);
    others = others > 0 ? others : 0;
    if (t->tries++ == 0 || others < t->others) {
        t->others = others;
        t->rate = rate;
    }
    const bool again = others > quiet && t->tries < TRIES;
    so_far.n += !again;
    so_far.tries++;
    so_far.disturbed += !again && t->others > quiet;
    return again;
}

tn_turns tn_turns_take(void)
{
    tn_turns now = so_far;
    so_far = (tn_turns){0};
    return now;
}
