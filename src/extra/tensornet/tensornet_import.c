/* tensornet_import.c - rows, dense weights and running values of a TensorNet checkpoint. */
#include "extra/tensornet/tensornet_import.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/math/key.h"
#include "config/tree.h"
#include "extra/tensornet/tensornet_files.h"
#include "extra/tensornet/tensornet_map.h"
#include "nn/graph/params.h"
#include "ps/optim/rule.h"
#include "ps/shard/dense.h"
#include "ps/table/lifecycle.h"
#include "train/begin/begun.h"
#include "train/begin/incoming_row.h"
#include "train/begin/weight_source.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct import {
    tn_worker *w;
    tn_begun *begun;
    tn_arena *arena;
    tn_tensornet_dir dir;
    tn_tensornet_map map;
    tn_incoming row;
    tn_text bytes; /* one file */
    uint32_t day;  /* the day of rows that were shown on the last one */
    uint64_t rows[TN_TENSORNET_LAYERS_MAX];
    tn_tensornet_rows block[TN_TENSORNET_LAYERS_MAX]; /* one block of each layer */
    uint64_t next[TN_TENSORNET_LAYERS_MAX];           /* the block's next row by sign */
    bool dense_states;
} import;

/* ---- rows ---- */

static void take_segment(const import *im, const tn_tensornet_layer *l, const tn_tensornet_row *row)
{
    TN_ASSERT(l->shape.dim > 0);
    const tn_place_in_row p = tn_incoming_place(&im->row, l->group, l->segment);
    const uint32_t dim = l->shape.dim;
    const bool one = l->shape.rule == TN_TENSORNET_ADAGRAD;
    memcpy(im->row.data + p.w, row->values, dim * sizeof *row->values);
    if (!l->with_states) {
        tn_incoming_fresh(&im->row, l->group, l->segment);
        return;
    }
    for (uint32_t i = 0; i < (one ? 1 : 2); i++) {
        memcpy(im->row.data + p.state[l->state[i]], row->values + (size_t)dim * (i + 1),
               (one ? 1 : dim) * sizeof *row->values);
    }
}

/* The layer whose rows have segment `s`; n_layers: none. */
static uint32_t layer_of(const import *im, uint32_t group, uint32_t s)
{
    uint32_t i = 0;
    while (i < im->map.n_layers &&
           !(im->map.layer[i].group == group && im->map.layer[i].segment == s)) {
        i++;
    }
    return i;
}

/* A row of all layers of a group that have this sign. Where one has it not, TensorNet would give
 * zeros until it trains the sign. */
static tn_status join(import *im, uint32_t group, uint64_t sign, tn_error *err)
{
    const tn_layout *layout = im->w->plan->layout;
    tn_row_view view = {.key = tn_key_of(sign, layout->group[group].salt),
                        .group = (uint16_t)group};
    tn_incoming_begin(&im->row, group);
    for (uint32_t s = 0; s < tn_record_of(layout, group)->n_segments; s++) {
        const uint32_t i = layer_of(im, group, s);
        const tn_tensornet_rows *b = &im->block[i < im->map.n_layers ? i : 0];
        if (i == im->map.n_layers) {
            tn_incoming_draw(&im->row, group, s, view.key);
            tn_incoming_fresh(&im->row, group, s);
            continue;
        }
        if (im->next[i] == b->n || tn_tensornet_row_at(b, im->next[i]).sign != sign) {
            tn_incoming_fresh(&im->row, group, s);
            continue;
        }
        const tn_tensornet_row row = tn_tensornet_row_at(b, im->next[i]++);
        const float *counts = row.values + tn_tensornet_width(&b->shape) - 2;
        const uint32_t seen = im->day > row.idle ? im->day - row.idle : 0;
        take_segment(im, &im->map.layer[i], &row);
        im->rows[i]++;
        view.last_seen = seen > view.last_seen ? seen : view.last_seen;
        const double factor =
            tn_decay_of(tn_lifecycle_of(im->w->plan->rules->rows, group)->decay, im->day - seen);
        const double then = factor > 0 ? factor : 1; /* files hold counts of the last day */
        view.show = fmax(view.show, (double)counts[0] / then);
        view.click = fmax(view.click, (double)counts[1] / then);
    }
    view.present = tn_incoming_all(&im->row, group);
    return tn_incoming_put(&im->row, &view, err);
}

/* The lowest sign that is left in the blocks of a group; false: none. */
static bool lowest(const import *im, uint32_t group, uint64_t *sign)
{
    bool any = false;
    for (uint32_t i = 0; i < im->map.n_layers; i++) {
        const tn_tensornet_rows *b = &im->block[i];
        if (im->map.layer[i].group == group && im->next[i] < b->n) {
            const uint64_t its = tn_tensornet_row_at(b, im->next[i]).sign;
            *sign = !any || its < *sign ? its : *sign;
            any = true;
        }
    }
    return any;
}

/* A row in another rank's file, or block, may be there twice. */
static tn_status check_place(const tn_tensornet_rows *b, uint32_t rank, uint32_t ranks,
                             uint32_t block, const char *path, tn_error *err)
{
    for (uint64_t i = 0; i < b->n; i++) {
        const uint64_t sign = b->sign[i];
        const uint32_t its = (uint32_t)(sign >> 32) & (TN_TENSORNET_BLOCKS - 1);
        if (sign % ranks != rank || its != block) {
            return tn_fail(err, TN_E_CKPT,
                           "%s: error: sign %" PRIu64 " of row %" PRIu64 " belongs to rank %" PRIu64
                           " of %u, block %u",
                           path, sign, i + 1, sign % ranks, ranks, its);
        }
    }
    return TN_OK;
}

/* One block of one rank, of all layers: signs meet nowhere else. */
static tn_status read_block(import *im, uint32_t rank, uint32_t ranks, uint32_t block,
                            tn_error *err)
{
    char path[TN_PATH_SIZE];
    for (uint32_t i = 0; i < im->map.n_layers; i++) {
        const tn_tensornet_layer *l = &im->map.layer[i];
        const tn_tensornet_place at = {l->name, rank, block};
        im->next[i] = 0;
        TN_TRY(tn_tensornet_block(&im->dir, &at, path, &im->bytes, err));
        const tn_bytes bytes = {.data = im->bytes.data, .size = im->bytes.size};
        TN_TRY(tn_tensornet_rows_read(&im->block[i], &l->shape, bytes, path, err));
        TN_TRY(check_place(&im->block[i], rank, ranks, block, path, err));
    }
    for (uint32_t g = 0; g < im->w->plan->layout->n_groups; g++) {
        uint64_t sign = 0;
        while (lowest(im, g, &sign)) {
            TN_TRY(join(im, g, sign, err));
        }
    }
    return TN_OK;
}

static tn_status read_rows(import *im, tn_error *err)
{
    uint32_t ranks = 0;
    for (uint32_t i = 0; i < im->map.n_layers; i++) {
        uint32_t n = 0;
        TN_TRY(tn_tensornet_ranks(&im->dir, im->map.layer[i].name, &n, err));
        if (i > 0 && n != ranks) {
            return tn_fail(err, TN_E_CKPT, "'%s': layer '%s' has %u ranks, '%s' %u", im->dir.path,
                           im->map.layer[i].name, n, im->map.layer[0].name, ranks);
        }
        ranks = n;
    }
    tn_status status = tn_incoming_open(&im->row, im->w, err);
    for (uint32_t at = 0; at < ranks * TN_TENSORNET_BLOCKS && status == TN_OK; at++) {
        status = read_block(im, at / TN_TENSORNET_BLOCKS, ranks, at % TN_TENSORNET_BLOCKS, err);
        for (uint32_t i = 0; i < im->map.n_layers; i++) {
            tn_tensornet_rows_done(&im->block[i]);
        }
    }
    tn_incoming_done(&im->row);
    return status;
}

/* ---- dense ---- */

static tn_status read_table(import *im, tn_tensornet_dense *d, tn_error *err)
{
    char path[TN_PATH_SIZE];
    char name[32] = "dense_table/0/0";
    uint32_t rank = 0;
    do {
        (void)snprintf(name, sizeof name, "dense_table/0/%u", rank);
        TN_TRY(tn_tensornet_file(&im->dir, name, false, path, &im->bytes, err));
        const tn_bytes bytes = {.data = im->bytes.data, .size = im->bytes.size};
        TN_TRY(tn_tensornet_dense_read(d, rank, bytes, path, err));
        rank++;
    } while (d->reached < d->n); /* a rank whose range is empty writes no file */
    if (d->n != im->map.dense_size) {
        return tn_fail(err, TN_E_CONFIG,
                       "'%s' holds %" PRIu64 " values, and the shapes of the map's dense "
                       "variables make %" PRIu64,
                       path, d->n, im->map.dense_size);
    }
    return TN_OK;
}

/* Updates that Adam has made, from beta2's power, which underflows last. */
static uint64_t updates_of(const tn_tensornet_dense *d)
{
    const double beta2 = 0.999;
    const double floor = 1e-300;
    return (uint64_t)(log(d->power2 > floor ? d->power2 : floor) / log(beta2) + 0.5);
}

/* Adam's moments, where all weights that are trained come from the table. */
static void take_states(import *im, const tn_tensornet_dense *d)
{
    const tn_worker *w = im->w;
    const size_t *cut = w->shares->dense + w->rank;
    const float *from[2] = {d->m, d->v};
    size_t at = 0;
    for (uint32_t i = 0; i < im->map.n_dense; i++) {
        const tn_param_slice *s = im->map.dense[i];
        for (size_t k = 0; k < (size_t)s->rows * s->cols; k++, at++) {
            for (uint32_t j = 0; j < 2 && s->at + k >= cut[0] && s->at + k < cut[1]; j++) {
                tn_dense_state(w->shard.dense, j)[s->at + k - cut[0]] = from[j][at];
            }
        }
    }
    tn_dense_set_t(w->shard.dense, updates_of(d));
    im->dense_states = true;
}

static bool is_adam(const tn_worker *w)
{
    tn_state spec[TN_STATES_MAX];
    return strcmp(w->plan->rules->dense.optim->choice.name, "adam") == 0 &&
           tn_dense_states(w->shard.dense, spec) == 2;
}

static bool is_given(const import *im, const tn_param_slice *s)
{
    bool given = false;
    for (uint32_t i = 0; i < im->map.n_dense; i++) {
        given = given || im->map.dense[i] == s;
    }
    for (uint32_t i = 0; i < im->map.n_norms; i++) {
        given = given || im->map.norm[i].mean == s || im->map.norm[i].var == s;
    }
    return given;
}

static bool are_all_given(const import *im)
{
    bool all = true;
    for (uint32_t i = 0; i < tn_params_count(im->w->params); i++) {
        const tn_param_slice *s = tn_params_get(im->w->params, i);
        all = all && (!s->train || is_given(im, s));
    }
    return all;
}

static void take_table(import *im, const tn_tensornet_dense *d)
{
    size_t at = 0;
    TN_ASSERT(d->reached == im->map.dense_size);
    for (uint32_t i = 0; i < im->map.n_dense; i++) {
        const tn_param_slice *s = im->map.dense[i];
        const size_t n = (size_t)s->rows * s->cols;
        TN_ASSERT(at + n <= d->n);
        memcpy(tn_params_weights(im->w->params) + s->at, d->w + at, n * sizeof *d->w);
        at += n;
    }
}

static tn_status read_norms(import *im, tn_error *err)
{
    char path[TN_PATH_SIZE];
    float *weights = tn_params_weights(im->w->params);
    for (uint32_t i = 0; i < im->map.n_norms; i++) {
        const tn_tensornet_norms *n = &im->map.norm[i];
        const tn_tensornet_norm to = {n->mean->cols, weights + n->mean->at, weights + n->var->at};
        char name[300];
        (void)snprintf(name, sizeof name, "bn_table/%.255s", n->table);
        TN_TRY(tn_tensornet_file(&im->dir, name, true, path, &im->bytes, err));
        const tn_bytes bytes = {.data = im->bytes.data, .size = im->bytes.size};
        TN_TRY(tn_tensornet_norm_read(&to, bytes, path, err));
    }
    return TN_OK;
}

static tn_status read_dense(import *im, tn_error *err)
{
    tn_tensornet_dense d = {0};
    tn_status status = im->map.n_dense > 0 ? read_table(im, &d, err) : TN_OK;
    if (status == TN_OK) {
        take_table(im, &d);
        status = read_norms(im, err);
    }
    if (status == TN_OK) {
        tn_worker_keep_own(im->w);
        tn_dense_reset(im->w->shard.dense);
    }
    if (status == TN_OK && d.n > 0 && d.adam && is_adam(im->w) && are_all_given(im)) {
        take_states(im, &d);
    }
    tn_tensornet_dense_done(&d);
    return status;
}

/* ---- what was taken ---- */

static void tell_layers(const import *im)
{
    for (uint32_t i = 0; i < im->map.n_layers; i++) {
        const tn_tensornet_layer *l = &im->map.layer[i];
        const tn_layout *layout = im->w->plan->layout;
        tn_begun_add(im->begun, "layer", l->name, TN_BEGUN_TAKEN,
                     "%" PRIu64 " rows become '%s' of '%s'%s", im->rows[i],
                     tn_record_of(layout, l->group)->segment[l->segment].name,
                     layout->group[l->group].name, l->with_states ? "" : "; states new");
    }
}

/* Layers that the map does not name. */
static tn_status tell_left(const import *im, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_text names = {0};
    uint32_t n = 0;
    TN_TRY(tn_path_join(im->dir.path, "sparse_table", path, err));
    TN_TRY(tn_dir_list(path, &names, &n, err));
    const char *name = tn_text_str(&names);
    for (uint32_t i = 0; i < n; i++, name += strlen(name) + 1) {
        uint32_t k = 0;
        while (k < im->map.n_layers && strcmp(im->map.layer[k].name, name) != 0) {
            k++;
        }
        if (k == im->map.n_layers) {
            tn_begun_add(im->begun, "layer", name, TN_BEGUN_LEFT, "not in the map");
        }
    }
    tn_text_done(&names);
    return TN_OK;
}

static tn_status tell(const import *im, const char *dir, tn_error *err)
{
    const tn_params *params = im->w->params;
    if (im->begun == NULL) {
        return TN_OK;
    }
    tell_layers(im);
    TN_TRY(tell_left(im, err));
    for (uint32_t i = 0; i < tn_params_count(params); i++) {
        const tn_param_slice *s = tn_params_get(params, i);
        const bool given = is_given(im, s);
        tn_begun_add(im->begun, "parameter", s->name, given ? TN_BEGUN_TAKEN : TN_BEGUN_NEW,
                     "[%u, %u]%s", s->rows, s->cols, given ? "" : ", not in the map");
    }
    tn_begun_add(im->begun, "optimizer", im->w->plan->rules->dense.optim->choice.name,
                 im->dense_states ? TN_BEGUN_TAKEN : TN_BEGUN_NEW,
                 "states of the dense parameters");
    tn_text_addf(&im->begun->from, "TensorNet's '%s' (%s)", dir, im->dir.dt);
    return TN_OK;
}

/* ---- a checkpoint ---- */

static tn_status read_words(const tn_tree *from, const char **dir, const tn_tree **map,
                            tn_error *err)
{
    const tn_tree *words = tn_tree_get(from, "tensornet");
    if (tn_tree_count(from) != 1) {
        return tn_fail(err, TN_E_CONFIG,
                       "checkpoint.from.tensornet stands alone: its map says "
                       "what is taken");
    }
    for (const tn_tree *t = words->kind == TN_TREE_MAP ? words->first : NULL; t != NULL;
         t = t->next) {
        if (strcmp(t->key, "dir") != 0 && strcmp(t->key, "map") != 0) {
            return tn_fail(err, TN_E_CONFIG,
                           "checkpoint.from.tensornet has no '%s', only dir and map", t->key);
        }
    }
    const tn_tree *path = tn_tree_get(words, "dir");
    if (path == NULL || path->kind != TN_TREE_SCALAR || path->text[0] == '\0') {
        return tn_fail(err, TN_E_CONFIG, "checkpoint.from.tensornet is not {dir: PATH, map: FILE}");
    }
    *dir = path->text;
    *map = tn_tree_get(words, "map");
    return TN_OK;
}

/* The day of rows that were shown on the checkpoint's last day; a run without a day of its own goes
 * on from there. */
static void take_day(import *im)
{
    const bool own = im->w->plan->run->run.day != NULL;
    im->day = im->dir.is_dated ? im->dir.day : im->w->day;
    if (!own) {
        im->w->day = im->day;
    }
}

tn_status tn_tensornet_import(const tn_tree *from, tn_worker *w, tn_begun *begun, tn_error *err)
{
    const char *dir = NULL;
    const tn_tree *map = NULL;
    TN_TRY(read_words(from, &dir, &map, err));
    import *im = NULL;
    TN_TRY(TN_ALLOC(im, 1, "an import", err));
    *im = (import){.w = w, .begun = begun, .arena = tn_arena_new(1 << 14)};
    tn_status status = tn_tensornet_map_read(&im->map, map, w, im->arena, err);
    if (status == TN_OK) {
        status = tn_tensornet_dir_open(&im->dir, dir, err);
    }
    if (status == TN_OK) {
        take_day(im);
        status = read_dense(im, err);
    }
    if (status == TN_OK && im->map.n_layers > 0) {
        status = read_rows(im, err);
    }
    if (status == TN_OK) {
        status = tell(im, dir, err);
    }
    tn_text_done(&im->bytes);
    tn_arena_free(im->arena);
    tn_free(im);
    return status;
}

extern const tn_weight_source tn_weight_source_tensornet;
const tn_weight_source tn_weight_source_tensornet = {"tensornet", "..", tn_tensornet_import};
