/* bench_score.c - libtnet on one core: one row at a time and 1,000 at once (P16).
 *
 *     bench_score [--json] EXPORT_DIR
 *
 * Rows are made up for the export's own fields: ids below 1000 and small numbers, so that most keys
 * are found. "one": begin, add, end, score of a single row, the median; "1000": scoring alone of
 * 1,000 rows that are there. Limit of the dense part: its multiply-adds at the peak of this core,
 * measured in the same run.
 */
#include "base/clock.h"
#include "base/key.h"
#include "base/peak.h"
#include "train/bundle.h"
#include "train/tnet.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 1000, ROUNDS = 2000, BATCHES = 60, IDS = 1000, FIELDS_MAX = 4096 };

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static int add_row(tnet_scorer *s, const tnet_model *m, uint64_t row, tnet_error *err)
{
    int code = tnet_begin_row(s, err);
    int n = tnet_n_fields(m);
    for (int i = 0; i < n && code == TNET_OK; i++) {
        uint64_t x = tn_mix(row * FIELDS_MAX + (uint64_t)i);
        code = tnet_field_is_number(m, i) ? tnet_add_number(s, i, (double)(x % 100), err)
                                          : tnet_add_id(s, i, x % IDS, 1, err);
    }
    return code == TNET_OK ? tnet_end_row(s, err) : code;
}

/* Median of whole calls, in microseconds. */
static int time_single(tnet_scorer *s, const tnet_model *m, double *us, tnet_error *err)
{
    static double took[ROUNDS];
    for (uint64_t i = 0; i < ROUNDS; i++) {
        float logit;
        double begin = tn_clock_s();
        tnet_clear(s);
        int code = add_row(s, m, i, err);
        code = code == TNET_OK ? tnet_score(s, &logit, NULL, err) : code;
        took[i] = (tn_clock_s() - begin) * 1e6;
        if (code != TNET_OK) {
            return code;
        }
    }
    qsort(took, ROUNDS, sizeof *took, by_size);
    *us = took[ROUNDS / 2];
    return TNET_OK;
}

static int time_batch(tnet_scorer *s, const tnet_model *m, double *ms, tnet_error *err)
{
    static float logit[ROWS];
    static double took[BATCHES];
    tnet_clear(s);
    for (uint64_t i = 0; i < ROWS; i++) {
        int code = add_row(s, m, i, err);
        if (code != TNET_OK) {
            return code;
        }
    }
    for (uint32_t i = 0; i < BATCHES; i++) {
        double begin = tn_clock_s();
        int code = tnet_score(s, logit, NULL, err);
        took[i] = (tn_clock_s() - begin) * 1e3;
        if (code != TNET_OK) {
            return code;
        }
    }
    qsort(took, BATCHES, sizeof *took, by_size);
    *ms = took[BATCHES / 2];
    return TNET_OK;
}

/* Multiply-adds times two of one row, by the export's weights. */
static double flops_of(const char *dir)
{
    tn_error err = {0};
    tn_bundle *b = NULL;
    double flops = 0;
    if (tn_bundle_open(&b, dir, &(tn_bundle_opts){.verify = TN_VERIFY_NONE}, &err) != TN_OK) {
        return 0;
    }
    for (uint32_t i = 0; i < tn_params_count(b->params); i++) {
        const tn_param_slice *p = tn_params_get(b->params, i);
        flops += p->rows > 1 ? 2.0 * p->rows * p->cols : 0;
    }
    tn_bundle_close(b);
    return flops;
}

static int measure(const char *dir, bool json, tnet_error *err)
{
    tnet_model *m = NULL;
    tnet_scorer *s = NULL;
    double us = 0;
    double ms = 0;
    int code = tnet_open(dir, TNET_VERIFY_FULL, &m, err);
    code = code == TNET_OK ? tnet_scorer_new(m, &s, err) : code;
    code = code == TNET_OK ? time_single(s, m, &us, err) : code;
    code = code == TNET_OK ? time_batch(s, m, &ms, err) : code;
    if (code == TNET_OK) {
        double peak = tn_peak_gflops(3);
        double flops = flops_of(dir);
        double limit = flops * ROWS / peak / 1e6; /* ms */
        (void)printf(json ? "{\"fields\":%d,\"one_us\":%.2f,\"thousand_ms\":%.3f,"
                            "\"limit_ms\":%.3f,\"share\":%.3f}\n"
                          : "%d fields; one row %.1f us (target 20); 1000 rows %.2f ms, dense part "
                            "at peak %.2f ms (%.2f of it)\n",
                     tnet_n_fields(m), us, ms, limit, limit / ms);
    }
    tnet_scorer_free(s);
    tnet_close(m);
    return code;
}

int main(int argc, char **argv)
{
    bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
    const char *dir = argc > (json ? 2 : 1) ? argv[json ? 2 : 1] : NULL;
    tnet_error err = {0};
    if (dir == NULL) {
        (void)fprintf(stderr, "usage: bench_score [--json] EXPORT_DIR\n");
        return 2;
    }
    int code = measure(dir, json, &err);
    if (code != TNET_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
    }
    return code;
}
