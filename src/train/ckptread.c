/* ckptread.c - reading the files of a checkpoint into a worker; see ckptparts.h. */
#include "train/ckptparts.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/safetensors.h"

#include <string.h>

/* ---- table ---- */

static tn_status restore_row(void *arg, const tn_snapshot_row *row, tn_error *err)
{
    tn_worker *w = arg;
    tn_row_view view = {
        .key = row->key,
        .group = row->group,
        .present = row->present,
        .last_seen = row->last_seen,
        .show = row->show,
        .click = row->click,
        .data = row->values,
        .n_floats = row->n_values,
    };
    return tn_table_restore(w->shard.table, &view, err);
}

tn_status tn_ckpt_read_shard(const char *path, const tn_row_schema *schema, tn_worker *w,
                             tn_error *err)
{
    tn_snapshot *s = NULL;
    TN_TRY(tn_snapshot_open(&s, path, err));
    tn_arena *arena = tn_arena_new(1 << 12);
    const tn_snapshot_layout *layout = tn_row_schema_layout(schema, arena);
    uint8_t hash[TN_SNAPSHOT_SCHEMA_BYTES];
    tn_status status = tn_row_schema_hash(schema, hash, err);
    const tn_snapshot_head *head = tn_snapshot_head_of(s);
    if (status == TN_OK && memcmp(hash, head->schema, sizeof hash) != 0) {
        status = tn_fail(err, TN_E_CKPT,
                         "'%s' belongs to another checkpoint: its rows are laid out "
                         "differently",
                         path);
    }
    for (uint32_t p = head->first; status == TN_OK && p <= head->last; p++) {
        status = tn_snapshot_read(s, p, layout, restore_row, w, err);
    }
    tn_arena_free(arena);
    tn_snapshot_close(s);
    return status;
}

/* ---- arrays ---- */

typedef struct document {
    tn_map map;
    tn_arena *arena;
    tn_safetensors tensors;
} document;

static tn_status open_document(document *d, const char *path, tn_error *err)
{
    *d = (document){0};
    TN_TRY(tn_map_file(&d->map, path, err));
    d->arena = tn_arena_new(1 << 12);
    return tn_safetensors_read(&d->tensors, &d->map, d->arena, path, err);
}

static void close_document(document *d)
{
    tn_arena_free(d->arena);
    tn_unmap(&d->map);
}

static tn_status read_flat(const document *d, const char *path, const char *name, float *out,
                           size_t n, tn_error *err)
{
    tn_tensor_want want = {.name = name, .dtype = "F32", .rank = 1, .shape = {n}};
    const tn_tensor *tensor = NULL;
    TN_TRY(tn_tensor_get(&d->tensors, &want, path, &tensor, err));
    memcpy(out, tensor->data, n * sizeof *out);
    return TN_OK;
}

static tn_status read_dense(const document *d, const char *path, tn_worker *w, tn_error *err)
{
    size_t n = tn_params_size(w->params);
    TN_TRY(read_flat(d, path, "w", tn_params_weights(w->params), n, err));
    tn_state spec[TN_STATES_MAX];
    uint32_t n_states = tn_dense_states(w->shard.dense, spec);
    for (uint32_t i = 0; i < n_states; i++) {
        TN_TRY(read_flat(d, path, spec[i].name, tn_dense_state(w->shard.dense, i), n, err));
    }
    return TN_OK;
}

tn_status tn_ckpt_read_dense(const char *path, tn_worker *w, uint64_t t, tn_error *err)
{
    document d;
    tn_status status = open_document(&d, path, err);
    if (status == TN_OK) {
        status = read_dense(&d, path, w, err);
    }
    if (status == TN_OK) {
        tn_dense_set_t(w->shard.dense, t);
    }
    close_document(&d);
    return status;
}

tn_status tn_ckpt_read_metrics(const char *path, tn_metrics *m, tn_error *err)
{
    enum { BINS = 1 << 20, SUMS = 6 };
    document d;
    const tn_tensor *histogram = NULL;
    const tn_tensor *sums = NULL;
    tn_tensor_want want_histogram = {"hist.click", "U64", 2, {2, BINS}};
    tn_tensor_want want_sums = {"sums.click", "U64", 2, {SUMS, 2}};
    tn_status status = open_document(&d, path, err);
    if (status == TN_OK) {
        status = tn_tensor_get(&d.tensors, &want_histogram, path, &histogram, err);
    }
    if (status == TN_OK) {
        status = tn_tensor_get(&d.tensors, &want_sums, path, &sums, err);
    }
    uint64_t *cells = NULL;
    if (status == TN_OK) {
        cells = tn_try_alloc(2UL * BINS, sizeof *cells, "a histogram", err);
        status = cells != NULL ? TN_OK : TN_E_MEMORY;
    }
    if (status == TN_OK) {
        uint64_t pairs[SUMS][2];
        memcpy(cells, histogram->data, histogram->size);
        memcpy(pairs, sums->data, sizeof pairs);
        tn_metrics_restore(m, cells, &pairs[0][0]);
    }
    tn_free(cells);
    close_document(&d);
    return status;
}
