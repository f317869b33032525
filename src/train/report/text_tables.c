/* text_tables.c - tables of text. */
#include "train/report/text_tables.h"

#include "base/core/alloc.h"
#include "train/report/progress.h"

#include <math.h>
#include <string.h>

enum { GAP = 2, CELL_SIZE = 32 };

static size_t width_of(const char *cell)
{
    size_t width = 0;
    for (const char *at = cell != NULL ? cell : ""; *at != 0; at++) {
        width += ((unsigned char)*at & 0xc0) != 0x80; /* bytes that begin a character */
    }
    return width;
}

static void put_blanks(tn_text *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        tn_text_addc(out, ' ');
    }
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

/* Numbers stand right, words left. */
static bool is_numeric(const char *const *cell, uint32_t rows, uint32_t cols, uint32_t col)
{
    for (uint32_t r = 1; r < rows; r++) {
        const char *text = cell[(size_t)r * cols + col];
        if (text != NULL && *text != 0 && strcmp(text, "n/a") != 0 &&
            strchr("-0123456789", *text) == NULL) {
            return false;
        }
    }
    return true;
}

void tn_grid_text(const char *const *cell, uint32_t rows, uint32_t cols, tn_text *out)
{
    TN_ASSERT(rows > 0 && cols > 0);
    for (uint32_t r = 0; r < rows; r++) {
        size_t owed = 0; /* blanks, put when something follows them */
        for (uint32_t c = 0; c < cols; c++) {
            const char *text = cell[(size_t)r * cols + c];
            size_t pad = column_width(cell, rows, cols, c) - width_of(text);
            bool right = is_numeric(cell, rows, cols, c);
            owed += right ? pad : 0;
            if (text != NULL && *text != 0) {
                put_blanks(out, owed);
                tn_text_adds(out, text);
                owed = 0;
            }
            owed += (right ? 0 : pad) + GAP;
        }
        tn_text_addc(out, '\n');
    }
}

/* A grid that is filled cell by cell, in order. */
typedef struct sheet {
    char (*text)[CELL_SIZE];
    const char **cell;
    uint32_t n, max;
} sheet;

static sheet new_sheet(uint32_t cells)
{
    return (sheet){.text = tn_alloc(cells, CELL_SIZE, "cells of a table"),
                   .cell = tn_alloc(cells, sizeof(const char *), "a table"),
                   .max = cells};
}

/* Moves `t` into the next cell. */
static void put_cell(sheet *s, tn_text *t)
{
    TN_ASSERT(s->n < s->max);
    size_t size = t->size < CELL_SIZE ? t->size : CELL_SIZE - 1;
    memcpy(s->text[s->n], tn_text_str(t), size);
    s->text[s->n][size] = 0;
    s->cell[s->n] = s->text[s->n];
    s->n++;
    tn_text_clear(t);
}

static void put_word(sheet *s, tn_text *t, const char *word)
{
    tn_text_adds(t, word != NULL ? word : "");
    put_cell(s, t);
}

static void end_sheet(sheet *s, uint32_t cols, tn_text *t, tn_text *out)
{
    TN_ASSERT(s->n % cols == 0);
    tn_grid_text(s->cell, s->n / cols, cols, out);
    tn_free(s->text);
    tn_free(s->cell);
    tn_text_done(t);
}

static void put_metric(sheet *s, tn_text *t, const tn_result *results, uint32_t n, const char *name)
{
    put_word(s, t, name);
    for (uint32_t i = 0; i < n; i++) {
        double value = tn_metrics_get(results[i].metrics, name);
        if (isnan(value)) {
            tn_text_adds(t, "n/a");
        } else {
            tn_text_addf(t, "%.6f", value);
        }
        put_cell(s, t);
    }
}

/* A note beside a metric: how far it can be off, or what it left out. NULL: none. */
static const char *companion(const tn_metrics *m, const char *name)
{
    if (strcmp(name, "auc") == 0 && tn_metrics_get(m, "auc_error") > 0) {
        return "auc_error";
    }
    if (strcmp(name, "gauc") == 0 && !isnan(tn_metrics_get(m, "gauc_skipped"))) {
        return "gauc_skipped";
    }
    return strcmp(name, "bucket_error") == 0 ? "bucket_coverage" : NULL;
}

static bool is_listed(const char *name, const char *const *metric, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(metric[i], name) == 0) {
            return true;
        }
    }
    return false;
}

void tn_results_text(const tn_result *results, uint32_t n, const char *const *metric,
                     uint32_t n_metrics, tn_text *out)
{
    TN_ASSERT(n >= 1 && n <= TN_RESULTS_MAX);
    sheet s = new_sheet((n + 1) * (2 + 2 * n_metrics));
    tn_text t = {0};
    put_word(&s, &t, "metric");
    for (uint32_t i = 0; i < n; i++) {
        put_word(&s, &t, results[i].data);
    }
    put_word(&s, &t, "rows");
    for (uint32_t i = 0; i < n; i++) {
        tn_text_add_u64(&t, tn_metrics_rows(results[i].metrics));
        put_cell(&s, &t);
    }
    for (uint32_t i = 0; i < n_metrics; i++) {
        put_metric(&s, &t, results, n, metric[i]);
        const char *beside = companion(results[0].metrics, metric[i]);
        if (beside != NULL && !is_listed(beside, metric, n_metrics)) {
            put_metric(&s, &t, results, n, beside);
        }
    }
    end_sheet(&s, n + 1, &t, out);
}

void tn_model_text(const tn_model_facts *m, tn_text *out)
{
    enum { COLS = 5 };
    tn_text_addf(out, "model %s: %u slots, %llu dense parameters, %llu rows", m->model, m->n_slots,
                 (unsigned long long)m->dense_params, (unsigned long long)m->sparse_rows);
    tn_text_addf(out, " of %u bytes (", m->row_bytes);
    tn_put_bytes(out, (double)m->sparse_rows * m->row_bytes);
    tn_text_adds(out, ")\n");
    if (m->n_slots == 0) {
        return;
    }
    sheet s = new_sheet(COLS * (m->n_slots + 1));
    tn_text t = {0};
    static const char *const names[COLS] = {"slot", "share", "dim", "pool", "used by"};
    for (uint32_t c = 0; c < COLS; c++) {
        put_word(&s, &t, names[c]);
    }
    for (uint32_t i = 0; i < m->n_slots; i++) {
        const tn_slot_line *l = &m->slot[i];
        put_word(&s, &t, l->slot);
        put_word(&s, &t, l->share);
        tn_text_add_u64(&t, l->dim);
        put_cell(&s, &t);
        put_word(&s, &t, l->pool);
        put_word(&s, &t, l->used_by);
    }
    end_sheet(&s, COLS, &t, out);
}
