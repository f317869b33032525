/* htmlfigures.c - see htmlfigures.h. */
#include "train/report/htmlfigures.h"

#include "metrics/curves.h"
#include "metrics/metrics_state.h"
#include "train/report/chart.h"

#include <math.h>
#include <stdio.h>

enum { CURVE_POINTS = 200, RELIABILITY_BINS = 20, SCORE_BINS = 60 };

static const tn_point diagonal[] = {{0, 0}, {1, 1}};

void tn_figure_roc(const tn_metrics *m, tn_text *out)
{
    tn_curve_point curve[CURVE_POINTS];
    tn_point at[CURVE_POINTS];
    uint32_t n = tn_curve_of(m, CURVE_POINTS, curve);
    if (n == 0) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        at[i] = (tn_point){curve[i].fpr, curve[i].tpr};
    }
    char title[64];
    (void)snprintf(title, sizeof title, "ROC, AUC %.4f", tn_metrics_get(m, "auc"));
    tn_chart c = tn_chart_begin(out, &(tn_chart_opts){.title = title,
                                                      .x = {"false positive rate", 0, 1, false},
                                                      .y = {"true positive rate", 0, 1, false}});
    tn_chart_line(&c, "ideal", diagonal, 2);
    tn_chart_line(&c, "curve", at, n);
    tn_chart_end(&c);
}

void tn_figure_precision(const tn_metrics *m, tn_text *out)
{
    tn_curve_point curve[CURVE_POINTS];
    tn_point at[CURVE_POINTS];
    uint32_t n = tn_curve_of(m, CURVE_POINTS, curve);
    if (n == 0) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        at[i] = (tn_point){curve[i].tpr, curve[i].precision};
    }
    char title[64];
    (void)snprintf(title, sizeof title, "precision and recall, area %.4f",
                   tn_metrics_get(m, "pr_auc"));
    tn_chart c = tn_chart_begin(out, &(tn_chart_opts){.title = title,
                                                      .x = {"recall", 0, 1, false},
                                                      .y = {"precision", 0, 1, false}});
    double ctr = tn_metrics_get(m, "ctr");
    const tn_point chance[] = {{0, ctr}, {1, ctr}};
    tn_chart_line(&c, "ideal", chance, 2);
    tn_chart_line(&c, "curve", at, n);
    tn_chart_end(&c);
}

/* The end of an axis of rates that `highest` fits on. */
static double rate_axis(double highest)
{
    static const double ends[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8};
    for (uint32_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        if (highest <= ends[i]) {
            return ends[i];
        }
    }
    return 1;
}

void tn_figure_reliability(const tn_metrics *m, tn_text *out)
{
    tn_reliability bin[RELIABILITY_BINS];
    tn_point at[RELIABILITY_BINS];
    uint32_t n = tn_reliability_of_mass(m, RELIABILITY_BINS, bin);
    double highest = 0;
    for (uint32_t i = 0; i < n; i++) {
        at[i] = (tn_point){bin[i].pctr, bin[i].ctr};
        highest = fmax(highest, fmax(bin[i].pctr, bin[i].ctr));
    }
    double end = rate_axis(highest);
    tn_chart c = tn_chart_begin(out, &(tn_chart_opts){.title = "reliability, bins of equal weight",
                                                      .x = {"predicted rate", 0, end, false},
                                                      .y = {"rate of clicks", 0, end, false}});
    tn_chart_line(&c, "ideal", diagonal, 2);
    tn_chart_line(&c, "thin", at, n);
    for (uint32_t i = 0; i < n; i++) {
        char tip[96];
        (void)snprintf(tip, sizeof tip, "%.5f predicted, %.5f seen, weight %.0f", bin[i].pctr,
                       bin[i].ctr, bin[i].weight);
        tn_chart_dot(&c, "dot", at[i], 4, tip);
    }
    tn_chart_end(&c);
}

/* Where the scores lie. False: there is none. */
static bool span_of(const tn_metrics *m, double *low, double *high)
{
    bool any = false;
    tn_cell cell;
    for (tn_walk w = tn_walk_begin(m); tn_walk_next(&w, &cell);) {
        *low = any ? *low : cell.z;
        *high = cell.z;
        any = true;
    }
    if (any && *high - *low < 1) {
        *low -= 0.5;
        *high += 0.5;
    }
    return any;
}

void tn_figure_scores(const tn_metrics *m, tn_text *out)
{
    double low = 0;
    double high = 0;
    if (!span_of(m, &low, &high)) {
        return;
    }
    double neg[SCORE_BINS] = {0};
    double pos[SCORE_BINS] = {0};
    double most = 0;
    tn_walk w = tn_walk_begin(m);
    for (tn_cell cell; tn_walk_next(&w, &cell);) {
        double place = (cell.z - low) / (high - low) * SCORE_BINS;
        uint32_t i = place < SCORE_BINS ? (uint32_t)place : SCORE_BINS - 1;
        neg[i] += (double)cell.neg / w.unit;
        pos[i] += (double)cell.pos / w.unit;
        most = fmax(most, neg[i] + pos[i]);
    }
    tn_chart c =
        tn_chart_begin(out, &(tn_chart_opts){.title = "scores: clicks (dark) on the others (light)",
                                             .x = {"logit", low, high, false},
                                             .y = {"rows by weight", 0, fmax(most, 1e-9), false}});
    double width = (high - low) / SCORE_BINS;
    for (uint32_t i = 0; i < SCORE_BINS; i++) {
        double x = low + i * width;
        char tip[96];
        (void)snprintf(tip, sizeof tip, "logit %.3f to %.3f: %.0f rows, %.0f clicks", x, x + width,
                       neg[i] + pos[i], pos[i]);
        if (neg[i] + pos[i] > 0) {
            tn_chart_bar(&c, "others", (tn_point){x, pos[i]},
                         (tn_point){x + width, neg[i] + pos[i]}, tip);
            tn_chart_bar(&c, "clicks", (tn_point){x, 0}, (tn_point){x + width, pos[i]}, tip);
        }
    }
    tn_chart_end(&c);
}

void tn_figure_copc(const tn_slice *slice, const char *const *label, uint32_t n, tn_text *out)
{
    if (n == 0) {
        return;
    }
    tn_chart c = tn_chart_begin(
        out, &(tn_chart_opts){.title = "clicks over predicted clicks (COPC), largest values first",
                              .x = {"value, by rows", 0.5, n + 0.5, false},
                              .y = {"COPC", 0.25, 4, true},
                              .wide = true});
    const tn_point one[] = {{0.5, 1}, {n + 0.5, 1}};
    tn_chart_line(&c, "ideal", one, 2);
    for (uint32_t i = 0; i < n; i++) {
        double copc = tn_metrics_get(slice[i].metrics, "copc");
        tn_text tip = {0};
        tn_text_addf(&tip, "%s: copc %.4f, %llu rows", label[i], copc,
                     (unsigned long long)tn_metrics_rows(slice[i].metrics));
        tn_chart_dot(&c, "dot", (tn_point){i + 1.0, copc}, 4, tn_text_str(&tip));
        tn_text_done(&tip);
    }
    tn_chart_end(&c);
}
