/* bench_metrics.c - nanoseconds per row of adding to the metrics.
 *
 *     bench_metrics --list | NAME      for .ci/check-instructions
 *     bench_metrics [--json]           a step may spend 1 % on metrics (P12 of docs/performance.md)
 *
 * Batches of 1024 rows with logits as a trained model gives them, over and over; the best of seven
 * rounds. The limit is 1 % of a step of the smallest yardstick net (128-64-32: 400,000 rows/s on a
 * core).
 */
#include "base/math/fmath.h"
#include "counted.h"

#include "base/core/clock.h"
#include "base/math/rng.h"
#include "metrics/metrics.h"
#include "metrics/slices.h"

#include <stdio.h>
#include <string.h>

enum { ROWS = 1024, BATCHES = 512, ROUNDS = 7, SLICES = 100 };
#define LIMIT_NS 25.0         /* every step */
#define LIMIT_SLICES_NS 100.0 /* evaluation only, per slot */

typedef struct rows {
    float logit[BATCHES][ROWS];
    float label[BATCHES][ROWS];
    float weight[BATCHES][ROWS];
    uint64_t key[BATCHES][ROWS];
} rows;

static void fill(rows *r, uint32_t n_batches)
{
    uint64_t s = tn_stream2(42, TN_RNG_GENERATE, 0);
    for (uint32_t b = 0; b < n_batches; b++) {
        for (uint32_t i = 0; i < ROWS; i++) {
            uint64_t at = ((uint64_t)b * ROWS + i) * 4;
            double z = -3 + 1.5 * tn_normal(tn_draw(s, at));
            r->logit[b][i] = (float)z;
            r->label[b][i] = tn_unit(tn_draw(s, at + 1)) < tn_sigmoid(z) ? 1 : 0;
            r->weight[b][i] = (float)(0.5 + tn_unit(tn_draw(s, at + 2)));
            r->key[b][i] = tn_below(tn_draw(s, at + 3), SLICES);
        }
    }
}

typedef struct job {
    const rows *r;
    tn_metrics *m;
    tn_slices *s;
    bool weighted;
} job;

static void add(const job *j, uint32_t b)
{
    tn_scored scored = {.n = ROWS,
                        .logit = j->r->logit[b],
                        .label = j->r->label[b],
                        .weight = j->weighted ? j->r->weight[b] : NULL};
    tn_status status =
        j->s != NULL ? tn_slices_add(j->s, &scored, &(tn_slice_keys){j->r->key[b], NULL}, NULL)
                     : tn_metrics_add(j->m, &scored, NULL);
    TN_ASSERT(status == TN_OK);
}

static double round_ns(const job *j)
{
    uint64_t start = tn_clock_ns();
    for (uint32_t b = 0; b < BATCHES; b++) {
        add(j, b);
    }
    return (double)(tn_clock_ns() - start) / ROWS / BATCHES;
}

static void report(const char *name, const job *j, double limit, bool json)
{
    double best = round_ns(j);
    for (uint32_t i = 1; i < ROUNDS; i++) {
        double ns = round_ns(j);
        best = ns < best ? ns : best;
    }
    (void)printf(json ? "{\"bench\":\"%s\",\"ns_per_row\":%.2f,\"limit\":%.1f}\n"
                      : "%-24s %7.2f ns/row   limit %.1f\n",
                 name, best, limit);
}

static rows all;

static job open_job(bool slices, bool weighted)
{
    job j = {.r = &all, .weighted = weighted};
    tn_status status = slices ? tn_slices_new(&j.s, &(tn_slices_opts){.slices_max = SLICES}, NULL)
                              : tn_metrics_new(&j.m, &(tn_metrics_opts){0}, NULL);
    TN_ASSERT(status == TN_OK);
    return j;
}

static void close_job(const job *j)
{
    tn_slices_free(j->s);
    tn_metrics_free(j->m);
}

/* ---- counting: one batch after another ---- */

static void add_second(void *arg)
{
    add(arg, 1);
}

static void count(bool slices, bool weighted)
{
    fill(&all, 2);
    job j = open_job(slices, weighted);
    add(&j, 0);
    tn_count(add_second, &j);
    close_job(&j);
}

static void count_metrics(void)
{
    count(false, false);
}

static void count_weighted(void)
{
    count(false, true);
}

static void count_slices(void)
{
    count(true, false);
}

static const tn_counted counted[] = {
    {"add", count_metrics}, {"weighted", count_weighted}, {"slices", count_slices}, {NULL, NULL}};

int main(int argc, char **argv)
{
    if (tn_counted_main(argc, argv, counted)) {
        return 0;
    }
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    fill(&all, BATCHES);
    job plain = open_job(false, false);
    job weighted = {.r = &all, .m = plain.m, .weighted = true};
    job sliced = open_job(true, false);
    report("metrics", &plain, LIMIT_NS, json);
    report("metrics, weighted rows", &weighted, LIMIT_NS, json);
    report("slices of one slot", &sliced, LIMIT_SLICES_NS, json);
    uint64_t start = tn_clock_ns();
    double auc = tn_metrics_get(plain.m, "auc");
    (void)printf(json ? "{\"bench\":\"auc\",\"value\":%.6f,\"ms\":%.2f}\n"
                      : "auc of the histogram      %.6f in %.2f ms\n",
                 auc, (double)(tn_clock_ns() - start) * 1e-6);
    close_job(&plain);
    close_job(&sliced);
    return 0;
}
