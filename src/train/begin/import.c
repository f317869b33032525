/* import.c - chooses what a run begins with, and reads dense parameters into a worker. */
#include "train/begin/import.h"

#include "base/core/arena.h"
#include "base/file/safetensors.h"
#include "config/absent.h"
#include "nn/graph/params.h"
#include "ps/shard/dense.h"
#include "train/begin/begun.h"
#include "train/begin/warm_start.h"
#include "train/begin/weight_source.h"
#include "train/config/run.h"
#include "train/step/frozen.h"
#include "train/step/model_plan.h"
#include "train/step/worker.h"

#include <string.h>

/* ---- names that do not fit ---- */

enum { MISFITS_SHOWN = 12 };

void tn_misfits_add(tn_misfits *m, const char *what, const char *name)
{
    if (m->n++ < MISFITS_SHOWN) {
        tn_text_adds(&m->text, m->n == 1 ? "" : "; ");
        tn_text_addf(&m->text, "%s '%s'", what, name);
    }
}

tn_status tn_misfits_fail(tn_misfits *m, const char *path, tn_error *err)
{
    tn_status status = TN_OK;
    if (m->n > 0) {
        status = tn_fail(err, TN_E_CKPT, "'%s' does not fit the model: %s%s", path,
                         tn_text_str(&m->text), m->n > MISFITS_SHOWN ? "; and more" : "");
    }
    tn_text_done(&m->text);
    return status;
}

/* ---- dense ---- */

/* [1, n] may be written as [n]. */
static bool has_shape(const tn_tensor *t, const tn_param_slice *s)
{
    if (strcmp(t->dtype, "F32") != 0) {
        return false;
    }
    return (t->rank == 2 && t->shape[0] == s->rows && t->shape[1] == s->cols) ||
           (t->rank == 1 && s->rows == 1 && t->shape[0] == s->cols);
}

/* *out: the file lies in an export. */
static tn_status look_for_export(const char *dense, bool *out, tn_error *err)
{
    char folder[TN_PATH_SIZE];
    char graph[TN_PATH_SIZE];
    TN_TRY(tn_path_parent(dense, folder, err));
    TN_TRY(tn_path_join(folder, "model.json", graph, err));
    *out = tn_path_exists(graph);
    return TN_OK;
}

/* Refuses the weights of an export that lack running values: its norms are folded. */
static tn_status check_norms(const tn_safetensors *doc, const tn_worker *w, const char *path,
                             tn_error *err)
{
    bool is_export = false;
    TN_TRY(look_for_export(path, &is_export, err));
    for (uint32_t i = 0; is_export && i < tn_params_count(w->params); i++) {
        const tn_param_slice *s = tn_params_get(w->params, i);
        if (s->state && tn_tensor_find(doc, s->name) == NULL) {
            return tn_fail(err, TN_E_CKPT,
                           "'%s' is of an export, whose batch norms are folded into the layers "
                           "before them: it has no '%s'\nhint: 'checkpoint.from: RUN' begins with "
                           "the checkpoint itself",
                           path, s->name);
        }
    }
    return TN_OK;
}

static tn_status match_tensors(const tn_safetensors *doc, tn_worker *w, const char *path,
                               tn_error *err)
{
    tn_misfits m = {0};
    TN_TRY(check_norms(doc, w, path, err));
    for (uint32_t i = 0; i < tn_params_count(w->params); i++) {
        const tn_param_slice *s = tn_params_get(w->params, i);
        const tn_tensor *t = tn_tensor_find(doc, s->name);
        if (t == NULL) {
            tn_misfits_add(&m, "no tensor", s->name);
        } else if (!has_shape(t, s)) {
            tn_misfits_add(&m, "another type or shape of", s->name);
        }
    }
    for (uint32_t k = 0; k < doc->n_tensors; k++) {
        if (tn_params_find(w->params, doc->tensor[k].name) == NULL) {
            tn_misfits_add(&m, "nothing takes tensor", doc->tensor[k].name);
        }
    }
    return tn_misfits_fail(&m, path, err);
}

static tn_status restore_dense(const char *path, tn_worker *w, tn_error *err)
{
    tn_map map = {0};
    TN_TRY(tn_map_file(&map, path, err));
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_safetensors doc;
    tn_status status = tn_safetensors_read(&doc, &map, arena, path, err);
    if (status == TN_OK) {
        status = match_tensors(&doc, w, path, err);
    }
    for (uint32_t i = 0; status == TN_OK && i < tn_params_count(w->params); i++) {
        const tn_param_slice *s = tn_params_get(w->params, i);
        const tn_tensor *t = tn_tensor_find(&doc, s->name);
        TN_ASSERT(t != NULL && t->size == (size_t)s->rows * s->cols * sizeof(float));
        memcpy(tn_params_weights(w->params) + s->at, t->data, t->size);
    }
    if (status == TN_OK) {
        tn_worker_keep_own(w);
        tn_dense_reset(w->shard.dense);
    }
    tn_arena_free(arena);
    tn_unmap(&map);
    return status;
}

#define TN_WEIGHT_SOURCE(name) extern const tn_weight_source tn_weight_source_##name;
#include "train/begin/weight_sources.def"
#undef TN_WEIGHT_SOURCE

const tn_weight_source *const tn_all_weight_sources[] = {
#define TN_WEIGHT_SOURCE(name) &tn_weight_source_##name,
#include "train/begin/weight_sources.def"
#undef TN_WEIGHT_SOURCE
    NULL,
};

/* Returns the source of a member of `from`, whose value says all, if `whole`, or is a file. */
static const tn_weight_source *find_source(const tn_tree *from, bool whole)
{
    const tn_weight_source *const *s = tn_all_weight_sources;
    while (*s != NULL && (((*s)->value != NULL) != whole || tn_tree_get(from, (*s)->key) == NULL)) {
        s++;
    }
    return *s;
}

/* The path in member `key`; NULL: not given. */
static tn_status path_of(const tn_tree *from, const char *key, const char **out, tn_error *err)
{
    const tn_tree *value = tn_tree_get(from, key);
    *out = NULL;
    if (tn_tree_is_null(value)) {
        return TN_OK;
    }
    if (value->kind != TN_TREE_SCALAR) {
        return tn_fail(err, TN_E_CONFIG, "checkpoint.from.%s is not a path", key);
    }
    if (strcmp(value->text, "all") == 0 || strcmp(value->text, "none") == 0) {
        return tn_fail(err, TN_E_CONFIG,
                       "checkpoint.from.%s is '%s', and there is no checkpoint.from.path to take "
                       "them from",
                       key, value->text);
    }
    if (!tn_path_exists(value->text) || tn_path_is_dir(value->text)) {
        return tn_fail(err, TN_E_CKPT, "checkpoint.from.%s: there is no file '%s'", key,
                       value->text);
    }
    *out = value->text;
    return TN_OK;
}

/* Refuses the weights of an export where the run samples negatives: their bias is corrected for
 * that already, and the run would correct it once more. */
static tn_status check_sampling(const char *dense, const tn_worker *w, tn_error *err)
{
    bool is_export = false;
    TN_TRY(look_for_export(dense, &is_export, err));
    return w->plan->run->data.negative_sampling == 1 || !is_export
               ? TN_OK
               : tn_fail(err, TN_E_CONFIG,
                         "'%s' is of an export, whose bias is corrected for sampled negatives, and "
                         "data.negative_sampling would correct it again\nhint: 'checkpoint.from: "
                         "RUN' begins with the checkpoint itself",
                         dense);
}

/* {rows: dict.tsv, dense: x.safetensors}. */
static tn_status take_files(const tn_tree *from, tn_worker *w, tn_begun *begun, tn_error *err)
{
    const char *rows = NULL;
    const char *dense = NULL;
    for (const tn_tree *t = from->first; t != NULL; t = t->next) {
        if (strcmp(t->key, "rows") != 0 && strcmp(t->key, "dense") != 0) {
            return tn_fail(err, TN_E_CONFIG,
                           "checkpoint.from has no '%s' without path, only rows and dense", t->key);
        }
    }
    TN_TRY(path_of(from, "rows", &rows, err));
    TN_TRY(path_of(from, "dense", &dense, err));
    if (dense == NULL) {
        TN_TRY(tn_frozen_check(&w->plan->run->train.freeze, w->params, NULL, err));
    } else {
        TN_TRY(check_sampling(dense, w, err));
        TN_TRY(restore_dense(dense, w, err));
        tn_begun_add(begun, "dense", "all", TN_BEGUN_TAKEN, "'%s'", dense);
    }
    if (rows != NULL) {
        const tn_weight_source *const source = find_source(from, false);
        if (source == NULL) {
            return tn_fail(err, TN_E_CONFIG, TN_ABSENT_FORM, "dump");
        }
        TN_TRY(source->take(from, w, begun, err));
    }
    if (begun != NULL) {
        tn_text_adds(&begun->from, "files");
    }
    return TN_OK;
}

/* Fails with all that checkpoint.from may be. */
static tn_status fail_kind(tn_error *err)
{
    tn_text kinds = {0};
    for (const tn_weight_source *const *s = tn_all_weight_sources; *s != NULL; s++) {
        if ((*s)->value != NULL) {
            tn_text_addf(&kinds, ", {%s: %s}", (*s)->key, (*s)->value);
        }
    }
    const tn_status status =
        tn_fail(err, TN_E_CONFIG,
                "checkpoint.from is not a path, {path: ..}%s nor {rows: FILE, dense: FILE}",
                tn_text_str(&kinds));
    tn_text_done(&kinds);
    return status;
}

static tn_status take(const tn_tree *from, tn_worker *w, tn_begun *begun, tn_error *err)
{
    if (from->kind == TN_TREE_SCALAR || tn_tree_get(from, "path") != NULL) {
        return tn_warm_start(from, w, begun, err);
    }
    if (from->kind != TN_TREE_MAP) {
        return fail_kind(err);
    }
    const tn_weight_source *source = find_source(from, true);
    return source != NULL ? source->take(from, w, begun, err) : take_files(from, w, begun, err);
}

tn_status tn_import(const tn_tree *from, tn_worker *w, tn_begun *begun, tn_error *err)
{
    TN_TRY(take(from, w, begun, err));
    return begun == NULL ? TN_OK
                         : tn_frozen_check(&w->plan->run->train.freeze, w->params,
                                           tn_text_str(&begun->fresh), err);
}
