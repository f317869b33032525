/* served_model.c - an opened export, its readers by format, and what each worker scores with. */
#include "extra/http/served_model.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/math/fmath.h"
#include "config/tree.h"
#include "io/rows/rows.h"
#include "io/schema/schema.h"
#include "serve/exported_model.h"
#include "serve/model_json.h"
#include "serve/score.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum {
    FORMATS_MAX = 32,
    READERS = 2 * FORMATS_MAX, /* with labels at 2 i, without at 2 i + 1 */
    MODEL_BYTES_MAX = 64 << 20,
};

/* A schema of the model for rows of one format. */
typedef struct row_reader {
    const tn_format *format;
    const tn_schema *schema;
    tn_exported_model shell; /* has the schema of another format than the training data's */
    tn_arena *words;
} row_reader;

struct tn_served_hand {
    tn_scorer *scorer;
    tn_rows *rows[READERS];
    tn_rows *context; /* the part that the rows of a request share */
    bool *shared;     /* per slot, then per number: it is shared */
    bool is_shared;
    tn_head head;
    tn_text record;
    float *score[TN_TASKS_MAX];
    size_t score_max[TN_TASKS_MAX];
};

struct tn_served {
    tn_exported_model *exported;
    tn_text model; /* model.json */
    uint32_t n_hands;
    tn_served_hand *hand;
    pthread_mutex_t lock; /* held while a reader is made */
    _Atomic(row_reader *) reader[READERS];
};

/* ---- readers ---- */

static void free_reader(row_reader *r)
{
    if (r != NULL) {
        tn_arena_free(r->shell.arena);
        tn_arena_free(r->words);
        tn_diag_done(&r->shell.diag);
        tn_free(r);
    }
}

/* Reads the schema of a model for rows of a format that its own rows may not have. */
static tn_status read_schema(row_reader *r, const tn_served *v, bool labels, tn_error *err)
{
    const tn_origin at = {.source = "the request"};
    tn_model_json model = {0};
    r->words = tn_arena_new(1 << 12);
    tn_tree *over = tn_tree_new(r->words, TN_TREE_MAP, at);
    tn_tree_put(r->words, over, "format", tn_tree_scalar(r->words, r->format->name, at));
    if (!labels) {
        tn_tree_put(r->words, over, "label", tn_tree_scalar(r->words, "none", at));
    }
    const tn_exported_model_opts opts = {.data = over};
    TN_TRY(tn_arena_open(&r->shell.arena, 1 << 12, "a reader", err));
    TN_TRY(
        tn_document_read(&tn_model_document, &model, &v->model, r->shell.arena, "model.json", err));
    TN_TRY(tn_exported_model_read(&r->shell, &model, &opts, "model.json", err));
    r->schema = r->shell.schema;
    TN_ASSERT(r->schema->n_slots == v->exported->schema->n_slots &&
              r->schema->n_numeric == v->exported->schema->n_numeric);
    return TN_OK;
}

static tn_status make_reader(row_reader **out, const tn_served *v, const tn_format *format,
                             bool labels, tn_error *err)
{
    row_reader *r = NULL;
    const tn_data_opts *own = &v->exported->data;
    const bool labelled = !tn_label_is_none(own->label);
    tn_status status = TN_OK;
    TN_TRY(TN_ALLOC(r, 1, "a reader", err));
    r->format = format;
    if (strcmp(format->name, own->format) == 0 && labels == labelled) {
        r->schema = v->exported->schema;
    } else {
        status = read_schema(r, v, labels, err);
    }
    if (status != TN_OK) {
        free_reader(r);
        return status == TN_E_CKPT ? TN_E_CONFIG : status;
    }
    *out = r;
    return TN_OK;
}

/* Returns the number of a reader; a format that is no text or none of this build has READERS. */
static uint32_t number_of(const char *format, bool labels)
{
    for (uint32_t i = 0; i < FORMATS_MAX && tn_all_formats[i] != NULL; i++) {
        if (strcmp(tn_all_formats[i]->name, format) == 0 && !tn_all_formats[i]->binary) {
            return 2 * i + !labels;
        }
    }
    return READERS;
}

static tn_status find_reader(tn_served *v, uint32_t number, row_reader **out, tn_error *err)
{
    *out = atomic_load_explicit(&v->reader[number], memory_order_acquire);
    if (*out != NULL) {
        return TN_OK;
    }
    (void)pthread_mutex_lock(&v->lock);
    *out = atomic_load_explicit(&v->reader[number], memory_order_acquire);
    tn_status status = TN_OK;
    if (*out == NULL) {
        status = make_reader(out, v, tn_all_formats[number / 2], number % 2 == 0, err);
        if (status == TN_OK) {
            atomic_store_explicit(&v->reader[number], *out, memory_order_release);
        }
    }
    (void)pthread_mutex_unlock(&v->lock);
    return status;
}

/* Chooses the reader of a kind of rows; *number is that of its memory in a hand. */
static tn_status choose_reader(tn_served *v, const tn_row_kind *kind, row_reader **out,
                               uint32_t *number, tn_error *err)
{
    const tn_format *own = tn_format_find(v->exported->data.format);
    const char *format = kind->format != NULL          ? kind->format
                         : own != NULL && !own->binary ? own->name
                                                       : "jsonl";
    const bool jsonl = strcmp(format, "jsonl") == 0;
    *number = number_of(format, !jsonl && !kind->unlabelled);
    if (*number == READERS) {
        return tn_fail(err, TN_E_USAGE, "this build reads no rows of the format '%.64s'", format);
    }
    TN_TRY(find_reader(v, *number, out, err));
    if (*number % 2 == 0 && (*out)->format->head != NULL && (*out)->schema->header) {
        ++*number; /* the head line names the columns, so that of the label may be missing */
        return find_reader(v, *number, out, err);
    }
    return TN_OK;
}

tn_status tn_served_sink(tn_served *v, tn_served_hand *hand, const tn_row_kind *kind,
                         tn_row_sink *out, tn_error *err)
{
    row_reader *r = NULL;
    uint32_t number = 0;
    TN_TRY(choose_reader(v, kind, &r, &number, err));
    TN_ASSERT(r != NULL);
    if (hand->rows[number] == NULL) {
        TN_TRY(tn_rows_new(&hand->rows[number], r->schema, 0, err));
    }
    tn_rows_clear(hand->rows[number]);
    hand->is_shared = false;
    *out = (tn_row_sink){
        .format = r->format,
        .schema = r->schema,
        .head = &hand->head,
        .rows = hand->rows[number],
        .record = &hand->record,
        .rows_max = kind->rows_max,
        .source = kind->source,
    };
    out->rows->common = NULL;
    out->rows->common_slot = NULL;
    return TN_OK;
}

/* Notes which crosses all rows have in common: those whose slots they all have. */
static void mark_crosses(const tn_schema *schema, bool *slot)
{
    for (uint32_t i = schema->n_specs; i < schema->n_specs + schema->n_crosses; i++) {
        const tn_slot_spec *cross = &schema->spec[i];
        bool all = true;
        for (uint32_t k = 0; k < cross->n_parts; k++) {
            all = all && slot[cross->part[k]];
        }
        slot[cross->slot] = all;
    }
}

tn_status tn_served_share(tn_served_hand *hand, const tn_row_sink *to, const tn_json_span *context,
                          tn_error *err)
{
    const tn_schema *schema = to->schema;
    const size_t flags = (size_t)schema->n_slots + tn_schema_numbers(schema);
    if (hand->context == NULL) {
        TN_TRY(tn_rows_new(&hand->context, schema, 0, err));
    }
    tn_rows_clear(hand->context);
    memset(hand->shared, 0, flags * sizeof *hand->shared);
    tn_row_sink one = *to;
    one.rows = hand->context;
    one.rows_max = 1;
    one.source = "context";
    if (*context->data != '{') {
        return tn_fail(err, TN_E_DATA, "the context is no object");
    }
    TN_TRY(tn_rows_of_objects(&one, context, err));
    TN_ASSERT(hand->context->n == 1);
    TN_TRY(tn_mark_members(schema, context, hand->shared, hand->shared + schema->n_slots, err));
    mark_crosses(schema, hand->shared);
    hand->is_shared = true;
    to->rows->common = hand->context;
    to->rows->common_slot = hand->shared;
    return TN_OK;
}

/* ---- scores ---- */

const char *tn_served_task_name(const tn_served *v, uint32_t task)
{
    static const char *const words[TN_TARGETS] = {"pctr", "score", "prediction", "score"};
    const tn_tasks *tasks = v->exported->tasks;
    TN_ASSERT(task < tn_tasks_count(tasks));
    return tasks->n > 0 ? tasks->task[task].name : words[v->exported->data.target];
}

/* Makes probabilities of the logits of clicks, as tnet-score prints them. */
static void finish_scores(float *score, uint32_t n, tn_target target)
{
    for (uint32_t i = 0; target == TN_TARGET_CLICK && i < n; i++) {
        score[i] = (float)tn_sigmoid((double)score[i]);
    }
}

static tn_status score_rows(tn_served_hand *hand, const tn_schema *schema, const tn_rows *rows,
                            float *logit, tn_error *err)
{
    if (!hand->is_shared) {
        return tn_scorer_score_rows(hand->scorer, rows, logit, NULL, err);
    }
    const tn_shared_row shared = {
        .row = hand->context, .slot = hand->shared, .numeric = hand->shared + schema->n_slots};
    return tn_scorer_score_many(hand->scorer, &shared, rows, logit, NULL, err);
}

tn_status tn_served_score(tn_served *v, tn_served_hand *hand, const tn_row_sink *rows,
                          tn_served_scores *out, tn_error *err)
{
    const tn_tasks *tasks = v->exported->tasks;
    const uint32_t n = rows->rows->n;
    tn_task_columns columns = {0};
    *out = (tn_served_scores){.n = n, .n_tasks = tn_tasks_count(tasks)};
    for (uint32_t k = 0; k < out->n_tasks; k++) {
        TN_TRY(TN_RESERVE(hand->score[k], hand->score_max[k], (size_t)n + 1, "scores", err));
        columns.score[k] = hand->score[k];
        out->value[k] = hand->score[k];
        out->name[k] = tn_served_task_name(v, k);
    }
    tn_scorer_set_columns(hand->scorer, tasks->n > 0 ? &columns : NULL);
    const tn_status status =
        score_rows(hand, rows->schema, rows->rows, tasks->n > 0 ? NULL : hand->score[0], err);
    tn_scorer_set_columns(hand->scorer, NULL);
    TN_TRY(status);
    for (uint32_t k = 0; k < out->n_tasks; k++) {
        finish_scores(hand->score[k], n,
                      tasks->n > 0 ? tasks->task[k].target : v->exported->data.target);
    }
    return TN_OK;
}

/* ---- all of it ---- */

static tn_status open_hand(tn_served *v, tn_served_hand *hand, tn_error *err)
{
    const tn_schema *schema = v->exported->schema;
    const size_t flags = (size_t)schema->n_slots + tn_schema_numbers(schema) + 1;
    TN_TRY(tn_scorer_new(&hand->scorer, v->exported, err));
    TN_TRY(TN_ALLOC(hand->shared, flags, "a scorer", err));
    return TN_ALLOC(hand->head.column, (size_t)schema->columns->n + 1, "a scorer", err);
}

/* Scores a row without values: pages and memory that every request needs are there then. */
static tn_status warm(tn_served *v, tn_served_hand *hand, tn_error *err)
{
    static const char empty[] = "{}";
    const tn_row_kind kind = {.format = "jsonl", .source = "warm", .rows_max = 1};
    tn_row_sink to;
    tn_served_scores scores;
    if (tn_format_find("jsonl") == NULL || tn_served_sink(v, hand, &kind, &to, NULL) != TN_OK ||
        tn_row_sink_take(&to, (tn_bytes){empty, sizeof empty - 1, false}, NULL) != TN_OK) {
        return TN_OK; /* a model may want a value in each row */
    }
    return tn_served_score(v, hand, &to, &scores, err);
}

static tn_status open_all(tn_served *v, const char *dir, const tn_served_opts *opts, tn_error *err)
{
    const tn_exported_model_opts how = {.verify = opts->verify, .half_weights = opts->half_weights};
    char path[TN_PATH_SIZE];
    TN_TRY(tn_exported_model_open(&v->exported, dir, &how, err));
    TN_TRY(tn_path_join(dir, "model.json", path, err));
    TN_TRY(tn_file_read_all(path, MODEL_BYTES_MAX, &v->model, err));
    TN_TRY(TN_ALLOC(v->hand, opts->hands, "scorers", err));
    v->n_hands = opts->hands;
    for (uint32_t i = 0; i < v->n_hands; i++) {
        TN_TRY(open_hand(v, &v->hand[i], err));
        TN_TRY(warm(v, &v->hand[i], err));
    }
    return TN_OK;
}

tn_status tn_served_open(tn_served **out, const char *dir, const tn_served_opts *opts,
                         tn_error *err)
{
    tn_served *v = NULL;
    *out = NULL;
    TN_TRY(TN_ALLOC(v, 1, "a model", err));
    (void)pthread_mutex_init(&v->lock, NULL);
    const tn_status status = open_all(v, dir, opts, err);
    if (status != TN_OK) {
        tn_served_close(v);
        return status;
    }
    *out = v;
    return TN_OK;
}

static void close_hand(tn_served_hand *hand)
{
    tn_scorer_free(hand->scorer);
    for (uint32_t i = 0; i < READERS; i++) {
        tn_rows_free(hand->rows[i]);
    }
    for (uint32_t k = 0; k < TN_TASKS_MAX; k++) {
        tn_free(hand->score[k]);
    }
    tn_rows_free(hand->context);
    tn_free(hand->shared);
    tn_free(hand->head.column);
    tn_text_done(&hand->record);
}

void tn_served_close(tn_served *v)
{
    if (v == NULL) {
        return;
    }
    for (uint32_t i = 0; i < v->n_hands; i++) {
        close_hand(&v->hand[i]);
    }
    for (uint32_t i = 0; i < READERS; i++) {
        free_reader(atomic_load(&v->reader[i]));
    }
    tn_exported_model_close(v->exported);
    tn_free(v->hand);
    tn_text_done(&v->model);
    (void)pthread_mutex_destroy(&v->lock);
    tn_free(v);
}

const tn_exported_model *tn_served_exported(const tn_served *v)
{
    return v->exported;
}

const char *tn_served_version(const tn_served *v)
{
    return v->exported->model_id;
}

tn_served_hand *tn_served_hand_of(tn_served *v, uint32_t worker)
{
    TN_ASSERT(worker < v->n_hands);
    return &v->hand[worker];
}
