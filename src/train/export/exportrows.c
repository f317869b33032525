/* exportrows.c - exports rows: a dictionary, and the rows of other ranks. */
#include "train/export/exportrows.h"

#include "base/codec/json.h"
#include "base/core/alloc.h"
#include "base/core/number.h"
#include "base/file/file.h"
#include "base/keys/keyset.h" /* tn_partition_of */
#include "base/math/key.h"
#include "dict/dict_deltas.h"
#include "dict/dictwrite.h"
#include "io/schema/schema.h"
#include "ps/optim/rule.h"
#include "ps/policy/admission.h"
#include "ps/snapshot/manifest.h"
#include "ps/table/lifecycle.h"
#include "train/checkpoint/ckpt_moment.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Whether a row is exported: export.min_score, on the day of the checkpoint. */
static bool is_kept(const tn_export_rows *r, const tn_row_view *row)
{
    double least = r->plan->run->export.min_score;
    const tn_lifecycle *life = tn_lifecycle_of(r->plan->rules->rows, row->group);
    return isnan(least) || tn_score_of(life, row, r->day) >= least;
}

/* ---- rows of other ranks, in shard files of the folder ---- */

tn_status tn_export_parts_init(tn_export_parts *p, const tn_worker *w, uint64_t step,
                               const char *folder, tn_arena *arena, tn_error *err)
{
    TN_ASSERT(w->rank < w->plan->owners.n_peers);
    const tn_row_schema schema = tn_moment_row_schema(w, arena);
    *p = (tn_export_parts){.folder = folder,
                           .owners = &w->plan->owners,
                           .rank = w->rank,
                           .schema = schema,
                           .head = {.step = step, .partitions = TN_PARTITIONS}};
    return tn_row_schema_hash(&schema, p->head.schema, err);
}

/* The head of a rank's file, and where it is. */
static tn_status file_of(const tn_export_parts *p, uint32_t rank, tn_snapshot_head *head,
                         char path[TN_PATH_SIZE], tn_error *err)
{
    TN_ASSERT(rank < p->owners->n_peers && p->owners->from[rank] < p->owners->from[rank + 1]);
    char name[32];
    *head = p->head;
    head->first = p->owners->from[rank];
    head->last = p->owners->from[rank + 1] - 1;
    (void)snprintf(name, sizeof name, "rows-%u.tns", rank);
    return tn_path_join(p->folder, name, path, err);
}

static uint32_t owner_of(const tn_export_parts *p, uint32_t partition)
{
    TN_ASSERT(partition < p->owners->n_partitions);
    uint32_t rank = 0;
    while (p->owners->from[rank + 1] <= partition) {
        rank++;
    }
    return rank;
}

bool tn_export_part_is_other(const tn_export_parts *p, uint32_t partition)
{
    return owner_of(p, partition) != p->rank;
}

static bool is_expected(const tn_snapshot_head *have, const tn_snapshot_head *want)
{
    return have->step == want->step && have->first == want->first && have->last == want->last &&
           have->partitions == want->partitions && !have->delta &&
           memcmp(have->schema, want->schema, sizeof have->schema) == 0;
}

/* Opening takes some 100 us, little beside the rows of a partition; a handle of its own lets walks
 * run side by side. */
tn_status tn_export_part_walk(const tn_export_parts *p, uint32_t partition, tn_row_visit *visit,
                              void *arg, tn_error *err)
{
    tn_snapshot_head head;
    char path[TN_PATH_SIZE];
    tn_snapshot *from = NULL;
    TN_TRY(file_of(p, owner_of(p, partition), &head, path, err));
    TN_TRY(tn_snapshot_open(&from, path, err));
    tn_status status = is_expected(tn_snapshot_head_of(from), &head)
                           ? tn_snapshot_read(from, partition, &p->schema, visit, arg, err)
                           : tn_fail(err, TN_E_CKPT, "'%s' holds rows of another model", path);
    tn_snapshot_close(from);
    return status;
}

/* ---- rows of a checkpoint, in its own files ---- */

void tn_export_files_done(tn_export_files *f)
{
    tn_snapshot_close(f->open);
    f->open = NULL;
}

static bool holds(const tn_manifest_file *file, uint32_t partition)
{
    return strcmp(file->type, "sparse") == 0 && file->first <= partition && partition <= file->last;
}

static tn_status open_file_of(tn_export_files *f, uint32_t partition, tn_error *err)
{
    char path[TN_PATH_SIZE];
    const tn_manifest *m = f->manifest;
    TN_ASSERT(m->base == 0 && partition < TN_PARTITIONS);
    uint32_t i = 0;
    while (i < m->n_files && !holds(&m->file[i], partition)) {
        i++;
    }
    if (i == m->n_files) {
        return tn_fail(err, TN_E_CKPT, "'%s' has no file of partition %u", f->folder, partition);
    }
    tn_export_files_done(f);
    f->at = &m->file[i];
    TN_TRY(tn_path_join(f->folder, f->at->name, path, err));
    return tn_snapshot_open(&f->open, path, err);
}

/* Its crc and those of its blocks are checked on the way. */
static tn_status walk_file(tn_export_files *f, uint32_t partition, tn_row_visit *visit, void *arg,
                           tn_error *err)
{
    if (f->open == NULL || !holds(f->at, partition)) {
        TN_TRY(open_file_of(f, partition, err));
    }
    return tn_snapshot_read(f->open, partition, &f->manifest->sparse, visit, arg, err);
}

/* Walks over all rows of a partition, which may be another rank's, unless a signal asks to stop. */
static tn_status walk_all(const tn_export_rows *r, uint32_t partition, tn_row_visit *visit,
                          void *arg, tn_error *err)
{
    if (r->stop != NULL && atomic_load(r->stop)) {
        return tn_fail(err, TN_E_STOPPED, "stopped by a signal; nothing is exported");
    }
    if (r->files != NULL) {
        return walk_file(r->files, partition, visit, arg, err);
    }
    if (r->parts != NULL && tn_export_part_is_other(r->parts, partition)) {
        return tn_export_part_walk(r->parts, partition, visit, arg, err);
    }
    return tn_table_walk(r->table, partition, visit, arg, err);
}

/* A walk over the rows that are exported. */
typedef struct kept_walk {
    const tn_export_rows *rows;
    tn_row_visit *visit;
    void *arg;
} kept_walk;

static tn_status visit_kept(void *arg, const tn_row_view *row, tn_error *err)
{
    const kept_walk *k = arg;
    return is_kept(k->rows, row) ? k->visit(k->arg, row, err) : TN_OK;
}

tn_status tn_export_walk(const tn_export_rows *r, uint32_t partition, tn_row_visit *visit,
                         void *arg, tn_error *err)
{
    kept_walk kept = {r, visit, arg};
    return walk_all(r, partition, visit_kept, &kept, err);
}

static tn_status write_row(void *arg, const tn_row_view *row, tn_error *err)
{
    return tn_snapshot_add(arg, row, err);
}

tn_status tn_export_part_write(const tn_export_parts *p, const tn_export_rows *r, tn_error *err)
{
    tn_snapshot_head head;
    char path[TN_PATH_SIZE];
    tn_snapshot_writer *to = NULL;
    TN_TRY(file_of(p, p->rank, &head, path, err));
    TN_TRY(tn_snapshot_create(&to, path, &head, err));
    tn_status status = TN_OK;
    for (uint32_t i = head.first; i <= head.last && status == TN_OK; i++) {
        status = tn_snapshot_begin(to, i, err);
        if (status == TN_OK) {
            status = tn_export_walk(r, i, write_row, to, err);
        }
    }
    if (status != TN_OK) {
        tn_snapshot_abandon(to);
        return status;
    }
    tn_snapshot_done done;
    return tn_snapshot_commit(to, &done, err);
}

tn_status tn_export_parts_remove(const tn_export_parts *p, tn_error *err)
{
    for (uint32_t r = 0; r < p->owners->n_peers; r++) {
        if (r != p->rank) {
            tn_snapshot_head head;
            char path[TN_PATH_SIZE];
            TN_TRY(file_of(p, r, &head, path, err));
            TN_TRY(tn_remove_file(path, err));
        }
    }
    return TN_OK;
}

/* ---- the table as the source of a dictionary: a piece is a partition ---- */

typedef struct table_source {
    const tn_export_rows *rows;
    const tn_layout *layout; /* the dictionary's: counts are the last segment of a row */
    uint32_t floats;         /* size of the longest row with counts; 0: none has any */
    uint32_t *at;         /* [record * TN_SEGMENTS_MAX + segment]: where weights begin in a row */
    uint32_t *at_waiting; /* the same in a row that waits for admission */
} table_source;

/* One walk over a partition. */
typedef struct table_walk {
    const table_source *from;
    tn_dict_visit *visit;
    void *visitor;
    float *with_counts; /* one row; NULL: none has counts */
} table_walk;

/* The plan's, with counts as a segment like others. */
static const tn_layout *dict_layout(const tn_layout *from, tn_arena *arena)
{
    if (!tn_layout_has_counts(from)) {
        return from;
    }
    tn_layout *to = TN_NEW(arena, tn_layout);
    tn_record *record = TN_NEW_ARRAY(arena, tn_record, from->n_records);
    *to = *from;
    to->record = record;
    for (uint32_t r = 0; r < from->n_records; r++) {
        record[r] = from->record[r];
        if (record[r].counts.dim > 0) {
            record[r].segment[record[r].n_segments++] = record[r].counts;
        }
    }
    return to;
}

static void place_segments(table_source *s, tn_arena *arena)
{
    const tn_layout *layout = s->rows->plan->layout;
    s->layout = dict_layout(layout, arena);
    for (uint32_t g = 0; s->layout != layout && g < layout->n_groups; g++) {
        const uint32_t n = tn_table_stride(s->rows->table, g) / sizeof(float) + TN_COUNTS;
        s->floats = n > s->floats ? n : s->floats;
    }
    s->at = TN_NEW_ARRAY(arena, uint32_t, (size_t)layout->n_records * TN_SEGMENTS_MAX);
    s->at_waiting = TN_NEW_ARRAY(arena, uint32_t, (size_t)layout->n_records * TN_SEGMENTS_MAX);
    for (uint32_t r = 0; r < layout->n_records; r++) {
        for (uint32_t i = 0; i < layout->record[r].n_segments; i++) {
            s->at[r * TN_SEGMENTS_MAX + i] = tn_table_place(s->rows->table, r, i).w;
            s->at_waiting[r * TN_SEGMENTS_MAX + i] = tn_table_place_waiting(s->rows->table, r, i);
        }
    }
}

static tn_status give_row(void *arg, const tn_row_view *row, tn_error *err)
{
    const table_walk *w = arg;
    const tn_export_rows *rows = w->from->rows;
    uint32_t record = rows->plan->layout->group[row->group].record;
    const tn_record *r = &rows->plan->layout->record[record];
    const bool waits = (row->present & r->waits) != r->waits;
    const uint32_t *places = waits ? w->from->at_waiting : w->from->at;
    tn_dict_entry entry = {.key = row->key,
                           .group = row->group,
                           .present = tn_admission_segments(rows->table, row),
                           .values = row->data,
                           .at = places + (size_t)record * TN_SEGMENTS_MAX};
    uint32_t at[TN_SEGMENTS_MAX];
    if (r->counts.dim > 0 && row->present != 0) {
        TN_ASSERT(row->n_floats + TN_COUNTS <= w->from->floats);
        memcpy(at, entry.at, r->n_segments * sizeof *at);
        memcpy(w->with_counts, row->data, row->n_floats * sizeof *row->data);
        at[r->n_segments] = row->n_floats;
        tn_net_counts(tn_lifecycle_of(rows->plan->rules->rows, row->group), row, rows->day,
                      r->raw_show, w->with_counts + row->n_floats);
        entry.present |= (uint16_t)(1U << r->n_segments);
        entry.values = w->with_counts;
        entry.at = at;
    }
    return w->visit(w->visitor, &entry, err);
}

static tn_status walk_table(void *arg, uint32_t piece, tn_dict_visit *visit, void *visitor,
                            tn_error *err)
{
    const table_source *from = arg;
    table_walk w = {.from = from, .visit = visit, .visitor = visitor};
    if (from->floats > 0) {
        TN_TRY(TN_ALLOC(w.with_counts, from->floats, "a row and its counts", err));
    }
    const tn_status status = tn_export_walk(from->rows, piece, give_row, &w, err);
    tn_free(w.with_counts);
    return status;
}

/* ---- delta: only what changed since an export, and the keys that are gone ----
 *
 *     rows of the table, ascending      a   b'  d
 *     keys of the base, ascending       a b   c              delta: b' changed, d new, c removed
 *
 * Two ascending lists are merged, a partition at a time. A row counts as changed when the
 * dictionary would hold other bits of it.
 */

typedef struct export_delta {
    table_source *all;
    const tn_layout *layout;
    tn_dict_stack base;
    tn_dict_type type;
    uint32_t *number; /* per record * TN_SEGMENTS_MAX: the file's number of the segment */
    tn_dict_live *live;
    uint64_t n_live;
} export_delta;

/* One walk over a partition. */
typedef struct merge {
    const export_delta *d;
    uint64_t next, end; /* positions in `live` */
    tn_dict_visit *visit;
    void *visitor;
    float mine[TN_DIM_MAX], theirs[TN_DIM_MAX];
    char bits[TN_DIM_MAX * sizeof(float)];
} merge;

static tn_status check_groups(const export_delta *d, const char *path, tn_error *err)
{
    const tn_dict *top = d->base.layer[0];
    bool same = tn_dict_head(top)->n_groups == d->layout->n_groups;
    for (uint32_t g = 0; same && g < d->layout->n_groups; g++) {
        same = tn_dict_salt(top, g) == d->layout->group[g].salt &&
               strcmp(tn_dict_group_name(top, g), d->layout->group[g].name) == 0;
    }
    return same
               ? TN_OK
               : tn_fail(err, TN_E_CKPT,
                         "'%s' is of a model with other slots\nhint: export all of this one", path);
}

static tn_status number_segments(export_delta *d, tn_error *err)
{
    const char *names[TN_SEGMENTS_MAX];
    uint32_t n = 0;
    TN_TRY(tn_dict_segments(d->layout, names, &n, err));
    for (uint32_t r = 0; r < d->layout->n_records; r++) {
        const tn_record *record = &d->layout->record[r];
        for (uint32_t s = 0; s < record->n_segments; s++) {
            uint32_t k = 0;
            while (strcmp(names[k], record->segment[s].name) != 0) {
                TN_ASSERT(k + 1 < n);
                k++;
            }
            d->number[r * TN_SEGMENTS_MAX + s] = k;
        }
    }
    return TN_OK;
}

static void delta_close(export_delta *d)
{
    tn_dict_stack_close(&d->base);
    tn_free(d->number);
    tn_free(d->live);
}

/* `base` is the folder of an export, which may be a delta itself. `spec` gets its id and becomes
 * that of a delta. TN_E_CKPT: another model, or too many deltas. Close it after a failure, too. */
static tn_status delta_open(export_delta *d, const char *base, tn_dict_spec *spec, tn_error *err)
{
    size_t n = ((size_t)spec->layout->n_records + 1) * TN_SEGMENTS_MAX;
    TN_TRY(TN_ALLOC(d->number, n, "a delta", err));
    TN_TRY(tn_dict_stack_open(&d->base, base, "dict.tnd", TN_VERIFY_FULL, err));
    if (d->base.n > TN_DICT_DELTAS_MAX) {
        return tn_fail(err, TN_E_CKPT,
                       "'%s' is the last of %d deltas, more are not read\nhint: export all of it",
                       base, TN_DICT_DELTAS_MAX);
    }
    if (!spec->check_groups) {
        return tn_fail(err, TN_E_CONFIG, "a delta needs export.check_groups: true");
    }
    TN_TRY(check_groups(d, base, err));
    TN_TRY(number_segments(d, err));
    const uint8_t *id = tn_dict_head(d->base.layer[0])->model_id;
    if (memcmp(id, spec->model_id, TN_MODEL_ID_BYTES) == 0) {
        return tn_fail(err, TN_E_CONFIG, "'%s' is this very model: nothing has changed", base);
    }
    memcpy(spec->base_id, id, TN_MODEL_ID_BYTES);
    spec->delta = true;
    return tn_dict_stack_list(&d->base, &d->live, &d->n_live, err);
}

/* Whether the dictionary would hold the same values of one segment as the base does. */
static bool same_segment(merge *m, const tn_dict_entry *e, uint32_t s, const tn_dict_row *row)
{
    const export_delta *d = m->d;
    uint32_t record = d->layout->group[e->group].record;
    const tn_segment *segment = &d->layout->record[record].segment[s];
    TN_ASSERT(segment->dim <= TN_DIM_MAX);
    uint32_t number = d->number[record * TN_SEGMENTS_MAX + s];
    bool there = tn_dict_get(row, number, segment->dim, m->theirs);
    bool wanted = (e->present >> s & 1) != 0;
    if (!wanted || !there) {
        return wanted == there;
    }
    const float *values = tn_dict_values(e, s, segment->at);
    const tn_dict_type type = tn_dict_type_for(d->type, segment->dim);
    const float scale = tn_dict_row_scale(d->type, type, &d->layout->record[record], e);
    tn_dict_encode(type, segment->dim, values, scale, m->bits);
    tn_dict_decode(type, segment->dim, m->bits, scale, m->mine);
    return memcmp(m->mine, m->theirs, segment->dim * sizeof *m->mine) == 0;
}

static tn_status changed(merge *m, const tn_dict_entry *e, bool *out, tn_error *err)
{
    const export_delta *d = m->d;
    const tn_dict_query query = {e->key, e->group};
    tn_dict_row row;
    TN_TRY(tn_dict_stack_find(&d->base, 1, &query, &row, err));
    const tn_record *record = tn_record_of(d->layout, e->group);
    *out = row.at == NULL;
    for (uint32_t s = 0; s < record->n_segments && !*out; s++) {
        *out = !same_segment(m, e, s, &row);
    }
    return TN_OK;
}

/* Keys of the base before (key, group) have no row any more. */
static tn_status remove_before(merge *m, uint64_t key, uint32_t group, tn_error *err)
{
    while (m->next < m->end) {
        const tn_dict_live *l = &m->d->live[m->next];
        if (l->key > key || (l->key == key && l->group >= group)) {
            break;
        }
        const tn_dict_entry gone = {.key = l->key, .group = (uint16_t)l->group, .removed = true};
        m->next++;
        TN_TRY(m->visit(m->visitor, &gone, err));
    }
    return TN_OK;
}

static tn_status sift(void *arg, const tn_dict_entry *e, tn_error *err)
{
    merge *m = arg;
    bool differs = false;
    if (e->present == 0) {
        return TN_OK; /* not in the dictionary: like a row that is gone */
    }
    TN_TRY(remove_before(m, e->key, e->group, err));
    if (m->next < m->end) {
        const tn_dict_live *l = &m->d->live[m->next];
        m->next += l->key == e->key && l->group == e->group;
    }
    TN_TRY(changed(m, e, &differs, err));
    return differs ? m->visit(m->visitor, e, err) : TN_OK;
}

/* Returns the position of the base's first key in this partition or a later one. */
static uint64_t first_of(const export_delta *d, uint32_t partition)
{
    uint64_t from = 0;
    uint64_t to = d->n_live;
    while (from < to) {
        uint64_t middle = from + (to - from) / 2;
        if (tn_partition_of(d->live[middle].key, TN_PARTITIONS) < partition) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    return from;
}

static tn_status walk_delta(void *arg, uint32_t piece, tn_dict_visit *visit, void *visitor,
                            tn_error *err)
{
    const export_delta *d = arg;
    merge *m = NULL;
    TN_TRY(TN_ALLOC(m, 1, "a delta", err));
    m->d = d;
    m->next = first_of(d, piece);
    m->end = first_of(d, piece + 1);
    TN_ASSERT(m->next <= m->end && m->end <= d->n_live);
    m->visit = visit;
    m->visitor = visitor;
    tn_status status = walk_table(d->all, piece, sift, m, err);
    if (status == TN_OK) {
        status = remove_before(m, UINT64_MAX, UINT32_MAX, err);
    }
    TN_ASSERT(status != TN_OK || m->next == m->end);
    tn_free(m);
    return status;
}

/* ---- dictionary ---- */

/* {"model_id":"..","segments":["wide",..],"slots":[..]} */
static tn_status dict_json(const table_source *s, tn_text *out, tn_error *err)
{
    const tn_export_rows *r = s->rows;
    const char *names[TN_SEGMENTS_MAX];
    uint32_t n = 0;
    TN_TRY(tn_dict_segments(s->layout, names, &n, err));
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
    TN_ASSERT(strlen(hex) == 2 * (size_t)TN_MODEL_ID_BYTES);
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
        .layout = table->layout,
        .type = r->values,
        .check_groups = r->plan->run->export.check_groups,
        .json = json,
        .partitions = TN_PARTITIONS,
        .last = TN_PARTITIONS - 1,
        .team = r->team,
    };
    read_id(r->model_id, spec.model_id);
    tn_dict_source source = {.n_pieces = TN_PARTITIONS, .walk = walk_table, .arg = table};
    export_delta delta = {.all = table, .layout = spec.layout, .type = spec.type};
    tn_status status = TN_OK;
    if (r->base != NULL) {
        source.walk = walk_delta;
        source.arg = &delta;
        status = delta_open(&delta, r->base, &spec, err);
    }
    tn_dict_written written;
    if (status == TN_OK) {
        status = tn_dict_write(path, &spec, &source, &written, err);
    }
    if (status == TN_OK) {
        *out = (tn_export_done){written.bytes, written.rows, written.crc};
    }
    delta_close(&delta);
    return status;
}

tn_status tn_export_dict(const tn_export_rows *r, const char *path, tn_export_done *out,
                         tn_error *err)
{
    tn_text json = {0};
    tn_arena *arena = tn_arena_new(1 << 16);
    table_source table = {.rows = r};
    place_segments(&table, arena);
    tn_status status = dict_json(&table, &json, err);
    if (status == TN_OK) {
        status = write_dict(r, &table, json.data, path, out, err);
    }
    tn_text_done(&json);
    tn_arena_free(arena);
    return status;
}
