/* bench_metrics.c - instructions of adding to the metrics.
 *
 *     bench_metrics --list | NAME      for .ci/check-instructions
 *
 * One batch of 1024 rows with logits as a trained model gives them. What the metrics take of a step
 * is P12 of bench_rates.
 */
#include "base/math/fmath.h"
#include "counted.h"

#include "base/math/rng.h"
#include "metrics/metrics.h"
#include "metrics/slices.h"

enum { ROWS = 1024, BATCHES = 2, SLICES = 100 };

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
    fill(&all);
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
    return tn_counted_main(argc, argv, counted) ? 0 : 2;
}
