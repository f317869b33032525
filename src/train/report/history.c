/* history.c - reads metrics.jsonl line by line, then draws four figures. */
#include "train/report/history.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/file/file.h"
#include "train/report/htmlfigures.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LOSS, AUC, LR, SPEED, VALUES };
enum { COLUMNS = 300, RESUMES_MAX = 50 };

static const char *const value_names[VALUES] = {"loss", "auc", "lr", "rows_per_s"};

/* Of training, or an evaluation of data.valid; NAN: it has no such value. */
typedef struct record {
    double step, t, value[VALUES];
} record;

typedef struct records {
    record *item; /* owned */
    size_t n, capacity;
} records;

typedef struct resumed {
    double step;
    char from[32];
} resumed;

typedef struct history {
    records train, valid;
    resumed resume[RESUMES_MAX]; /* the last ones */
    uint32_t n_resumes;
    uint64_t unread; /* lines that are no records */
} history;

/* ---- reading ---- */

static void drop_after(records *r, double step)
{
    while (r->n > 0 && r->item[r->n - 1].step > step) {
        r->n--;
    }
}

static tn_status add(records *r, const tn_json *line, double step, tn_error *err)
{
    if (r->n == r->capacity) {
        const size_t more = r->capacity == 0 ? 256 : 2 * r->capacity;
        TN_TRY(TN_GROW(r->item, r->n, more, "a history of training", err));
        r->capacity = more;
    }
    record *to = &r->item[r->n++];
    to->step = step;
    const bool dated = tn_json_as_f64(tn_json_get(line, "t"), &to->t);
    to->t = dated ? to->t : (double)NAN;
    for (uint32_t i = 0; i < VALUES; i++) {
        const bool has = tn_json_as_f64(tn_json_get(line, value_names[i]), &to->value[i]);
        to->value[i] = has ? to->value[i] : (double)NAN;
    }
    return TN_OK;
}

/* What stands behind a start goes on from its step. */
static void start(history *h, const tn_json *line, double step)
{
    const char *from = tn_json_as_str(tn_json_get(line, "resumed_from"));
    drop_after(&h->train, step);
    drop_after(&h->valid, step);
    while (h->n_resumes > 0 && h->resume[h->n_resumes - 1].step > step) {
        h->n_resumes--;
    }
    if (from != NULL) {
        if (h->n_resumes == RESUMES_MAX) {
            memmove(h->resume, h->resume + 1, sizeof h->resume - sizeof h->resume[0]);
            h->n_resumes--;
        }
        resumed *to = &h->resume[h->n_resumes++];
        to->step = step;
        (void)snprintf(to->from, sizeof to->from, "%s", from);
    }
}

static tn_status take_line(history *h, const tn_json *line, tn_error *err)
{
    const char *kind = tn_json_as_str(tn_json_get(line, "kind"));
    const char *data = tn_json_as_str(tn_json_get(line, "data"));
    double step = 0;
    if (kind == NULL || !tn_json_as_f64(tn_json_get(line, "step"), &step)) {
        h->unread++;
    } else if (strcmp(kind, "start") == 0) {
        start(h, line, step);
    } else if (strcmp(kind, "train") == 0) {
        return add(&h->train, line, step, err);
    } else if (strcmp(kind, "eval") == 0 && data != NULL && strcmp(data, "test") != 0) {
        return add(&h->valid, line, step, err);
    }
    return TN_OK;
}

static tn_status read_file(history *h, const char *path, tn_error *err)
{
    tn_map map = {0};
    TN_TRY(tn_map_file(&map, path, err));
    tn_status status = TN_OK;
    for (size_t at = 0; status == TN_OK && at < map.size;) {
        const char *text = map.data + at;
        const char *feed = memchr(text, '\n', map.size - at);
        const size_t size = feed != NULL ? (size_t)(feed - text) : map.size - at;
        tn_arena *arena = tn_arena_new(1 << 12);
        const tn_json *line = NULL;
        if (tn_json_parse(&line, text, size, arena, path, NULL) == TN_OK) {
            status = take_line(h, line, err);
        } else {
            h->unread++; /* cut by a crash, or being written */
        }
        tn_arena_free(arena);
        at += size + 1;
    }
    tn_unmap(&map);
    return status;
}

/* ---- drawing ---- */

/* Appends the lowest and the highest point of a column in the order of their steps. */
static uint32_t put_column(tn_point low, tn_point high, tn_point *out)
{
    const bool rises = low.x <= high.x;
    out[0] = rises ? low : high;
    out[1] = rises ? high : low;
    return low.y < high.y ? 2 : 1;
}

/* The points of a value; `out` holds 2 * COLUMNS. Returns how many there are. */
static uint32_t points_of(const records *r, uint32_t value, const tn_axis *x, tn_point *out)
{
    uint32_t n = 0;
    size_t column = COLUMNS; /* none */
    tn_point low = {0};
    tn_point high = {0};
    TN_ASSERT(x->from < x->to);
    for (size_t i = 0; i < r->n; i++) {
        const tn_point p = {r->item[i].step, r->item[i].value[value]};
        const size_t here = (size_t)((p.x - x->from) / (x->to - x->from) * (COLUMNS - 1));
        if (!isfinite(p.y)) {
            continue;
        }
        if (here != column) {
            n += column < COLUMNS ? put_column(low, high, out + n) : 0;
            low = p;
            high = p;
        }
        low = p.y < low.y ? p : low;
        high = p.y > high.y ? p : high;
        column = here;
    }
    n += column < COLUMNS ? put_column(low, high, out + n) : 0;
    TN_ASSERT(n <= 2 * COLUMNS);
    return n;
}

static void include(tn_axis *axis, const tn_point *at, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        axis->from = fmin(axis->from, at[i].y);
        axis->to = fmax(axis->to, at[i].y);
    }
}

static void draw_mark(const tn_chart *c, double step, const char *class_name, const char *tip)
{
    const tn_axis *y = &c->opts.y;
    const tn_point at[] = {{step, y->from}, {step, y->to}};
    tn_chart_line(c, class_name, at, 2);
    tn_chart_dot(c, class_name, at[1], 3, tip);
}

static void draw(const history *h, uint32_t value, const tn_axis *x, uint64_t step, tn_text *out)
{
    static const char *const titles[VALUES] = {"loss", "AUC", "learning rate", "rows per second"};
    tn_point train[2 * COLUMNS];
    tn_point valid[2 * COLUMNS];
    const uint32_t n_train = points_of(&h->train, value, x, train);
    const uint32_t n_valid = points_of(&h->valid, value, x, valid);
    tn_axis y = {"", (double)INFINITY, -(double)INFINITY, false};
    include(&y, train, n_train);
    include(&y, valid, n_valid);
    if (n_train + n_valid == 0) {
        return;
    }
    const double room = y.to > y.from ? (y.to - y.from) * 0.05 : fmax(fabs(y.to) * 0.1, 1e-9);
    y.from -= y.from >= 0 && y.from < room ? y.from : room;
    y.to += room;
    tn_chart c = tn_chart_begin(out, &(tn_chart_opts){.title = titles[value], .x = *x, .y = y});
    for (uint32_t i = 0; i < h->n_resumes; i++) {
        char tip[96];
        (void)snprintf(tip, sizeof tip, "resumed from %s at step %.0f", h->resume[i].from,
                       h->resume[i].step);
        draw_mark(&c, h->resume[i].step, "resumed", tip);
    }
    draw_mark(&c, (double)step, "ideal", "the evaluated model");
    tn_chart_line(&c, "thin", train, n_train);
    tn_chart_line(&c, "thin second", valid, n_valid);
    for (uint32_t i = 0; i < n_valid || (i == 0 && n_train == 1); i++) {
        const bool of_valid = i < n_valid;
        tn_chart_dot(&c, of_valid ? "dot second" : "dot", of_valid ? valid[i] : train[0], 3, NULL);
    }
    if (n_valid > 0) {
        tn_chart_legend(&c, "training", "validation");
    }
    tn_chart_end(&c);
}

static void tell(const history *h, tn_text *out)
{
    tn_text_addf(out, "<p>%zu records of training, %zu evaluations. ", h->train.n, h->valid.n);
    tn_text_adds(out, "Where several stand in one column of pixels, the lowest and the highest are "
                      "drawn; the dashed line is the evaluated model.");
    for (uint32_t i = 0; i < h->n_resumes; i++) {
        tn_text_adds(out, i == 0 ? " Resumed from " : ", from ");
        tn_html_text(out, h->resume[i].from);
        tn_text_addf(out, " at step %.0f", h->resume[i].step);
    }
    tn_text_adds(out, h->n_resumes > 0 ? "." : "");
    if (h->unread > 0) {
        tn_text_addf(out, " %" PRIu64 " lines are no records.", h->unread);
    }
    tn_text_adds(out, "</p>\n");
}

static void put(const history *h, uint64_t step, tn_text *out)
{
    tn_axis x = {"step", 0, fmax((double)step, 1), false};
    const records *const both[] = {&h->train, &h->valid};
    for (uint32_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < both[i]->n; k++) {
            x.to = fmax(x.to, both[i]->item[k].step);
        }
    }
    tell(h, out);
    tn_text_adds(out, "<div class=\"figures\">\n");
    for (uint32_t value = 0; value < VALUES; value++) {
        draw(h, value, &x, step, out);
    }
    tn_text_adds(out, "</div>\n");
}

/* When the model of a step was trained. */
static double time_of(const records *train, uint64_t step)
{
    size_t n = train->n;
    while (n > 0 && train->item[n - 1].step > (double)step) {
        n--;
    }
    return n > 0 ? train->item[n - 1].t : (double)NAN;
}

tn_status tn_history_html(const char *path, uint64_t step, tn_text *out, double *when,
                          tn_error *err)
{
    *when = (double)NAN;
    tn_text_adds(out, "<h2>Training</h2>\n");
    if (path == NULL || !tn_path_exists(path)) {
        tn_text_adds(out, "<p>No history: ");
        tn_html_text(out, path != NULL ? path : "an export, or a model that is still to begin");
        tn_text_adds(out, path != NULL
                              ? " is not there (log.jsonl writes it beside the checkpoints)"
                              : ", has no metrics.jsonl");
        tn_text_adds(out, "</p>\n");
        return TN_OK;
    }
    history *h = NULL;
    TN_TRY(TN_ALLOC(h, 1, "a history of training", err));
    tn_status status = read_file(h, path, err);
    if (status == TN_OK) {
        put(h, step, out);
        *when = time_of(&h->train, step);
    }
    tn_free(h->train.item);
    tn_free(h->valid.item);
    tn_free(h);
    return status;
}
