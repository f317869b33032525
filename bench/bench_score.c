/* bench_score.c - libtnet on one core: one row at a time and 1,000 at once (P16).
 *
 *     bench_score [--json] EXPORT_DIR [half]         half: with weights of 16 bits
 *
 * Rows are made up for the export's own fields: ids below 1000 and small numbers, so that most keys
 * are found. "one": begin, add, end, score of a single row, the median; "1000": scoring alone of
 * 1,000 rows that are there. Limit of the dense part: its multiply-adds at the peak of this core,
 * measured in the same run.
 */
#include "base/core/clock.h"
#include "base/machine/machine_peak.h"
#include "base/math/key.h"
#include "figure.h"
#include "nn/graph/params.h"
#include "serve/exported_model.h"
#include "serve/tnet.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 1000, ROUNDS = 2000, BATCHES = 60, IDS = 1000, FIELDS_MAX = 4096 };

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
static int time_single(tnet_scorer *s, const tnet_model *m, tn_spread *us, tnet_error *err)
{
    static tn_samples took;
    for (uint64_t i = 0; i < ROUNDS; i++) {
        float logit;
        double begin = tn_clock_s();
        tnet_clear(s);
        int code = add_row(s, m, i, err);
        code = code == TNET_OK ? tnet_score(s, &logit, NULL, err) : code;
        tn_sample(&took, (tn_clock_s() - begin) * 1e6);
        if (code != TNET_OK) {
            return code;
        }
    }
    *us = tn_spread_of(&took);
    return TNET_OK;
}

static int time_batch(tnet_scorer *s, const tnet_model *m, tn_spread *ms, tnet_error *err)
{
    static float logit[ROWS];
    static tn_samples took;
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
        tn_sample(&took, (tn_clock_s() - begin) * 1e3);
        if (code != TNET_OK) {
            return code;
        }
    }
    *ms = tn_spread_of(&took);
    return TNET_OK;
}

/* Multiply-adds times two of one row, by the export's weights. */
static double flops_of(const char *dir)
{
    tn_error err = {0};
    tn_exported_model *b = NULL;
    double flops = 0;
    if (tn_exported_model_open(&b, dir, &(tn_exported_model_opts){.verify = TN_VERIFY_NONE},
                               &err) != TN_OK) {
        return 0;
    }
    for (uint32_t i = 0; i < tn_params_count(b->params); i++) {
        const tn_param_slice *p = tn_params_get(b->params, i);
        flops += p->rows > 1 ? 2.0 * p->rows * p->cols : 0;
    }
    tn_exported_model_close(b);
    return flops;
}

static void print(const tnet_model *m, tn_spread us, tn_spread ms, double limit, bool json)
{
    char what[64];
    (void)snprintf(what, sizeof what, "libtnet, one row of %d fields", tnet_n_fields(m));
    tn_figure_print(
        &(tn_figure){
            .row = "P16", .what = what, .unit = "us", .is = us, .target = 20, .at_most = true},
        json);
    tn_figure_print(&(tn_figure){.row = "P16",
                                 .what = "libtnet, 1,000 rows",
                                 .unit = "k rows/s",
                                 .is = {ROWS / ms.median, ROWS / ms.most, ROWS / ms.least},
                                 .limit = ROWS / limit,
                                 .limit_is = "products alone, at the FMA peak of this run",
                                 .target = .8,
                                 .aim = TN_AIM_LIMIT},
                    json);
}

static int measure(const char *dir, int half, bool json, tnet_error *err)
{
    tnet_model *m = NULL;
    tnet_scorer *s = NULL;
    tn_spread us = {0};
    tn_spread ms = {0};
    int code = tnet_open(dir, half, &m, err); /* TNET_VERIFY_FULL is 0 */
    code = code == TNET_OK ? tnet_scorer_new(m, &s, err) : code;
    code = code == TNET_OK ? time_single(s, m, &us, err) : code;
    code = code == TNET_OK ? time_batch(s, m, &ms, err) : code;
    if (code == TNET_OK) {
        double limit = flops_of(dir) * ROWS / tn_peak_gflops(3) / 1e6; /* ms */
        print(m, us, ms, limit, json);
    }
    tnet_scorer_free(s);
    tnet_close(m);
    return code;
}

int main(int argc, char **argv)
{
    bool json = tn_json_wanted(&argc, argv);
    const char *dir = argc > 1 ? argv[1] : NULL;
    const int half = argc > 2 ? TNET_HALF_WEIGHTS : 0;
    tnet_error err = {0};
    if (dir == NULL) {
        (void)fprintf(stderr, "usage: bench_score [--json] EXPORT_DIR [half]\n");
        return 2;
    }
    int code = measure(dir, half, json, &err);
    if (code != TNET_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
    }
    return code;
}
