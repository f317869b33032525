/* tnet.c - libtnet's public functions over exported_model.h and score.h. */
#include "serve/tnet.h"

#include "base/core/alloc.h"
#include "base/core/text.h"
#include "base/math/fmath.h"
#include "io/format/format.h"
#include "io/schema/schema.h"
#include "serve/exported_model.h"
#include "serve/score.h"
#include "serve/score_arrow.h"

#include <math.h>
#include <string.h>

enum { VALUES_AT_ONCE = 256 };

struct tnet_model {
    tn_exported_model *exported;
};

struct tnet_scorer {
    const tn_exported_model *exported;
    tn_scorer *scorer;
    tn_rows *rows;
    tn_rows *shared;        /* a block of one row: what the others have in common */
    tn_rows *at;            /* block that the open row belongs to: `rows` or `shared` */
    bool *field_shared;     /* per field, then per slot, then per number: it is given there */
    uint32_t *numbered;     /* per field: the last row that got a number of it by tnet_add_number */
    uint32_t n_begun;       /* rows, the open one included */
    tn_arrow_scorer *arrow; /* NULL: no batch was scored so far */
    bool open;
};

static const char no_scorer[] = "'scorer' is NULL";
static const char no_row[] = "no row is open";
static const tn_bytes nothing = {"", 0, false};

static int code_of(tn_status status)
{
    _Static_assert(TNET_E_USAGE == (int)TN_E_USAGE && TNET_E_DATA == (int)TN_E_DATA &&
                       TNET_E_EXPORT == (int)TN_E_CKPT && TNET_E_MEMORY == (int)TN_E_MEMORY &&
                       TNET_E_IO == (int)TN_E_IO && TNET_E_LIMIT == (int)TN_E_LIMIT,
                   "codes are numbered as statuses");
    bool same = status == TN_OK || status == TN_E_USAGE || status == TN_E_DATA ||
                status == TN_E_MEMORY || status == TN_E_IO || status == TN_E_LIMIT;
    return same ? (int)status : status == TN_END ? TNET_OK : TNET_E_EXPORT;
}

static int result(tn_status status, const tn_error *from, tnet_error *err)
{
    int code = code_of(status);
    if (code != TNET_OK && err != NULL) {
        _Static_assert(sizeof err->text == sizeof from->text, "texts of one size");
        err->code = code;
        memcpy(err->text, from->text, sizeof err->text);
    }
    return code;
}

static int usage(tnet_error *err, const char *text)
{
    tn_error e = {0};
    (void)result(tn_fail(&e, TN_E_USAGE, "%s", text), &e, err);
    return TNET_E_USAGE;
}

int tnet_abi(void)
{
    return TNET_ABI;
}

const char *tnet_version(void)
{
    return TN_VERSION;
}

int tnet_open(const char *dir, int verify, tnet_model **out, tnet_error *err)
{
    if (out == NULL) {
        return usage(err, "'out' is NULL");
    }
    *out = NULL;
    if (dir == NULL) {
        return usage(err, "'dir' is NULL");
    }
    const int when = verify & ~TNET_HALF_WEIGHTS;
    if (when < TNET_VERIFY_FULL || when > TNET_VERIFY_NONE) {
        return usage(err, "verify is not full, lazy or none");
    }
    tn_error e = {0};
    const tn_exported_model_opts opts = {.verify = (tn_verify)when,
                                         .half_weights = (verify & TNET_HALF_WEIGHTS) != 0};
    tnet_model *m = tn_try_alloc(1, sizeof *m, "a model", &e);
    tn_status status =
        m != NULL ? tn_exported_model_open(&m->exported, dir, &opts, &e) : (tn_status)TN_E_MEMORY;
    if (status != TN_OK) {
        tn_free(m);
        return result(status, &e, err);
    }
    *out = m;
    return TNET_OK;
}

void tnet_close(tnet_model *model)
{
    if (model != NULL) {
        tn_exported_model_close(model->exported);
        tn_free(model);
    }
}

const char *tnet_model_id(const tnet_model *model)
{
    return model != NULL ? model->exported->model_id : NULL;
}

uint64_t tnet_rows(const tnet_model *model)
{
    uint64_t rows = 0;
    for (uint32_t i = 0; model != NULL && i < model->exported->dict.n; i++) {
        rows += tn_dict_head(model->exported->dict.layer[i])->rows;
    }
    return rows;
}

int tnet_n_fields(const tnet_model *model)
{
    return model != NULL ? (int)model->exported->schema->n_specs : 0;
}

/* Returns NULL when there is none. */
static const tn_slot_spec *spec_of(const tn_exported_model *b, int field)
{
    return field >= 0 && (uint32_t)field < b->schema->n_specs ? &b->schema->spec[field] : NULL;
}

const char *tnet_field_name(const tnet_model *model, int field)
{
    const tn_slot_spec *spec = model != NULL ? spec_of(model->exported, field) : NULL;
    return spec != NULL ? spec->name : NULL;
}

int tnet_field(const tnet_model *model, const char *name)
{
    for (int i = 0; name != NULL && i < tnet_n_fields(model); i++) {
        if (strcmp(tnet_field_name(model, i), name) == 0) {
            return i;
        }
    }
    return -1;
}

int tnet_field_is_number(const tnet_model *model, int field)
{
    const tn_slot_spec *spec = model != NULL ? spec_of(model->exported, field) : NULL;
    return spec != NULL && tn_spec_is_number(spec);
}

/* Flags of fields, slots and numbers. */
static size_t n_flags(const tn_schema *schema)
{
    return (size_t)schema->n_specs + schema->n_slots + tn_schema_numbers(schema);
}

static tn_status fill_scorer(tnet_scorer *s, tn_error *e)
{
    const tn_schema *schema = s->exported->schema;
    TN_TRY(tn_scorer_new(&s->scorer, s->exported, e));
    TN_TRY(tn_rows_new(&s->rows, schema, 0, e));
    TN_TRY(tn_rows_new(&s->shared, schema, 0, e));
    s->at = s->rows;
    TN_TRY(TN_ALLOC(s->field_shared, n_flags(schema), "a scorer", e));
    return TN_ALLOC(s->numbered, schema->n_specs, "a scorer", e);
}

int tnet_scorer_new(tnet_model *model, tnet_scorer **out, tnet_error *err)
{
    if (out == NULL) {
        return usage(err, "'out' is NULL");
    }
    *out = NULL;
    if (model == NULL) {
        return usage(err, "'model' is NULL");
    }
    tn_error e = {0};
    tnet_scorer *s = tn_try_alloc(1, sizeof *s, "a scorer", &e);
    if (s == NULL) {
        return result(TN_E_MEMORY, &e, err);
    }
    s->exported = model->exported;
    tn_status status = fill_scorer(s, &e);
    if (status != TN_OK) {
        tnet_scorer_free(s);
        return result(status, &e, err);
    }
    *out = s;
    return TNET_OK;
}

void tnet_scorer_free(tnet_scorer *scorer)
{
    if (scorer != NULL) {
        tn_scorer_free(scorer->scorer);
        tn_rows_free(scorer->rows);
        tn_rows_free(scorer->shared);
        tn_free(scorer->field_shared);
        tn_free(scorer->numbered);
        tn_arrow_scorer_free(scorer->arrow);
        tn_free(scorer);
    }
}

/* ---- rows ---- */

static void forget_shared(tnet_scorer *s)
{
    tn_rows_clear(s->shared);
    memset(s->field_shared, 0, n_flags(s->exported->schema) * sizeof *s->field_shared);
}

void tnet_clear(tnet_scorer *scorer)
{
    if (scorer != NULL) {
        tn_rows_clear(scorer->rows);
        forget_shared(scorer);
        scorer->open = false;
    }
}

/* Begins a row of the block `at`. */
static int begin(tnet_scorer *scorer, tn_rows *at, tnet_error *err)
{
    if (scorer->open) {
        return usage(err, "a row is open already");
    }
    tn_error e; /* not cleared: this is done for every row */
    tn_status status = tn_rows_begin(at, VALUES_AT_ONCE, &e);
    scorer->at = at;
    scorer->open = status == TN_OK;
    if (++scorer->n_begun == 0) { /* once in four billion rows */
        memset(scorer->numbered, 0, scorer->exported->schema->n_specs * sizeof *scorer->numbered);
        scorer->n_begun = 1;
    }
    return result(status, &e, err);
}

int tnet_begin_row(tnet_scorer *scorer, tnet_error *err)
{
    return scorer != NULL ? begin(scorer, scorer->rows, err) : usage(err, no_scorer);
}

int tnet_begin_shared(tnet_scorer *scorer, tnet_error *err)
{
    if (scorer == NULL) {
        return usage(err, no_scorer);
    }
    if (scorer->shared->n > 0 || scorer->rows->n > 0) {
        return usage(err, "what rows share comes once, before the first of them");
    }
    return begin(scorer, scorer->shared, err);
}

void tnet_drop_row(tnet_scorer *scorer)
{
    if (scorer != NULL && scorer->open) {
        tn_rows_rollback(scorer->at);
        scorer->open = false;
        if (scorer->at == scorer->shared) {
            forget_shared(scorer);
        }
    }
}

size_t tnet_row_count(const tnet_scorer *scorer)
{
    return scorer != NULL ? scorer->rows->n : 0;
}

/* Reports the fault that tn_rows found, in words. */
static int refused(const tn_slot_spec *spec, tn_bytes token, tn_fault fault, tnet_error *err)
{
    static const char mark[] = ": error: ";
    if (fault == TN_FAULT_NONE) {
        return TNET_OK;
    }
    tn_error told = {0};
    tn_error e = {0};
    tn_status status =
        tn_record_location_fault(&(tn_record_location){.source = ""}, token, token, fault, &told);
    const char *words = strstr(told.text, mark); /* a caller's value has no place in a file */
    words = words != NULL ? words + sizeof mark - 1 : told.text;
    size_t size = token.size > 0 ? strcspn(words, "\n") : tn_record_location_reason(told.text).size;
    status =
        tn_fail(&e, status, "field '%s': %.*s", spec != NULL ? spec->name : "?", (int)size, words);
    return result(status, &e, err);
}

/* Fails for the rule that tn_rows_end has found broken. */
static int broken(const tnet_scorer *scorer, const tn_slot_spec *spec, tn_fault fault,
                  tnet_error *err)
{
    tn_error e = {0};
    tn_text why = {0};
    tn_rows_explain(scorer->at, spec, fault, &why);
    const int code = why.size > 0 ? result(tn_fail(&e, TN_E_DATA, "%s", tn_text_str(&why)), &e, err)
                                  : refused(spec, nothing, fault, err);
    tn_text_done(&why);
    return code;
}

/* Notes which crosses all rows have in common: those whose slots they all have. */
static void note_shared_crosses(tnet_scorer *s)
{
    const tn_schema *schema = s->exported->schema;
    bool *slot = s->field_shared + schema->n_specs;
    for (uint32_t i = schema->n_specs; i < schema->n_specs + schema->n_crosses; i++) {
        const tn_slot_spec *cross = &schema->spec[i];
        bool all = true;
        for (uint32_t k = 0; k < cross->n_parts; k++) {
            all = all && slot[cross->part[k]];
        }
        slot[cross->slot] = all;
    }
}

int tnet_end_row(tnet_scorer *scorer, tnet_error *err)
{
    const tn_slot_spec *spec = NULL;
    if (scorer == NULL || !scorer->open) {
        return usage(err, scorer == NULL ? no_scorer : no_row);
    }
    scorer->rows->common = scorer->shared->n > 0 ? scorer->shared : NULL;
    scorer->rows->common_slot = scorer->field_shared + scorer->exported->schema->n_specs;
    const tn_fault fault = tn_rows_end(scorer->at, &spec);
    const int code = broken(scorer, spec, fault, err);
    scorer->open = code != TNET_OK;
    if (code == TNET_OK && scorer->at == scorer->shared) {
        note_shared_crosses(scorer);
    }
    return code;
}

/* Notes that the open row, which is what all have in common, gives a field. */
static void note_shared(tnet_scorer *s, int field)
{
    const tn_slot_spec *spec = &s->exported->schema->spec[field];
    const tn_schema *schema = s->exported->schema;
    bool *slot = s->field_shared + schema->n_specs;
    s->field_shared[field] = true;
    if (spec->slot != TN_NOWHERE) {
        slot[spec->slot] = true;
    } else {
        memset(slot + schema->n_slots + spec->numeric, true, tn_spec_cols(spec));
    }
}

/* Returns the field of an open row, with room for one more value. */
static int prepare(tnet_scorer *s, int field, const tn_slot_spec **out, tnet_error *err)
{
    if (s == NULL || !s->open) {
        return usage(err, s == NULL ? no_scorer : no_row);
    }
    *out = spec_of(s->exported, field);
    if (*out == NULL) {
        return usage(err, "the model has no such field");
    }
    if (s->at == s->shared) {
        note_shared(s, field);
    } else if (s->field_shared[field]) {
        return usage(err, "the field is one that all rows share");
    }
    tn_error e; /* not cleared: this is done for every value */
    tn_status status = tn_rows_more(s->at, &e);
    return status == TN_OK ? TNET_OK : result(status, &e, err);
}

int tnet_add_id(tnet_scorer *scorer, int field, uint64_t id, float x, tnet_error *err)
{
    const tn_slot_spec *spec = NULL;
    int code = prepare(scorer, field, &spec, err);
    if (code != TNET_OK) {
        return code;
    }
    if (tn_spec_is_number(spec)) {
        return usage(err, "the field takes a number, not an id");
    }
    if (!isfinite(x)) {
        return refused(spec, nothing, TN_FAULT_NOT_FINITE, err);
    }
    tn_fault fault = tn_rows_integer(scorer->at, spec, (int64_t)id, x);
    return refused(spec, nothing, fault, err);
}

int tnet_add_text(tnet_scorer *scorer, int field, const char *text, size_t size, float x,
                  tnet_error *err)
{
    const tn_slot_spec *spec = NULL;
    int code = prepare(scorer, field, &spec, err);
    if (code != TNET_OK) {
        return code;
    }
    if (text == NULL) {
        return usage(err, "'text' is NULL");
    }
    if (size > scorer->exported->data.record_bytes_max) {
        tn_error e = {0};
        return result(tn_fail(&e, TN_E_LIMIT, "field '%s': a text of %zu bytes, %llu at most",
                              spec->name, size,
                              (unsigned long long)scorer->exported->data.record_bytes_max),
                      &e, err);
    }
    const tn_bytes token = {text, size, false};
    if (!isfinite(x)) {
        return refused(spec, token, TN_FAULT_NOT_FINITE, err);
    }
    return refused(spec, token, tn_rows_token(scorer->at, spec, text, size, x), err);
}

/* Adds a number as the same number in a data file would be read. */
static tn_fault add_number(tn_rows *rows, const tn_slot_spec *spec, double value)
{
    if (!isfinite(value)) {
        return TN_FAULT_NOT_FINITE;
    }
    if (spec->type == TN_SIGN_FLOAT) {
        return tn_rows_real(rows, spec, value);
    }
    bool id = spec->type == TN_SIGN_ID;
    if (value != trunc(value) || value < (id ? 0 : -0x1p63) || value >= (id ? 0x1p64 : 0x1p63)) {
        return id ? TN_FAULT_ID : TN_FAULT_INT;
    }
    return tn_rows_integer(rows, spec, id ? (int64_t)(uint64_t)value : (int64_t)value, 1);
}

int tnet_add_number(tnet_scorer *scorer, int field, double value, tnet_error *err)
{
    const tn_slot_spec *spec = NULL;
    int code = prepare(scorer, field, &spec, err);
    if (code != TNET_OK) {
        return code;
    }
    if (!tn_spec_is_number(spec)) {
        return usage(err, "the field takes ids, not a number");
    }
    uint32_t *last = &scorer->numbered[field];
    const bool again = spec->width == 0 && *last == scorer->n_begun;
    tn_fault fault = again ? TN_FAULT_TWO_VALUES : add_number(scorer->at, spec, value);
    *last = fault == TN_FAULT_NONE ? scorer->n_begun : *last;
    return refused(spec, nothing, fault, err);
}

int tnet_score(tnet_scorer *scorer, float *logits, float *clicks, tnet_error *err)
{
    if (scorer != NULL && scorer->shared->n > 0) {
        return usage(err, "rows that share values are scored by tnet_score_many");
    }
    return tnet_score_many(scorer, logits, clicks, err);
}

/* The part that all rows have in common. */
static tn_shared_row shared_of(const tnet_scorer *scorer)
{
    const tn_schema *schema = scorer->exported->schema;
    const bool *slot = scorer->field_shared + schema->n_specs;
    return (tn_shared_row){.row = scorer->shared, .slot = slot, .numeric = slot + schema->n_slots};
}

int tnet_score_many(tnet_scorer *scorer, float *logits, float *clicks, tnet_error *err)
{
    if (scorer == NULL) {
        return usage(err, no_scorer);
    }
    if (scorer->open) {
        return usage(err, "a row is still open");
    }
    tn_error e = {0};
    const tn_shared_row shared = shared_of(scorer);
    tn_status status =
        scorer->shared->n > 0
            ? tn_scorer_score_many(scorer->scorer, &shared, scorer->rows, logits, clicks, &e)
            : tn_scorer_score_rows(scorer->scorer, scorer->rows, logits, clicks, &e);
    return result(status, &e, err);
}

/* ---- several tasks ---- */

int tnet_n_tasks(const tnet_model *model)
{
    return model != NULL ? (int)tn_tasks_count(model->exported->tasks) : 0;
}

int tnet_task(const tnet_model *model, const char *name)
{
    const uint32_t k = model != NULL && name != NULL
                           ? tn_tasks_find(model->exported->tasks, name, strlen(name))
                           : TN_NO_TASK;
    return k != TN_NO_TASK ? (int)k : -1;
}

const char *tnet_task_name(const tnet_model *model, int task)
{
    const tn_tasks *tasks = model != NULL ? model->exported->tasks : NULL;
    return tasks != NULL && task >= 0 && task < (int)tasks->n ? tasks->task[task].name : NULL;
}

/* Makes probabilities of the logits of a task of clicks, which are in `clicks` without `logits`. */
static void finish_column(const tnet_scorer *scorer, uint32_t task, const float *logits,
                          float *clicks)
{
    const bool is_click = scorer->exported->tasks->task[task].target == TN_TARGET_CLICK;
    const float *from = logits != NULL ? logits : clicks;
    for (uint32_t r = 0; clicks != NULL && r < scorer->rows->n; r++) {
        clicks[r] = is_click ? (float)tn_sigmoid((double)from[r]) : from[r];
    }
}

/* Scores with `columns` for further tasks. */
static int score_columns(tnet_scorer *scorer, const tn_task_columns *columns, tnet_error *err)
{
    tn_scorer_set_columns(scorer->scorer, columns);
    const int status = tnet_score_many(scorer, NULL, NULL, err);
    tn_scorer_set_columns(scorer->scorer, NULL);
    return status;
}

static int check_task(const tnet_scorer *scorer, int task, bool given, tnet_error *err)
{
    if (scorer == NULL) {
        return usage(err, no_scorer);
    }
    const tn_tasks *tasks = scorer->exported->tasks;
    if (task < 0 || task >= (int)tn_tasks_count(tasks)) {
        return usage(err, "the model has no such task");
    }
    return given && (tasks->n == 0 || tasks->task[task].of == TN_NO_TASK)
               ? usage(err, "the task is no share of another one")
               : TNET_OK;
}

static int score_one(tnet_scorer *scorer, int task, bool given, float *logits, float *clicks,
                     tnet_error *err)
{
    tn_task_columns columns = {0};
    int status = check_task(scorer, task, given, err);
    if (status != TNET_OK) {
        return status;
    }
    if (scorer->exported->tasks->n == 0) {
        return tnet_score_many(scorer, logits, clicks, err);
    }
    float *const to = logits != NULL ? logits : clicks;
    *(given ? &columns.given[task] : &columns.score[task]) = to;
    status = score_columns(scorer, &columns, err);
    if (status == TNET_OK) {
        finish_column(scorer, (uint32_t)task, logits, clicks);
    }
    return status;
}

int tnet_score_task(tnet_scorer *scorer, int task, float *logits, float *clicks, tnet_error *err)
{
    return score_one(scorer, task, false, logits, clicks, err);
}

int tnet_score_given(tnet_scorer *scorer, int task, float *logits, float *clicks, tnet_error *err)
{
    return score_one(scorer, task, true, logits, clicks, err);
}

int tnet_score_tasks(tnet_scorer *scorer, float *const *logits, float *const *clicks,
                     tnet_error *err)
{
    tn_task_columns columns = {0};
    if (scorer == NULL || logits == NULL || clicks == NULL) {
        return usage(err, scorer == NULL ? no_scorer : "'logits' or 'clicks' is NULL");
    }
    const uint32_t n = scorer->exported->tasks->n;
    if (n == 0) {
        return tnet_score_many(scorer, logits[0], clicks[0], err);
    }
    for (uint32_t k = 0; k < n; k++) {
        columns.score[k] = logits[k] != NULL ? logits[k] : clicks[k];
    }
    const int status = score_columns(scorer, &columns, err);
    for (uint32_t k = 0; k < n && status == TNET_OK; k++) {
        finish_column(scorer, k, logits[k], clicks[k]);
    }
    return status;
}

int tnet_score_arrow(tnet_scorer *scorer, const struct ArrowSchema *schema,
                     const struct ArrowArray *batch, float *logits, float *clicks, tnet_error *err)
{
    if (scorer == NULL) {
        return usage(err, no_scorer);
    }
    if (schema == NULL || batch == NULL) {
        return usage(err, schema == NULL ? "'schema' is NULL" : "'batch' is NULL");
    }
    tn_error e = {0};
    if (scorer->open && scorer->at == scorer->shared) {
        return usage(err, "the shared part is still open");
    }
    const tn_shared_row shared = shared_of(scorer);
    tn_arrow_batch scored = {.schema = schema, .array = batch};
    scored.shared = scorer->shared->n > 0 ? &shared : NULL;
    scored.logit = logits;
    scored.pctr = clicks;
    tn_status status = TN_OK;
    if (scorer->arrow == NULL) {
        status = tn_arrow_scorer_new(&scorer->arrow, scorer->exported, &e);
    }
    if (status == TN_OK) {
        status = tn_arrow_scorer_score(scorer->arrow, scorer->scorer, &scored, &e);
    }
    return result(status, &e, err);
}
