/* warm_start.c - matches a checkpoint with another model by names, and moves what both have. */
#include "train/begin/warm_start.h"

#include "base/core/alloc.h"
#include "base/core/text.h"
#include "base/file/file.h"
#include "base/file/safetensors.h"
#include "base/math/key.h"
#include "config/diag.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "nn/graph/params.h"
#include "ps/optim/rule.h"
#include "ps/shard/dense.h"
#include "ps/snapshot/manifest.h"
#include "train/begin/begun.h"
#include "train/begin/incoming_row.h"
#include "train/begin/warm_match.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/ckpt_moment.h"
#include "train/checkpoint/ckptdir.h"
#include "train/config/run.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static tn_status fits(void *ctx, const tn_manifest *was, tn_error *err)
{
    tn_warm *m = ctx;
    TN_TRY(tn_warm_check_names(m, was, err));
    return tn_warm_match_slots(m, &was->sparse, err);
}

/* ---- rows ---- */

/* The floats of segment `s` in a row of the checkpoint; NULL: the row has it not. */
static const float *floats_of(const tn_move *v, const tn_row_view *row, uint32_t s)
{
    TN_ASSERT(s < TN_SEGMENTS_MAX);
    const float *at = row->data;
    if ((row->present >> s & 1) == 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < s; i++) {
        at += (row->present >> i & 1) != 0 ? v->words[i] : 0;
    }
    return at;
}

static void take_segment(const tn_warm *m, const tn_move *v, const tn_row_view *row, uint32_t s,
                         uint64_t key)
{
    const float *from = v->segment[s] != TN_NOWHERE ? floats_of(v, row, v->segment[s]) : NULL;
    const tn_place_in_row to = tn_incoming_place(&m->row, v->to, s);
    const uint32_t dim = tn_record_of(m->w->plan->layout, v->to)->segment[s].dim;
    if (from == NULL) {
        tn_incoming_draw(&m->row, v->to, s, key);
    } else {
        memcpy(m->row.data + to.w, from, dim * sizeof *from);
    }
    if (from == NULL || !v->with_states[s]) {
        tn_incoming_fresh(&m->row, v->to, s);
        return;
    }
    TN_ASSERT(to.n_states <= TN_STATES_MAX);
    from += dim;
    for (uint32_t i = 0; i < to.n_states; i++) {
        const uint32_t words = to.spec[i].per_row || to.spec[i].count ? 1 : dim;
        memcpy(m->row.data + to.state[i], from, words * sizeof *from);
        from += words;
    }
}

static uint16_t all_of(const tn_warm *m, uint32_t group)
{
    return (uint16_t)((1U << m->was->record[m->was->group[group].record].n_segments) - 1);
}

/* A row of the checkpoint that waits goes on waiting, where it may. */
static tn_status take_row(void *arg, const tn_row_view *row, tn_error *err)
{
    const tn_warm *m = arg;
    TN_ASSERT(row->group < m->was->n_groups);
    const tn_move *v = &m->moves[row->group];
    if (v->to == TN_NOWHERE) {
        return TN_OK;
    }
    const uint64_t sign = tn_sign_of(row->key, m->was->group[row->group].salt);
    const uint64_t key = tn_key_of(sign, m->w->plan->layout->group[v->to].salt);
    if (row->removed) {
        return tn_incoming_remove(&m->row, key, v->to, err);
    }
    const bool whole = row->present == all_of(m, row->group);
    uint16_t present = whole ? tn_incoming_all(&m->row, v->to) : 0;
    tn_incoming_begin(&m->row, v->to);
    for (uint32_t s = 0; s < tn_record_of(m->w->plan->layout, v->to)->n_segments; s++) {
        const uint32_t from = v->segment[s];
        const bool has = from != TN_NOWHERE && (row->present >> from & 1) != 0;
        present |= (uint16_t)((uint32_t)has << s);
        take_segment(m, v, row, s, key);
    }
    const tn_row_view view = {.key = key,
                              .group = (uint16_t)v->to,
                              .present = present,
                              .last_seen = row->last_seen,
                              .show = row->show,
                              .click = row->click};
    return tn_incoming_put(&m->row, &view, err);
}

static tn_status read_shard(tn_warm *m, const char *path, tn_error *err)
{
    tn_snapshot *s = NULL;
    TN_TRY(tn_snapshot_open(&s, path, err));
    const tn_snapshot_head *head = tn_snapshot_head_of(s);
    tn_status status = TN_OK;
    for (uint32_t p = head->first; p <= head->last && status == TN_OK; p++) {
        status = tn_snapshot_read(s, p, m->was, take_row, m, err);
    }
    tn_snapshot_close(s);
    return status;
}

/* ---- dense ---- */

/* The flat vector of the checkpoint and its states, one after the other. */
typedef struct flat {
    float *at;
    size_t size, reached;
    const tn_manifest_dense *d;
} flat;

static tn_status copy_range(const tn_safetensors *doc, const char *path, flat *f, tn_error *err)
{
    const tn_tensor *w = tn_tensor_find(doc, "w");
    const size_t n = w != NULL && w->rank == 1 ? w->size / sizeof(float) : 0;
    if (w == NULL || n > f->size - f->reached) {
        return tn_fail(err, TN_E_CKPT, "'%s' does not hold weights from %zu of %zu on", path,
                       f->reached, f->size);
    }
    for (uint32_t i = 0; i <= f->d->n_states; i++) {
        const tn_tensor_want want = {
            .name = i == 0 ? "w" : f->d->state[i - 1], .dtype = "F32", .rank = 1, .shape = {n}};
        const tn_tensor *t = NULL;
        TN_TRY(tn_tensor_get(doc, &want, path, &t, err));
        memcpy(f->at + i * f->size + f->reached, t->data, t->size);
    }
    f->reached += n;
    return TN_OK;
}

static tn_status read_range(const char *path, flat *f, tn_error *err)
{
    tn_map map = {0};
    tn_safetensors doc;
    TN_TRY(tn_map_file(&map, path, err));
    tn_arena *arena = tn_arena_new(1 << 12);
    tn_status status = tn_safetensors_read(&doc, &map, arena, path, err);
    status = status == TN_OK ? copy_range(&doc, path, f, err) : status;
    tn_arena_free(arena);
    tn_unmap(&map);
    return status;
}

/* Returns whether the optimizer continues: every weight is taken, by the same rule. */
static bool takes_states(const tn_warm *m, const tn_manifest_dense *d)
{
    tn_state spec[TN_STATES_MAX];
    const uint32_t n = tn_dense_states(m->w->shard.dense, spec);
    bool all =
        n == d->n_states && strcmp(m->w->plan->rules->dense.optim->choice.name, d->optimizer) == 0;
    for (uint32_t i = 0; i < n && all; i++) {
        all = strcmp(spec[i].name, d->state[i]) == 0;
    }
    for (uint32_t i = 0; i < tn_params_count(m->w->params) && all; i++) {
        all = tn_warm_source_of(m, d, tn_params_get(m->w->params, i)) != NULL;
    }
    return all;
}

static void take_states(const tn_warm *m, const flat *f)
{
    const tn_worker *w = m->w;
    const size_t *cut = w->shares->dense + w->rank;
    for (uint32_t i = 0; i < tn_params_count(w->params); i++) {
        const tn_param_slice *s = tn_params_get(w->params, i);
        const size_t end = s->at + (size_t)s->rows * s->cols;
        const size_t from = s->at > cut[0] ? s->at : cut[0];
        const size_t to = end < cut[1] ? end : cut[1];
        const size_t at = tn_warm_source_of(m, f->d, s)->at + (from - s->at);
        for (uint32_t k = 0; k < f->d->n_states && from < to; k++) {
            memcpy(tn_dense_state(w->shard.dense, k) + (from - cut[0]),
                   f->at + (k + 1) * f->size + at, (to - from) * sizeof(float));
        }
    }
}

static void take_params(const tn_warm *m, const flat *f, uint64_t t)
{
    tn_worker *w = m->w;
    for (uint32_t i = 0; i < tn_params_count(w->params); i++) {
        const tn_param_slice *s = tn_params_get(w->params, i);
        const tn_manifest_param *p = tn_warm_source_of(m, f->d, s);
        if (p != NULL) {
            memcpy(tn_params_weights(w->params) + s->at, f->at + p->at,
                   (size_t)s->rows * s->cols * sizeof(float));
        }
    }
    tn_worker_keep_own(w);
    tn_dense_reset(w->shard.dense);
    if (takes_states(m, f->d)) {
        take_states(m, f);
        tn_dense_set_t(w->shard.dense, t);
    }
}

/* ---- a checkpoint ---- */

static tn_status read_files(tn_warm *m, const char *path, const tn_manifest *was, flat *f,
                            tn_error *err)
{
    for (uint32_t i = 0; i < was->n_files; i++) {
        char file[TN_PATH_SIZE];
        const char *type = was->file[i].type;
        TN_TRY(tn_path_join(path, was->file[i].name, file, err));
        if (strcmp(type, "sparse") == 0) {
            TN_TRY(read_shard(m, file, err));
        } else if (strcmp(type, "dense") == 0) {
            TN_TRY(read_range(file, f, err));
        }
    }
    return f->reached == f->size ? TN_OK
                                 : tn_fail(err, TN_E_CKPT, "'%s' holds %zu dense weights of %zu",
                                           path, f->reached, f->size);
}

static bool fits_flat(const tn_manifest_dense *d)
{
    bool whole = d->size < SIZE_MAX / sizeof(float) / (TN_ROW_STATES_MAX + 1);
    for (uint32_t i = 0; i < d->n_params && whole; i++) {
        const tn_manifest_param *p = &d->param[i];
        const uint64_t cols = p->rank == 2 ? p->shape[1] : 0;
        whole = p->at <= d->size && (cols == 0 || p->shape[0] <= (d->size - p->at) / cols);
    }
    return whole;
}

/* One link of the chain: the full checkpoint first, then its deltas. */
static tn_status read_link(void *ctx, const char *path, const tn_manifest *was, tn_error *err)
{
    tn_warm *m = ctx;
    flat f = {.size = (size_t)was->dense.size, .d = &was->dense};
    if (!fits_flat(&was->dense)) {
        return tn_fail(err, TN_E_CKPT, "'%s': parameters beyond its %" PRIu64 " dense weights",
                       path, was->dense.size);
    }
    if (was->base == 0) {
        tn_table_clear(m->w->shard.table);
    }
    TN_TRY(tn_warm_match_slots(m, &was->sparse, err));
    TN_TRY(TN_ALLOC(f.at, (was->dense.n_states + 1) * f.size + 1, "dense weights", err));
    tn_status status = read_files(m, path, was, &f, err);
    if (status == TN_OK) {
        take_params(m, &f, was->dense.t);
        m->step = was->step;
        m->w->day = m->w->plan->run->run.day == NULL ? was->clock : m->w->day;
    }
    tn_free(f.at);
    return status;
}

/* ---- what was taken ---- */

static void tell_slot(const tn_warm *m, uint32_t g, const tn_group_rows *rows)
{
    const char *name = m->now.group[g].name;
    TN_ASSERT(g < m->now.n_groups && m->moves != NULL);
    const tn_row_record *record = &m->now.record[m->now.group[g].record];
    uint32_t from = TN_NOWHERE;
    for (uint32_t i = 0; i < m->was->n_groups; i++) {
        from = m->moves[i].to == g ? i : from;
    }
    if (from == TN_NOWHERE) {
        tn_begun_add(m->begun, "slot", name, TN_BEGUN_NEW, "%s",
                     tn_warm_wants_group(m, g) ? "not in the checkpoint" : "left out by rows");
        return;
    }
    tn_text note = {0};
    if (rows != NULL) {
        tn_text_addf(&note, "%" PRIu64 " rows", rows[g].rows);
    }
    if (strcmp(m->was->group[from].name, name) != 0) {
        tn_text_addf(&note, " of '%s'", m->was->group[from].name);
    }
    for (uint32_t s = 0; s < record->n_segments; s++) {
        const bool lacks = m->moves[from].segment[s] == TN_NOWHERE;
        if (lacks || !m->moves[from].with_states[s]) {
            tn_text_addf(&note, "; %s of '%s' new", lacks ? "vectors" : "states",
                         record->segment[s].name);
        }
    }
    tn_begun_add(m->begun, "slot", name, TN_BEGUN_TAKEN, "%s", tn_text_str(&note));
    tn_text_done(&note);
}

static void tell_slots(const tn_warm *m)
{
    const uint32_t n = m->now.n_groups;
    const bool alone = m->w->shares->owners.n_peers == 1; /* else a part of the rows is here */
    tn_group_rows *rows = TN_NEW_ARRAY(m->arena, tn_group_rows, n + 1);
    tn_table_count_groups(m->w->shard.table, rows);
    for (uint32_t g = 0; g < n; g++) {
        tell_slot(m, g, alone ? rows : NULL);
    }
    for (uint32_t i = 0; i < m->was->n_groups; i++) {
        if (m->moves[i].to == TN_NOWHERE &&
            tn_warm_group_called(m->w, tn_warm_renamed(m, m->was->group[i].name)) == TN_NOWHERE) {
            tn_begun_add(m->begun, "slot", m->was->group[i].name, TN_BEGUN_LEFT,
                         "not in the model");
        }
    }
}

static void tell_param(const tn_warm *m, const tn_manifest_dense *d, const tn_param_slice *s)
{
    const tn_manifest_param *p = tn_warm_param_called(m, d, s->name);
    if (tn_warm_source_of(m, d, s) != NULL) {
        const bool other = strcmp(p->name, s->name) != 0;
        tn_begun_add(m->begun, "parameter", s->name, TN_BEGUN_TAKEN, "[%u, %u]%s%s%s", s->rows,
                     s->cols, other ? " of '" : "", other ? p->name : "", other ? "'" : "");
    } else if (p == NULL || !tn_warm_wants_param(m, s->name)) {
        tn_begun_add(m->begun, "parameter", s->name, TN_BEGUN_NEW, "[%u, %u], %s", s->rows, s->cols,
                     p == NULL ? "not in the checkpoint" : "left out by dense");
    } else {
        tn_begun_add(m->begun, "parameter", s->name, TN_BEGUN_NEW,
                     "[%u, %u], in the checkpoint [%" PRIu64 ", %" PRIu64 "]", s->rows, s->cols,
                     p->shape[0], p->rank > 1 ? p->shape[1] : 1);
    }
}

static void tell_params(const tn_warm *m, const tn_manifest_dense *d)
{
    for (uint32_t i = 0; i < tn_params_count(m->w->params); i++) {
        tell_param(m, d, tn_params_get(m->w->params, i));
    }
    for (uint32_t i = 0; i < d->n_params; i++) {
        const char *name = d->param[i].name;
        if (tn_params_find(m->w->params, tn_warm_renamed(m, name)) == NULL) {
            tn_begun_add(m->begun, "parameter", name, TN_BEGUN_LEFT, "not in the model");
        }
    }
    tn_begun_add(m->begun, "optimizer", m->w->plan->rules->dense.optim->choice.name,
                 takes_states(m, d) ? TN_BEGUN_TAKEN : TN_BEGUN_NEW,
                 "states of the dense parameters");
}

/* The manifest that was read last, once more: it went with its loading. */
static tn_status tell(tn_warm *m, const char *path, tn_error *err)
{
    tn_manifest was = {0};
    TN_TRY(tn_ckpt_read_manifest(path, m->arena, &was, err));
    TN_TRY(tn_warm_match_slots(m, &was.sparse, err));
    tell_slots(m);
    tell_params(m, &was.dense);
    tn_text_addf(&m->begun->from, "'%s' (step %" PRIu64 ")", path, m->step);
    return TN_OK;
}

static tn_status load(tn_warm *m, tn_error *err)
{
    const tn_ckpt_loader loader = {.fits = fits, .read = read_link, .ctx = m};
    char path[TN_PATH_SIZE];
    if (tn_path_exists(m->path) && !tn_path_is_dir(m->path)) {
        return tn_fail(err, TN_E_CKPT,
                       "checkpoint.from: '%s' is a file, and a checkpoint is a folder", m->path);
    }
    TN_TRY(tn_path_join(m->path, "MANIFEST", path, err));
    if (tn_path_exists(path) || !tn_path_is_dir(m->path)) {
        (void)snprintf(path, sizeof path, "%s", m->path);
        TN_TRY(tn_ckptdir_load_one(m->path, &loader, err));
    } else {
        uint64_t ordinal = 0;
        TN_TRY(tn_ckptdir_load(m->path, &loader, &ordinal, err));
        if (ordinal == 0) {
            return tn_fail(err, TN_E_CKPT, "checkpoint.from: no checkpoint in '%s'", m->path);
        }
        TN_TRY(tn_ckptdir_path(m->path, ordinal, path, err));
    }
    return m->begun != NULL ? tell(m, path, err) : TN_OK;
}

tn_status tn_warm_start(const tn_tree *from, tn_worker *w, tn_begun *begun, tn_error *err)
{
    tn_warm m = {.w = w, .begun = begun, .arena = tn_arena_new(1 << 16)};
    m.now = tn_moment_row_schema(w, m.arena);
    tn_status status = tn_warm_read_words(&m, from, err);
    if (status == TN_OK) {
        status = tn_incoming_open(&m.row, w, err);
    }
    if (status == TN_OK) {
        status = load(&m, err);
    }
    tn_incoming_done(&m.row);
    tn_arena_free(m.arena);
    if (status == TN_E_LIMIT && err != NULL) {
        err->code = TN_E_CKPT; /* asked for by name, so one of a newer version is at fault */
    }
    return status == TN_E_LIMIT ? TN_E_CKPT : status;
}

void tn_warm_start_slots(const tn_tree *from, tn_arena *arena, tn_text *out)
{
    const bool is_path = from != NULL && from->kind == TN_TREE_SCALAR;
    const tn_tree *path = is_path ? from : tn_tree_get(from, "path");
    const tn_tree *rename = is_path ? NULL : tn_tree_get(from, "rename");
    tn_text config = {0};
    tn_diag unheard = {0};
    if (path == NULL || path->kind != TN_TREE_SCALAR) {
        return;
    }
    tn_checkpoint_config(path->text, &config);
    const tn_yaml_in in = {
        .text = tn_text_str(&config), .size = config.size, .source = "config.yaml"};
    const tn_tree *was = config.size > 0 ? tn_yaml_read(arena, &unheard, &in) : NULL;
    const tn_tree *slots = tn_tree_get(was, "slots");
    tn_tree *named = slots != NULL ? tn_tree_copy(arena, slots) : NULL;
    for (tn_tree *t = named != NULL ? named->first : NULL; t != NULL; t = t->next) {
        const tn_tree *name = tn_tree_get(t, "name");
        const tn_tree *to =
            name != NULL && name->kind == TN_TREE_SCALAR ? tn_tree_get(rename, name->text) : NULL;
        if (to != NULL && to->kind == TN_TREE_SCALAR) {
            tn_tree_put(arena, t, "name", tn_tree_scalar(arena, to->text, to->at));
        }
    }
    if (named != NULL) {
        tn_text_adds(out, "slots: ");
        tn_tree_print_flow(out, named);
        tn_text_addc(out, '\n');
    }
    tn_diag_done(&unheard);
    tn_text_done(&config);
}
