/* model_build.c - makes schema, inputs and first values of what model.json says: every name, number
 * and width is checked before anything is built from it. */
#include "config/field.h"
#include "config/fieldjson.h"
#include "config/tree.h"
#include "io/format/format.h"
#include "io/read/schema_inference.h"
#include "io/schema/schema.h"
#include "nn/graph/embed.h"
#include "serve/exported_model.h"
#include "serve/model_json.h"

#include <string.h>

enum {
    VALUE_BYTES = sizeof(tn_tree) + 64, /* a JSON value: its tree, a number, part of an input */
    LEVELS = 4,                         /* levels of trees of the section `data` */
    OPTIONS_BYTES = 8192,               /* defaults of a table of options, as trees, twice */
    SLOT_BYTES = OPTIONS_BYTES + sizeof(tn_slot_opts) + sizeof(tn_slot_spec) +
                 sizeof(tn_exported_group) + TN_LN2_SMALL + 256,
};

typedef struct reading {
    tn_exported_model *b;
    const tn_model_json *model;
    const tn_tree *data;
    bool judges;
    tn_target target; /* target of the caller, if it judges */
    bool labels;
    const tn_data_opts *tasks;
    const char *what;
    tn_slot_opts *opts;   /* all slots, then all numbers */
    const tn_tree **tree; /* JSON of each of them, as a tree */
    tn_pool *pool;        /* per slot */
    uint32_t *pool_k;
    uint32_t n_slots;
    tn_error *err;
} reading;

static tn_status bad(const reading *r, const char *fault, const char *subject)
{
    return tn_fail(r->err, TN_E_CKPT, "'%s': %s '%s'", r->what, fault,
                   subject != NULL ? subject : "?");
}

/* ---- slots and numbers ---- */

static void put_text(const reading *r, tn_tree *map, const char *key, const char *text)
{
    tn_arena *arena = r->b->arena;
    tn_tree_put(arena, map, key, tn_tree_scalar(arena, text, map->at));
}

/* Reads one object of "slots" or "numeric" as the options of a slot. */
static tn_status read_spec(reading *r, const tn_json *object, bool numeric, uint32_t i)
{
    const char *name = tn_json_as_str(tn_json_get(object, "name"));
    const char *group = tn_json_as_str(tn_json_get(object, "group"));
    if (name == NULL || (!numeric && group == NULL)) {
        return bad(r, "a slot without name or group", name);
    }
    tn_tree *map = tn_json_tree(r->b->arena, object, r->what);
    if (numeric) {
        put_text(r, map, "as", "value");
    } else {
        put_text(r, map, "share", group);
    }
    const tn_binder b = {.arena = r->b->arena, .diag = &r->b->diag, .path = name};
    tn_fields_bind_some(&b, tn_slot_fields, map, &r->opts[i]);
    r->tree[i] = map;
    if (numeric) {
        return TN_OK;
    }
    const char *pool = tn_json_as_str(tn_json_get(object, "pool"));
    if (pool == NULL || !tn_pool_read(pool, &r->pool[i], &r->pool_k[i])) {
        return bad(r, "a slot with an unknown pool", pool);
    }
    return TN_OK;
}

static uint32_t items_in(const tn_json *list)
{
    return list != NULL && list->kind == TN_JSON_LIST ? list->n : 0;
}

/* Returns how records are written: as the training data, with the options of the caller laid
 * over. */
static const tn_tree *source_of(const reading *r, const tn_tree *over)
{
    tn_arena *arena = r->b->arena;
    const tn_json *source = r->model->source.json;
    const tn_origin at = {.source = r->what};
    tn_tree *map = source != NULL && source->kind == TN_JSON_OBJECT
                       ? tn_json_tree(arena, source, r->what)
                       : tn_tree_new(arena, TN_TREE_MAP, at);
    if (tn_tree_get(map, "format") == NULL) {
        tn_tree_put(arena, map, "format", tn_tree_scalar(arena, "csv", at));
    }
    return over != NULL ? tn_tree_merge(arena, map, over) : map;
}

/* Returns whether a word of the caller may give rows another meaning than the model's. Who only
 * scores has files of his own, and no use for labels. */
static bool is_compared(const reading *r, const tn_field *f, const tn_data_opts *own)
{
    const tn_data_opts *now = &r->b->data;
    const bool same_format = strcmp(now->format, own->format) == 0;
    const bool unlabelled = tn_label_is_none(now->label);
    if (tn_tree_get(r->data, f->key) == NULL || f->meaning == TN_MEANS_UNSAID) {
        return false;
    }
    if (f->meaning == TN_MEANS_KEY) {
        return same_format || tn_format_reads(tn_format_find(now->format)->data_options, f->key);
    }
    const bool columns =
        strcmp(f->key, "columns") != 0 || (now->columns.n > 0 && own->columns.n > 0 && !unlabelled);
    return r->judges && same_format &&
           ((f->meaning == TN_MEANS_PLACE && columns) ||
            (strcmp(f->key, "label") == 0 && !unlabelled && r->target == now->target));
}

static void check_words(const reading *r, const tn_data_opts *own)
{
    tn_data_opts now = r->b->data;
    tn_data_opts was = *own;
    now.label = tn_label_words(r->b->arena, now.label);
    was.label = tn_label_words(r->b->arena, was.label);
    for (const tn_field *f = tn_data_fields; f->kind != TN_KIND_END; f++) {
        tn_text here = {0};
        tn_text there = {0};
        if (is_compared(r, f, own)) {
            tn_field_value_text(&here, f, &now);
            tn_field_value_text(&there, f, &was);
        }
        if (strcmp(tn_text_str(&here), tn_text_str(&there)) != 0) {
            const tn_tree *at = tn_tree_get(r->data, f->key);
            tn_diag_error(&r->b->diag, &at->at,
                          "'data.%s' is %s, and the model has learned with %s", f->key,
                          tn_text_str(&here), tn_text_str(&there));
        }
        tn_text_done(&here);
        tn_text_done(&there);
    }
}

/* Adds a column beside rows, if it has a name. */
static uint32_t add_aside(tn_tasks *tasks, tn_aside *aside, tn_aside wanted)
{
    if (wanted.column == NULL) {
        return TN_NO_ASIDE;
    }
    TN_ASSERT(tasks->n_aside < 2 * TN_TASKS_MAX);
    aside[tasks->n_aside] = wanted;
    return tasks->n_aside++;
}

/* Reads how the export's own tasks are labelled. */
static tn_status read_sources(reading *r, const tn_binder *b, tn_tasks *tasks, tn_aside *aside)
{
    for (uint32_t k = 0; k < r->model->n_tasks; k++) {
        const tn_model_task *t = &r->model->task[k];
        tn_task_source source = {0};
        if (t->source.json == NULL) { /* the export is older */
            tasks->n = 0;
            return TN_OK;
        }
        tn_fields_bind_some(b, tn_task_source_fields,
                            tn_json_tree(b->arena, t->source.json, r->what), &source);
        tn_task *to = &tasks->task[k];
        const tn_tree *column = source.label != NULL && source.label->kind == TN_TREE_MAP
                                    ? tn_tree_get(source.label, "column")
                                    : source.label;
        const char *label = column != NULL ? column->text : NULL;
        to->where = source.where != NULL
                        ? tn_tasks_find(r->b->tasks, source.where, strlen(source.where))
                        : TN_NO_TASK;
        to->label = k == 0 ? TN_NO_ASIDE
                           : add_aside(tasks, aside, (tn_aside){label, source.label, t->target});
        to->weight_column = add_aside(tasks, aside, (tn_aside){.column = source.weight});
    }
    return TN_OK;
}

/* Sets which labels of tasks are read. */
static tn_status read_labels(reading *r, const tn_binder *b)
{
    tn_exported_model *m = r->b;
    const tn_tasks *given = r->tasks != NULL ? r->tasks->tasks : NULL;
    m->data.tasks = NULL;
    if (given != NULL && given->n > 0) {
        bool same = given->n == m->tasks->n;
        for (uint32_t k = 0; k < given->n && same; k++) {
            same = strcmp(given->task[k].name, m->tasks->task[k].name) == 0;
        }
        m->data.tasks = given;
        m->data.aside = r->tasks->aside;
        return same ? TN_OK
                    : tn_fail(r->err, TN_E_CONFIG, "'%s' has other tasks than the configuration",
                              r->what);
    }
    if (!r->labels || m->tasks->n == 0 || tn_label_is_none(m->data.label)) {
        return TN_OK;
    }
    tn_tasks *own = TN_NEW(b->arena, tn_tasks);
    tn_aside *aside = TN_NEW_ARRAY(b->arena, tn_aside, (size_t)2 * TN_TASKS_MAX);
    *own = *m->tasks;
    TN_TRY(read_sources(r, b, own, aside));
    m->data.tasks = own->n > 0 ? own : NULL;
    m->data.aside = aside;
    m->data.aside_optional = true;
    return TN_OK;
}

static tn_status make_schema(reading *r, uint32_t n)
{
    tn_exported_model *b = r->b;
    const tn_binder binder = {.arena = b->arena, .diag = &b->diag};
    tn_status status = TN_OK;
    tn_status fault = b->diag.n_errors > 0 || r->data == NULL ? TN_E_CKPT : TN_E_CONFIG;
    tn_fields_bind_some(&binder, tn_data_fields, source_of(r, r->data), &b->data);
    b->data.target = r->model->output[0].target;
    TN_TRY(read_labels(r, &binder));
    if (r->data != NULL) {
        const tn_binder given = {.arena = b->arena, .diag = &b->diag, .path = "data"};
        tn_format_check_data(&given, r->data, &b->data);
        tn_data_opts own;
        tn_fields_bind_some(&binder, tn_data_fields, source_of(r, NULL), &own);
        if (b->diag.n_errors == 0) {
            b->data.index_base =
                b->data.index_base == TN_AUTO ? own.index_base : b->data.index_base;
            check_words(r, &own);
        }
    }
    if (b->diag.n_errors == 0) {
        b->data.index_base = b->data.index_base == TN_AUTO ? 0 : b->data.index_base;
        const tn_tables slots = {.n = n, .item = r->opts, .tree = r->tree};
        status = tn_schema_new(&b->schema, &b->data, &slots, &binder, r->err);
    }
    if (b->diag.n_errors > 0) {
        return tn_fail(r->err, fault, "'%s': %.1200s", r->what, tn_text_str(&b->diag.text));
    }
    return status;
}

static tn_status read_slots(reading *r)
{
    const tn_json *slots = r->model->slots.json;
    const tn_json *numeric = r->model->numeric.json;
    uint32_t n_slots = items_in(slots);
    uint32_t n = n_slots + items_in(numeric);
    if (n_slots > TN_SLOTS_MAX || n > TN_COLUMNS_MAX || n == 0) {
        return bad(r, "no or too many slots in", "slots");
    }
    r->n_slots = n_slots;
    r->opts = TN_NEW_ARRAY(r->b->arena, tn_slot_opts, n);
    r->tree = TN_NEW_ARRAY(r->b->arena, const tn_tree *, n);
    r->pool = TN_NEW_ARRAY(r->b->arena, tn_pool, n);
    r->pool_k = TN_NEW_ARRAY(r->b->arena, uint32_t, n);
    uint32_t i = 0;
    for (const tn_json *s = n_slots > 0 ? slots->first : NULL; s != NULL; s = s->next) {
        TN_TRY(read_spec(r, s, false, i++));
    }
    for (const tn_json *s = n > n_slots ? numeric->first : NULL; s != NULL; s = s->next) {
        TN_TRY(read_spec(r, s, true, i++));
    }
    TN_TRY(make_schema(r, n));
    if (r->b->schema->n_slots != n_slots) {
        return bad(r, "a number among", "slots");
    }
    return TN_OK;
}

/* ---- inputs ---- */

static const char prefix[] = "in."; /* begins the name of an input of slots */

static uint32_t find_slot(const reading *r, const char *name)
{
    uint32_t i = 0;
    while (i < r->n_slots && strcmp(r->b->schema->slot[i]->name, name) != 0) {
        i++;
    }
    return i;
}

/* Returns the segment of a group's record, added when it is new. NULL: it does not fit. */
static const tn_segment *add_segment(tn_record *record, const char *name, uint32_t dim)
{
    uint32_t s = 0;
    while (s < record->n_segments && strcmp(record->segment[s].name, name) != 0) {
        s++;
    }
    if (s == TN_SEGMENTS_MAX || (s < record->n_segments && record->segment[s].dim != dim)) {
        return NULL;
    }
    if (s == record->n_segments) {
        record->segment[record->n_segments++] =
            (tn_segment){.name = name, .at = record->width, .dim = dim};
        record->width += dim;
    }
    return &record->segment[s];
}

static tn_status read_columns(reading *r, const tn_model_json_input *in, uint32_t i, uint32_t *col,
                              tn_embed_slot *out)
{
    const tn_model_columns *part = &in->from[i];
    const char *segment = in->segment != NULL ? in->segment : in->name + sizeof prefix - 1;
    const uint32_t slot = find_slot(r, part->slot);
    if (slot == r->n_slots || part->first != *col) {
        return bad(r, "columns that do not add up in input", in->name);
    }
    TN_ASSERT(r->pool != NULL);
    const tn_pool pool = in->mean ? TN_POOL_MEAN : in->max_len > 0 ? TN_POOL_SUM : r->pool[slot];
    uint32_t items = pool == TN_POOL_CONCAT ? r->pool_k[slot] : 1;
    uint32_t dim = part->cols / items;
    if (part->cols % items != 0 || dim > TN_DIM_MAX) {
        return bad(r, "a width that does not fit the pooling in input", in->name);
    }
    const tn_slot_spec *spec = r->b->schema->slot[slot];
    const tn_segment *s = add_segment(&r->b->group[spec->group].record, segment, dim);
    if (s == NULL) {
        return bad(r, "two widths of one segment, or too many, in input", in->name);
    }
    r->b->used[slot] = true;
    *col += part->cols;
    *out =
        (tn_embed_slot){.name = spec->name, .slot = slot, .segment = s, .pool = pool, .k = items};
    return TN_OK;
}

static bool has_slot(const tn_embed_slot *list, uint32_t n, uint32_t slot)
{
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].slot == slot) {
            return true;
        }
    }
    return false;
}

/* Returns whether rows have lists of one length, at most `max_len`, for both slots. */
static bool is_of_sequence(const reading *r, uint32_t first, uint32_t slot, uint32_t max_len)
{
    const tn_slot_spec *a = r->b->schema->slot[first];
    const tn_slot_spec *b = r->b->schema->slot[slot];
    return a->sequence != NULL && b->sequence != NULL && strcmp(a->sequence, b->sequence) == 0 &&
           b->max_len > 0 && b->max_len <= max_len && a->max_len == b->max_len;
}

static tn_status read_embed(reading *r, const tn_model_json_input *in, tn_exported_input *out)
{
    if (strncmp(in->name, prefix, sizeof prefix - 1) != 0 || in->name[sizeof prefix - 1] == '\0' ||
        in->n == 0) {
        return bad(r, "no slots, or a name that does not begin with 'in.', in input", in->name);
    }
    tn_embed_slot *slot = TN_NEW_ARRAY(r->b->arena, tn_embed_slot, in->n);
    uint32_t col = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        TN_TRY(read_columns(r, in, i, &col, &slot[i]));
        if (has_slot(slot, i, slot[i].slot)) {
            return bad(r, "a slot stands twice in input", in->name);
        }
        if (in->max_len > 0 && !is_of_sequence(r, slot[0].slot, slot[i].slot, in->max_len)) {
            return bad(r, "positions of slots that are no sequence in input", in->name);
        }
    }
    out->max_len = in->max_len;
    out->slot = slot;
    out->n = in->n;
    return col == in->cols ? TN_OK : bad(r, "columns that do not add up in input", in->name);
}

static tn_status read_inputs(reading *r)
{
    tn_exported_model *b = r->b;
    const tn_model_json *m = r->model;
    if (m->n_inputs == 0) {
        return bad(r, "no", "inputs");
    }
    b->input = TN_NEW_ARRAY(b->arena, tn_exported_input, m->n_inputs);
    b->group = TN_NEW_ARRAY(b->arena, tn_exported_group, (size_t)b->schema->n_groups + 1);
    b->used = TN_NEW_ARRAY(b->arena, bool, (size_t)b->schema->n_slots + 1);
    for (; b->n_inputs < m->n_inputs; b->n_inputs++) {
        const tn_model_json_input *in = &m->input[b->n_inputs];
        tn_exported_input *out = &b->input[b->n_inputs];
        *out = (tn_exported_input){
            .name = in->name, .numeric = !in->embeds, .cols = in->cols, .first = in->first};
        for (uint32_t i = 0; i < b->n_inputs; i++) {
            if (strcmp(b->input[i].name, in->name) == 0) {
                return bad(r, "two inputs are called", in->name);
            }
        }
        if (in->embeds) {
            TN_TRY(read_embed(r, in, out));
        } else if (in->first > b->schema->n_numeric ||
                   in->cols > b->schema->n_numeric - in->first) {
            return bad(r, "columns that 'numeric' has not in input", in->name);
        }
    }
    return TN_OK;
}

/* ---- first values of keys without a row ---- */

static tn_status read_first(const reading *r, const tn_model_first *first)
{
    const tn_exported_model *b = r->b;
    uint32_t g = 0;
    while (g < b->schema->n_groups && strcmp(b->schema->group[g].name, first->group) != 0) {
        g++;
    }
    if (g == b->schema->n_groups) {
        return bad(r, "no slot has the group of a rule of 'init',", first->group);
    }
    tn_exported_group *group = &b->group[g];
    group->missing_init = true;
    for (uint32_t s = 0; s < group->record.n_segments; s++) {
        if (strcmp(group->record.segment[s].name, first->segment) == 0) {
            group->init[s] = first->init;
        }
    }
    return TN_OK;
}

/* ---- tasks ---- */

/* Labels are not read: where one is a share it has a node, which of which is not said. */
static void read_tasks(tn_exported_model *b, const tn_model_json *model)
{
    tn_tasks *tasks = TN_NEW(b->arena, tn_tasks);
    for (uint32_t k = 0; k < model->n_tasks; k++) {
        const tn_model_task *t = &model->task[k];
        b->task[k] = (tn_exported_task){.score = t->score,
                                        .given = t->given,
                                        .calibration =
                                            k == 0 ? model->output[0].calibration : t->calibration};
        tasks->task[k] = (tn_task){.name = t->name,
                                   .target = t->target,
                                   .of = t->given != NULL ? 0 : TN_NO_TASK,
                                   .where = TN_NO_TASK,
                                   .label = TN_NO_ASIDE,
                                   .weight_column = TN_NO_ASIDE};
    }
    tasks->n = model->n_tasks;
    b->tasks = tasks;
}

/* ---- all of it ---- */

static size_t count_tree(const tn_tree *tree)
{
    size_t n = 1;
    for (const tn_tree *t = tree->first; t != NULL; t = t->next) {
        n += count_tree(t);
    }
    return n;
}

static size_t count_values(const tn_json *value)
{
    size_t n = 1;
    for (const tn_json *v = value->first; v != NULL; v = v->next) {
        n += count_values(v); /* the parser has bounded the depth */
    }
    return n;
}

/* Reserves the arena's memory at once for all that is made of the model. */
static tn_status reserve(const reading *r)
{
    const tn_model_json *m = r->model;
    const tn_json *const raw[] = {m->slots.json, m->numeric.json, m->source.json};
    const size_t slots = (size_t)items_in(m->slots.json) + items_in(m->numeric.json);
    size_t values = m->n_inputs;
    size_t text = 0;
    for (size_t i = 0; i < sizeof raw / sizeof raw[0]; i++) {
        values += raw[i] != NULL ? count_values(raw[i]) : 0;
        text += raw[i] != NULL ? raw[i]->end - raw[i]->begin : 0;
    }
    size_t parts = 0;
    for (uint32_t i = 0; i < m->n_inputs; i++) {
        parts += m->input[i].n;
    }
    for (uint32_t k = 0; k < m->n_tasks && r->labels; k++) {
        values += m->task[k].source.json != NULL ? count_values(m->task[k].source.json) : 0;
    }
    size_t bytes = (values + parts) * VALUE_BYTES + (slots + 1) * SLOT_BYTES + 4 * text +
                   2 * sizeof(tn_tasks) +
                   2 * (size_t)TN_TASKS_MAX * (sizeof(tn_aside) + SLOT_BYTES);
    if (r->data != NULL) { /* laid over the model's, level by level */
        bytes += LEVELS * (values + count_tree(r->data)) * sizeof(tn_tree);
    }
    return tn_arena_reserve(r->b->arena, bytes, "a model", r->err);
}

tn_status tn_exported_model_read(tn_exported_model *b, const tn_model_json *model,
                                 const tn_exported_model_opts *opts, const char *what,
                                 tn_error *err)
{
    const tn_model_output *output = &model->output[0];
    reading r = {.b = b,
                 .model = model,
                 .data = opts->data,
                 .judges = opts->judges,
                 .target = opts->target,
                 .labels = opts->labels,
                 .tasks = opts->tasks,
                 .what = what,
                 .err = err};
    TN_ASSERT(model->n_outputs == 1);
    TN_TRY(reserve(&r));
    read_tasks(b, model);
    TN_TRY(read_slots(&r));
    TN_TRY(read_inputs(&r));
    for (uint32_t i = 0; i < model->n_first; i++) {
        TN_TRY(read_first(&r, &model->first[i]));
    }
    b->seed = model->seed;
    const bool clicks = output->target == TN_TARGET_CLICK;
    b->logit = clicks ? output->logit : output->score;
    b->pctr = clicks ? output->pctr : output->score;
    b->calibration = output->calibration;
    b->nodes = model->nodes.json;
    return TN_OK;
}
