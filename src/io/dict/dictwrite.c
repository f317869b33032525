/* dictwrite.c - see dictwrite.h; bytes in dictformat.h.
 *
 * The first walk over the source notes keys and counts sets, so every offset is known before the
 * first byte is written; then one walk per table writes its rows (io/dict/dict_passes.h). All else
 * comes from the notes.
 */
#include "io/dict/dictwrite.h"

#include "io/dict/dict_passes.h"

#include <string.h>

enum { AT_ONCE = 1024 }; /* keys */

/* Calls put for all keys of the table, some at a time. */
typedef struct keys {
    const tn_dict_plan_table *table;
    uint64_t key[AT_ONCE];
    uint32_t n;
    uint64_t rows;   /* before these */
    uint32_t bucket; /* the first whose start is not noted */
    uint32_t start[AT_ONCE];
    uint32_t n_starts; /* that are noted and not written */
} keys;

typedef tn_status put_keys(tn_dict_writer *w, keys *k, tn_error *err);

static tn_status each_key(tn_dict_writer *w, put_keys *put, keys *k, tn_error *err)
{
    for (uint32_t p = 0; p < w->notes.n; p++) {
        const tn_dict_list *l = &w->notes.list[p];
        for (uint32_t i = 0; i < tn_tile_count(l->n, AT_ONCE); i++) {
            tn_range run = tn_tile(l->n, AT_ONCE, i);
            k->n = tn_dict_keys_of(l, run, w->plan->table_of, w->table, k->key);
            TN_TRY(put(w, k, err));
            k->rows += k->n;
        }
    }
    return k->rows == k->table->rows ? TN_OK : tn_dict_changed(err);
}

static tn_status put_key(tn_dict_writer *w, keys *k, tn_error *err)
{
    return tn_dict_put(&w->out, k->key, k->n * sizeof *k->key, err);
}

static tn_status write_starts(tn_dict_writer *w, keys *k, tn_error *err)
{
    uint32_t n = k->n_starts;
    k->n_starts = 0;
    return tn_dict_put(&w->out, k->start, n * sizeof *k->start, err);
}

/* Starts of buckets up to and with `last`: all of them begin with the row `at`. */
static tn_status put_starts(tn_dict_writer *w, keys *k, uint64_t last, uint64_t at, tn_error *err)
{
    for (; k->bucket <= last; k->bucket++) {
        if (k->n_starts == AT_ONCE) {
            TN_TRY(write_starts(w, k, err));
        }
        k->start[k->n_starts++] = (uint32_t)at;
    }
    return TN_OK;
}

static tn_status put_buckets(tn_dict_writer *w, keys *k, tn_error *err)
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

static tn_status put_groups(tn_dict_writer *w, tn_error *err)
{
    uint16_t group[AT_ONCE];
    for (uint32_t p = 0; p < w->notes.n; p++) {
        const tn_dict_list *l = &w->notes.list[p];
        for (uint32_t i = 0; i < tn_tile_count(l->n, AT_ONCE); i++) {
            tn_range run = tn_tile(l->n, AT_ONCE, i);
            uint32_t n = tn_dict_groups_of(l, run, w->plan->table_of, w->table, group);
            TN_TRY(tn_dict_put(&w->out, group, n * sizeof *group, err));
        }
    }
    return TN_OK;
}

static tn_status put_table(tn_dict_writer *w, tn_error *err)
{
    const tn_dict_plan_table *t = &w->plan->table[w->table];
    keys starts = {.table = t};
    keys all = {.table = t};
    TN_TRY(tn_dict_put_gap(&w->out, t->start_at, err));
    TN_TRY(each_key(w, put_buckets, &starts, err));
    TN_TRY(put_starts(w, &starts, t->buckets, t->rows, err));
    TN_TRY(write_starts(w, &starts, err));
    TN_TRY(tn_dict_put_gap(&w->out, t->key_at, err));
    TN_TRY(each_key(w, put_key, &all, err));
    TN_TRY(tn_dict_put_gap(&w->out, t->rows_at, err));
    if (t->stride > 0) {
        TN_TRY(tn_dict_pass_rows(w, err));
    }
    if (!w->spec->check_groups) {
        return TN_OK;
    }
    TN_TRY(tn_dict_put_gap(&w->out, t->group_at, err));
    return put_groups(w, err);
}

static tn_status put_all(tn_dict_writer *w, tn_error *err)
{
    TN_TRY(tn_dict_put_head(&w->out, w->plan, err));
    for (w->table = 0; w->table < w->plan->n_tables; w->table++) {
        TN_TRY(put_table(w, err));
    }
    TN_TRY(tn_dict_put_gap(&w->out, w->plan->crc_at, err));
    return tn_dict_put_checksums(&w->out, err);
}

static tn_status plan_all(tn_dict_writer *w, tn_error *err)
{
    TN_TRY(tn_dict_plan_new(&w->plan, w->spec, err));
    TN_TRY(tn_dict_pass_notes(w, err));
    TN_TRY(tn_dict_plan_tables(w->plan, err));
    tn_dict_plan_places(w->plan);
    return TN_OK;
}

tn_status tn_dict_write(const char *path, const tn_dict_spec *spec, const tn_dict_source *source,
                        tn_dict_written *out, tn_error *err)
{
    TN_ASSERT(spec->type < TN_DICT_TYPES && spec->partitions <= UINT16_MAX + 1U);
    TN_ASSERT(strlen(spec->json) <= TN_DICT_JSON_MAX);
    tn_error local = {0};
    tn_dict_writer w = {.spec = spec, .source = source};
    tn_status status = plan_all(&w, err != NULL ? err : &local);
    if (status == TN_OK) {
        status = tn_dict_out_open(&w.out, path, err);
    }
    if (status == TN_OK) {
        status = tn_disk_need(path, w.plan->crc_at, err); /* the checksums behind are few */
    }
    if (status == TN_OK) {
        status = put_all(&w, err);
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
