/* ckptread.c - reading the files of a checkpoint into a worker; see ckptparts.h. */
#include "train/checkpoint/ckptparts.h"

#include "base/core/alloc.h"
#include "base/core/number.h"
#include "base/file/file.h"
#include "base/file/safetensors.h"

#include <string.h>

/* ---- table ---- */

/* Each tile opens the file for itself, some 100 us, and at 10 million rows reads 8 MB of it. */
enum { TILE_PARTITIONS = 8, TILES_MAX = TN_PARTITIONS / TILE_PARTITIONS };

/* One shard file, or what of it is this worker's, read by the team: a tile is some partitions. */
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

/* The partitions of the file that are this worker's; perhaps none. */
static void cut_to_own(shard_job *job, const tn_snapshot_head *head)
{
    const uint32_t *own = job->w->shares->owners.from + job->w->rank;
    uint32_t from = head->first > own[0] ? head->first : own[0];
    uint32_t to = head->last + 1 < own[1] ? head->last + 1 : own[1];
    job->first = from;
    job->n_partitions = from < to ? to - from : 0;
}

/* The fault that is told is the first one in the file, however many threads read it. */
static tn_status read_rows(shard_job *job, const tn_snapshot_head *head, tn_arena *arena,
                           tn_error *err)
{
    if (head->partitions != TN_PARTITIONS) {
        return tn_fail(err, TN_E_CKPT, "'%s' has %u partitions, %d are known", job->path,
                       head->partitions, TN_PARTITIONS);
    }
    cut_to_own(job, head);
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

/* A file of dense values: a range of the flat vector. */
typedef struct dense_range {
    size_t begin, end;
} dense_range;

static bool read_size(const document *d, const char *key, uint64_t most, size_t *out)
{
    const char *text = tn_tensor_meta_find(&d->tensors, key);
    uint64_t value = 0;
    if (text == NULL || tn_read_u64(text, strlen(text), &value) != TN_NUM_OK || value > most) {
        return false;
    }
    *out = (size_t)value;
    return true;
}

/* Ranges of files in the order of their names tile the vector. */
static tn_status read_range(const document *d, const char *path, const tn_worker *w, size_t reached,
                            dense_range *out, tn_error *err)
{
    const size_t size = tn_params_size(w->params);
    if (!read_size(d, "end", size, &out->end) || !read_size(d, "begin", out->end, &out->begin)) {
        return tn_fail(err, TN_E_CKPT, "'%s' does not say which of %zu weights it holds", path,
                       size);
    }
    if (out->begin != reached) {
        return tn_fail(err, TN_E_CKPT, "'%s' holds weights from %zu on, but before it are %zu",
                       path, out->begin, reached);
    }
    return TN_OK;
}

/* The values of one tensor; they are lent. */
static tn_status find_flat(const document *d, const char *path, const char *name,
                           const dense_range *range, const char **out, tn_error *err)
{
    tn_tensor_want want = {
        .name = name, .dtype = "F32", .rank = 1, .shape = {range->end - range->begin}};
    const tn_tensor *tensor = NULL;
    TN_TRY(tn_tensor_get(&d->tensors, &want, path, &tensor, err));
    *out = tensor->data;
    return TN_OK;
}

/* Every worker computes with all weights, but keeps states of its own range only. */
static tn_status read_dense(const document *d, const char *path, tn_worker *w,
                            const dense_range *range, tn_error *err)
{
    const size_t *cut = w->shares->dense + w->rank;
    const size_t from = range->begin > cut[0] ? range->begin : cut[0];
    const size_t to = range->end < cut[1] ? range->end : cut[1];
    const char *data = NULL;
    TN_TRY(find_flat(d, path, "w", range, &data, err));
    memcpy(tn_params_weights(w->params) + range->begin, data,
           (range->end - range->begin) * sizeof(float));
    tn_state spec[TN_STATES_MAX];
    uint32_t n_states = tn_dense_states(w->shard.dense, spec);
    for (uint32_t i = 0; i < n_states; i++) {
        TN_TRY(find_flat(d, path, spec[i].name, range, &data, err));
        if (from < to) {
            memcpy(tn_dense_state(w->shard.dense, i) + (from - cut[0]),
                   data + (from - range->begin) * sizeof(float), (to - from) * sizeof(float));
        }
    }
    return TN_OK;
}

tn_status tn_ckpt_read_dense(const char *path, tn_worker *w, size_t *reached, tn_error *err)
{
    document d;
    dense_range range = {0};
    tn_status status = open_document(&d, path, err);
    if (status == TN_OK) {
        status = read_range(&d, path, w, *reached, &range, err);
    }
    if (status == TN_OK) {
        status = read_dense(&d, path, w, &range, err);
    }
    if (status == TN_OK) {
        *reached = range.end;
    }
    close_document(&d);
    return status;
}

#define CELLS (2UL * TN_MOMENT_BINS)

/* The histogram into `cells`, which are zeros: whole, or cells that are not 0, or, in a delta,
 * those that differ from the base, which `m` holds. */
static tn_status read_cells(const document *d, const char *path, const tn_metrics *m,
                            uint64_t *cells, tn_error *err)
{
    const tn_tensor *given = tn_tensor_find(&d->tensors, "hist.click.cells");
    const tn_tensor *changes = tn_tensor_find(&d->tensors, "hist.click.changes");
    const tn_tensor *whole = NULL;
    const bool stands = given == NULL;
    changes = stands ? changes : given;
    if (changes == NULL) {
        tn_tensor_want want = {"hist.click", "U64", 2, {2, TN_MOMENT_BINS}};
        TN_TRY(tn_tensor_get(&d->tensors, &want, path, &whole, err));
        memcpy(cells, whole->data, whole->size);
        return TN_OK;
    }
    tn_tensor_want want = {changes->name, "U64", 2, {changes->shape[0], 2}};
    TN_TRY(tn_tensor_get(&d->tensors, &want, path, &changes, err));
    if (stands) {
        memcpy(cells, tn_metrics_histogram(m), CELLS * sizeof *cells);
    }
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
