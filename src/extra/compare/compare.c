/* compare.c - scores of two models meet, and become metrics of either and of their difference. */
#include "extra/compare/compare.h"

#include "base/core/alloc.h"
#include "base/core/number.h"
#include "base/file/file.h"
#include "base/math/fmath.h"
#include "io/rows/batch.h"
#include "io/schema/schema.h"
#include "train/config/run.h"
#include "train/eval/predict.h"

#include <string.h>

/* A row of the other. */
typedef struct scored {
    float logit, label; /* the logit corrected for sampled negatives */
} scored;

typedef struct compare_state {
    scored *row; /* owned */
    size_t n, capacity;
    size_t next; /* rows that the evaluation has not reached */
    tn_run run_other, run_change;
    tn_eval_request nothing; /* no paths, no sink */
    tn_score_collector other, change;
    bool begun;
    float *block; /* arrays of a batch: the other's logits, the changes, zeros; owned */
    uint32_t rows_max;
    tn_mean_draws draws; /* metrics of the changes */
} compare_state;

tn_status tn_compare_open(tn_compare **out, const char *name, tn_error *err)
{
    tn_compare *c = NULL;
    TN_TRY(TN_ALLOC(c, 1, "a comparison", err));
    c->name = name;
    tn_status status = TN_ALLOC(c->at, 1, "a comparison", err);
    if (status != TN_OK) {
        tn_free(c);
        return status;
    }
    *out = c;
    return TN_OK;
}

/* The evaluations stay when all went well. */
static void end_collectors(compare_state *s, tn_status status)
{
    if (s->begun) {
        tn_score_collector_end(&s->other, status);
        tn_score_collector_end(&s->change, status);
        s->begun = false;
    }
}

void tn_compare_free(tn_compare *c)
{
    if (c != NULL) {
        end_collectors(c->at, TN_OK);
        tn_evaluation_done(&c->other);
        tn_evaluation_done(&c->change);
        tn_free(c->at->row);
        tn_free(c->at->block);
        tn_free(c->at);
        tn_free(c);
    }
}

/* ---- the other's scores ---- */

static tn_status reserve(compare_state *s, size_t more, tn_error *err)
{
    if (s->n + more <= s->capacity) {
        return TN_OK;
    }
    const size_t capacity = s->n + more > 2 * s->capacity ? s->n + more : 2 * s->capacity;
    TN_TRY(TN_GROW(s->row, s->n, capacity, "scores of another model", err));
    s->capacity = capacity;
    return TN_OK;
}

static tn_status take(compare_state *s, const tn_scores *scores, double shift, tn_error *err)
{
    TN_TRY(reserve(s, scores->batch->rows, err));
    for (uint32_t i = 0; i < scores->batch->rows; i++) {
        s->row[s->n++] = (scored){.logit = (float)((double)scores->logit[i] + shift),
                                  .label = scores->batch->label[i]};
    }
    return TN_OK;
}

/* id, label, weight, logit, pctr. False: the line is not that. */
static bool read_line(const char *line, size_t size, scored *out)
{
    enum { LABEL = 1, LOGIT = 3, COLUMNS = 5 };
    const char *const end = line + size;
    uint32_t column = 0;
    for (const char *at = line; at != NULL; column++) {
        const char *tab = memchr(at, '\t', (size_t)(end - at));
        const size_t length = (size_t)((tab != NULL ? tab : end) - at);
        float *to = column == LABEL ? &out->label : column == LOGIT ? &out->logit : NULL;
        if (to != NULL && tn_read_f32(at, length, to) != TN_NUM_OK) {
            return false;
        }
        at = tab != NULL ? tab + 1 : NULL;
    }
    return column >= COLUMNS;
}

static tn_status read_lines(compare_state *s, const char *path, const tn_map *map, tn_error *err)
{
    tn_text head = {0};
    tn_prediction_head(&head, TN_TARGET_CLICK, NULL, false);
    const size_t head_size = head.size > 0 ? head.size - 1 : 0; /* a group may follow */
    tn_status status = tn_text_check(&head, "a head of predictions", err);
    uint64_t number = 1;
    for (size_t at = 0; status == TN_OK && at < map->size; number++) {
        const char *line = map->data + at;
        const char *feed = memchr(line, '\n', map->size - at);
        const size_t size = feed != NULL ? (size_t)(feed - line) : map->size - at;
        const bool is_head = size >= head_size && memcmp(line, head.data, head_size) == 0;
        at += size + (feed != NULL);
        if (number == 1 && !is_head) {
            status = tn_fail(err, TN_E_DATA,
                             "'%s' holds no predictions of clicks: its first line is not '%.*s'",
                             path, (int)head_size, head.data);
        } else if (!is_head) {
            status = reserve(s, 1, err);
            if (status == TN_OK && !read_line(line, size, &s->row[s->n])) {
                status = tn_fail(err, TN_E_DATA, "'%s', line %llu: no prediction with a label",
                                 path, (unsigned long long)number);
            }
            s->n++;
        }
    }
    tn_text_done(&head);
    return status;
}

tn_status tn_compare_read(tn_compare *c, const char *path, tn_error *err)
{
    tn_map map = {0};
    TN_TRY(tn_map_file(&map, path, err));
    tn_status status = read_lines(c->at, path, &map, err);
    tn_unmap(&map);
    return status;
}

/* ---- both ---- */

tn_status tn_compare_begin(tn_compare *c, const tn_run *run, const tn_schema *schema, tn_error *err)
{
    compare_state *s = c->at;
    TN_ASSERT(!s->begun && run->eval.auc == 1 && run->data.target == TN_TARGET_CLICK);
    s->run_other = *run;
    s->run_other.eval.metrics.n = 0;
    s->run_change = s->run_other;
    s->run_change.eval.auc = 0;
    s->run_change.data.target = TN_TARGET_NUMBER;
    s->other = (tn_score_collector){.run = &s->run_other,
                                    .schema = schema,
                                    .request = &s->nothing,
                                    .sampling = 1,
                                    .out = &c->other};
    s->change = s->other;
    s->change.run = &s->run_change;
    s->change.out = &c->change;
    s->begun = true;
    TN_TRY(tn_score_collector_begin(&s->other, err));
    return tn_score_collector_begin(&s->change, err);
}

static double loss_of(double logit, double label)
{
    return tn_log1p_exp(logit) - label * logit;
}

static tn_status make_room(compare_state *s, uint32_t rows, tn_error *err)
{
    if (rows <= s->rows_max) {
        return TN_OK;
    }
    tn_free(s->block);
    s->block = NULL;
    s->rows_max = 0;
    TN_TRY(TN_ALLOC(s->block, 3 * (size_t)rows, "scores of a batch", err));
    s->rows_max = rows;
    return TN_OK;
}

/* Compares the next rows, and fills the other's logits and the changes of the loss. */
static tn_status match(tn_compare *c, const tn_scores *scores, double shift, float *logit,
                       float *change, tn_error *err)
{
    compare_state *s = c->at;
    const tn_batch *batch = scores->batch;
    for (uint32_t i = 0; i < batch->rows; i++, s->next++) {
        if (s->next == s->n) {
            return tn_fail(err, TN_E_DATA,
                           "'%s' has %zu rows, fewer than the data that is evaluated", c->name,
                           s->n);
        }
        const scored *row = &s->row[s->next];
        const double y = (double)batch->label[i];
        if (!((double)row->label == y)) {
            return tn_fail(err, TN_E_DATA,
                           "'%s' is of other rows: row %zu has label %g there, and %g in the data",
                           c->name, s->next + 1, (double)row->label, y);
        }
        const double w = batch->weight != NULL ? (double)batch->weight[i] : 1;
        const double less = loss_of((double)row->logit, y);
        const double by = loss_of((double)scores->logit[i] + shift, y) - less;
        logit[i] = row->logit;
        change[i] = (float)by;
        if (w > 0) {
            tn_mean_draws_add(&s->draws, s->run_other.run.seed, w, by);
        }
    }
    return TN_OK;
}

tn_status tn_compare_add(tn_compare *c, const tn_scores *scores, double shift, tn_error *err)
{
    compare_state *s = c->at;
    if (!s->begun) {
        return take(s, scores, shift, err);
    }
    const uint32_t rows = scores->batch->rows;
    TN_TRY(make_room(s, rows, err));
    float *change = s->block + rows;
    tn_batch of_changes = *scores->batch;
    of_changes.label = change + rows; /* zeros: a change is its own error */
    memset(of_changes.label, 0, rows * sizeof *of_changes.label);
    TN_TRY(match(c, scores, shift, s->block, change, err));
    const tn_scores other = {.batch = scores->batch, .logit = s->block};
    const tn_scores changes = {.batch = &of_changes, .logit = change};
    TN_TRY(tn_score_collector_add(&s->other, &other, err));
    return tn_score_collector_add(&s->change, &changes, err);
}

tn_status tn_compare_end(tn_compare *c, const tn_evaluation *of, tn_error *err)
{
    compare_state *s = c->at;
    TN_ASSERT(s->begun);
    if (s->next < s->n) {
        return tn_fail(err, TN_E_DATA, "'%s' has %zu rows, the data that is evaluated has %zu",
                       c->name, s->n, s->next);
    }
    end_collectors(s, TN_OK);
    tn_free(s->row);
    s->row = NULL;
    TN_ASSERT(tn_metrics_rows(c->other.metrics) == tn_metrics_rows(of->metrics));
    c->auc = tn_interval_delong_change(of->metrics, c->other.metrics, &c->p);
    c->auc_draws = tn_interval_bootstrap(of->metrics, c->other.metrics, s->run_other.run.seed);
    c->logloss = tn_mean_draws_end(&s->draws);
    return TN_OK;
}

tn_interval tn_compare_change(const tn_metrics *of)
{
    const double n = (double)tn_metrics_rows(of);
    const double mean = tn_metrics_get(of, "prediction_mean");
    const double spread = fmax(tn_metrics_get(of, "mse") - mean * mean, 0);
    return tn_interval_normal(mean, n > 1 ? spread / (n - 1) : (double)NAN);
}
