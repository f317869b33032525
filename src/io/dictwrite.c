/* dictwrite.c - see dictwrite.h; bytes in dictformat.h.
 *
 * The first walk over the source notes keys and counts sets, so every offset is known before the
 * first byte is written; then one walk per table writes its rows.
 */
#include "io/dictwrite.h"

#include "base/keyset.h" /* tn_partition_of */
#include "io/dictnotes.h"
#include "io/dictplan.h"
#include "io/dictput.h"

#include <string.h>

enum { AT_ONCE = 1024 }; /* keys */

typedef struct writer {
    tn_dict_plan *plan;
    const tn_dict_spec *spec;
    tn_dict_notes notes;
    tn_dict_out out;
    struct {
        uint32_t group;
        uint16_t present;
        bool removed;
        tn_dict_set *set; /* NULL: there was none yet */
    } last;               /* the set of the row before */
    uint64_t last_key;    /* of the first walk */
    bool any;
    uint32_t table; /* whose rows are written .. */
    struct {
        const tn_dict_list *list; /* NULL: behind the last row */
        uint32_t i;
    } next; /* .. and the note of the row that must come next */
} writer;

/* ---- the first walk ---- */

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

static tn_status note_row(void *visitor, const tn_dict_entry *e, tn_error *err)
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
    return tn_dict_note(&w->notes, e->key, e->group, set->met, err);
}

/* ---- walks that write rows ---- */

static tn_status changed(tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "the rows changed while a dictionary was written");
}

static tn_status not_finite(const writer *w, const tn_dict_entry *e, tn_error *err)
{
    return tn_fail(err, TN_E_CKPT, "a weight of group '%s', key %016llx is not finite",
                   w->spec->layout->group[e->group].name, (unsigned long long)e->key);
}

/* to := from; false: not all are finite. `to` may be NULL. Two at a time: of a number that is not
 * finite all bits of the exponent are set, and one more in the lowest of them carries into the
 * sign.
 */
static bool copy_finite(uint32_t n, const float *from, char *to)
{
    const uint64_t signs = 0x8000000080000000;
    const uint64_t one_more = 0x0080000000800000;
    uint64_t bad = 0;
    uint32_t i = 0;
    for (; i + 2 <= n; i += 2) {
        uint64_t pair;
        memcpy(&pair, from + i, sizeof pair);
        bad |= (pair & ~signs) + one_more;
    }
    if (i < n) {
        uint32_t single;
        memcpy(&single, from + i, sizeof single);
        bad |= (single & ~(uint32_t)signs) + (uint32_t)one_more;
    }
    if (to != NULL) {
        memcpy(to, from, n * sizeof *from);
    }
    return (bad & signs) == 0;
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

static tn_status place_row(const writer *w, const tn_dict_plan_table *t, const tn_dict_entry *e,
                           char *row, tn_error *err)
{
    uint16_t all = t->set->present;
    if (t->is_run && (e->present & all) == all) {
        uint32_t n = t->stride / (uint32_t)sizeof(float);
        return copy_finite(n, e->values + t->column[0].at, row) ? TN_OK : not_finite(w, e, err);
    }
    for (uint32_t i = 0; i < t->n_columns; i++) {
        TN_TRY(put_segment(w, &t->column[i], e, row, err));
    }
    return TN_OK;
}

/* Whether this is the row that was noted next. */
static bool follows(writer *w, const tn_dict_entry *e, const tn_dict_set *set)
{
    const tn_dict_list *l = w->next.list;
    if (l == NULL || set == NULL || l->key[w->next.i] != e->key || l->set[w->next.i] != set->met) {
        return false;
    }
    if (++w->next.i == l->n) {
        w->next.list = l->next;
        w->next.i = 0;
    }
    return true;
}

static tn_status put_row(void *visitor, const tn_dict_entry *e, tn_error *err)
{
    writer *w = visitor;
    if (is_left_out(e)) {
        return TN_OK;
    }
    const tn_dict_set *set = set_of(w, e, err);
    if (!follows(w, e, set)) {
        return changed(err);
    }
    if (set->table != w->table) {
        return TN_OK;
    }
    const tn_dict_plan_table *t = &w->plan->table[w->table];
    TN_TRY(place_row(w, t, e, tn_dict_row_place(&w->out), err));
    return tn_dict_row_done(&w->out, t->stride, err);
}

static tn_status put_rows(writer *w, const tn_dict_source *source, tn_error *err)
{
    w->next.list = w->notes.first;
    w->next.i = 0;
    TN_TRY(source->walk(source->arg, put_row, w, err));
    return w->next.list == NULL ? TN_OK : changed(err);
}

/* ---- what the notes say ---- */

/* Calls put for all keys of the table, some at a time. */
typedef struct keys {
    const tn_dict_plan_table *table;
    uint64_t key[AT_ONCE];
    uint32_t n;
    uint64_t rows;   /* before these */
    uint32_t bucket; /* the first whose start is not written */
} keys;

typedef tn_status put_keys(writer *w, keys *k, tn_error *err);

static tn_status each_key(writer *w, put_keys *put, keys *k, tn_error *err)
{
    for (const tn_dict_list *l = w->notes.first; l != NULL; l = l->next) {
        for (uint32_t i = 0; i < tn_tile_count(l->n, AT_ONCE); i++) {
            tn_range run = tn_tile(l->n, AT_ONCE, i);
            k->n = tn_dict_keys_of(l, run, w->plan->table_of, w->table, k->key);
            TN_TRY(put(w, k, err));
            k->rows += k->n;
        }
    }
    return k->rows == k->table->rows ? TN_OK : changed(err);
}

static tn_status put_key(writer *w, keys *k, tn_error *err)
{
    return tn_dict_put(&w->out, k->key, k->n * sizeof *k->key, err);
}

/* Starts of buckets up to and with `last`: all of them begin with the row `at`. */
static tn_status put_starts(writer *w, keys *k, uint64_t last, uint64_t at, tn_error *err)
{
    uint32_t start = (uint32_t)at;
    for (; k->bucket <= last; k->bucket++) {
        TN_TRY(tn_dict_put(&w->out, &start, sizeof start, err));
    }
    return TN_OK;
}

static tn_status put_buckets(writer *w, keys *k, tn_error *err)
{
    const tn_dict_plan_table *t = k->table;
    for (uint32_t i = 0; i < k->n; i++) {
        uint64_t b = t->shift < TN_DICT_ONE_BUCKET ? (k->key[i] - t->base) >> t->shift : 0;
        if (b >= k->bucket) {
            TN_TRY(put_starts(w, k, b, k->rows + i, err));
        }
    }
    return TN_OK;
}

static tn_status put_groups(writer *w, tn_error *err)
{
    uint16_t group[AT_ONCE];
    for (const tn_dict_list *l = w->notes.first; l != NULL; l = l->next) {
        for (uint32_t i = 0; i < tn_tile_count(l->n, AT_ONCE); i++) {
            tn_range run = tn_tile(l->n, AT_ONCE, i);
            uint32_t n = tn_dict_groups_of(l, run, w->plan->table_of, w->table, group);
            TN_TRY(tn_dict_put(&w->out, group, n * sizeof *group, err));
        }
    }
    return TN_OK;
}

static tn_status put_table(writer *w, const tn_dict_source *source, tn_error *err)
{
    const tn_dict_plan_table *t = &w->plan->table[w->table];
    keys starts = {.table = t};
    keys all = {.table = t};
    TN_TRY(tn_dict_put_gap(&w->out, t->start_at, err));
    TN_TRY(each_key(w, put_buckets, &starts, err));
    TN_TRY(put_starts(w, &starts, t->buckets, t->rows, err));
    TN_TRY(tn_dict_put_gap(&w->out, t->key_at, err));
    TN_TRY(each_key(w, put_key, &all, err));
    TN_TRY(tn_dict_put_gap(&w->out, t->rows_at, err));
    if (t->stride > 0) {
        TN_TRY(put_rows(w, source, err));
    }
    if (!w->spec->check_groups) {
        return TN_OK;
    }
    TN_TRY(tn_dict_put_gap(&w->out, t->group_at, err));
    return put_groups(w, err);
}

static tn_status put_all(writer *w, const tn_dict_source *source, tn_error *err)
{
    TN_TRY(tn_dict_put_head(&w->out, w->plan, err));
    for (w->table = 0; w->table < w->plan->n_tables; w->table++) {
        TN_TRY(put_table(w, source, err));
    }
    TN_TRY(tn_dict_put_gap(&w->out, w->plan->crc_at, err));
    return tn_dict_put_checksums(&w->out, err);
}

static tn_status plan_all(writer *w, const tn_dict_source *source, tn_error *err)
{
    TN_TRY(tn_dict_plan_new(&w->plan, w->spec, err));
    TN_TRY(source->walk(source->arg, note_row, w, err));
    TN_TRY(tn_dict_plan_tables(w->plan, err));
    w->last.set = NULL; /* the sets have other places now */
    tn_dict_plan_places(w->plan);
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
        status = tn_dict_out_open(&w.out, path, err);
    }
    if (status == TN_OK) {
        status = put_all(&w, source, err != NULL ? err : &local);
    }
    if (status == TN_OK) {
        tn_file *f = w.out.file;
        *out = (tn_dict_written){tn_file_size(f), w.plan->rows, tn_file_crc(f)};
        status = tn_file_commit(f, err);
    } else {
        tn_file_abandon(w.out.file);
    }
    tn_dict_out_done(&w.out);
    tn_dict_notes_done(&w.notes);
    tn_dict_plan_free(w.plan);
    return status;
}
