/* history.c - reads metrics.jsonl line by line, then keeps what can be seen of it. */
#include "extra/report/history.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/file/file.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LOSS, AUC, LR, SPEED, VALUES };
enum { COLUMNS = 300, RESUMES_MAX = 50 };

static const char *const value_names[VALUES] = {"loss", "auc", "lr", "rows_per_s"};
static const char *const titles[VALUES] = {"loss", "AUC", "learning rate", "rows per second"};

/* A record of training or of an evaluation of data.valid; NAN: it has no such value. */
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

/* Drops what was recorded after the step of a start, and notes whence the run goes on. */
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

/* ---- writing ---- */

static void put_note(tn_text *note, tn_text *out)
{
    tn_json_str(out, "note", tn_text_str(note));
    out->failed = out->failed || note->failed;
    tn_text_done(note);
}

static void put_point(const record *r, uint32_t value, tn_text *out)
{
    tn_json_open(out, '[');
    tn_json_f64(out, NULL, r->step);
    tn_json_f32(out, NULL, (float)r->value[value]);
    tn_json_close(out, ']');
}

/* Appends the lowest and the highest record of a column in the order of their steps. */
static void put_column(const record *low, const record *high, uint32_t value, tn_text *out)
{
    const bool rises = low->step <= high->step;
    put_point(rises ? low : high, value, out);
    if (low->value[value] < high->value[value]) {
        put_point(rises ? high : low, value, out);
    }
}

/* Appends a list of the points of a value. `last`: the step at the end of the axis. */
static void put_points(const records *r, uint32_t value, double last, const char *key, tn_text *out)
{
    size_t column = COLUMNS; /* none */
    const record *low = r->item;
    const record *high = low;
    TN_ASSERT(last > 0);
    tn_json_open_key(out, key, '[');
    for (const record *at = r->item; at != NULL && at < r->item + r->n; at++) {
        const size_t here = (size_t)(at->step / last * (COLUMNS - 1));
        if (!isfinite(at->value[value])) {
            continue;
        }
        if (here != column && column < COLUMNS) {
            put_column(low, high, value, out);
        }
        low = here != column || at->value[value] < low->value[value] ? at : low;
        high = here != column || at->value[value] > high->value[value] ? at : high;
        column = here;
    }
    if (column < COLUMNS) {
        put_column(low, high, value, out);
    }
    tn_json_close(out, ']');
}

static void put_mark(const char *class_name, double step, const char *tip, tn_text *out)
{
    tn_json_open(out, '{');
    tn_json_str(out, "class", class_name);
    tn_json_f64(out, "x", step);
    tn_json_str(out, "tip", tip);
    tn_json_close(out, '}');
}

/* Appends lines for the evaluated model and where the run was resumed, and a note on them. */
static void put_marks(const history *h, uint64_t step, tn_text *out)
{
    tn_text note = {0};
    char tip[96];
    tn_text_addf(&note,
                 "%zu records of training, %zu evaluations. Where several fall into one column of "
                 "pixels, the lowest and the highest are drawn; the dashed line is the evaluated "
                 "model.%s",
                 h->train.n, h->valid.n, h->n_resumes > 0 ? " Resumed" : "");
    tn_json_open_key(out, "marks", '[');
    for (uint32_t i = 0; i < h->n_resumes; i++) {
        const resumed *r = &h->resume[i];
        (void)snprintf(tip, sizeof tip, "resumed from %s at step %.0f", r->from, r->step);
        put_mark("resumed", r->step, tip, out);
        tn_text_addf(&note, "%s%c", tip + strlen("resumed"), i + 1 < h->n_resumes ? ',' : '.');
    }
    (void)snprintf(tip, sizeof tip, "the evaluated model, of step %" PRIu64, step);
    put_mark("ideal", (double)step, tip, out);
    tn_json_close(out, ']');
    if (h->unread > 0) {
        tn_text_addf(&note, " %" PRIu64 " lines are no records.", h->unread);
    }
    put_note(&note, out);
}

static void put(const history *h, uint64_t step, tn_text *out)
{
    const double last_train = h->train.n > 0 ? h->train.item[h->train.n - 1].step : 0;
    const double last_valid = h->valid.n > 0 ? h->valid.item[h->valid.n - 1].step : 0;
    const double last = fmax(fmax((double)step, 1), fmax(last_train, last_valid));
    tn_json_f64(out, "last", last);
    put_marks(h, step, out);
    tn_json_open_key(out, "figures", '[');
    for (uint32_t value = 0; value < VALUES; value++) {
        tn_json_open(out, '{');
        tn_json_str(out, "title", titles[value]);
        put_points(&h->train, value, last, "train", out);
        put_points(&h->valid, value, last, "valid", out);
        tn_json_close(out, '}');
    }
    tn_json_close(out, ']');
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

tn_status tn_history_json(const char *path, uint64_t step, tn_text *out, double *when,
                          tn_error *err)
{
    history h = {.unread = 0};
    tn_status status = TN_OK;
    tn_json_open_key(out, "history", '{');
    if (path != NULL && tn_path_exists(path)) {
        status = read_file(&h, path, err);
        put(&h, step, out);
    } else {
        tn_text note = {0};
        tn_text_addf(&note, "No history: %s%s",
                     path != NULL ? path : "an export, or a model that is still to begin",
                     path != NULL ? " is not there (log.jsonl writes it beside the checkpoints)"
                                  : ", has no metrics.jsonl");
        put_note(&note, out);
    }
    *when = time_of(&h.train, step);
    tn_json_close(out, '}');
    tn_free(h.train.item);
    tn_free(h.valid.item);
    return status;
}
