/* scored_rows.c - writes and reads scored rows. Reading counts what rows hold, then places it.
 */
#include "cluster/train/scored_rows.h"

#include "base/core/arena.h"
#include "base/core/bytes.h"
#include "io/rows/rows.h"
#include "io/schema/schema.h"
#include "nn/graph/op.h"
#include "train/config/run.h"
#include "train/eval/node_files.h"

#include <math.h>
#include <string.h>

enum {
    FIXED = 40, /* bytes of a row in front of its id and keys, with those that count it */
    AT_SOURCE = 4,
    AT_PLACE = 8,
    AT_LOGIT = 16,
    AT_LABEL = 20,
    AT_WEIGHT = 24,
    AT_GROUP = 28,
    AT_UNKNOWN = 36,
};

/* Floats of a task, in their order; its weight is that of the row times the factor. */
enum { LABEL, FACTOR, SCORE, GIVEN, TASK_FLOATS, WEIGHT = TASK_FLOATS, TASK_COLUMNS };

#define WEIGHT_MAX 0x1p20F                    /* the most that readers take */
static const uint32_t sources_max = 10000000; /* likewise, of files */

tn_scored_form tn_scored_form_of(const tn_run *run, const tn_schema *schema, bool ids,
                                 tn_arena *arena)
{
    bool *slot = TN_NEW_ARRAY(arena, bool, (size_t)schema->n_slots + 1);
    for (uint32_t s = 0; s < schema->n_slots; s++) {
        slot[s] = tn_strs_has(&run->eval.slices, schema->slot[s]->name);
    }
    const tn_tasks *tasks = tn_tasks_count(schema->data->tasks) > 1 ? schema->data->tasks : NULL;
    return (tn_scored_form){.schema = schema, .slot = slot, .tasks = tasks, .ids = ids};
}

tn_status tn_scored_form_fetch(tn_scored_form *form, const tn_graph *graph, const tn_strs *nodes,
                               tn_arena *arena, tn_error *err)
{
    TN_ASSERT(form->n_nodes == 0 && form->width == 0);
    const tn_node **node = TN_NEW_ARRAY(arena, const tn_node *, (size_t)nodes->n + 1);
    uint32_t *cols = TN_NEW_ARRAY(arena, uint32_t, (size_t)nodes->n + 1);
    uint32_t width = 0;
    for (uint32_t i = 0; i < nodes->n; i++) {
        node[i] = tn_fetch_node(graph, nodes->item[i], err);
        if (node[i] == NULL) {
            return TN_E_CONFIG;
        }
        cols[i] = node[i]->shape.cols;
        width += cols[i];
    }
    form->n_nodes = nodes->n;
    form->node = node;
    form->cols = cols;
    form->width = width;
    return TN_OK;
}

/* ---- writing ---- */

static void add_values(const tn_scored_form *form, uint32_t row, tn_text *out)
{
    for (uint32_t i = 0; i < form->n_nodes; i++) {
        tn_text_add(out, tn_val_row(form->node[i], row), form->cols[i] * sizeof(float));
    }
}

static void add_keys(const tn_slot *slot, uint32_t row, tn_text *out)
{
    const uint32_t first = slot->offset[row];
    const uint32_t n = slot->offset[row + 1] - first;
    tn_text_add_u32le(out, n);
    if (n > 0) {
        tn_text_add(out, slot->key + first, n * sizeof *slot->key);
    }
}

static void add_id(const tn_batch *b, uint32_t row, tn_text *out)
{
    const uint32_t *at = b->id_offset;
    const uint32_t size = at != NULL ? at[row + 1] - at[row] : 0;
    tn_text_add_u32le(out, size);
    if (size > 0) {
        tn_text_add(out, b->id_text + at[row], size);
    }
}

/* Adds what a row is to each of several tasks. */
static void add_tasks(const tn_scored_form *form, const tn_scores *scores, uint32_t row,
                      tn_text *out)
{
    for (uint32_t k = 0; form->tasks != NULL && k < form->tasks->n; k++) {
        const tn_task_rows *is = &scores->batch->task[k];
        const float *given = scores->task->given[k];
        char values[TASK_FLOATS * sizeof(float)];
        tn_store_f32(values + LABEL * sizeof(float), is->label[row]);
        tn_store_f32(values + FACTOR * sizeof(float), is->factor[row]);
        tn_store_f32(values + SCORE * sizeof(float), scores->task->score[k][row]);
        tn_store_f32(values + GIVEN * sizeof(float), given != NULL ? given[row] : 0);
        tn_text_add(out, values, sizeof values);
    }
}

static void add_row(const tn_scored_form *form, const tn_scores *scores, uint32_t row, tn_text *out)
{
    const tn_batch *b = scores->batch;
    char fixed[FIXED] = {0};
    tn_store_u32(fixed + AT_SOURCE, b->source[row]);
    tn_store_u64(fixed + AT_PLACE, b->source_at[row]);
    tn_store_f32(fixed + AT_LOGIT, scores->logit[row]);
    tn_store_f32(fixed + AT_LABEL, b->label[row]);
    tn_store_f32(fixed + AT_WEIGHT, b->weight != NULL ? b->weight[row] : 1);
    tn_store_u64(fixed + AT_GROUP, b->group != NULL ? b->group[row] : TN_NO_GROUP);
    tn_store_u32(fixed + AT_UNKNOWN, scores->unknown != NULL ? scores->unknown[row] : 0);
    tn_text_add(out, fixed, sizeof fixed);
    add_tasks(form, scores, row, out);
    if (form->ids) {
        add_id(b, row, out);
    }
    add_values(form, scores->first + row, out);
    for (uint32_t s = 0; s < form->schema->n_slots; s++) {
        if (form->slot[s]) {
            add_keys(&b->slot[s], row, out);
        }
    }
}

tn_status tn_scored_add(const tn_scored_form *form, const tn_scores *scores, tn_text *out,
                        tn_error *err)
{
    TN_ASSERT(scores->batch->source != NULL);
    for (uint32_t row = 0; row < scores->batch->rows; row++) {
        const size_t before = out->size;
        add_row(form, scores, row, out);
        TN_TRY(tn_text_check(out, "scored rows", err));
        const size_t size = out->size - before;
        if (size > TN_SCORED_ROW_MAX) {
            return tn_fail(err, TN_E_LIMIT, "a scored row of %zu bytes, %d at most", size,
                           TN_SCORED_ROW_MAX);
        }
        TN_ASSERT(size >= FIXED); /* as tn_scored_fitting expects */
        tn_store_u32(out->data + before, (uint32_t)(size - sizeof(uint32_t)));
    }
    return TN_OK;
}

size_t tn_scored_fitting(const char *bytes, size_t size, size_t most)
{
    size_t fits = 0;
    while (fits < size) {
        const size_t row = sizeof(uint32_t) + tn_load_u32(bytes + fits);
        TN_ASSERT(row >= FIXED && row <= size - fits);
        if (fits > 0 && fits + row > most) {
            break;
        }
        fits += row;
    }
    return fits;
}

/* ---- reading ---- */

void tn_scored_rows_done(tn_scored_rows *r)
{
    tn_arena_free(r->arena);
    *r = (tn_scored_rows){.form = r->form, .scores.batch = &r->batch};
}

/* How much there is of what. */
typedef struct counts {
    size_t rows, id_bytes;
    size_t *key; /* per slot */
} counts;

/* Whether a reader would have let it pass. */
static bool is_fit(const tn_schema *schema, const char *fixed)
{
    const float label = tn_load_f32(fixed + AT_LABEL);
    const float weight = tn_load_f32(fixed + AT_WEIGHT);
    const bool labelled =
        schema->label->none ? isnan(label) : tn_target_takes(schema->data->target, (double)label);
    return labelled && weight >= 0 && weight <= WEIGHT_MAX &&
           tn_load_u32(fixed + AT_SOURCE) < sources_max;
}

/* Skips what a row is to each task; false where no reader would have let it pass. */
static bool are_tasks_fit(const tn_scored_form *form, tn_bytes *row)
{
    bool fit = true;
    for (uint32_t k = 0; form->tasks != NULL && k < form->tasks->n; k++) {
        const char *at = tn_get(row, TASK_FLOATS * sizeof(float));
        const float factor = at != NULL ? tn_load_f32(at + FACTOR * sizeof(float)) : -1;
        fit = at != NULL && fit && factor >= 0 && factor <= WEIGHT_MAX &&
              tn_target_takes(form->tasks->task[k].target, (double)tn_load_f32(at));
    }
    return fit;
}

/* One row: false when it is none. */
static bool count_row(const tn_scored_form *form, tn_bytes *in, counts *c)
{
    const uint32_t size = tn_get_u32(in);
    const char *at = tn_get(in, size);
    if (at == NULL) {
        return false;
    }
    tn_bytes row = {at, size, false};
    const char *fixed = tn_get(&row, FIXED - sizeof(uint32_t));
    if (fixed == NULL) {
        return false;
    }
    fixed -= sizeof(uint32_t);
    const bool tasks_fit = are_tasks_fit(form, &row);
    if (form->ids) {
        const uint32_t id = tn_get_u32(&row);
        c->id_bytes += tn_get(&row, id) != NULL ? id : 0;
    }
    (void)tn_get(&row, form->width * sizeof(float));
    for (uint32_t s = 0; s < form->schema->n_slots; s++) {
        if (form->slot[s]) {
            const uint32_t n = tn_get_u32(&row);
            c->key[s] += tn_get(&row, n * sizeof(uint64_t)) != NULL ? n : 0;
        }
    }
    c->rows++;
    return !row.failed && row.size == 0 && tasks_fit && is_fit(form->schema, fixed);
}

static void make_room(tn_scored_rows *r, const counts *c)
{
    tn_arena *a = r->arena;
    tn_batch *b = &r->batch;
    b->n_slots = r->form->schema->n_slots;
    b->label = TN_NEW_ARRAY(a, float, c->rows);
    b->weight = TN_NEW_ARRAY(a, float, c->rows);
    b->group = TN_NEW_ARRAY(a, uint64_t, c->rows);
    b->source = TN_NEW_ARRAY(a, uint32_t, c->rows);
    b->source_at = TN_NEW_ARRAY(a, uint64_t, c->rows);
    b->slot = TN_NEW_ARRAY(a, tn_slot, (size_t)b->n_slots + 1);
    if (r->form->ids) {
        b->id_offset = TN_NEW_ARRAY(a, uint32_t, c->rows + 1);
        b->id_text = TN_NEW_ARRAY(a, char, c->id_bytes + 1);
    }
    for (uint32_t s = 0; s < b->n_slots; s++) {
        if (r->form->slot[s]) {
            b->slot[s].offset = TN_NEW_ARRAY(a, uint32_t, c->rows + 1);
            b->slot[s].key = TN_NEW_ARRAY(a, uint64_t, c->key[s] + 1);
        }
    }
}

/* The bytes that were counted are there. */
static void copy(tn_bytes *in, void *to, size_t size)
{
    const char *at = tn_get(in, size);
    TN_ASSERT(at != NULL);
    memcpy(to, at, size);
}

/* The values of rows that are read, each array with room for all rows. */
typedef struct columns {
    size_t rows;
    float *logit, *value;
    uint32_t *unknown;
    float *task[TN_TASKS_MAX]; /* TASK_COLUMNS arrays, one after another */
} columns;

static void make_task_room(tn_scored_rows *r, columns *c)
{
    const tn_tasks *tasks = r->form->tasks;
    tn_task_rows *is = TN_NEW_ARRAY(r->arena, tn_task_rows, TN_TASKS_MAX);
    for (uint32_t k = 0; tasks != NULL && k < tasks->n; k++) {
        float *at = TN_NEW_ARRAY(r->arena, float, c->rows *TASK_COLUMNS + 1);
        c->task[k] = at;
        is[k] = (tn_task_rows){
            .label = at, .factor = at + c->rows * FACTOR, .weight = at + c->rows * WEIGHT};
        r->task.score[k] = at + c->rows * SCORE;
        r->task.given[k] = tasks->task[k].of != TN_NO_TASK ? at + c->rows * GIVEN : NULL;
    }
    r->batch.task = tasks != NULL ? is : NULL;
}

static void place_tasks(const tn_scored_rows *r, uint32_t row, const columns *c, tn_bytes *in)
{
    for (uint32_t k = 0; r->form->tasks != NULL && k < r->form->tasks->n; k++) {
        float *at = c->task[k] + row;
        for (uint32_t i = 0; i < TASK_FLOATS; i++) {
            copy(in, at + c->rows * i, sizeof *at);
        }
        at[c->rows * WEIGHT] = at[c->rows * FACTOR] * r->batch.weight[row];
    }
}

static void place_row(tn_scored_rows *r, const columns *c, tn_bytes *in)
{
    tn_batch *b = &r->batch;
    const uint32_t row = b->rows++;
    char fixed[FIXED];
    copy(in, fixed, sizeof fixed);
    b->source[row] = tn_load_u32(fixed + AT_SOURCE);
    b->source_at[row] = tn_load_u64(fixed + AT_PLACE);
    c->logit[row] = tn_load_f32(fixed + AT_LOGIT);
    b->label[row] = tn_load_f32(fixed + AT_LABEL);
    b->weight[row] = tn_load_f32(fixed + AT_WEIGHT);
    b->group[row] = tn_load_u64(fixed + AT_GROUP);
    c->unknown[row] = tn_load_u32(fixed + AT_UNKNOWN);
    place_tasks(r, row, c, in);
    if (r->form->ids) {
        const uint32_t size = tn_get_u32(in);
        copy(in, b->id_text + b->id_offset[row], size);
        b->id_offset[row + 1] = b->id_offset[row] + size;
    }
    copy(in, c->value + (size_t)row * r->form->width, r->form->width * sizeof(float));
    for (uint32_t s = 0; s < b->n_slots; s++) {
        if (r->form->slot[s]) {
            tn_slot *slot = &b->slot[s];
            const uint32_t n = tn_get_u32(in);
            copy(in, slot->key + slot->offset[row], n * sizeof *slot->key);
            slot->offset[row + 1] = slot->offset[row] + n;
        }
    }
}

tn_status tn_scored_read(tn_scored_rows *r, const char *bytes, size_t size, tn_error *err)
{
    const tn_scored_form *form = r->form;
    tn_scored_rows_done(r);
    r->arena = tn_arena_new(1 << 12);
    counts c = {.key = TN_NEW_ARRAY(r->arena, size_t, (size_t)form->schema->n_slots + 1)};
    tn_bytes in = {bytes, size, false};
    bool good = size <= UINT32_MAX;
    while (good && in.size > 0) {
        good = count_row(form, &in, &c);
    }
    if (!good) {
        tn_scored_rows_done(r);
        return tn_fail(err, TN_E_PEER, "scored rows of %zu bytes do not follow their format", size);
    }
    make_room(r, &c);
    columns to = {.rows = c.rows,
                  .logit = TN_NEW_ARRAY(r->arena, float, c.rows),
                  .unknown = TN_NEW_ARRAY(r->arena, uint32_t, c.rows),
                  .value = TN_NEW_ARRAY(r->arena, float, c.rows * form->width + 1)};
    make_task_room(r, &to);
    in = (tn_bytes){bytes, size, false};
    while (in.size > 0) {
        place_row(r, &to, &in);
    }
    TN_ASSERT(r->batch.rows == c.rows); /* all that was counted is placed */
    TN_ASSERT(!form->ids || r->batch.id_offset[c.rows] == c.id_bytes);
    r->fetched = (tn_fetched){form->cols, form->width, to.value};
    r->scores.logit = to.logit;
    r->scores.unknown = to.unknown;
    r->scores.task = form->tasks != NULL ? &r->task : NULL;
    r->scores.fetched = form->n_nodes > 0 ? &r->fetched : NULL;
    return TN_OK;
}

/* ---- views ---- */

static void view_tasks(const tn_tasks *tasks, const tn_scores *of, uint32_t from,
                       tn_scored_view *out)
{
    for (uint32_t k = 0; k < tasks->n; k++) {
        const tn_task_rows *is = &of->batch->task[k];
        const float *given = of->task->given[k];
        out->rows[k] = (tn_task_rows){
            .label = is->label + from, .factor = is->factor + from, .weight = is->weight + from};
        out->task.score[k] = of->task->score[k] + from;
        out->task.given[k] = given != NULL ? given + from : NULL;
    }
    out->batch.task = out->rows;
    out->scores.task = &out->task;
}

void tn_scored_view_of(const tn_scored_form *form, const tn_scores *of, uint32_t from, uint32_t n,
                       tn_slot *slot, tn_scored_view *out)
{
    const tn_batch *b = of->batch;
    TN_ASSERT(from <= b->rows && n <= b->rows - from);
    for (uint32_t s = 0; s < form->schema->n_slots; s++) {
        slot[s] = (tn_slot){0};
        if (form->slot[s]) {
            slot[s] = (tn_slot){.offset = b->slot[s].offset + from, .key = b->slot[s].key};
        }
    }
    out->batch = (tn_batch){
        .rows = n,
        .n_slots = form->schema->n_slots,
        .slot = slot,
        .label = b->label + from,
        .weight = b->weight != NULL ? b->weight + from : NULL,
        .group = b->group != NULL ? b->group + from : NULL,
        .id_offset = b->id_offset != NULL ? b->id_offset + from : NULL,
        .id_text = b->id_text,
        .source = b->source + from,
        .source_at = b->source_at + from,
    };
    out->scores = (tn_scores){.batch = &out->batch,
                              .logit = of->logit + from,
                              .unknown = of->unknown != NULL ? of->unknown + from : NULL,
                              .graph = of->graph,
                              .first = of->first + from};
    if (form->tasks != NULL) {
        view_tasks(form->tasks, of, from, out);
    }
    if (of->fetched != NULL) {
        out->fetched = *of->fetched;
        out->fetched.value += (size_t)from * out->fetched.width;
        out->scores.fetched = &out->fetched;
    }
}
