/* tensornet_export.c - writes blocks of rows by rank, dense tables and sums of batch norms. */
#include "extra/tensornet/tensornet_export.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/log.h"
#include "base/file/file.h"
#include "base/math/key.h"
#include "extra/tensornet/tensornet_map.h"
#include "io/schema/dataopts.h"
#include "io/write/write_sink.h"
#include "nn/graph/params.h"
#include "ps/optim/rule.h"
#include "ps/shard/dense.h"
#include "ps/table/lifecycle.h"
#include "ps/table/table.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { OPEN_FILES_MAX = 512 };

/* A file that is written. */
typedef struct open_block {
    tn_sink *sink;
} open_block;

typedef struct exporting {
    const tn_worker *w;
    const tn_tensornet_export_opts *opts;
    tn_tensornet_exported *out;
    tn_tensornet_map map;
    char folder[TN_PATH_SIZE];       /* folder of the day, while it is written */
    const tn_tensornet_layer *layer; /* the layer that is written */
    open_block *block;               /* blocks of `n_ranks` ranks from `rank` on */
    uint32_t rank, n_ranks;
    float *values; /* one row */
    tn_text bytes; /* the same as bytes */
} exporting;

/* ---- rows ---- */

static void fill_row(const exporting *x, const tn_row_view *row, tn_tensornet_row *out)
{
    const tn_tensornet_layer *l = x->layer;
    TN_ASSERT(l->with_states && x->values != NULL);
    const uint32_t record = x->w->plan->layout->group[l->group].record;
    const tn_place_in_row p = tn_table_place(x->w->shard.table, record, l->segment);
    const uint32_t late = x->w->plan->layout->record[record].waits;
    const bool waits = (row->present & late) != late;
    const float *data =
        row->data + (waits ? tn_table_place_waiting(x->w->shard.table, record, l->segment) : p.w);
    const uint32_t dim = l->shape.dim;
    const bool one = l->shape.rule == TN_TENSORNET_ADAGRAD;
    float *counts = x->values + tn_tensornet_width(&l->shape) - 2;
    memcpy(x->values, data, dim * sizeof(float));
    for (uint32_t i = 0; i < (one ? 1 : 2); i++) {
        memcpy(x->values + (size_t)dim * (i + 1), data + p.state[l->state[i]] - p.w,
               (one ? 1 : dim) * sizeof(float));
    }
    const uint32_t idle = tn_days_since(row->last_seen, x->w->day);
    const double factor =
        tn_decay_of(tn_lifecycle_of(x->w->plan->rules->rows, row->group)->decay, idle);
    counts[0] = (float)(factor * row->show); /* files hold counts of the last day */
    counts[1] = l->shape.cvm ? (float)(factor * row->click) : 0;
    out->values = x->values;
    out->idle = one ? idle : 0;
}

static tn_status put_row(void *arg, const tn_row_view *row, tn_error *err)
{
    exporting *x = arg;
    const tn_tensornet_layer *l = x->layer;
    tn_tensornet_row out = {.sign = tn_sign_of(row->key, x->w->plan->layout->group[l->group].salt)};
    const uint32_t rank = (uint32_t)(out.sign % x->opts->ranks);
    const uint32_t block = (uint32_t)(out.sign >> 32) & (TN_TENSORNET_BLOCKS - 1);
    if (row->group != l->group || rank < x->rank || rank >= x->rank + x->n_ranks ||
        (row->present >> l->segment & 1) == 0) {
        return TN_OK;
    }
    fill_row(x, row, &out);
    tn_text_clear(&x->bytes);
    tn_tensornet_add(&x->bytes, &l->shape, !x->opts->text, &out);
    TN_TRY(tn_text_check(&x->bytes, "a row", err));
    x->out->rows++;
    return tn_sink_add(x->block[(rank - x->rank) * TN_TENSORNET_BLOCKS + block].sink, x->bytes.data,
                       x->bytes.size, err);
}

static tn_status begin_block(exporting *x, uint32_t i, tn_error *err)
{
    char folder[TN_PATH_SIZE];
    char name[TN_PATH_SIZE];
    char path[TN_PATH_SIZE];
    (void)snprintf(name, sizeof name, "sparse_table/%.255s/rank_%u", x->layer->name,
                   x->rank + i / TN_TENSORNET_BLOCKS);
    TN_TRY(tn_path_join(x->folder, name, folder, err));
    TN_TRY(tn_dir_make(folder, err));
    (void)snprintf(name, sizeof name, x->opts->text ? "block_%u.gz" : "sparse_block_%u_bin.gz",
                   i % TN_TENSORNET_BLOCKS);
    TN_TRY(tn_path_join(folder, name, path, err));
    TN_TRY(tn_sink_open(&x->block[i].sink, path, NULL, TN_COMPRESSION_GZIP, err));
    tn_text_clear(&x->bytes);
    tn_tensornet_begin(&x->bytes, &x->layer->shape, !x->opts->text);
    TN_TRY(tn_text_check(&x->bytes, "the head of a block", err));
    return tn_sink_add(x->block[i].sink, x->bytes.data, x->bytes.size, err);
}

static tn_status write_blocks(exporting *x, uint32_t n, tn_error *err)
{
    for (uint32_t i = 0; i < n; i++) {
        TN_TRY(begin_block(x, i, err));
    }
    for (uint32_t p = 0; p < TN_PARTITIONS; p++) {
        TN_TRY(tn_table_walk(x->w->shard.table, p, put_row, x, err));
    }
    for (uint32_t i = 0; i < n; i++) {
        tn_sink *sink = x->block[i].sink;
        tn_text_clear(&x->bytes);
        tn_tensornet_end(&x->bytes);
        TN_TRY(tn_sink_add(sink, x->bytes.data, x->bytes.size, err));
        x->block[i].sink = NULL;
        TN_TRY(tn_sink_commit(sink, err));
    }
    return TN_OK;
}

/* Ranks whose files are open at once. */
static tn_status write_ranks(exporting *x, tn_error *err)
{
    const uint32_t n = x->n_ranks * TN_TENSORNET_BLOCKS;
    TN_TRY(TN_ALLOC(x->block, n, "files of blocks", err));
    const tn_status status = write_blocks(x, n, err);
    for (uint32_t i = 0; i < n; i++) {
        tn_sink_abandon(x->block[i].sink);
    }
    tn_free(x->block);
    return status;
}

static tn_status write_layer(exporting *x, const tn_tensornet_layer *l, tn_error *err)
{
    const uint32_t most = OPEN_FILES_MAX / TN_TENSORNET_BLOCKS;
    if (!l->with_states) {
        return tn_fail(err, TN_E_CONFIG,
                       "layer '%s': the model does not train its rows by a rule with the states "
                       "of %s\nhint: adagrad is {type: adagrad, rowwise: true}, adam {type: adam, "
                       "bias: none}",
                       l->name, tn_tensornet_rules[l->shape.rule]);
    }
    x->layer = l;
    TN_TRY(TN_ALLOC(x->values, tn_tensornet_width(&l->shape), "a row", err));
    tn_status status = TN_OK;
    for (x->rank = 0; x->rank < x->opts->ranks && status == TN_OK; x->rank += x->n_ranks) {
        const uint32_t left = x->opts->ranks - x->rank;
        x->n_ranks = left < most ? left : most;
        status = write_ranks(x, err);
    }
    tn_free(x->values);
    return status;
}

/* ---- dense ---- */

static tn_status put_file(const exporting *x, const char *name, const tn_text *bytes, bool gzip,
                          tn_error *err)
{
    char path[TN_PATH_SIZE];
    char folder[TN_PATH_SIZE];
    tn_sink *sink = NULL;
    TN_TRY(tn_text_check(bytes, name, err));
    TN_TRY(tn_path_join(x->folder, name, path, err));
    TN_TRY(tn_path_parent(path, folder, err));
    TN_TRY(tn_dir_make(folder, err));
    TN_TRY(tn_sink_open(&sink, path, NULL, gzip ? TN_COMPRESSION_GZIP : TN_COMPRESSION_NONE, err));
    const tn_status status = tn_sink_add(sink, bytes->data, bytes->size, err);
    if (status != TN_OK) {
        tn_sink_abandon(sink);
        return status;
    }
    return tn_sink_commit(sink, err);
}

static void fill_table(const exporting *x, tn_tensornet_dense *d)
{
    const double beta1 = 0.9;
    const double beta2 = 0.999;
    const tn_dense_store *store = x->w->shard.dense;
    const double t = (double)tn_dense_t(store);
    size_t at = 0;
    d->power1 = pow(beta1, t);
    d->power2 = pow(beta2, t);
    for (uint32_t i = 0; i < x->map.n_dense; i++) {
        const tn_param_slice *s = x->map.dense[i];
        const size_t n = (size_t)s->rows * s->cols;
        memcpy(d->w + at, tn_params_weights(x->w->params) + s->at, n * sizeof *d->w);
        memcpy(d->m + at, tn_dense_state(x->w->shard.dense, 0) + s->at, n * sizeof *d->m);
        memcpy(d->v + at, tn_dense_state(x->w->shard.dense, 1) + s->at, n * sizeof *d->v);
        at += n;
    }
    TN_ASSERT(at == d->n);
}

static tn_status write_ranges(const exporting *x, tn_tensornet_dense *d, tn_error *err)
{
    TN_TRY(TN_ALLOC(d->w, d->n, "dense weights", err));
    TN_TRY(TN_ALLOC(d->m, d->n, "dense states", err));
    TN_TRY(TN_ALLOC(d->v, d->n, "dense states", err));
    fill_table(x, d);
    for (uint32_t rank = 0; rank < d->ranks && tn_tensornet_dense_from(d->n, d->ranks, rank) < d->n;
         rank++) {
        char name[32];
        tn_text text = {0};
        (void)snprintf(name, sizeof name, "dense_table/0/%u", rank);
        tn_tensornet_dense_print(d, rank, &text);
        const tn_status status = put_file(x, name, &text, false, err);
        tn_text_done(&text);
        TN_TRY(status);
    }
    return TN_OK;
}

static tn_status write_dense(const exporting *x, tn_error *err)
{
    tn_state spec[TN_STATES_MAX];
    tn_tensornet_dense d = {.adam = true, .n = x->map.dense_size, .ranks = x->opts->ranks};
    const char *rule = x->w->plan->rules->dense.optim->choice.name;
    if (strcmp(rule, "adam") != 0 || tn_dense_states(x->w->shard.dense, spec) != 2) {
        return tn_fail(err, TN_E_CONFIG,
                       "train.optimizer is %s, and dense tables are written of adam only", rule);
    }
    const tn_status status = d.n > 0 ? write_ranges(x, &d, err) : TN_OK;
    tn_tensornet_dense_done(&d);
    return status;
}

static tn_status write_norms(const exporting *x, tn_error *err)
{
    float *weights = tn_params_weights(x->w->params);
    for (uint32_t i = 0; i < x->map.n_norms; i++) {
        const tn_tensornet_norms *n = &x->map.norm[i];
        const tn_tensornet_norm from = {n->mean->cols, weights + n->mean->at, weights + n->var->at};
        char name[300];
        tn_text bytes = {0};
        (void)snprintf(name, sizeof name, "bn_table/%.255s", n->table);
        tn_tensornet_norm_pack(&from, TN_TENSORNET_NORM_COUNT, &bytes);
        const tn_status status = put_file(x, name, &bytes, true, err);
        tn_text_done(&bytes);
        TN_TRY(status);
    }
    return TN_OK;
}

/* ---- a day ---- */

static tn_status name_day(const exporting *x, char dt[64], tn_error *err)
{
    const time_t seconds = (time_t)x->w->day * 86400;
    struct tm date = {0};
    if (x->opts->dt != NULL) {
        const bool good = x->opts->dt[0] != '\0' && x->opts->dt[0] != '.' &&
                          strlen(x->opts->dt) < 64 && strpbrk(x->opts->dt, "/\"\\") == NULL;
        (void)snprintf(dt, 64, "%.63s", x->opts->dt);
        return good ? TN_OK : tn_fail(err, TN_E_USAGE, "'%s' is no name of a day", x->opts->dt);
    }
    if (x->w->day == 0 || gmtime_r(&seconds, &date) == NULL) {
        return tn_fail(err, TN_E_USAGE, "the model has no day\nhint: --dt 2020-05-10 names one");
    }
    (void)strftime(dt, 64, "%Y-%m-%d", &date);
    return TN_OK;
}

static tn_status write_all(exporting *x, tn_error *err)
{
    for (uint32_t i = 0; i < x->map.n_layers; i++) {
        TN_TRY(write_layer(x, &x->map.layer[i], err));
    }
    TN_TRY(write_dense(x, err));
    return write_norms(x, err);
}

static tn_status write_day(exporting *x, tn_error *err)
{
    char dt[64];
    char file[TN_PATH_SIZE];
    TN_TRY(name_day(x, dt, err));
    TN_TRY(tn_path_join(x->opts->dir, dt, x->out->path, err));
    TN_TRY(tn_path_join(x->opts->dir, "_checkpoint", file, err));
    if (tn_path_exists(x->out->path)) {
        return tn_fail(err, TN_E_USAGE, "'%s' exists; --dt names another day", x->out->path);
    }
    TN_TRY(tn_path_check(x->out->path, TN_UNFINISHED_TAIL, TN_E_USAGE, err));
    (void)snprintf(x->folder, sizeof x->folder, "%.4000s.%016" PRIx64 ".tmp", x->out->path,
                   tn_random_id());
    TN_TRY(tn_dir_make(x->folder, err));
    tn_status status = write_all(x, err);
    if (status == TN_OK) {
        status = tn_rename(x->folder, x->out->path, err);
    }
    if (status != TN_OK) {
        tn_error second = {0}; /* the first failure is reported */
        if (tn_remove_tree(x->folder, &second) != TN_OK) {
            tn_log(TN_LOG_WARN, "%s", second.text);
        }
        return status;
    }
    char text[96];
    const int n = snprintf(text, sizeof text, "{\"dt\": \"%s\"}", dt);
    return tn_file_replace(file, text, (size_t)n, err);
}

tn_status tn_tensornet_export(const tn_worker *w, const tn_tensornet_export_opts *opts,
                              tn_tensornet_exported *out, tn_error *err)
{
    TN_ASSERT(w->shares->owners.n_peers == 1);
    TN_ASSERT(opts->ranks >= 1 && opts->ranks <= TN_TENSORNET_RANKS_MAX);
    exporting *x = NULL;
    *out = (tn_tensornet_exported){0};
    TN_TRY(TN_ALLOC(x, 1, "an export", err));
    *x = (exporting){.w = w, .opts = opts, .out = out};
    tn_arena *arena = tn_arena_new(1 << 14);
    tn_status status = tn_tensornet_map_read(&x->map, opts->map, w, arena, err);
    if (status == TN_OK) {
        status = write_day(x, err);
    }
    tn_text_done(&x->bytes);
    tn_arena_free(arena);
    tn_free(x);
    return status;
}
