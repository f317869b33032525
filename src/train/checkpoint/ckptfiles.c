/* ckptfiles.c - writes the files of a checkpoint, lists them, and reads them into a worker. */
#include "train/checkpoint/ckptfiles.h"

#include "base/core/alloc.h"
#include "base/core/number.h"
#include "base/file/file.h"
#include "base/file/safetensors.h"
#include "base/keys/record.h"
#include "base/thread/ordered_work.h"
#include "metrics/metrics.h"
#include "nn/graph/params.h"
#include "ps/optim/optim.h"
#include "ps/shard/dense.h"
#include "train/checkpoint/ckpt_filter.h"
#include "train/checkpoint/ckpt_moment.h"
#include "train/checkpoint/ckptdir.h"
#include "train/step/worker.h"

#include <stdio.h>
#include <string.h>

/* ---- writing rows ---- */

static tn_status write_row(void *arg, const tn_row_view *row, tn_error *err)
{
    return tn_snapshot_add(arg, row, err);
}

static tn_status write_partitions(tn_snapshot_writer *writer, const tn_ckpt_part *p, tn_error *err)
{
    TN_ASSERT(p->head->last < p->moment->partitions.to);
    TN_ASSERT(p->head->first >= p->moment->partitions.from);
    for (uint32_t i = p->head->first; i <= p->head->last; i++) {
        TN_TRY(tn_snapshot_begin(writer, i, err));
        TN_TRY(tn_cut_walk(p->moment->rows, i, write_row, writer, err));
    }
    return TN_OK;
}

tn_status tn_ckpt_write_shard(void *part, const char *path, tn_error *err)
{
    tn_ckpt_part *p = part;
    tn_snapshot_writer *writer = NULL;
    TN_TRY(tn_snapshot_create(&writer, path, p->head, err));
    tn_status status = write_partitions(writer, p, err);
    if (status != TN_OK) {
        tn_snapshot_abandon(writer);
        return status;
    }
    tn_snapshot_done done;
    TN_TRY(tn_snapshot_commit(writer, &done, err));
    p->file.bytes = done.bytes;
    p->file.rows = done.rows;
    p->file.crc = done.crc;
    return TN_OK;
}

/* ---- writing arrays ---- */

static tn_status write_tensors(tn_ckpt_part *p, const char *path, const tn_safetensors *doc,
                               tn_error *err)
{
    tn_file *file = NULL;
    TN_TRY(tn_file_create(&file, path, err));
    tn_status status = tn_safetensors_write(file, doc, err);
    if (status != TN_OK) {
        tn_file_abandon(file);
        return status;
    }
    p->file.bytes = tn_file_size(file);
    p->file.crc = tn_file_crc(file);
    return tn_file_commit(file, err);
}

static tn_status write_dense(void *part, const char *path, tn_error *err)
{
    TN_ASSERT(((const tn_ckpt_part *)part)->moment->n_dense > 0);
    tn_ckpt_part *p = part;
    const tn_moment *m = p->moment;
    char begin[24];
    char end[24];
    (void)snprintf(begin, sizeof begin, "%zu", m->begin);
    (void)snprintf(end, sizeof end, "%zu", m->end);
    const tn_tensor_meta meta[] = {{"begin", begin}, {"end", end}};
    tn_safetensors doc = {.n_meta = 2, .n_tensors = m->n_dense, .meta = meta, .tensor = m->dense};
    return write_tensors(p, path, &doc, err);
}

tn_status tn_ckpt_write_metrics(void *part, const char *path, tn_error *err)
{
    TN_ASSERT(((const tn_ckpt_part *)part)->moment->histogram != NULL);
    tn_ckpt_part *p = part;
    const tn_moment *m = p->moment;
    tn_tensor tensor[] = {
        {.name = "hist.click",
         .dtype = "U64",
         .rank = 2,
         .shape = {2, TN_MOMENT_BINS},
         .data = (const char *)m->histogram,
         .size = 2UL * TN_MOMENT_BINS * sizeof(uint64_t)},
        {.name = "sums.click",
         .dtype = "U64",
         .rank = 2,
         .shape = {TN_MOMENT_SUMS, 2},
         .data = (const char *)m->sums,
         .size = sizeof m->sums},
    };
    if (!m->changes.failed) {
        tensor[0] = (tn_tensor){.name = m->delta ? "hist.click.changes" : "hist.click.cells",
                                .dtype = "U64",
                                .rank = 2,
                                .shape = {m->changes.size / (2 * sizeof *m->histogram), 2},
                                .data = m->changes.data,
                                .size = m->changes.size};
    }
    tn_safetensors doc = {.n_tensors = 2, .tensor = tensor};
    return write_tensors(p, path, &doc, err);
}

/* ---- reading rows ---- */

/* Each tile opens the file for itself, some 100 us, and at 10 million rows reads 8 MB of it. */
enum { TILE_PARTITIONS = 8 };

/* One shard file, or what of it is this worker's, read by the team: a tile is some partitions. */
typedef struct shard_job {
    const char *path;
    tn_worker *w;
    const tn_row_schema *schema;
    uint32_t first, n_partitions;
} shard_job;

static tn_status refill_row(void *arg, const tn_row_view *row, tn_error *err)
{
    return row->removed ? tn_refill_remove(arg, row->key, row->group, err)
                        : tn_refill_add(arg, row, err);
}

static tn_status read_tile(void *arg, uint32_t tile, void *hand, tn_error *err)
{
    (void)hand;
    const shard_job *job = arg;
    const tn_range run = tn_tile(job->n_partitions, TILE_PARTITIONS, tile);
    TN_ASSERT(run.from < run.to && run.to <= job->n_partitions);
    tn_snapshot *s = NULL;
    TN_TRY(tn_snapshot_open(&s, job->path, err));
    tn_status status = TN_OK;
    for (uint32_t i = run.from; i < run.to && status == TN_OK; i++) {
        uint32_t p = job->first + i;
        tn_refill refill;
        tn_refill_begin(&refill, job->w->shard.table, p);
        status = tn_snapshot_read(s, p, job->schema, refill_row, &refill, err);
        tn_refill_end(&refill);
    }
    tn_snapshot_close(s);
    return status;
}

/* The rows are in the table by then. */
static tn_status end_tile(void *arg, uint32_t tile, void *hand, tn_error *err)
{
    (void)arg;
    (void)tile;
    (void)hand;
    (void)err;
    return TN_OK;
}

/* The partitions of the file that are this worker's; perhaps none. */
static void cut_to_own(shard_job *job, const tn_snapshot_head *head)
{
    const uint32_t *own = job->w->shares->owners.from + job->w->rank;
    uint32_t from = head->first > own[0] ? head->first : own[0];
    uint32_t to = head->last + 1 < own[1] ? head->last + 1 : own[1];
    job->first = from;
    job->n_partitions = from < to ? to - from : 0;
    TN_ASSERT(job->n_partitions <= own[1] - own[0]);
}

/* The fault that is reported is the first one in the file, however many threads read it. */
static tn_status read_rows(shard_job *job, const tn_snapshot_head *head, tn_error *err)
{
    if (head->partitions != TN_PARTITIONS) {
        return tn_fail(err, TN_E_CKPT, "'%s' has %u partitions, %d are known", job->path,
                       head->partitions, TN_PARTITIONS);
    }
    cut_to_own(job, head);
    const tn_inorder how = {.job = job,
                            .n = tn_tile_count(job->n_partitions, TILE_PARTITIONS),
                            .make = read_tile,
                            .join = end_tile};
    return tn_inorder_run(&how, job->w->team, err);
}

tn_status tn_ckpt_read_shard(const char *path, const tn_row_schema *schema, tn_worker *w,
                             tn_error *err)
{
    tn_snapshot *s = NULL;
    TN_TRY(tn_snapshot_open(&s, path, err));
    tn_arena *arena = tn_arena_new(1 << 12);
    shard_job job = {.path = path, .w = w, .schema = schema};
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
        status = read_rows(&job, head, err);
    }
    tn_arena_free(arena);
    tn_snapshot_close(s);
    return status;
}

/* ---- reading arrays ---- */

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
    TN_ASSERT(range->begin <= range->end && range->end <= tn_params_size(w->params));
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
        TN_ASSERT(whole->size == CELLS * sizeof *cells);
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
        TN_ASSERT(sums->size == sizeof pairs);
        memcpy(pairs, sums->data, sizeof pairs);
        tn_metrics_restore(m, cells, &pairs[0][0]);
    }
    tn_free(cells);
    close_document(&d);
    return status;
}

/* ---- the list ---- */

void tn_ckpt_files_init(tn_ckpt_files *f, tn_arena *arena, const tn_owners *owners)
{
    *f = (tn_ckpt_files){.arena = arena,
                         .owners = owners,
                         .file = TN_NEW_ARRAY(arena, tn_manifest_file, TN_CKPT_FILES_MAX),
                         .told = TN_NEW_ARRAY(arena, bool, owners->n_peers)};
}

void tn_ckpt_files_list(tn_ckpt_files *f, const char *name, const tn_manifest_file *file)
{
    TN_ASSERT(f->n < TN_CKPT_FILES_MAX);
    size_t size = strlen(name) + 1;
    uint32_t i = f->n++;
    for (; i > 0 && strcmp(f->file[i - 1].name, name) > 0; i--) {
        f->file[i] = f->file[i - 1]; /* by name, bytewise */
    }
    TN_ASSERT(i == 0 || strcmp(f->file[i - 1].name, name) < 0); /* each name once */
    f->file[i] = *file;
    f->file[i].name = memcpy(TN_NEW_ARRAY(f->arena, char, size), name, size);
    f->bytes += file->bytes;
    f->written += file->rows;
}

void tn_ckpt_files_tell(tn_ckpt_files *f, uint32_t rank, uint64_t rows)
{
    TN_ASSERT(rank < f->owners->n_peers && !f->told[rank]);
    f->told[rank] = true;
    TN_ASSERT(f->n_told < f->owners->n_peers);
    f->n_told++;
    f->rows += rows;
}

tn_status tn_ckpt_files_check(const tn_ckpt_files *f, tn_error *err)
{
    for (uint32_t rank = 0; rank < f->owners->n_peers; rank++) {
        if (!f->told[rank]) {
            return tn_fail(err, TN_E_PEER, "rank %u has not written its part of the checkpoint",
                           rank);
        }
    }
    return TN_OK;
}

static void shard_name(uint32_t first, uint32_t last, char out[TN_CKPT_FILE_NAME_SIZE])
{
    (void)snprintf(out, TN_CKPT_FILE_NAME_SIZE, "sparse-%04u-%04u.tns", first, last);
}

static void dense_name(uint32_t rank, char out[TN_CKPT_FILE_NAME_SIZE])
{
    (void)snprintf(out, TN_CKPT_FILE_NAME_SIZE, "dense-%04u.safetensors", rank);
}

static void filter_name(uint32_t first, uint32_t last, char out[TN_CKPT_FILE_NAME_SIZE])
{
    (void)snprintf(out, TN_CKPT_FILE_NAME_SIZE, "admit-%04u-%04u.safetensors", first, last);
}

const char *tn_ckpt_type_of(const char *name)
{
    return strncmp(name, "dense", 5) == 0   ? "dense"
           : strncmp(name, "admit", 5) == 0 ? "admit"
                                            : "sparse";
}

/* Whether the list of a rank is what it owes, by name: perhaps counts of keys, its dense file, then
 * its partitions, in order. */
static bool is_owed(const tn_owners *owners, const tn_ckpt_wrote *wrote)
{
    TN_ASSERT(wrote->rank < owners->n_peers);
    uint32_t next = owners->from[wrote->rank]; /* next partition of rows */
    uint32_t counted = next;                   /* next partition of counts, which may be left out */
    const uint32_t end = owners->from[wrote->rank + 1];
    uint32_t n_dense = 0;
    for (uint32_t i = 0; i < wrote->n_files; i++) {
        char name[TN_CKPT_FILE_NAME_SIZE];
        const tn_manifest_file *file = &wrote->file[i];
        const bool in_range = file->last >= file->first && file->last < end;
        if (strcmp(file->type, "dense") == 0 && n_dense++ == 0) {
            dense_name(wrote->rank, name);
        } else if (strcmp(file->type, "sparse") == 0 && in_range && file->first == next) {
            shard_name(file->first, file->last, name);
            next = file->last + 1;
        } else if (strcmp(file->type, "admit") == 0 && in_range && file->first >= counted) {
            filter_name(file->first, file->last, name);
            counted = file->last + 1;
        } else {
            return false;
        }
        if (strcmp(file->name, name) != 0 ||
            (strcmp(file->type, "sparse") != 0 && file->rows > 0)) {
            return false;
        }
    }
    return n_dense == 1 && next == end;
}

tn_status tn_ckpt_files_add(tn_ckpt_files *f, const tn_ckpt_wrote *wrote, tn_error *err)
{
    if (wrote->rank >= f->owners->n_peers || f->told[wrote->rank] || !is_owed(f->owners, wrote)) {
        return tn_fail(err, TN_E_PEER, "rank %u has written other files of a checkpoint than its",
                       wrote->rank);
    }
    for (uint32_t i = 0; i < wrote->n_files; i++) {
        tn_manifest_file file = wrote->file[i];
        file.type = tn_ckpt_type_of(file.name); /* its texts are lent */
        tn_ckpt_files_list(f, wrote->file[i].name, &file);
    }
    tn_ckpt_files_tell(f, wrote->rank, wrote->rows);
    return TN_OK;
}

/* ---- what a worker owes ---- */

/* The last partition of the file that begins with `first`, when partitions hold about as many bytes
 * each. */
static uint32_t last_of_file(const tn_moment *m, uint32_t first)
{
    const tn_range *all = &m->partitions;
    TN_ASSERT(first >= all->from && first < all->to);
    uint64_t bytes = tn_cut_bytes(m->rows) / (all->to - all->from) + 1;
    uint64_t n = TN_SNAPSHOT_FILE_BYTES / bytes;
    n = n < 1 ? 1 : n;
    return n >= all->to - first ? all->to - 1 : first + (uint32_t)n - 1;
}

static tn_status write_table(tn_ckpt_own *own, tn_ckpt_files *files, tn_error *err)
{
    tn_moment *m = own->moment;
    tn_snapshot_head head = own->head;
    head.partitions = TN_PARTITIONS;
    TN_TRY(tn_row_schema_hash(&m->manifest.sparse, head.schema, err));
    for (uint32_t first = m->partitions.from; first < m->partitions.to; first = head.last + 1) {
        char name[TN_CKPT_FILE_NAME_SIZE];
        head.first = first;
        head.last = last_of_file(m, first);
        shard_name(head.first, head.last, name);
        tn_ckpt_part part = {.moment = m,
                             .head = &head,
                             .file = {.type = "sparse", .first = head.first, .last = head.last}};
        char path[TN_PATH_SIZE];
        TN_TRY(tn_path_join(own->folder, name, path, err));
        tn_status status = tn_ckpt_write_shard(&part, path, err);
        own->lost_rows = status == TN_E_IO;
        TN_TRY(status);
        tn_ckpt_files_list(files, name, &part.file);
    }
    return TN_OK;
}

static tn_status put_text(const tn_ckpt_own *own, const char *name, const char *type,
                          const tn_text *text, tn_ckpt_files *files, tn_error *err)
{
    tn_manifest_file file = {.type = type};
    TN_TRY(tn_ckpt_put_text(own->folder, name, text, &file, err));
    tn_ckpt_files_list(files, name, &file);
    return TN_OK;
}

static tn_status write_texts(const tn_ckpt_own *own, tn_ckpt_files *files, tn_error *err)
{
    const tn_moment *m = own->moment;
    tn_text config = {0};
    tn_text_adds(&config, m->config);
    tn_status status = tn_text_check(&config, "the configuration", err);
    if (status == TN_OK) {
        status = put_text(own, "config.yaml", "config", &config, files, err);
    }
    tn_text_done(&config);
    TN_TRY(status);
    return put_text(own, "sources.jsonl", "sources", &m->sources, files, err);
}

static tn_status put_part(const tn_ckpt_own *own, const char *name, const char *type,
                          tn_ckpt_write *write, tn_ckpt_files *files, tn_error *err)
{
    tn_ckpt_part part = {.moment = own->moment, .file = {.type = type}};
    TN_TRY(tn_ckpt_put(own->folder, name, write, &part, err));
    tn_ckpt_files_list(files, name, &part.file);
    return TN_OK;
}

/* A piece of the filter, as tn_ckpt_put writes it. */
typedef struct filter_part {
    tn_ckpt_part part;
    tn_safetensors doc;
} filter_part;

static tn_status write_piece(void *part, const char *path, tn_error *err)
{
    filter_part *p = part;
    TN_ASSERT(p->doc.n_tensors > 0);
    return write_tensors(&p->part, path, &p->doc, err);
}

static tn_status write_pieces(const tn_ckpt_own *own, tn_filter_pieces *pieces,
                              tn_ckpt_files *files, tn_error *err)
{
    for (;;) {
        tn_range which = {0};
        char name[TN_CKPT_FILE_NAME_SIZE];
        filter_part p = {.part = {.moment = own->moment, .file = {.type = "admit"}}};
        const tn_status status = tn_filter_pieces_next(pieces, &p.doc, &which, err);
        if (status != TN_OK) {
            return status == TN_END ? TN_OK : status;
        }
        p.part.file.first = which.from;
        p.part.file.last = which.to - 1;
        filter_name(which.from, which.to - 1, name);
        TN_TRY(tn_ckpt_put(own->folder, name, write_piece, &p, err));
        tn_ckpt_files_list(files, name, &p.part.file);
    }
}

static tn_status write_filter(const tn_ckpt_own *own, tn_ckpt_files *files, tn_error *err)
{
    const tn_moment *m = own->moment;
    tn_filter_pieces *pieces = NULL;
    TN_TRY(tn_filter_pieces_new(&pieces, m->rows, m->partitions, err));
    const tn_status status = pieces != NULL ? write_pieces(own, pieces, files, err) : TN_OK;
    tn_filter_pieces_free(pieces);
    return status;
}

tn_status tn_ckpt_write_own(tn_ckpt_own *own, tn_ckpt_files *files, tn_error *err)
{
    tn_moment *m = own->moment;
    const bool leads = m->config != NULL;
    char name[TN_CKPT_FILE_NAME_SIZE];
    TN_ASSERT(m->rows != NULL);
    const uint64_t rows = tn_cut_rows(m->rows);
    TN_TRY(leads ? write_texts(own, files, err) : TN_OK);
    TN_TRY(write_table(own, files, err));
    TN_TRY(write_filter(own, files, err));
    tn_cut_close(m->rows); /* nobody need copy rows aside any more */
    m->rows = NULL;
    dense_name(m->rank, name);
    TN_TRY(put_part(own, name, "dense", write_dense, files, err));
    TN_TRY(leads
               ? put_part(own, "metrics.safetensors", "metrics", tn_ckpt_write_metrics, files, err)
               : TN_OK);
    tn_ckpt_files_tell(files, m->rank, rows);
    return TN_OK;
}
