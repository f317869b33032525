/* text_tables.c - tables of text, and as JSON. */
#include "train/report/text_tables.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"

#include <math.h>
#include <string.h>

enum { GAP = 2 };

static size_t width_of(const char *cell)
{
    size_t width = 0;
    for (const char *at = cell; *at != 0; at++) {
        width += ((unsigned char)*at & 0xc0) != 0x80; /* bytes that begin a character */
    }
    return width;
}

static size_t column_width(const char *const *cell, uint32_t rows, uint32_t cols, uint32_t col)
{
    size_t widest = 0;
    for (uint32_t r = 0; r < rows; r++) {
        size_t width = width_of(cell[(size_t)r * cols + col]);
        widest = width > widest ? width : widest;
    }
    return widest;
}

/* Returns whether a column holds numbers, which are set to the right, words to the left. */
static bool is_numeric(const char *const *cell, uint32_t rows, uint32_t cols, uint32_t col)
{
    for (uint32_t r = 1; r < rows; r++) {
        const char *text = cell[(size_t)r * cols + col];
        if (*text != 0 && strcmp(text, "n/a") != 0 && strchr("-0123456789", *text) == NULL) {
            return false;
        }
    }
    return true;
}

static void add_grid(const char *const *cell, uint32_t rows, uint32_t cols, tn_text *out)
{
    for (uint32_t r = 0; r < rows; r++) {
        size_t owed = 0; /* blanks, put when something follows them */
        for (uint32_t c = 0; c < cols; c++) {
            const char *text = cell[(size_t)r * cols + c];
            size_t pad = column_width(cell, rows, cols, c) - width_of(text);
            bool right = is_numeric(cell, rows, cols, c);
            owed += right ? pad : 0;
            if (*text != 0) {
                tn_text_addf(out, "%*s%s", (int)owed, "", text);
                owed = 0;
            }
            owed += (right ? 0 : pad) + GAP;
        }
        tn_text_addc(out, '\n');
    }
}

void tn_sheet_next(tn_sheet *s)
{
    size_t size = s->cells.size - s->begin;
    if (!s->cells.failed && size > s->cell_max) {
        for (size = s->cell_max; size > 0; size--) { /* no half of a character */
            if (((unsigned char)s->cells.data[s->begin + size] & 0xc0) != 0x80) {
                break;
            }
        }
        s->cells.size = s->begin + size;
    }
    tn_text_addc(&s->cells, '\0');
    s->begin = s->cells.size;
    s->n++;
}

void tn_sheet_word(tn_sheet *s, const char *word)
{
    tn_text_adds(&s->cells, word != NULL ? word : "");
    tn_sheet_next(s);
}

void tn_sheet_metric(tn_sheet *s, double value)
{
    if (isnan(value)) {
        tn_text_adds(&s->cells, "n/a");
    } else {
        tn_text_addf(&s->cells, s->full ? "%.9g" : "%.6f", value);
    }
    tn_sheet_next(s);
}

static void add_json(const char *const *cell, uint32_t rows, uint32_t cols, tn_text *out)
{
    for (uint32_t r = 0; r < rows; r++) {
        tn_json_open_key(out, r == 0 ? "columns" : NULL, '[');
        for (uint32_t c = 0; c < cols; c++) {
            const char *text = cell[(size_t)r * cols + c];
            if (r == 0 || c == 0 || !is_numeric(cell, rows, cols, c)) {
                tn_json_str(out, NULL, text);
            } else {
                tn_json_raw(out, NULL, *text == 'n' || *text == 0 ? "null" : text);
            }
        }
        tn_json_close(out, ']');
        if (r == 0) {
            tn_json_open_key(out, "rows", '[');
        }
    }
    tn_json_close(out, ']');
}

void tn_sheet_end(tn_sheet *s, const char *key, tn_text *out)
{
    TN_ASSERT(s->n > 0 && s->n % s->cols == 0);
    const char **cell = tn_alloc(s->n, sizeof(const char *), "a table");
    const char *at = tn_text_str(&s->cells);
    out->failed = out->failed || s->cells.failed;
    for (uint32_t i = 0; i < s->n && !out->failed; i++) {
        cell[i] = at;
        at += strlen(at) + 1;
    }
    if (!out->failed && key == NULL) {
        add_grid(cell, s->n / s->cols, s->cols, out);
    } else if (!out->failed) {
        tn_json_open_key(out, key, '{');
        add_json(cell, s->n / s->cols, s->cols, out);
        tn_json_close(out, '}');
    }
    tn_free(cell);
    tn_text_done(&s->cells);
    s->n = 0;
    s->begin = 0;
}

static void put_metric(tn_sheet *s, const tn_result *results, uint32_t n, const char *name)
{
    tn_sheet_word(s, name);
    for (uint32_t i = 0; i < n; i++) {
        tn_sheet_metric(s, tn_metrics_get(results[i].metrics, name));
    }
}

/* A note beside a metric: how far it can be off in any of the results, or what it left out. NULL:
 * none. */
static const char *companion(const tn_result *results, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++) {
        const tn_metrics *m = results[i].metrics;
        if (strcmp(name, "auc") == 0 && tn_metrics_get(m, "auc_error") > 0) {
            return "auc_error";
        }
        if (strcmp(name, "gauc") == 0 && !isnan(tn_metrics_get(m, "gauc_skipped"))) {
            return "gauc_skipped";
        }
    }
    return strcmp(name, "bucket_error") == 0 ? "bucket_coverage" : NULL;
}

void tn_results_text(const tn_result *results, uint32_t n, const tn_strs *metrics, tn_text *out)
{
    TN_ASSERT(n >= 1 && n <= TN_RESULTS_MAX);
    tn_sheet s = {.cols = n + 1, .cell_max = TN_CELL_MAX};
    tn_sheet_word(&s, "metric");
    for (uint32_t i = 0; i < n; i++) {
        tn_sheet_word(&s, results[i].data);
    }
    tn_sheet_word(&s, "rows");
    for (uint32_t i = 0; i < n; i++) {
        tn_text_add_u64(&s.cells, tn_metrics_rows(results[i].metrics));
        tn_sheet_next(&s);
    }
    for (uint32_t i = 0; i < metrics->n; i++) {
        put_metric(&s, results, n, metrics->item[i]);
        const char *beside = companion(results, n, metrics->item[i]);
        if (beside != NULL && !tn_strs_has(metrics, beside)) {
            put_metric(&s, results, n, beside);
        }
    }
    tn_sheet_end(&s, NULL, out);
}
