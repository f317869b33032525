/* import.c - lists the columns of a dump, reads rows by them and dense parameters into a worker. */
#include "train/begin/import.h"

#include "base/file/safetensors.h"
#include "base/math/key.h"
#include "dict/dictwrite.h"
#include "nn/graph/params.h"
#include "ps/shard/dense.h"
#include "train/begin/begun.h"
#include "train/begin/incoming_row.h"
#include "train/begin/warm_start.h"
#include "train/begin/weight_source.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <stdio.h>
#include <string.h>

/* ---- the columns of a dump ---- */

typedef struct making {
    tn_row_columns *out;
    tn_arena *arena;
    bool states;
} making;

static const char *dotted(tn_arena *arena, const char *segment, const char *state)
{
    size_t size = strlen(segment) + strlen(state) + 2;
    char *name = TN_NEW_ARRAY(arena, char, size);
    (void)snprintf(name, size, "%s.%s", segment, state);
    return name;
}

/* The column called `name`, made when it is not there yet. */
static tn_status column_of(making *m, const char *name, bool whole, uint32_t *out, tn_error *err)
{
    tn_row_columns *c = m->out;
    uint32_t i = 0;
    while (i < c->n && strcmp(c->column[i].name, name) != 0) {
        i++;
    }
    if (i == TN_DUMP_COLUMNS_MAX) {
        return tn_fail(err, TN_E_LIMIT, "more than %d columns in a dump", TN_DUMP_COLUMNS_MAX);
    }
    if (i == c->n) {
        c->column[c->n++] = (tn_dump_column){name, whole};
    }
    TN_ASSERT(c->column[i].whole == whole);
    *out = i;
    return TN_OK;
}

/* The segment's number in a record; false: it has none of that name. */
static bool find_segment(const tn_record *record, const char *name, uint32_t *out)
{
    for (uint32_t s = 0; s < record->n_segments; s++) {
        if (strcmp(record->segment[s].name, name) == 0) {
            *out = s;
            return true;
        }
    }
    return false;
}

/* Columns that a segment has in one record. `place` NULL: only counts them in. */
static tn_status add_segment(making *m, uint32_t record, uint32_t s, tn_row_place *place,
                             tn_error *err)
{
    const tn_segment *segment = &m->out->layout->record[record].segment[s];
    tn_place_in_row in = tn_table_place(m->out->table, record, s);
    const uint32_t waiting = tn_table_place_waiting(m->out->table, record, s);
    uint32_t weights = 0;
    uint32_t column = 0;
    TN_ASSERT(in.n_states <= TN_STATES_MAX);
    TN_TRY(column_of(m, segment->name, false, &weights, err));
    m->out->weights[weights] = weights;
    if (place != NULL) {
        place[weights] = (tn_row_place){in.w, segment->dim, waiting, s, TN_STATES_MAX};
    }
    for (uint32_t i = 0; m->states && i < in.n_states; i++) {
        const tn_state *state = &in.spec[i];
        const char *name = dotted(m->arena, segment->name, state->name);
        TN_TRY(column_of(m, name, state->count, &column, err));
        m->out->weights[column] = weights;
        if (place != NULL) {
            uint32_t n = state->per_row || state->count ? 1 : segment->dim;
            place[column] = (tn_row_place){in.state[i], n, waiting + in.state[i] - in.w, s, i};
        }
    }
    return TN_OK;
}

/* Adds columns of segment `name` in all records, so that states follow their segment. */
static tn_status add_columns(making *m, const char *name, tn_error *err)
{
    const tn_layout *layout = m->out->layout;
    uint32_t s = 0;
    for (uint32_t r = 0; r < layout->n_records; r++) {
        if (find_segment(&layout->record[r], name, &s)) {
            TN_TRY(add_segment(m, r, s, NULL, err));
        }
    }
    return TN_OK;
}

static tn_status place_columns(making *m, uint32_t record, tn_error *err)
{
    tn_row_columns *c = m->out;
    const uint32_t n = c->n;
    for (uint32_t s = 0; s < c->layout->record[record].n_segments; s++) {
        TN_TRY(add_segment(m, record, s, c->place + (size_t)record * c->n, err));
    }
    TN_ASSERT(c->n == n); /* all were found before */
    for (uint32_t i = 0; i < n; i++) {
        const tn_row_place *p = &c->place[(size_t)record * n + i];
        c->floats[record] = p->at + p->n > c->floats[record] ? p->at + p->n : c->floats[record];
    }
    return TN_OK;
}

tn_status tn_row_columns_new(const tn_row_columns **out, const tn_table *table,
                             const tn_layout *layout, bool states, tn_arena *arena, tn_error *err)
{
    tn_row_columns *c = TN_NEW(arena, tn_row_columns);
    *c = (tn_row_columns){.layout = layout, .table = table};
    making m = {.out = c, .arena = arena, .states = states};
    const char *names[TN_SEGMENTS_MAX];
    uint32_t n_names = 0;
    TN_TRY(tn_dict_segments(layout, names, &n_names, err));
    for (uint32_t i = 0; i < n_names; i++) {
        TN_TRY(add_columns(&m, names[i], err));
    }
    c->place = TN_NEW_ARRAY(arena, tn_row_place, (size_t)layout->n_records * c->n);
    c->floats = TN_NEW_ARRAY(arena, uint32_t, layout->n_records);
    for (uint32_t r = 0; r < layout->n_records; r++) {
        TN_TRY(place_columns(&m, r, err));
    }
    *out = c;
    return TN_OK;
}

/* ---- names that do not fit ---- */

enum { MISFITS_SHOWN = 12 };

/* Names that do not fit, up to MISFITS_SHOWN of them, for one message. */
typedef struct misfits {
    tn_text text;
    uint32_t n;
} misfits;

/* `what` is a few words before the name: "no column". */
static void add_misfit(misfits *m, const char *what, const char *name)
{
    if (m->n++ < MISFITS_SHOWN) {
        tn_text_adds(&m->text, m->n == 1 ? "" : "; ");
        tn_text_addf(&m->text, "%s '%s'", what, name);
    }
}

/* TN_OK when there are none. The list is empty then. */
static tn_status misfits_fail(misfits *m, const char *path, tn_error *err)
{
    tn_status status = TN_OK;
    if (m->n > 0) {
        status = tn_fail(err, TN_E_CKPT, "'%s' does not fit the model: %s%s", path,
                         tn_text_str(&m->text), m->n > MISFITS_SHOWN ? "; and more" : "");
    }
    tn_text_done(&m->text);
    return status;
}

/* ---- rows: which column is which, and what a row lacks ---- */

typedef struct rows_job {
    const char *path;
    tn_worker *w;
    const tn_row_columns *columns;
    tn_dump *dump;
    uint32_t *file_column; /* per column of ours: that of the file, or NOWHERE */
    bool *fresh;           /* per column: the file has no states of this segment */
    tn_incoming row;
} rows_job;

#define NOWHERE UINT32_MAX

static uint32_t find_column(const tn_dump_head *head, const char *name)
{
    for (uint32_t i = 0; i < head->n; i++) {
        if (strcmp(head->column[i].name, name) == 0) {
            return i;
        }
    }
    return NOWHERE;
}

/* A segment whose states the file does not hold at all starts fresh; some of them are a misfit. */
static tn_status match_columns(rows_job *j, tn_arena *arena, tn_error *err)
{
    const tn_row_columns *c = j->columns;
    const tn_dump_head *head = tn_dump_head_of(j->dump);
    uint32_t *have = TN_NEW_ARRAY(arena, uint32_t, c->n); /* states of the segment */
    misfits m = {0};
    for (uint32_t i = 0; i < c->n; i++) {
        const bool is_weights = c->weights[i] == i;
        const uint32_t k = find_column(head, c->column[i].name);
        j->file_column[i] = k;
        if (k == NOWHERE && is_weights) {
            add_misfit(&m, "no column", c->column[i].name);
        } else if (k != NOWHERE && c->column[i].whole) {
            tn_dump_set_whole(j->dump, k);
        }
        have[c->weights[i]] += k != NOWHERE && !is_weights;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        j->fresh[i] = have[c->weights[i]] == 0;
        if (c->weights[i] != i && !j->fresh[i] && j->file_column[i] == NOWHERE) {
            add_misfit(&m, "no column", c->column[i].name);
        }
    }
    for (uint32_t k = 0; k < head->n; k++) {
        uint32_t i = 0;
        while (i < c->n && strcmp(c->column[i].name, head->column[k].name) != 0) {
            i++;
        }
        if (i == c->n) {
            add_misfit(&m, "nothing takes column", head->column[k].name);
        }
    }
    return misfits_fail(&m, j->path, err);
}

static tn_status bad_row(const rows_job *j, const char *what, const char *name, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "%s:%llu: error: %s '%s'", j->path,
                   (unsigned long long)tn_dump_line(j->dump), what, name);
}

static uint32_t find_group(const tn_layout *layout, const char *name)
{
    uint32_t g = 0;
    while (g < layout->n_groups && strcmp(layout->group[g].name, name) != 0) {
        g++;
    }
    return g;
}

static tn_status take_column(const rows_job *j, const tn_dump_row *row, uint32_t group,
                             uint32_t column, tn_error *err)
{
    const tn_row_place *p = tn_row_place_of(j->columns, group, column);
    uint32_t k = j->file_column[column];
    if (k == NOWHERE) {
        return TN_OK; /* states that start fresh */
    }
    const tn_dump_value *v = &row->value[k];
    if (v->n != p->n && !(v->n == 0 && p->n > 0)) {
        return bad_row(j, "another number of values than the model has in",
                       j->columns->column[column].name, err);
    }
    if (v->n > 0) {
        memcpy(j->row.data + p->at, v->at, v->n * sizeof *v->at);
    }
    return TN_OK;
}

/* A state that the file has not for a segment whose weights are there. */
static bool lacks_states(const rows_job *j, const tn_dump_row *row, uint32_t group,
                         uint32_t weights)
{
    TN_ASSERT(weights < j->columns->n && j->file_column[weights] != NOWHERE);
    const tn_row_columns *c = j->columns;
    const tn_row_place *w = tn_row_place_of(c, group, weights);
    if (j->fresh[weights] || row->value[j->file_column[weights]].n == 0) {
        return true;
    }
    for (uint32_t i = 0; i < c->n; i++) {
        const tn_row_place *p = tn_row_place_of(c, group, i);
        if (p->n > 0 && p->segment == w->segment && p->state != TN_STATES_MAX &&
            row->value[j->file_column[i]].n == 0) {
            return true;
        }
    }
    return false;
}

static tn_status take_row(rows_job *j, const tn_dump_row *row, tn_error *err)
{
    const tn_row_columns *c = j->columns;
    uint32_t group = find_group(c->layout, row->group);
    if (group == c->layout->n_groups) {
        return bad_row(j, "the model has no group", row->group, err);
    }
    const bool waits = tn_record_of(c->layout, group)->waits != 0;
    uint16_t present = 0;
    tn_incoming_begin(&j->row, group);
    for (uint32_t i = 0; i < c->n; i++) {
        TN_TRY(take_column(j, row, group, i, err));
    }
    for (uint32_t i = 0; i < c->n; i++) {
        const tn_row_place *p = tn_row_place_of(c, group, i);
        if (p->n > 0 && p->state == TN_STATES_MAX) {
            const bool there = !waits || row->value[j->file_column[i]].n > 0;
            present |= (uint16_t)((uint32_t)there << p->segment);
            if (lacks_states(j, row, group, i)) {
                tn_incoming_fresh(&j->row, group, p->segment);
            }
        }
    }
    tn_row_view view = {
        .key = tn_key_of(row->sign, c->layout->group[group].salt),
        .group = (uint16_t)group,
        .present = present,
        .last_seen = row->last_seen,
        .show = row->show,
        .click = row->click,
    };
    return tn_incoming_put(&j->row, &view, err);
}

static tn_status read_rows(rows_job *j, tn_arena *arena, tn_error *err)
{
    const tn_layout *layout = j->w->plan->layout;
    TN_TRY(tn_row_columns_new(&j->columns, j->w->shard.table, layout, true, arena, err));
    TN_TRY(tn_dump_open(&j->dump, j->path, err));
    j->file_column = TN_NEW_ARRAY(arena, uint32_t, j->columns->n);
    j->fresh = TN_NEW_ARRAY(arena, bool, j->columns->n);
    TN_TRY(tn_incoming_open(&j->row, j->w, err));
    TN_TRY(match_columns(j, arena, err));
    const tn_dump_row *row = NULL;
    tn_status status = TN_OK;
    while ((status = tn_dump_next(j->dump, &row, err)) == TN_OK) {
        TN_TRY(take_row(j, row, err));
    }
    return status == TN_END ? TN_OK : status;
}

static tn_status restore_rows(const char *path, tn_worker *w, tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    rows_job job = {.path = path, .w = w};
    tn_status status = read_rows(&job, arena, err);
    tn_dump_close(job.dump);
    tn_incoming_done(&job.row);
    tn_arena_free(arena);
    return status;
}

/* ---- dense ---- */

/* [1, n] may be written as [n]. */
static bool has_shape(const tn_tensor *t, const tn_param_slice *s)
{
    if (strcmp(t->dtype, "F32") != 0) {
        return false;
    }
    return (t->rank == 2 && t->shape[0] == s->rows && t->shape[1] == s->cols) ||
           (t->rank == 1 && s->rows == 1 && t->shape[0] == s->cols);
}

static tn_status match_tensors(const tn_safetensors *doc, tn_worker *w, const char *path,
                               tn_error *err)
{
    misfits m = {0};
    for (uint32_t i = 0; i < tn_params_count(w->params); i++) {
        const tn_param_slice *s = tn_params_get(w->params, i);
        const tn_tensor *t = tn_tensor_find(doc, s->name);
        if (t == NULL) {
            add_misfit(&m, "no tensor", s->name);
        } else if (!has_shape(t, s)) {
            add_misfit(&m, "another type or shape of", s->name);
        }
    }
    for (uint32_t k = 0; k < doc->n_tensors; k++) {
        if (tn_params_find(w->params, doc->tensor[k].name) == NULL) {
            add_misfit(&m, "nothing takes tensor", doc->tensor[k].name);
        }
    }
    return misfits_fail(&m, path, err);
}

static tn_status restore_dense(const char *path, tn_worker *w, tn_error *err)
{
    tn_map map = {0};
    TN_TRY(tn_map_file(&map, path, err));
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_safetensors doc;
    tn_status status = tn_safetensors_read(&doc, &map, arena, path, err);
    if (status == TN_OK) {
        status = match_tensors(&doc, w, path, err);
    }
    for (uint32_t i = 0; status == TN_OK && i < tn_params_count(w->params); i++) {
        const tn_param_slice *s = tn_params_get(w->params, i);
        const tn_tensor *t = tn_tensor_find(&doc, s->name);
        TN_ASSERT(t != NULL && t->size == (size_t)s->rows * s->cols * sizeof(float));
        memcpy(tn_params_weights(w->params) + s->at, t->data, t->size);
    }
    if (status == TN_OK) {
        tn_worker_keep_own(w);
        tn_dense_reset(w->shard.dense);
    }
    tn_arena_free(arena);
    tn_unmap(&map);
    return status;
}

/* The path in member `key`; NULL: not given. */
static tn_status path_of(const tn_tree *from, const char *key, const char **out, tn_error *err)
{
    const tn_tree *value = tn_tree_get(from, key);
    *out = NULL;
    if (tn_tree_is_null(value)) {
        return TN_OK;
    }
    if (value->kind != TN_TREE_SCALAR) {
        return tn_fail(err, TN_E_CONFIG, "checkpoint.from.%s is not a path", key);
    }
    if (strcmp(value->text, "all") == 0 || strcmp(value->text, "none") == 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "checkpoint.from.%s is '%s', and there is no checkpoint.from.path to take "
                       "them from",
                       key, value->text);
    }
    if (!tn_path_exists(value->text) || tn_path_is_dir(value->text)) {
        return tn_fail(err, TN_E_CKPT, "checkpoint.from.%s: there is no file '%s'", key,
                       value->text);
    }
    *out = value->text;
    return TN_OK;
}

/* {rows: dict.tsv, dense: x.safetensors}. */
static tn_status take_files(const tn_tree *from, tn_worker *w, tn_begun *begun, tn_error *err)
{
    const char *rows = NULL;
    const char *dense = NULL;
    for (const tn_tree *t = from->first; t != NULL; t = t->next) {
        if (strcmp(t->key, "rows") != 0 && strcmp(t->key, "dense") != 0) {
            return tn_fail(err, TN_E_CONFIG,
                           "checkpoint.from has no '%s' without path, only rows and dense", t->key);
        }
    }
    TN_TRY(path_of(from, "rows", &rows, err));
    TN_TRY(path_of(from, "dense", &dense, err));
    if (dense != NULL) {
        TN_TRY(restore_dense(dense, w, err));
        tn_begun_add(begun, "dense", "all", TN_BEGUN_TAKEN, "'%s'", dense);
    }
    if (rows != NULL) {
        TN_TRY(restore_rows(rows, w, err));
        tn_begun_add(begun, "rows", "all", TN_BEGUN_TAKEN, "'%s'", rows);
    }
    if (begun != NULL) {
        tn_text_adds(&begun->from, "files");
    }
    return TN_OK;
}

#define TN_WEIGHT_SOURCE(name) extern const tn_weight_source tn_weight_source_##name;
#include "train/begin/weight_sources.def"
#undef TN_WEIGHT_SOURCE

const tn_weight_source *const tn_all_weight_sources[] = {
#define TN_WEIGHT_SOURCE(name) &tn_weight_source_##name,
#include "train/begin/weight_sources.def"
#undef TN_WEIGHT_SOURCE
    NULL,
};

/* Fails with all that checkpoint.from may be. */
static tn_status fail_kind(tn_error *err)
{
    tn_text kinds = {0};
    for (const tn_weight_source *const *s = tn_all_weight_sources; *s != NULL; s++) {
        tn_text_addf(&kinds, ", {%s: %s}", (*s)->key, (*s)->value);
    }
    const tn_status status =
        tn_fail(err, TN_E_CONFIG,
                "checkpoint.from is not a path, {path: ..}%s nor {rows: FILE, dense: FILE}",
                tn_text_str(&kinds));
    tn_text_done(&kinds);
    return status;
}

tn_status tn_import(const tn_tree *from, tn_worker *w, tn_begun *begun, tn_error *err)
{
    if (from->kind == TN_TREE_SCALAR || tn_tree_get(from, "path") != NULL) {
        return tn_warm_start(from, w, begun, err);
    }
    if (from->kind != TN_TREE_MAP) {
        return fail_kind(err);
    }
    for (const tn_weight_source *const *s = tn_all_weight_sources; *s != NULL; s++) {
        if (tn_tree_get(from, (*s)->key) != NULL) {
            return (*s)->take(from, w, begun, err);
        }
    }
    return take_files(from, w, begun, err);
}
