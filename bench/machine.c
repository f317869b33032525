/* machine.c - see machine.h. */
#include "machine.h"

#include "base/core/alloc.h"
#include "base/core/clock.h"
#include "base/machine/machine_peak.h"
#include "base/thread/threads.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PIECE_MS = 20, NAME = 128 }; /* tn_peak_gflops takes that long */

typedef struct share {
    uint32_t pieces;
    double gflops;
} share;

static tn_status multiply(void *arg, tn_error *err)
{
    share *s = arg;
    (void)err;
    for (uint32_t i = 0; i < s->pieces; i++) {
        s->gflops += tn_peak_gflops(1) / s->pieces;
    }
    return TN_OK;
}

double tn_machine_gflops(uint32_t threads, uint32_t ms)
{
    tn_thread **thread = tn_alloc(threads, sizeof(tn_thread *), "threads");
    share *s = tn_alloc(threads, sizeof *s, "shares of threads");
    tn_error err = {0};
    double sum = 0;
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
    }
    tn_free(thread);
    tn_free(s);
    return sum;
}

static void read_name(char out[NAME])
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    (void)snprintf(out, NAME, "unknown");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        const char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            (void)snprintf(out, NAME, "%.*s", (int)strcspn(colon + 2, "\n\""), colon + 2);
            break;
        }
    }
    if (f != NULL) {
        (void)fclose(f);
    }
}

void tn_machine_print(bool json)
{
    enum { MOMENTS = 5, MOMENT_MS = 40 };
    char name[NAME];
    double one = 0;
    double all = 0;
    uint32_t cores = tn_cpu_count();
    read_name(name);
    for (int i = 0; i < MOMENTS; i++) {
        double now = tn_machine_gflops(1, MOMENT_MS);
        one = now > one ? now : one;
        now = tn_machine_gflops(cores, MOMENT_MS);
        all = now > all ? now : all;
    }
    (void)printf(json ? "{\"row\":\"machine\",\"cpu\":\"%s\",\"cores\":%u,\"vectors\":\"%s\","
                        "\"peak_gflops_core\":%.1f,\"peak_gflops_all\":%.1f}\n"
                      : "# %s, %u cores, %s: FMA peak %.0f GFLOP/s on one core, %.0f on all\n",
                 name, cores, tn_peak_kind(), one, all);
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

double tn_machine_busy_s(void)
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

tn_lap tn_lap_begin(void)
{
    return (tn_lap){tn_clock_s(), tn_machine_cpu_s()};
}

double tn_lap_per_cpu(tn_lap from, double rate)
{
    return rate * (tn_clock_s() - from.wall) / (tn_machine_cpu_s() - from.cpu);
}
