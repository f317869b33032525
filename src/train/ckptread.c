/* ckptread.c - reading the files of a checkpoint into a worker; see ckptparts.h. */
#include "train/ckptparts.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/safetensors.h"

#include <string.h>

/* ---- table ---- */

/* Each tile opens the file for itself, some 100 us, and at 10 million rows reads 8 MB of it. */
enum { TILE_PARTITIONS = 8, TILES_MAX = TN_PARTITIONS / TILE_PARTITIONS };

/* One shard file, read by the team: a tile is some partitions. */
typedef struct shard_job {
    const char *path;
    tn_worker *w;
    const tn_snapshot_layout *layout;
    uint32_t first, n_partitions;
    _Atomic uint32_t bad; /* the first tile that is known to fail; TILES_MAX: none */
    /* How each tile went; those behind a bad one may not have been read. */
    tn_status status[TILES_MAX];
    tn_error *err;
} shard_job;

static tn_status refill_row(void *arg, const tn_snapshot_row *row, tn_error *err)
{
    if (row->removed) {
        return tn_refill_remove(arg, row->key, row->group, err);
    }
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
    return tn_refill_add(arg, &view, err);
}

static tn_status read_partitions(const shard_job *job, tn_range run, tn_error *err)
{
    tn_snapshot *s = NULL;
    TN_TRY(tn_snapshot_open(&s, job->path, err));
    tn_status status = TN_OK;
    for (uint32_t i = run.from; i < run.to && status == TN_OK; i++) {
        uint32_t p = job->first + i;
        tn_refill refill;
        tn_refill_begin(&refill, job->w->shard.table, p);
        status = tn_snapshot_read(s, p, job->layout, refill_row, &refill, err);
        tn_refill_end(&refill);
    }
    tn_snapshot_close(s);
    return status;
}

/* In whatever order tiles end: the least of those that failed stays. */
static void note_bad(shard_job *job, uint32_t tile)
{
    uint32_t bad = atomic_load(&job->bad);
    while (tile < bad && !atomic_compare_exchange_weak(&job->bad, &bad, tile)) {
    }
}

static void read_tile(void *arg, uint32_t tile)
{
    shard_job *job = arg;
    if (tile > atomic_load(&job->bad)) {
        return; /* nobody will ask */
    }
    job->status[tile] =
        read_partitions(job, tn_tile(job->n_partitions, TILE_PARTITIONS, tile), &job->err[tile]);
    if (job->status[tile] != TN_OK) {
        note_bad(job, tile);
    }
}

/* The fault that is told is the first one in the file, however many threads read it. */
static tn_status read_rows(shard_job *job, const tn_snapshot_head *head, tn_arena *arena,
                           tn_error *err)
{
    if (head->partitions != TN_PARTITIONS) {
        return tn_fail(err, TN_E_CKPT, "'%s' has %u partitions, %d are known", job->path,
                       head->partitions, TN_PARTITIONS);
    }
    job->first = head->first;
    job->n_partitions = head->last - head->first + 1;
    uint32_t n_tiles = tn_tile_count(job->n_partitions, TILE_PARTITIONS);
    job->err = TN_NEW_ARRAY(arena, tn_error, n_tiles);
    atomic_store(&job->bad, (uint32_t)TILES_MAX);
    tn_team_run_in_order(job->w->team, n_tiles, read_tile, job);
    uint32_t bad = atomic_load(&job->bad);
    if (bad == TILES_MAX) {
        return TN_OK;
    }
    if (err != NULL) {
        *err = job->err[bad];
    }
    return job->status[bad];
}

tn_status tn_ckpt_read_shard(const char *path, const tn_row_schema *schema, tn_worker *w,
                             tn_error *err)
{
    tn_snapshot *s = NULL;
    TN_TRY(tn_snapshot_open(&s, path, err));
    tn_arena *arena = tn_arena_new(1 << 12);
    shard_job job = {.path = path, .w = w, .layout = tn_row_schema_layout(schema, arena)};
    uint8_t hash[TN_SNAPSHOT_SCHEMA_BYTES];
    tn_status status = tn_row_schema_hash(schema, hash, err);
    const tn_snapshot_head *head = tn_snapshot_head_of(s);
    if (status == TN_OK && memcmp(hash, head->schema, sizeof hash) != 0) {
        status = tn_fail(err, TN_E_CKPT,
                         "'%s' belongs to another checkpoint: its rows are laid out "
                         "differently",
                         path);
    }
    if (status == TN_OK) {
        status = read_rows(&job, head, arena, err);
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

#define CELLS (2UL * TN_MOMENT_BINS)

/* The histogram, whole or, in a delta, as what differs from that of the base, which `m` holds. */
static tn_status read_cells(const document *d, const char *path, const tn_metrics *m,
                            uint64_t *cells, tn_error *err)
{
    const tn_tensor *changes = tn_tensor_find(&d->tensors, "hist.click.changes");
    const tn_tensor *whole = NULL;
    if (changes == NULL) {
        tn_tensor_want want = {"hist.click", "U64", 2, {2, TN_MOMENT_BINS}};
        TN_TRY(tn_tensor_get(&d->tensors, &want, path, &whole, err));
        memcpy(cells, whole->data, whole->size);
        return TN_OK;
    }
    tn_tensor_want want = {"hist.click.changes", "U64", 2, {changes->shape[0], 2}};
    TN_TRY(tn_tensor_get(&d->tensors, &want, path, &changes, err));
    memcpy(cells, tn_metrics_histogram(m), CELLS * sizeof *cells);
    for (uint64_t i = 0; i < changes->shape[0]; i++) {
        uint64_t pair[2];
        memcpy(pair, changes->data + i * sizeof pair, sizeof pair);
        if (pair[0] >= CELLS) {
            return tn_fail(err, TN_E_CKPT, "'%s': a cell %llu of a histogram of %lu", path,
                           (unsigned long long)pair[0], CELLS);
        }
        cells[pair[0]] = pair[1];
    }
    return TN_OK;
}

tn_status tn_ckpt_read_metrics(const char *path, tn_metrics *m, tn_error *err)
{
    document d;
    const tn_tensor *sums = NULL;
    tn_tensor_want want_sums = {"sums.click", "U64", 2, {TN_MOMENT_SUMS, 2}};
    tn_status status = open_document(&d, path, err);
    if (status == TN_OK) {
        status = tn_tensor_get(&d.tensors, &want_sums, path, &sums, err);
    }
    uint64_t *cells = NULL;
    if (status == TN_OK) {
        cells = tn_try_alloc(CELLS, sizeof *cells, "a histogram", err);
        status = cells != NULL ? read_cells(&d, path, m, cells, err) : TN_E_MEMORY;
    }
    if (status == TN_OK) {
        uint64_t pairs[TN_MOMENT_SUMS][2];
        memcpy(pairs, sums->data, sizeof pairs);
        tn_metrics_restore(m, cells, &pairs[0][0]);
    }
    tn_free(cells);
    close_document(&d);
    return status;
}
