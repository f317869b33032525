/* exportrows.c - see exportrows.h. */
#include "train/exportrows.h"

#include "base/json.h"
#include "base/key.h"
#include "base/number.h"
#include "io/dictwrite.h"
#include "train/exportdelta.h"
#include "train/rowcolumns.h"

#include <math.h>
#include <string.h>

enum { WIDTH_MAX = TN_SEGMENTS_MAX * TN_DIM_MAX };

/* A row's worth by its counts; docs/numerics.md section 9. */
static double score_of(const tn_row_view *row)
{
    const double click = 1;
    const double no_click = 0.1;
    return click * row->click + no_click * (row->show - row->click);
}

/* One partition, unless a signal asks to stop. */
static tn_status walk_partition(const tn_export_rows *r, uint32_t partition, tn_row_visit *visit,
                                void *arg, tn_error *err)
{
    if (r->stop != NULL && atomic_load(r->stop)) {
        return tn_fail(err, TN_E_STOPPED, "stopped by a signal; nothing is exported");
    }
    return tn_table_walk(r->table, partition, visit, arg, err);
}

static bool is_exported(const tn_export_rows *r, const tn_row_view *row)
{
    double least = r->plan->run->export.min_score;
    return isnan(least) || score_of(row) >= least;
}

/* ---- dictionary ---- */

/* One walk over the table for the writer of a dictionary. */
typedef struct walk_job {
    const tn_export_rows *rows;
    const tn_row_columns *columns;
    float *values;
    tn_dict_visit *visit;
    void *visitor;
} walk_job;

/* The weights of a row side by side, as the layout has them. */
static tn_status give_row(void *arg, const tn_row_view *row, tn_error *err)
{
    walk_job *j = arg;
    if (!is_exported(j->rows, row)) {
        return TN_OK;
    }
    const tn_record *record = tn_record_of(j->rows->plan->layout, row->group);
    for (uint32_t c = 0; c < j->columns->n; c++) {
        const tn_row_place *p = tn_row_place_of(j->columns, row->group, c);
        if (p->n > 0) {
            memcpy(j->values + record->segment[p->segment].at, row->data + p->at,
                   p->n * sizeof *row->data);
        }
    }
    tn_dict_entry entry = {
        .key = row->key, .group = row->group, .present = row->present, .values = j->values};
    return j->visit(j->visitor, &entry, err);
}

static tn_status walk_table(void *arg, tn_dict_visit *visit, void *visitor, tn_error *err)
{
    walk_job *j = arg;
    j->visit = visit;
    j->visitor = visitor;
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        TN_TRY(walk_partition(j->rows, p, give_row, j, err));
    }
    return TN_OK;
}

/* {"model_id":"..","segments":["wide",..],"slots":[..]} */
static tn_status dict_json(const tn_export_rows *r, tn_text *out, tn_error *err)
{
    const char *names[TN_SEGMENTS_MAX];
    uint32_t n = 0;
    TN_TRY(tn_dict_segments(r->plan->layout, names, &n, err));
    tn_json_open(out, '{');
    tn_json_str(out, "model_id", r->model_id);
    tn_json_open_key(out, "segments", '[');
    for (uint32_t i = 0; i < n; i++) {
        tn_json_str(out, NULL, names[i]);
    }
    tn_json_close(out, ']');
    tn_json_open_key(out, "slots", '[');
    for (uint32_t i = 0; i < r->plan->schema->n_slots; i++) {
        const tn_slot_spec *spec = r->plan->schema->slot[i];
        tn_json_open(out, '{');
        tn_json_str(out, "name", spec->name);
        tn_json_str(out, "group", r->plan->schema->group[spec->group].name);
        tn_json_close(out, '}');
    }
    tn_json_close(out, ']');
    tn_json_close(out, '}');
    return tn_text_check(out, "the dictionary's JSON", err);
}

static void read_id(const char *hex, uint8_t out[TN_MODEL_ID_BYTES])
{
    for (uint32_t i = 0; i < TN_MODEL_ID_BYTES; i++) {
        uint64_t byte = 0;
        tn_numeral how = tn_read_hex(hex + (size_t)i * 2, 2, &byte);
        TN_ASSERT(how == TN_NUM_OK);
        out[i] = (uint8_t)byte;
    }
}

/* All rows, or those that changed since r->base. */
static tn_status write_dict(const tn_export_rows *r, walk_job *job, const char *json,
                            const char *path, tn_export_done *out, tn_error *err)
{
    tn_dict_spec spec = {
        .layout = r->plan->layout,
        .type = (tn_dict_type)r->plan->run->export.values,
        .check_groups = r->plan->run->export.check_groups,
        .json = json,
        .partitions = TN_PARTITIONS,
        .last = TN_PARTITIONS - 1,
    };
    read_id(r->model_id, spec.model_id);
    const tn_dict_source all = {.walk = walk_table, .arg = job};
    tn_dict_source source = all;
    tn_export_delta *delta = NULL;
    if (r->base != NULL) {
        TN_TRY(tn_export_delta_open(&delta, r->base, &spec, err));
        source = tn_export_delta_source(delta, &all);
    }
    tn_dict_written written;
    tn_status status = tn_dict_write(path, &spec, &source, &written, err);
    if (status == TN_OK) {
        *out = (tn_export_done){written.bytes, written.rows, written.crc};
    }
    tn_export_delta_close(delta);
    return status;
}

tn_status tn_export_dict(const tn_export_rows *r, const char *path, tn_export_done *out,
                         tn_error *err)
{
    tn_text json = {0};
    tn_arena *arena = tn_arena_new(1 << 16);
    walk_job job = {.rows = r, .values = TN_NEW_ARRAY(arena, float, WIDTH_MAX)};
    tn_status status =
        tn_row_columns_new(&job.columns, r->table, r->plan->layout, false, arena, err);
    if (status == TN_OK) {
        status = dict_json(r, &json, err);
    }
    if (status == TN_OK) {
        status = write_dict(r, &job, json.data, path, out, err);
    }
    tn_text_done(&json);
    tn_arena_free(arena);
    return status;
}

/* ---- text ---- */

typedef struct dump_job {
    const tn_export_rows *rows;
    const tn_row_columns *columns;
    tn_dump_writer *writer;
    tn_dump_value *value;
    uint64_t n;
} dump_job;

static tn_status dump_row(void *arg, const tn_row_view *row, tn_error *err)
{
    dump_job *j = arg;
    if (!is_exported(j->rows, row)) {
        return TN_OK;
    }
    const tn_group *group = &j->rows->plan->layout->group[row->group];
    for (uint32_t c = 0; c < j->columns->n; c++) {
        const tn_row_place *p = tn_row_place_of(j->columns, row->group, c);
        bool there = p->n > 0 && (row->present >> p->segment & 1) != 0;
        j->value[c] = there ? (tn_dump_value){row->data + p->at, p->n} : (tn_dump_value){NULL, 0};
    }
    j->n++;
    tn_dump_row out = {
        .group = group->name,
        .sign = tn_sign_of(row->key, group->salt),
        .show = row->show,
        .click = row->click,
        .last_seen = row->last_seen,
        .value = j->value,
    };
    return tn_dump_add(j->writer, &out, err);
}

static tn_status dump_all(dump_job *j, const char *path, tn_export_done *out, tn_error *err)
{
    tn_dump_head head = {
        .model_id = j->rows->model_id, .n = j->columns->n, .column = j->columns->column};
    TN_TRY(tn_dump_create(&j->writer, path, &head, err));
    tn_status status = TN_OK;
    for (uint32_t p = 0; p < TN_PARTITIONS && status == TN_OK; p++) {
        status = walk_partition(j->rows, p, dump_row, j, err);
    }
    if (status != TN_OK) {
        tn_dump_abandon(j->writer);
        return status;
    }
    out->rows = j->n;
    return tn_dump_commit(j->writer, &out->bytes, &out->crc, err);
}

tn_status tn_export_dump(const tn_export_rows *r, const char *path, tn_export_done *out,
                         tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    dump_job job = {.rows = r, .value = TN_NEW_ARRAY(arena, tn_dump_value, TN_DUMP_COLUMNS_MAX)};
    tn_status status = tn_row_columns_new(&job.columns, r->table, r->plan->layout,
                                          r->plan->run->export.state, arena, err);
    if (status == TN_OK) {
        status = dump_all(&job, path, out, err);
    }
    tn_arena_free(arena);
    return status;
}
