/* exportrows.c - see exportrows.h. */
#include "train/export/exportrows.h"

#include "base/codec/json.h"
#include "base/core/number.h"
#include "base/math/key.h"
#include "base/thread/ordered_work.h"
#include "io/dict/dictwrite.h"
#include "train/checkpoint/rowcolumns.h"
#include "train/export/exportdelta.h"
#include "train/export/exportparts.h"

#include <math.h>
#include <string.h>

/* A row's worth by its counts; docs/numerics.md section 9. */
static double score_of(const tn_row_view *row)
{
    const double click = 1;
    const double no_click = 0.1;
    return click * row->click + no_click * (row->show - row->click);
}

tn_status tn_export_walk(const tn_export_rows *r, uint32_t partition, tn_row_visit *visit,
                         void *arg, tn_error *err)
{
    if (r->stop != NULL && atomic_load(r->stop)) {
        return tn_fail(err, TN_E_STOPPED, "stopped by a signal; nothing is exported");
    }
    if (r->parts != NULL && tn_export_part_is_other(r->parts, partition)) {
        return tn_export_part_walk(r->parts, partition, visit, arg, err);
    }
    return tn_table_walk(r->table, partition, visit, arg, err);
}

bool tn_export_keeps(const tn_export_rows *r, const tn_row_view *row)
{
    double least = r->plan->run->export.min_score;
    return isnan(least) || score_of(row) >= least;
}

/* ---- dictionary ---- */

/* The table as the source of a dictionary: a piece is a partition. */
typedef struct table_source {
    const tn_export_rows *rows;
    uint32_t *at; /* [record * TN_SEGMENTS_MAX + segment]: where weights begin in a row */
} table_source;

/* One walk over a partition. */
typedef struct table_walk {
    const table_source *from;
    tn_dict_visit *visit;
    void *visitor;
} table_walk;

static void place_segments(table_source *s, tn_arena *arena)
{
    const tn_layout *layout = s->rows->plan->layout;
    s->at = TN_NEW_ARRAY(arena, uint32_t, (size_t)layout->n_records * TN_SEGMENTS_MAX);
    for (uint32_t r = 0; r < layout->n_records; r++) {
        for (uint32_t i = 0; i < layout->record[r].n_segments; i++) {
            s->at[r * TN_SEGMENTS_MAX + i] = tn_table_place(s->rows->table, r, i).w;
        }
    }
}

static tn_status give_row(void *arg, const tn_row_view *row, tn_error *err)
{
    const table_walk *w = arg;
    const tn_export_rows *rows = w->from->rows;
    if (!tn_export_keeps(rows, row)) {
        return TN_OK;
    }
    uint32_t record = rows->plan->layout->group[row->group].record;
    tn_dict_entry entry = {.key = row->key,
                           .group = row->group,
                           .present = row->present,
                           .values = row->data,
                           .at = w->from->at + (size_t)record * TN_SEGMENTS_MAX};
    return w->visit(w->visitor, &entry, err);
}

static tn_status walk_table(void *arg, uint32_t piece, tn_dict_visit *visit, void *visitor,
                            tn_error *err)
{
    const table_source *from = arg;
    table_walk w = {.from = from, .visit = visit, .visitor = visitor};
    return tn_export_walk(from->rows, piece, give_row, &w, err);
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
static tn_status write_dict(const tn_export_rows *r, table_source *table, const char *json,
                            const char *path, tn_export_done *out, tn_error *err)
{
    tn_dict_spec spec = {
        .layout = r->plan->layout,
        .type = (tn_dict_type)r->plan->run->export.values,
        .check_groups = r->plan->run->export.check_groups,
        .json = json,
        .partitions = TN_PARTITIONS,
        .last = TN_PARTITIONS - 1,
        .team = r->team,
    };
    read_id(r->model_id, spec.model_id);
    const tn_dict_source all = {.n_pieces = TN_PARTITIONS, .walk = walk_table, .arg = table};
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
    table_source table = {.rows = r};
    place_segments(&table, arena);
    tn_status status = dict_json(r, &json, err);
    if (status == TN_OK) {
        status = write_dict(r, &table, json.data, path, out, err);
    }
    tn_text_done(&json);
    tn_arena_free(arena);
    return status;
}

/* ---- text ---- */

typedef struct dump_job {
    const tn_export_rows *rows;
    const tn_row_columns *columns;
    tn_dump_head head;
    tn_dump_writer *writer;
    uint64_t n; /* rows */
} dump_job;

/* A partition's lines. */
typedef struct dump_hand {
    const dump_job *job;
    tn_text lines;
    uint64_t n;
    tn_dump_value value[TN_DUMP_COLUMNS_MAX];
} dump_hand;

static tn_status print_row(void *arg, const tn_row_view *row, tn_error *err)
{
    dump_hand *h = arg;
    const dump_job *j = h->job;
    if (!tn_export_keeps(j->rows, row)) {
        return TN_OK;
    }
    const tn_share_group *group = &j->rows->plan->layout->group[row->group];
    for (uint32_t c = 0; c < j->columns->n; c++) {
        const tn_row_place *p = tn_row_place_of(j->columns, row->group, c);
        bool there = p->n > 0 && (row->present >> p->segment & 1) != 0;
        h->value[c] = there ? (tn_dump_value){row->data + p->at, p->n} : (tn_dump_value){NULL, 0};
    }
    h->n++;
    tn_dump_row out = {
        .group = group->name,
        .sign = tn_sign_of(row->key, group->salt),
        .show = row->show,
        .click = row->click,
        .last_seen = row->last_seen,
        .value = h->value,
    };
    return tn_dump_print(&j->head, &out, &h->lines, err);
}

static tn_status print_partition(void *job, uint32_t piece, void *hand, tn_error *err)
{
    dump_hand *h = hand;
    h->job = job;
    h->n = 0;
    tn_text_clear(&h->lines);
    return tn_export_walk(h->job->rows, piece, print_row, h, err);
}

static tn_status put_partition(void *job, uint32_t piece, void *hand, tn_error *err)
{
    (void)piece;
    dump_job *j = job;
    const dump_hand *h = hand;
    j->n += h->n;
    return tn_dump_put(j->writer, &h->lines, err);
}

static void drop_lines(void *hand)
{
    dump_hand *h = hand;
    tn_text_done(&h->lines);
}

static tn_status dump_all(dump_job *j, const char *path, tn_export_done *out, tn_error *err)
{
    j->head = (tn_dump_head){
        .model_id = j->rows->model_id, .n = j->columns->n, .column = j->columns->column};
    TN_TRY(tn_dump_create(&j->writer, path, &j->head, err));
    const tn_inorder how = {.job = j,
                            .n = TN_PARTITIONS,
                            .hand_bytes = sizeof(dump_hand),
                            .make = print_partition,
                            .join = put_partition,
                            .drop = drop_lines};
    tn_status status = tn_inorder_run(&how, j->rows->team, err);
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
    dump_job job = {.rows = r};
    tn_status status = tn_row_columns_new(&job.columns, r->table, r->plan->layout,
                                          r->plan->run->export.state, arena, err);
    if (status == TN_OK) {
        status = dump_all(&job, path, out, err);
    }
    tn_arena_free(arena);
    return status;
}
