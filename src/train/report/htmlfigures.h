/* htmlfigures.h - charts as SVG text, and the figures of the report.
 *
 *     tn_chart c = tn_chart_begin(out, &(tn_chart_opts){.title = "ROC", .x = {"fpr", 0, 1, false},
 *                                                       .y = {"tpr", 0, 1, false}});
 *     tn_chart_line(&c, "curve", points, n);
 *     tn_chart_end(&c);
 *
 * A chart has axes, ticks, lines, dots and bars in the units of the data. It is self-contained: no
 * script, nothing from elsewhere; the page styles its classes. Points beyond the axes are drawn on
 * their edge, points that are not finite are left out.
 */
#pragma once

#include "base/core/text.h"
#include "metrics/metrics.h"
#include "metrics/slices.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct tn_axis {
    const char *label;
    double from, to; /* from < to; with log: both above 0 */
    bool log;
} tn_axis;

typedef struct tn_chart_opts {
    const char *title; /* also what a screen reader says */
    tn_axis x, y;
    bool wide; /* twice as wide as high */
} tn_chart_opts;

typedef struct tn_chart {
    tn_text *out;
    tn_chart_opts opts;
    double width, height; /* of the plot, without margins */
} tn_chart;

typedef struct tn_point {
    double x, y;
} tn_point;

tn_chart tn_chart_begin(tn_text *out, const tn_chart_opts *opts);
void tn_chart_line(const tn_chart *c, const char *class_name, const tn_point *at, uint32_t n);
/* `tip` shows when a pointer rests on it; may be NULL. */
void tn_chart_dot(const tn_chart *c, const char *class_name, tn_point at, double radius,
                  const char *tip);
/* A box between two corners. */
void tn_chart_bar(const tn_chart *c, const char *class_name, tn_point from, tn_point to,
                  const char *tip);
/* What the classes "curve" and "curve second" are, behind a short title. */
void tn_chart_legend(const tn_chart *c, const char *first, const char *second);
void tn_chart_end(const tn_chart *c);

/* Text with & < > " ' escaped, and U+FFFD for what HTML must not hold. */
void tn_html_text(tn_text *out, const char *text);

/* ---- figures of an evaluation ----
 *
 * They are made from the metrics alone (metrics/calibration.h), so a page costs the same for any
 * number of rows. With one class there are no curves, and nothing is drawn.
 */

void tn_figure_roc(const tn_metrics *m, tn_text *out);
void tn_figure_precision(const tn_metrics *m, tn_text *out);

/* Bins of equal weight: the rate of clicks over the predicted one, with Wilson's .95 interval,
 * where a row counts as its weight. `other` not NULL: of another model, too. */
void tn_figure_reliability(const tn_metrics *m, const tn_metrics *other, tn_text *out);

/* How many rows have which logit, clicks over the others. */
void tn_figure_scores(const tn_metrics *m, tn_text *out);

/* COPC of every value of a slot, largest first; `label[i]` is what value i is called. */
void tn_figure_copc(const tn_slice *slice, const char *const *label, uint32_t n, tn_text *out);
