/* htmlfigures.c - draws charts as SVG, and the figures of the report by them. */
#include "train/report/htmlfigures.h"

#include "base/math/fmath.h"
#include "metrics/calibration.h"
#include "metrics/intervals.h"
#include "metrics/ranking.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SIDE = 300, LEFT = 52, RIGHT = 14, TOP = 28, BOTTOM = 44, TICKS_MAX = 12 };

void tn_html_text(tn_text *out, const char *text)
{
    static const char special[] = "&<>\"'";
    static const char *const escaped[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (const char *at = text; *at != '\0'; at++) {
        const char *found = strchr(special, *at);
        if (found != NULL) {
            tn_text_adds(out, escaped[found - special]);
        } else if ((unsigned char)*at < ' ' && *at != '\t' && *at != '\n') {
            tn_text_adds(out, "\xef\xbf\xbd");
        } else {
            tn_text_addc(out, *at);
        }
    }
}

/* Where a value stands between the ends of its axis, 0 .. 1. */
static double place(const tn_axis *axis, double value)
{
    double share = axis->log
                       ? tn_ln(fmax(value, axis->from) / axis->from) / tn_ln(axis->to / axis->from)
                       : (value - axis->from) / (axis->to - axis->from);
    return fmin(fmax(share, 0), 1);
}

static double x_of(const tn_chart *c, double x)
{
    return LEFT + place(&c->opts.x, x) * c->width;
}

static double y_of(const tn_chart *c, double y)
{
    return TOP + (1 - place(&c->opts.y, y)) * c->height;
}

/* 1, 2 or 5 times a power of ten: the smallest that cuts `span` into at most six. */
static double nice_step(double span)
{
    double step = 1e-12;
    while (step * 10 * 6 < span) {
        step *= 10;
    }
    static const double factors[] = {1, 2, 5, 10};
    for (uint32_t i = 0; i < 4; i++) {
        if (step * factors[i] * 6 >= span) {
            return step * factors[i];
        }
    }
    return step * 10;
}

static uint32_t ticks_of(const tn_axis *axis, double tick[TICKS_MAX])
{
    uint32_t n = 0;
    if (axis->log) {
        static const double marks[] = {0.01, 0.1, 0.25, 0.5, 1, 2, 4, 10, 100};
        for (uint32_t i = 0; i < sizeof marks / sizeof marks[0]; i++) {
            if (marks[i] >= axis->from && marks[i] <= axis->to) {
                tick[n++] = marks[i];
            }
        }
        return n;
    }
    double step = nice_step(axis->to - axis->from);
    double first = ceil(axis->from / step - 1e-9);
    for (uint32_t i = 0; n < TICKS_MAX; i++) {
        double at = (first + i) * step;
        if (at > axis->to + step * 1e-9) {
            break;
        }
        tick[n++] = at;
    }
    return n;
}

static void draw_ticks(const tn_chart *c)
{
    double tick[TICKS_MAX];
    tn_text *out = c->out;
    uint32_t n = ticks_of(&c->opts.x, tick);
    for (uint32_t i = 0; i < n; i++) {
        double x = x_of(c, tick[i]);
        tn_text_addf(out, "<path class=\"grid\" d=\"M%.1f %d V%.1f\"/>", x, TOP, TOP + c->height);
        tn_text_addf(out,
                     "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g"
                     "</text>\n",
                     x, TOP + c->height + 16, tick[i]);
    }
    n = ticks_of(&c->opts.y, tick);
    for (uint32_t i = 0; i < n; i++) {
        double y = y_of(c, tick[i]);
        tn_text_addf(out, "<path class=\"grid\" d=\"M%d %.1f H%.1f\"/>", LEFT, y, LEFT + c->width);
        tn_text_addf(out,
                     "<text class=\"tick\" x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g"
                     "</text>\n",
                     LEFT - 6, y + 4, tick[i]);
    }
}

static void put_label(const tn_chart *c, const char *attributes, const char *text)
{
    tn_text_addf(c->out, "<text %s>", attributes);
    tn_html_text(c->out, text);
    tn_text_adds(c->out, "</text>\n");
}

static void draw_frame(const tn_chart *c)
{
    char where[128];
    tn_text_addf(c->out,
                 "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%.1f\"/>\n", LEFT,
                 TOP, c->width, c->height);
    (void)snprintf(where, sizeof where, "class=\"title\" x=\"%d\" y=\"%d\"", LEFT, TOP - 10);
    put_label(c, where, c->opts.title);
    (void)snprintf(where, sizeof where,
                   "class=\"label\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\"",
                   LEFT + c->width / 2, TOP + c->height + 36);
    put_label(c, where, c->opts.x.label);
    (void)snprintf(where, sizeof where,
                   "class=\"label\" text-anchor=\"middle\" transform=\"translate(12 %.1f) "
                   "rotate(-90)\"",
                   TOP + c->height / 2);
    put_label(c, where, c->opts.y.label);
}

tn_chart tn_chart_begin(tn_text *out, const tn_chart_opts *opts)
{
    TN_ASSERT(opts->x.from < opts->x.to && opts->y.from < opts->y.to);
    TN_ASSERT(!opts->x.log || opts->x.from > 0);
    TN_ASSERT(!opts->y.log || opts->y.from > 0);
    tn_chart c = {.out = out, .opts = *opts, .width = opts->wide ? 2 * SIDE : SIDE, .height = SIDE};
    double w = LEFT + c.width + RIGHT;
    double h = TOP + c.height + BOTTOM;
    tn_text_addf(out, "<svg viewBox=\"0 0 %g %g\" width=\"%g\" height=\"%g\" role=\"img\">", w, h,
                 w, h);
    tn_text_adds(out, "<title>");
    tn_html_text(out, opts->title);
    tn_text_adds(out, "</title>\n");
    draw_ticks(&c);
    draw_frame(&c);
    return c;
}

static bool is_drawn(tn_point p)
{
    return isfinite(p.x) && isfinite(p.y);
}

void tn_chart_line(const tn_chart *c, const char *class_name, const tn_point *at, uint32_t n)
{
    tn_text_addf(c->out, "<path class=\"%s\" d=\"", class_name);
    bool pen_down = false;
    for (uint32_t i = 0; i < n; i++) {
        if (is_drawn(at[i])) {
            tn_text_addf(c->out, "%c%.1f %.1f", pen_down ? 'L' : 'M', x_of(c, at[i].x),
                         y_of(c, at[i].y));
            pen_down = true;
        }
    }
    tn_text_adds(c->out, "\"/>\n");
}

/* Ends an element, with a tip or without. */
static void close_element(const tn_chart *c, const char *name, const char *tip)
{
    if (tip == NULL) {
        tn_text_adds(c->out, "/>\n");
        return;
    }
    tn_text_adds(c->out, "><title>");
    tn_html_text(c->out, tip);
    tn_text_addf(c->out, "</title></%s>\n", name);
}

void tn_chart_dot(const tn_chart *c, const char *class_name, tn_point at, double radius,
                  const char *tip)
{
    if (is_drawn(at)) {
        tn_text_addf(c->out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"", class_name,
                     x_of(c, at.x), y_of(c, at.y), radius);
        close_element(c, "circle", tip);
    }
}

void tn_chart_bar(const tn_chart *c, const char *class_name, tn_point from, tn_point to,
                  const char *tip)
{
    if (!is_drawn(from) || !is_drawn(to)) {
        return;
    }
    double x0 = x_of(c, fmin(from.x, to.x));
    double x1 = x_of(c, fmax(from.x, to.x));
    double y0 = y_of(c, fmax(from.y, to.y)); /* the upper one: y grows downwards */
    double y1 = y_of(c, fmin(from.y, to.y));
    tn_text_addf(c->out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"",
                 class_name, x0, y0, x1 - x0, y1 - y0);
    close_element(c, "rect", tip);
}

void tn_chart_legend(const tn_chart *c, const char *first, const char *second)
{
    const char *const name[] = {first, second};
    for (int i = 0; i < 2; i++) {
        const double x = LEFT + c->width - 166 + 84 * i;
        char where[64];
        (void)snprintf(where, sizeof where, "x=\"%.1f\" y=\"%d\"", x + 20, TOP - 10);
        tn_text_addf(c->out, "<path class=\"curve%s\" d=\"M%.1f %dh16\"/>", i == 0 ? "" : " second",
                     x, TOP - 14);
        put_label(c, where, name[i]);
    }
}

void tn_chart_end(const tn_chart *c)
{
    tn_text_adds(c->out, "</svg>\n");
}

enum { CURVE_POINTS = 200, RELIABILITY_BINS = 20, SCORE_BINS = 60 };

/* ---- the figures ---- */

static const tn_point diagonal[] = {{0, 0}, {1, 1}};

/* A curve in the unit square beside what a model that knows nothing reaches; `opts` lacks its axes'
 * ends. With one class: nothing. */
static void draw_curve(const tn_metrics *m, bool of_precision, tn_chart_opts opts,
                       const tn_point ideal[2], tn_text *out)
{
    tn_curve_point curve[CURVE_POINTS];
    tn_point at[CURVE_POINTS];
    const uint32_t n = tn_curve_of(m, CURVE_POINTS, curve);
    TN_ASSERT(n <= CURVE_POINTS);
    if (n == 0) {
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        at[i] = of_precision ? (tn_point){curve[i].tpr, curve[i].precision}
                             : (tn_point){curve[i].fpr, curve[i].tpr};
    }
    opts.x.to = 1;
    opts.y.to = 1;
    tn_chart c = tn_chart_begin(out, &opts);
    tn_chart_line(&c, "ideal", ideal, 2);
    tn_chart_line(&c, "curve", at, n);
    tn_chart_end(&c);
}

void tn_figure_roc(const tn_metrics *m, tn_text *out)
{
    char title[64];
    (void)snprintf(title, sizeof title, "ROC, AUC %.4f", tn_metrics_get(m, "auc"));
    draw_curve(m, false,
               (tn_chart_opts){.title = title,
                               .x.label = "false positive rate",
                               .y.label = "true positive rate"},
               diagonal, out);
}

void tn_figure_precision(const tn_metrics *m, tn_text *out)
{
    const double ctr = tn_metrics_get(m, "ctr");
    const tn_point chance[] = {{0, ctr}, {1, ctr}};
    char title[64];
    (void)snprintf(title, sizeof title, "precision and recall, area %.4f",
                   tn_metrics_get(m, "pr_auc"));
    draw_curve(m, true,
               (tn_chart_opts){.title = title, .x.label = "recall", .y.label = "precision"}, chance,
               out);
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

/* Bins of equal weight of a model; `end`: the largest rate seen so far. */
typedef struct reliability_bins {
    tn_reliability bin[RELIABILITY_BINS];
    tn_interval ctr[RELIABILITY_BINS];
    uint32_t n;
} reliability_bins;

static double fill_bins(const tn_metrics *m, reliability_bins *b)
{
    double highest = 0;
    b->n = tn_reliability_of_mass(m, RELIABILITY_BINS, b->bin);
    TN_ASSERT(b->n <= RELIABILITY_BINS);
    for (uint32_t i = 0; i < b->n; i++) {
        b->ctr[i] = tn_interval_wilson(b->bin[i].ctr, b->bin[i].weight);
        highest = fmax(highest, fmax(b->bin[i].pctr, b->ctr[i].high));
    }
    return highest;
}

static void draw_bins(const tn_chart *c, const reliability_bins *b, bool other)
{
    tn_point at[RELIABILITY_BINS];
    for (uint32_t i = 0; i < b->n; i++) {
        const tn_reliability *bin = &b->bin[i];
        char tip[128];
        at[i] = (tn_point){bin->pctr, bin->ctr};
        const tn_point bar[] = {{bin->pctr, b->ctr[i].low}, {bin->pctr, b->ctr[i].high}};
        tn_chart_line(c, other ? "thin second" : "thin", bar, 2);
        (void)snprintf(tip, sizeof tip, "%.5f predicted, %.5f seen (%.5f to %.5f), %.0f rows",
                       bin->pctr, bin->ctr, b->ctr[i].low, b->ctr[i].high, bin->weight);
        tn_chart_dot(c, other ? "dot second" : "dot", at[i], 3, tip);
    }
    tn_chart_line(c, other ? "thin second" : "thin", at, b->n);
}

void tn_figure_reliability(const tn_metrics *m, const tn_metrics *other, tn_text *out)
{
    reliability_bins of;
    reliability_bins of_other = {.n = 0};
    double highest = fill_bins(m, &of);
    if (other != NULL) {
        highest = fmax(highest, fill_bins(other, &of_other));
    }
    double fewest = (double)INFINITY;
    for (uint32_t i = 0; i < of.n; i++) {
        fewest = fmin(fewest, of.bin[i].weight);
    }
    char label[96];
    (void)snprintf(label, sizeof label, "predicted rate; %u bins of at least %.0f rows", of.n,
                   of.n > 0 ? fewest : 0);
    const double end = rate_axis(highest);
    tn_chart c = tn_chart_begin(
        out, &(tn_chart_opts){.title = other != NULL ? "reliability" : "reliability, .95 intervals",
                              .x = {label, 0, end, false},
                              .y = {"rate of clicks", 0, end, false}});
    tn_chart_line(&c, "ideal", diagonal, 2);
    draw_bins(&c, &of_other, true);
    draw_bins(&c, &of, false);
    if (other != NULL) {
        tn_chart_legend(&c, "this model", "the other");
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
        double bin = (cell.z - low) / (high - low) * SCORE_BINS;
        TN_ASSERT(bin >= 0);
        uint32_t i = bin < SCORE_BINS ? (uint32_t)bin : SCORE_BINS - 1;
        neg[i] += (double)cell.neg / w.unit;
        pos[i] += (double)cell.pos / w.unit;
        most = fmax(most, neg[i] + pos[i]);
    }
    tn_chart c =
        tn_chart_begin(out, &(tn_chart_opts){.title = "scores: clicks in front of the others",
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
