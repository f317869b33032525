/* dictwrite.c - see dictwrite.h; bytes in dictformat.h.
 *
 * Three kinds of walks over the source: one counts, one takes the keys, and one per table writes
 * its rows. So every offset is known before the first byte is written.
 */
#include "io/dictwrite.h"

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/keyset.h" /* tn_partition_of */
#include "base/text.h"
#include "io/dictplan.h"

/* Larger than the file's own buffer, so that rows are not copied into that one too. */
enum { ROWS_BUFFER = 512 << 10 };

typedef struct writer {
    tn_dict_plan *plan;
    const tn_dict_spec *spec;
    tn_file *file;
    uint64_t at;    /* bytes written */
    uint32_t chunk; /* crc of the chunk that is being written */
    tn_text crcs;   /* of those that are full */
    char *buffer;   /* ROWS_BUFFER: rows on their way, zeros behind them */
    size_t buffered;
    struct {
        uint32_t group;
        uint16_t present;
        bool removed;
        tn_dict_set *set; /* NULL: there was none yet */
    } last;               /* the set of the row before */
    uint32_t table;       /* whose rows are written */
    uint64_t last_key;    /* of this walk */
    bool any;
    uint64_t names_at, json_at, crc_at, names_bytes, json_bytes;
} writer;

/* ---- walks ---- */

static tn_status in_order(writer *w, const tn_dict_entry *e, tn_error *err)
{
    TN_ASSERT(e->group < w->spec->layout->n_groups && (!e->removed || w->spec->delta));
    uint32_t partition = tn_partition_of(e->key, w->spec->partitions);
    if ((w->any && e->key < w->last_key) || partition < w->spec->first ||
        partition > w->spec->last) {
        return tn_fail(err, TN_E_CKPT,
                       "keys of a dictionary do not ascend, or not in its partitions");
    }
    w->any = true;
    w->last_key = e->key;
    return TN_OK;
}

static bool is_left_out(const tn_dict_entry *e)
{
    return e->present == 0 && !e->removed;
}

/* tn_dict_plan_set, which runs of alike rows need not ask. */
static tn_dict_set *set_of(writer *w, const tn_dict_entry *e, tn_error *err)
{
    if (w->last.set == NULL || e->group != w->last.group || e->present != w->last.present ||
        e->removed != w->last.removed) {
        w->last.set = tn_dict_plan_set(w->plan, e, err);
        w->last.group = e->group;
        w->last.present = e->present;
        w->last.removed = e->removed;
    }
    return w->last.set;
}

static tn_status count_row(void *visitor, const tn_dict_entry *e, tn_error *err)
{
    writer *w = visitor;
    TN_TRY(in_order(w, e, err));
    if (is_left_out(e)) {
        return TN_OK;
    }
    tn_dict_set *set = set_of(w, e, err);
    if (set == NULL) {
        return err != NULL ? err->code : TN_E_MEMORY;
    }
    set->rows++;
    set->group_rows[e->group]++;
    return TN_OK;
}

static tn_status changed(tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "the rows changed while a dictionary was written");
}

/* The table of a row that was counted; NULL: it was not. */
static tn_dict_plan_table *table_of(writer *w, const tn_dict_entry *e, tn_error *err)
{
    uint32_t known = w->plan->n_sets;
    const tn_dict_set *set = set_of(w, e, err);
    if (set == NULL || w->plan->n_sets != known) {
        return NULL;
    }
    return &w->plan->table[set->table];
}

static tn_status take_key(void *visitor, const tn_dict_entry *e, tn_error *err)
{
    writer *w = visitor;
    if (is_left_out(e)) {
        return TN_OK;
    }
    tn_dict_plan_table *t = table_of(w, e, err);
    if (t == NULL || t->n == t->rows) {
        return changed(err);
    }
    t->key[t->n] = e->key;
    t->group[t->n] = e->group;
    t->n++;
    return TN_OK;
}

static tn_status put(writer *w, const void *data, size_t size, tn_error *err)
{
    const char *from = data;
    while (size > 0) {
        uint64_t done = w->at < TN_DICT_HEADER ? 0 : (w->at - TN_DICT_HEADER) % TN_DICT_CHUNK;
        size_t room = (size_t)(TN_DICT_CHUNK - done);
        size_t n = size < room ? size : room;
        TN_TRY(tn_file_write(w->file, from, n, err));
        w->chunk = tn_crc32c(w->chunk, from, n);
        w->at += n;
        from += n;
        size -= n;
        if (n == room) {
            tn_text_add_u32le(&w->crcs, w->chunk);
            w->chunk = 0;
        }
    }
    return TN_OK;
}

static tn_status pad_to(writer *w, uint64_t at, tn_error *err)
{
    static const char zeros[TN_DICT_ALIGN];
    TN_ASSERT(at >= w->at && at - w->at < TN_DICT_ALIGN);
    return put(w, zeros, (size_t)(at - w->at), err);
}

static tn_status flush_rows(writer *w, tn_error *err)
{
    TN_TRY(put(w, w->buffer, w->buffered, err));
    memset(w->buffer, 0, w->buffered);
    w->buffered = 0;
    return TN_OK;
}

static tn_status not_finite(const writer *w, const tn_dict_entry *e, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "a weight of group '%s', key %016llx is not finite",
                   w->spec->layout->group[e->group].name, (unsigned long long)e->key);
}

/* to := from; false: not all are finite. `to` may be NULL. */
static bool copy_finite(uint32_t n, const float *from, char *to)
{
    const uint32_t infinite = 0x7f800000;
    uint32_t bad = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, from + i, sizeof bits);
        bad |= (bits & infinite) == infinite;
        if (to != NULL) {
            memcpy(to + (size_t)i * sizeof bits, &bits, sizeof bits);
        }
    }
    return bad == 0;
}

/* One segment into its place of a row; an absent one stays zero. */
static tn_status put_segment(const writer *w, const tn_dict_column *c, const tn_dict_entry *e,
                             char *row, tn_error *err)
{
    if ((e->present >> c->of_record & 1) == 0) {
        return TN_OK;
    }
    const float *values = e->values + c->at;
    if (w->spec->type == TN_DICT_F32) {
        return copy_finite(c->dim, values, row + c->offset) ? TN_OK : not_finite(w, e, err);
    }
    if (!copy_finite(c->dim, values, NULL)) {
        return not_finite(w, e, err);
    }
    float scale = tn_dict_encode(w->spec->type, c->dim, values, row + c->offset);
    if (c->scale != TN_DICT_NO_SCALE) {
        memcpy(row + c->scale, &scale, sizeof scale);
    }
    return TN_OK;
}

static tn_status put_row(void *visitor, const tn_dict_entry *e, tn_error *err)
{
    writer *w = visitor;
    if (is_left_out(e)) {
        return TN_OK;
    }
    tn_dict_plan_table *t = table_of(w, e, err);
    if (t == NULL) {
        return changed(err);
    }
    if (t != &w->plan->table[w->table]) {
        return TN_OK;
    }
    if (t->n == t->rows || t->key[t->n] != e->key) {
        return changed(err);
    }
    t->n++;
    if (t->stride > ROWS_BUFFER - w->buffered) {
        TN_TRY(flush_rows(w, err));
    }
    char *row = w->buffer + w->buffered;
    TN_ASSERT(t->stride <= ROWS_BUFFER);
    w->buffered += t->stride;
    for (uint32_t i = 0; i < t->n_columns; i++) {
        TN_TRY(put_segment(w, &t->column[i], e, row, err));
    }
    return TN_OK;
}

/* ---- layout of the file ---- */

static uint64_t aligned(uint64_t at)
{
    return (at + TN_DICT_ALIGN - 1) / TN_DICT_ALIGN * TN_DICT_ALIGN;
}

static void place_all(writer *w)
{
    tn_dict_plan *p = w->plan;
    const tn_layout *layout = w->spec->layout;
    w->names_at = TN_DICT_HEADER + (uint64_t)layout->n_groups * TN_DICT_GROUP +
                  (uint64_t)p->n_tables * TN_DICT_TABLE;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        w->names_bytes += strlen(layout->group[g].name) + 1;
    }
    w->json_at = w->names_at + w->names_bytes;
    w->json_bytes = strlen(w->spec->json);
    uint64_t at = w->json_at + w->json_bytes;
    for (uint32_t i = 0; i < p->n_tables; i++) {
        tn_dict_plan_table *t = &p->table[i];
        tn_dict_plan_buckets(p, t);
        t->start_at = aligned(at);
        t->key_at = aligned(t->start_at + ((uint64_t)t->buckets + 1) * sizeof(uint32_t));
        t->rows_at = aligned(t->key_at + t->rows * sizeof(uint64_t));
        at = t->rows_at + t->rows * t->stride;
        if (w->spec->check_groups) {
            t->group_at = aligned(at);
            at = t->group_at + t->rows * sizeof(uint16_t);
        }
    }
    w->crc_at = aligned(at);
}

static uint32_t chunks_of(const writer *w)
{
    return (uint32_t)((w->crc_at - TN_DICT_HEADER + TN_DICT_CHUNK - 1) / TN_DICT_CHUNK);
}

static tn_status put_header(writer *w, tn_error *err)
{
    const tn_dict_spec *s = w->spec;
    char h[TN_DICT_HEADER] = {0};
    tn_store_u64(h, TN_DICT_MAGIC);
    tn_store_u16(h + 8, 1);
    tn_store_u32(h + 12, TN_DICT_HEADER);
    memcpy(h + 16, s->model_id, TN_MODEL_ID_BYTES);
    if (s->delta) {
        memcpy(h + 32, s->base_id, TN_MODEL_ID_BYTES);
    }
    tn_store_u64(h + 48, w->crc_at + ((uint64_t)chunks_of(w) + 1) * sizeof(uint32_t));
    tn_store_u64(h + 56, w->plan->rows);
    tn_store_u64(h + 64, TN_DICT_HEADER);
    tn_store_u64(h + 72, w->names_at);
    tn_store_u64(h + 80, w->json_at);
    tn_store_u64(h + 88, w->crc_at);
    tn_store_u32(h + 96, s->layout->n_groups);
    tn_store_u32(h + 100, w->plan->n_tables);
    tn_store_u32(h + 104, (uint32_t)w->json_bytes);
    tn_store_u32(h + 108, chunks_of(w));
    tn_store_u32(h + 112, (s->delta ? (uint32_t)TN_DICT_DELTA : 0) |
                              (s->check_groups ? (uint32_t)TN_DICT_GROUP_ARRAYS : 0));
    tn_store_u16(h + 116, (uint16_t)s->partitions);
    tn_store_u16(h + 118, (uint16_t)s->first);
    tn_store_u16(h + 120, (uint16_t)s->last);
    tn_store_u16(h + 122, TN_DICT_CHUNK_LOG);
    tn_store_u32(h + 124, tn_crc32c(0, h, TN_DICT_HEADER - sizeof(uint32_t)));
    TN_TRY(tn_file_write(w->file, h, sizeof h, err));
    w->at = sizeof h;
    return TN_OK;
}

static tn_status put_groups(writer *w, tn_error *err)
{
    const tn_layout *layout = w->spec->layout;
    uint32_t name_at = 0;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        char out[TN_DICT_GROUP] = {0};
        uint16_t table[TN_DICT_GROUP_TABLES];
        uint32_t n = tn_dict_plan_group(w->plan, g, table);
        uint32_t length = (uint32_t)strlen(layout->group[g].name);
        tn_store_u64(out, layout->group[g].salt);
        tn_store_u32(out + 8, name_at);
        tn_store_u16(out + 12, (uint16_t)length);
        out[14] = (char)n;
        for (uint32_t i = 0; i < n; i++) {
            tn_store_u16(out + 16 + (size_t)i * 2, table[i]);
        }
        name_at += length + 1;
        TN_TRY(put(w, out, sizeof out, err));
    }
    return TN_OK;
}

static tn_status put_tables(writer *w, tn_error *err)
{
    for (uint32_t i = 0; i < w->plan->n_tables; i++) {
        const tn_dict_plan_table *t = &w->plan->table[i];
        char out[TN_DICT_TABLE] = {0};
        tn_store_u64(out, t->rows);
        tn_store_u64(out + 8, t->start_at);
        tn_store_u64(out + 16, t->key_at);
        tn_store_u64(out + 24, t->rows_at);
        tn_store_u64(out + 32, t->group_at);
        tn_store_u64(out + 40, t->base);
        tn_store_u32(out + 48, t->buckets);
        tn_store_u32(out + 52, t->stride);
        out[56] = (char)t->shift;
        out[57] = (char)t->n_columns;
        tn_store_u16(out + 58, t->set->present == 0 ? TN_DICT_REMOVED : 0);
        for (uint32_t k = 0; k < t->n_columns; k++) {
            char *at = out + TN_DICT_SEGMENTS_AT + (size_t)k * TN_DICT_SEGMENT;
            const tn_dict_column *c = &t->column[k];
            tn_store_u32(at, c->offset);
            tn_store_u32(at + 4, c->scale);
            tn_store_u16(at + 8, (uint16_t)c->dim);
            at[10] = (char)w->spec->type;
            at[11] = (char)c->segment;
        }
        TN_TRY(put(w, out, sizeof out, err));
    }
    return TN_OK;
}

static tn_status put_names(writer *w, tn_error *err)
{
    const tn_layout *layout = w->spec->layout;
    for (uint32_t g = 0; g < layout->n_groups; g++) {
        TN_TRY(put(w, layout->group[g].name, strlen(layout->group[g].name) + 1, err));
    }
    return put(w, w->spec->json, (size_t)w->json_bytes, err);
}

/* start[b] for all buckets and one behind. */
static tn_status put_starts(writer *w, const tn_dict_plan_table *t, tn_error *err)
{
    uint64_t i = 0;
    for (uint64_t b = 0; b <= t->buckets; b++) {
        while (i < t->rows && (b == t->buckets || (t->shift < TN_DICT_ONE_BUCKET &&
                                                   (t->key[i] - t->base) >> t->shift < b))) {
            i++;
        }
        uint32_t start = (uint32_t)i;
        TN_TRY(put(w, &start, sizeof start, err));
    }
    return TN_OK;
}

static tn_status put_table_data(writer *w, const tn_dict_source *source, tn_error *err)
{
    tn_dict_plan_table *t = &w->plan->table[w->table];
    TN_TRY(pad_to(w, t->start_at, err));
    TN_TRY(put_starts(w, t, err));
    TN_TRY(pad_to(w, t->key_at, err));
    TN_TRY(put(w, t->key, (size_t)t->rows * sizeof *t->key, err));
    TN_TRY(pad_to(w, t->rows_at, err));
    if (t->stride > 0) {
        t->n = 0;
        TN_TRY(source->walk(source->arg, put_row, w, err));
        TN_TRY(flush_rows(w, err));
        if (t->n != t->rows) {
            return changed(err);
        }
    }
    if (!w->spec->check_groups) {
        return TN_OK;
    }
    TN_TRY(pad_to(w, t->group_at, err));
    return put(w, t->group, (size_t)t->rows * sizeof *t->group, err);
}

static tn_status put_all(writer *w, const tn_dict_source *source, tn_error *err)
{
    TN_TRY(put_header(w, err));
    TN_TRY(put_groups(w, err));
    TN_TRY(put_tables(w, err));
    TN_TRY(put_names(w, err));
    for (w->table = 0; w->table < w->plan->n_tables; w->table++) {
        TN_TRY(put_table_data(w, source, err));
    }
    TN_TRY(pad_to(w, w->crc_at, err));
    if ((w->at - TN_DICT_HEADER) % TN_DICT_CHUNK != 0) {
        tn_text_add_u32le(&w->crcs, w->chunk);
    }
    TN_TRY(tn_text_check(&w->crcs, "a dictionary", err));
    tn_text_add_u32le(&w->crcs, tn_crc32c(0, w->crcs.data, w->crcs.size));
    TN_TRY(tn_text_check(&w->crcs, "a dictionary", err));
    return tn_file_write(w->file, w->crcs.data, w->crcs.size, err);
}

static tn_status plan_all(writer *w, const tn_dict_source *source, tn_error *err)
{
    TN_TRY(tn_dict_plan_new(&w->plan, w->spec, err));
    TN_TRY(source->walk(source->arg, count_row, w, err));
    TN_TRY(tn_dict_plan_tables(w->plan, err));
    w->last.set = NULL; /* the sets have other places now */
    TN_TRY(source->walk(source->arg, take_key, w, err));
    for (uint32_t i = 0; i < w->plan->n_tables; i++) {
        if (w->plan->table[i].n != w->plan->table[i].rows) {
            return changed(err);
        }
    }
    place_all(w);
    return TN_OK;
}

tn_status tn_dict_write(const char *path, const tn_dict_spec *spec, const tn_dict_source *source,
                        tn_dict_written *out, tn_error *err)
{
    TN_ASSERT(spec->type < TN_DICT_TYPES && spec->partitions <= UINT16_MAX + 1U);
    TN_ASSERT(strlen(spec->json) <= TN_DICT_JSON_MAX);
    tn_error local = {0};
    writer w = {.spec = spec};
    tn_status status = plan_all(&w, source, err != NULL ? err : &local);
    if (status == TN_OK) {
        w.buffer = tn_try_alloc(ROWS_BUFFER, 1, "rows of a dictionary", err);
        status = w.buffer != NULL ? tn_file_create(&w.file, path, err) : TN_E_MEMORY;
    }
    if (status == TN_OK) {
        status = put_all(&w, source, err != NULL ? err : &local);
    }
    if (status == TN_OK) {
        *out = (tn_dict_written){tn_file_size(w.file), w.plan->rows, tn_file_crc(w.file)};
        status = tn_file_commit(w.file, err);
    } else {
        tn_file_abandon(w.file);
    }
    tn_text_done(&w.crcs);
    tn_free(w.buffer);
    tn_dict_plan_free(w.plan);
    return status;
}
