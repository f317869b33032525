/* bench_metrics.c - nanoseconds per row of adding to the metrics.
 *
 *     bench_metrics [--json]      a step may spend 1 % on metrics (P12 of docs/performance.md)
 *
 * Batches of 1024 rows with logits as a trained model gives them, over and over; the best of seven
 * rounds. The limit is 1 % of a step of the smallest yardstick net (128-64-32: 400,000 rows/s on a
 * core).
 */
#include "base/clock.h"
#include "base/rng.h"
#include "train/metrics.h"
#include "train/slices.h"

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

static void fill(rows *r)
{
    uint64_t s = tn_stream2(42, TN_RNG_GENERATE, 0);
    for (uint32_t b = 0; b < BATCHES; b++) {
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

static double round_ns(const job *j)
{
    uint64_t start = tn_clock_ns();
    for (uint32_t b = 0; b < BATCHES; b++) {
        tn_scored scored = {.n = ROWS,
                            .logit = j->r->logit[b],
                            .label = j->r->label[b],
                            .weight = j->weighted ? j->r->weight[b] : NULL};
        tn_status status =
            j->s != NULL ? tn_slices_add(j->s, &scored, &(tn_slice_keys){j->r->key[b], NULL}, NULL)
                         : tn_metrics_add(j->m, &scored, NULL);
        TN_ASSERT(status == TN_OK);
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

int main(int argc, char **argv)
{
    static rows r;
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    fill(&r);
    tn_metrics *m = NULL;
    tn_slices *s = NULL;
    tn_metrics_opts opts = {0};
    TN_ASSERT(tn_metrics_new(&m, &opts, NULL) == TN_OK);
    TN_ASSERT(tn_slices_new(&s, &(tn_slices_opts){.slices_max = SLICES}, NULL) == TN_OK);
    report("metrics", &(job){&r, m, NULL, false}, LIMIT_NS, json);
    report("metrics, weighted rows", &(job){&r, m, NULL, true}, LIMIT_NS, json);
    report("slices of one slot", &(job){&r, NULL, s, false}, LIMIT_SLICES_NS, json);
    uint64_t start = tn_clock_ns();
    double auc = tn_metrics_get(m, "auc");
    (void)printf(json ? "{\"bench\":\"auc\",\"value\":%.6f,\"ms\":%.2f}\n"
                      : "auc of the histogram      %.6f in %.2f ms\n",
                 auc, (double)(tn_clock_ns() - start) * 1e-6);
    tn_slices_free(s);
    tn_metrics_free(m);
    return 0;
}
