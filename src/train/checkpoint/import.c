/* import.c - see import.h. */
#include "train/checkpoint/import.h"

#include "base/file/safetensors.h"
#include "train/checkpoint/import_inside.h"

#include <string.h>

enum { MISFITS_SHOWN = 12 };

void tn_misfit(tn_misfits *m, const char *what, const char *name)
{
    if (m->n++ < MISFITS_SHOWN) {
        tn_text_adds(&m->text, m->n == 1 ? "" : "; ");
        tn_text_addf(&m->text, "%s '%s'", what, name);
    }
}

tn_status tn_misfits_tell(tn_misfits *m, const char *path, tn_error *err)
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

static tn_status match_tensors(const tn_safetensors *doc, tn_worker *w, const char *path,
                               tn_error *err)
{
    tn_misfits m = {0};
    for (uint32_t i = 0; i < tn_params_count(w->params); i++) {
        const tn_param_slice *s = tn_params_get(w->params, i);
        const tn_tensor *t = tn_tensor_find(doc, s->name);
        if (t == NULL) {
            tn_misfit(&m, "no tensor", s->name);
        } else if (!has_shape(t, s)) {
            tn_misfit(&m, "another type or shape of", s->name);
        }
    }
    for (uint32_t k = 0; k < doc->n_tensors; k++) {
        if (tn_params_find(w->params, doc->tensor[k].name) == NULL) {
            tn_misfit(&m, "nothing takes tensor", doc->tensor[k].name);
        }
    }
    return tn_misfits_tell(&m, path, err);
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
    if (!tn_path_exists(value->text) || tn_path_is_dir(value->text)) {
        return tn_fail(err, TN_E_CKPT, "checkpoint.from.%s: there is no file '%s'", key,
                       value->text);
    }
    *out = value->text;
    return TN_OK;
}

tn_status tn_restore_from(const tn_tree *from, tn_worker *w, tn_error *err)
{
    const char *rows = NULL;
    const char *dense = NULL;
    if (from->kind != TN_TREE_MAP) {
        return tn_fail(err, TN_E_CONFIG, "checkpoint.from is not {rows: PATH, dense: PATH}");
    }
    for (const tn_tree *t = from->first; t != NULL; t = t->next) {
        if (strcmp(t->key, "rows") != 0 && strcmp(t->key, "dense") != 0) {
            return tn_fail(err, TN_E_CONFIG, "checkpoint.from has no '%s', only rows and dense",
                           t->key);
        }
    }
    TN_TRY(path_of(from, "rows", &rows, err));
    TN_TRY(path_of(from, "dense", &dense, err));
    if (dense != NULL) {
        TN_TRY(restore_dense(dense, w, err));
    }
    return rows != NULL ? tn_restore_rows(rows, w, err) : TN_OK;
}
