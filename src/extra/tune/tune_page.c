/* tune_page.c - the trials as a page: a line for each across an axis for each option. */
#include "extra/tune/tune.h"

#include "base/core/number.h"
#include "base/file/file.h"
#include "config/tree.h"
#include "extra/tune/tune_private.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { WIDTH = 960, HEIGHT = 420, SIDE = 70, TOP = 50, BOTTOM = 30 };

/* The axis of the goal comes after those of the options. */
typedef struct page {
    const tn_tune *tune;
    const uint32_t *order; /* trials, the best first */
    double least, most;    /* the goal's values */
    tn_text *out;
} page;

static void add_escaped(tn_text *out, const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        const char *escaped = *at == '&'   ? "&amp;"
                              : *at == '<' ? "&lt;"
                              : *at == '>' ? "&gt;"
                              : *at == '"' ? "&quot;"
                                           : NULL;
        if (escaped != NULL) {
            tn_text_adds(out, escaped);
        } else {
            tn_text_addc(out, *at);
        }
    }
}

static double x_of(const page *p, uint32_t axis)
{
    return SIDE + (double)(WIDTH - 2 * SIDE) * axis / p->tune->space.n;
}

/* Returns the height of a share of an axis, 1 at its top. */
static double y_of(double share)
{
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - share);
}

/* Returns where on its axis a value lies, 0 .. 1; NAN: nowhere. */
static double share_of(const tn_space_range *r, const char *value)
{
    double x = 0;
    for (uint32_t i = 0; i < r->values.n; i++) {
        if (strcmp(r->values.item[i], value) == 0) {
            return r->values.n > 1 ? (double)i / (r->values.n - 1) : 0.5;
        }
    }
    if (r->kind == TN_RANGE_LIST || tn_read_f64(value, strlen(value), &x) != TN_NUM_OK) {
        return (double)NAN;
    }
    x = r->log ? (log(x) - log(r->low)) / (log(r->high) - log(r->low))
               : (x - r->low) / (r->high - r->low);
    return x >= 0 && x <= 1 ? x : (double)NAN;
}

/* Returns the text of an option in a trial; NULL: it has none. */
static const char *value_of(const tn_strs *values, const char *key)
{
    const size_t size = strlen(key);
    for (uint32_t i = 0; i < values->n; i++) {
        if (strncmp(values->item[i], key, size) == 0 && values->item[i][size] == '=') {
            return values->item[i] + size + 1;
        }
    }
    return NULL;
}

/* Draws a trial that has a value on each axis; `rank` of the order says how dark. */
static void draw_trial(const page *p, uint32_t rank)
{
    const tn_trial *one = p->tune->trial[p->order[rank]];
    const tn_tune_result *r = tn_trial_result(one, TN_LAST_RUNG);
    tn_text points = {0};
    bool whole = tn_trial_has_value(r);
    for (uint32_t i = 0; i < p->tune->space.n && whole; i++) {
        const char *value = value_of(&one->values, p->tune->space.range[i].key);
        const double at = value != NULL ? share_of(&p->tune->space.range[i], value) : (double)NAN;
        whole = !isnan(at);
        tn_text_addf(&points, "%.1f,%.1f ", x_of(p, i), whole ? y_of(at) : 0);
    }
    if (whole) {
        const double height =
            p->most > p->least ? (r->value - p->least) / (p->most - p->least) : .5;
        tn_text_addf(p->out,
                     "<polyline points=\"%s%.1f,%.1f\" class=\"%s\"><title>trial %" PRIu32
                     "</title></polyline>\n",
                     tn_text_str(&points), x_of(p, p->tune->space.n), y_of(height),
                     rank == 0                       ? "best"
                     : r->rung + 1 == p->tune->rungs ? "last"
                                                     : "trial",
                     p->order[rank]);
    }
    tn_text_done(&points);
}

static void add_label(const page *p, uint32_t axis, double y, const char *text)
{
    tn_text_addf(p->out, "<text x=\"%.1f\" y=\"%.1f\">", x_of(p, axis), y);
    add_escaped(p->out, text);
    tn_text_adds(p->out, "</text>\n");
}

static void draw_axis(const page *p, uint32_t axis)
{
    const tn_space_range *r = axis < p->tune->space.n ? &p->tune->space.range[axis] : NULL;
    char low[TN_NUMBER_TEXT_MAX];
    char high[TN_NUMBER_TEXT_MAX];
    (void)tn_write_f32(low, (float)(r != NULL ? r->low : p->least));
    (void)tn_write_f32(high, (float)(r != NULL ? r->high : p->most));
    const bool list = r != NULL && r->kind == TN_RANGE_LIST;
    tn_text_addf(p->out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x_of(p, axis),
                 y_of(0), x_of(p, axis), y_of(1));
    add_label(p, axis, TOP - 34 + 13 * (double)(axis % 2), r != NULL ? r->key : p->tune->goal);
    add_label(p, axis, y_of(1) - 5, list ? r->values.item[r->values.n - 1] : high);
    add_label(p, axis, y_of(0) + 14, list ? r->values.item[0] : low);
}

static void add_rows(const page *p)
{
    tn_text text = {0};
    tn_tune_text(p->tune, &text);
    tn_text_adds(p->out, "<pre>");
    add_escaped(p->out, tn_text_str(&text));
    tn_text_adds(p->out, "</pre>\n");
    tn_text_done(&text);
}

tn_status tn_tune_page_write(const tn_tune *t, tn_error *err)
{
    static const char head[] =
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>tnet-tune</title>\n"
        "<style>body{font:14px sans-serif;margin:2em}polyline{fill:none;stroke:#9bc;opacity:.5}\n"
        "polyline.last{stroke:#36c;opacity:.9}polyline.best{stroke:#c22;stroke-width:3;opacity:1}\n"
        "polyline:hover{stroke:#000;opacity:1}line{stroke:#444}text{font-size:11px;text-anchor:"
        "middle}pre{overflow:auto}</style>\n";
    char path[TN_PATH_SIZE];
    tn_text out = {0};
    page p = {.tune = t, .order = tn_tune_order(t, t->n, TN_LAST_RUNG), .out = &out};
    p.least = (double)INFINITY;
    p.most = -(double)INFINITY;
    for (uint32_t i = 0; i < t->n; i++) {
        const tn_tune_result *r = tn_trial_result(t->trial[i], TN_LAST_RUNG);
        p.least = tn_trial_has_value(r) ? fmin(p.least, r->value) : p.least;
        p.most = tn_trial_has_value(r) ? fmax(p.most, r->value) : p.most;
    }
    tn_text_adds(&out, head);
    tn_text_addf(&out, "<h1>%" PRIu32 " trials</h1>\n<svg viewBox=\"0 0 %d %d\" width=\"%d\">\n",
                 t->n, WIDTH, HEIGHT, WIDTH);
    for (uint32_t i = t->n; i-- > 0;) { /* the best one on top */
        draw_trial(&p, i);
    }
    for (uint32_t i = 0; i <= t->space.n && p.most >= p.least; i++) {
        draw_axis(&p, i);
    }
    tn_text_adds(&out, "</svg>\n");
    add_rows(&p);
    tn_text_adds(&out, "</html>\n");
    tn_status status = tn_path_join(t->dir, "tune.html", path, err);
    status = status == TN_OK ? tn_text_check(&out, "tune.html", err) : status;
    status = status == TN_OK ? tn_file_replace(path, out.data, out.size, err) : status;
    tn_text_done(&out);
    return status;
}
