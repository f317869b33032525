/* exported_model.c - opening an export: its files, weights, dictionary and graph. */
#include "serve/exported_model.h"

#include "base/core/alloc.h"
#include "base/file/safetensors.h"
#include "base/math/crc32c.h"
#include "io/schema/schema.h"
#include "nn/graph/embed.h"
#include "nn/graph/params.h"
#include "nn/op/ops.h"
#include "nn/passes/finish.h"
#include "nn/passes/graphjson.h"
#include "serve/export_index.h"
#include "serve/model_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MODEL_BYTES_MAX = 64 << 20,
    TENSORS_MAX = 4096,
    INPUT_BYTES = 256, /* a node that is an input: its attribute, aligned */
};

typedef struct opening {
    tn_exported_model *b;
    const char *dir;
    const tn_exported_model_opts *opts;
    tn_text text;
    tn_error *err;
} opening;

/* ---- files ---- */

static tn_status in_dir(const opening *o, const char *name, char path[TN_PATH_SIZE])
{
    if (name == NULL || name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL) {
        return tn_fail(o->err, TN_E_CKPT, "'%s' names a file '%s' outside of it", o->dir,
                       name != NULL ? name : "?");
    }
    return tn_path_join(o->dir, name, path, o->err);
}

/* Reads a JSON file of the folder; its text is needed no longer once it was parsed. */
static tn_status read_json(opening *o, const char *name, size_t size_max, char path[TN_PATH_SIZE])
{
    TN_TRY(in_dir(o, name, path));
    tn_text_clear(&o->text);
    if (!tn_path_exists(path)) {
        return tn_fail(o->err, TN_E_CKPT,
                       "no export in '%s': '%s' is missing\nhint: 'tnet-export CONFIG' makes one "
                       "and prints its folder",
                       o->dir, name);
    }
    return tn_file_read_all(path, size_max, &o->text, o->err);
}

/* Compares a file with its entry in EXPORT.json. The dictionary has checksums of its own. */
static tn_status check_file(const opening *o, const tn_export_entry *file)
{
    char path[TN_PATH_SIZE];
    TN_TRY(tn_path_join(o->dir, file->name, path, o->err));
    if (!tn_path_exists(path)) {
        return tn_fail(o->err, TN_E_CKPT, "export '%s' is not whole: '%s' is missing", o->dir,
                       file->name);
    }
    tn_map map = {0};
    TN_TRY(tn_map_file(&map, path, o->err));
    tn_status status = TN_OK;
    bool small =
        strcmp(file->name, "model.json") == 0 || strcmp(file->name, "dense.safetensors") == 0;
    if (map.size != file->bytes) {
        status = tn_fail(o->err, TN_E_CKPT, "'%s' has %zu bytes, EXPORT.json says %llu", path,
                         map.size, (unsigned long long)file->bytes);
    } else if (small && tn_crc32c(0, map.data, map.size) != file->crc) {
        status =
            tn_fail(o->err, TN_E_CKPT, "'%s' is damaged: its crc is not that of EXPORT.json", path);
    }
    tn_unmap(&map);
    return status;
}

static tn_status read_index(opening *o)
{
    char path[TN_PATH_SIZE];
    tn_export_index index = {0};
    TN_TRY(read_json(o, "EXPORT.json", TN_EXPORT_INDEX_BYTES_MAX, path));
    TN_TRY(
        tn_document_read(&tn_export_index_document, &index, &o->text, o->b->arena, path, o->err));
    memcpy(o->b->model_id, index.model_id, sizeof index.model_id);
    o->b->step = index.step;
    for (uint32_t i = 0; i < index.n_files; i++) {
        TN_TRY(check_file(o, &index.file[i]));
    }
    return TN_OK;
}

/* ---- weights ---- */

static tn_status take_tensors(const opening *o, const tn_safetensors *doc, const char *path)
{
    tn_params *params = o->b->params;
    if (doc->n_tensors > TENSORS_MAX) {
        return tn_fail(o->err, TN_E_LIMIT, "'%s': more than %d tensors", path, TENSORS_MAX);
    }
    size_t names = 0;
    for (uint32_t i = 0; i < doc->n_tensors; i++) {
        names += strlen(doc->tensor[i].name) + 1;
    }
    TN_TRY(tn_params_reserve(params, names, o->err));
    for (uint32_t i = 0; i < doc->n_tensors; i++) {
        const tn_tensor *t = &doc->tensor[i];
        if (strcmp(t->dtype, "F32") != 0 || t->rank != 2 || t->shape[0] == 0 || t->shape[1] == 0 ||
            t->shape[0] > INT32_MAX || t->shape[1] > INT32_MAX) {
            return tn_fail(o->err, TN_E_CKPT, "'%s': tensor '%s' is no matrix of F32", path,
                           t->name);
        }
        (void)tn_params_add(params, t->name, (uint32_t)t->shape[0], (uint32_t)t->shape[1], true,
                            (tn_init){.kind = TN_INIT_CONSTANT});
    }
    TN_TRY(tn_params_seal(params, o->err));
    for (uint32_t i = 0; i < doc->n_tensors; i++) {
        const tn_tensor *t = &doc->tensor[i];
        float *w = tn_params_weights(params) + tn_params_find(params, t->name)->at;
        memcpy(w, t->data, t->size);
        for (size_t k = 0; k < t->size / sizeof *w; k++) {
            if (!isfinite(w[k])) {
                return tn_fail(o->err, TN_E_CKPT, "'%s': a weight of '%s' is not finite", path,
                               t->name);
            }
        }
    }
    return TN_OK;
}

static tn_status read_weights(const opening *o, const char *name)
{
    char path[TN_PATH_SIZE];
    tn_map map = {0};
    tn_safetensors doc;
    TN_TRY(in_dir(o, name, path));
    TN_TRY(tn_map_file(&map, path, o->err));
    tn_status status = tn_safetensors_read(&doc, &map, o->b->arena, path, o->err);
    if (status == TN_OK) {
        const char *id = tn_tensor_meta_find(&doc, "tnet.model_id");
        if (id == NULL || strcmp(id, o->b->model_id) != 0) {
            status = tn_fail(o->err, TN_E_CKPT, "'%s' is of model %s, not %s", path,
                             id != NULL ? id : "?", o->b->model_id);
        }
    }
    if (status == TN_OK) {
        status = take_tensors(o, &doc, path);
    }
    if (status == TN_OK && o->opts->half_weights) {
        status = tn_params_round(o->b->params, o->err);
    }
    tn_unmap(&map);
    return status;
}

/* ---- dictionary ---- */

/* Finds the numbers that the dictionary has for groups, and for the segments that the model
 * reads. */
static tn_status map_segments(tn_exported_model *b, const tn_json *names, const char *what,
                              tn_error *err)
{
    for (uint32_t g = 0; g < b->schema->n_groups; g++) {
        tn_exported_group *group = &b->group[g];
        for (uint32_t s = 0; s < group->record.n_segments; s++) {
            uint32_t k = 0;
            const tn_json *name =
                names != NULL && names->kind == TN_JSON_LIST ? names->first : NULL;
            while (name != NULL && (tn_json_as_str(name) == NULL ||
                                    strcmp(name->string, group->record.segment[s].name) != 0)) {
                name = name->next;
                k++;
            }
            if (name == NULL) {
                return tn_fail(err, TN_E_CKPT, "'%s' has no segment '%s'", what,
                               group->record.segment[s].name);
            }
            group->segment[s] = k;
        }
        group->in_dict = tn_dict_group(b->dict.layer[0], b->schema->group[g].name);
        if (group->in_dict == TN_DICT_NO_GROUP ||
            tn_dict_salt(b->dict.layer[0], group->in_dict) != b->schema->group[g].salt) {
            return tn_fail(err, TN_E_CKPT, "'%s' has no group '%s'", what,
                           b->schema->group[g].name);
        }
    }
    return TN_OK;
}

static tn_status read_dict(tn_exported_model *b, const char *what, tn_error *err)
{
    const tn_dict *d = b->dict.layer[0];
    const tn_json *json = NULL;
    TN_TRY(tn_json_parse(&json, tn_dict_json(d), tn_dict_head(d)->json_bytes, b->arena, what, err));
    const char *id = tn_json_as_str(tn_json_get(json, "model_id"));
    char hex[TN_MODEL_HEX];
    tn_dict_hex(tn_dict_head(d)->model_id, hex);
    if (id == NULL || strcmp(hex, id) != 0 || strcmp(hex, b->model_id) != 0) {
        return tn_fail(err, TN_E_CKPT, "'%s' is of model %s, not %s", what, hex, b->model_id);
    }
    return map_segments(b, tn_json_get(json, "segments"), what, err);
}

/* ---- graph ---- */

static tn_node *no_input(void *arg, const char *name)
{
    (void)arg;
    (void)name;
    return NULL; /* inputs are nodes already */
}

static tn_node *find_param(void *arg, tn_graph *g, const char *name)
{
    tn_params *params = arg; /* sealed: tn_param finds, and adds nothing */
    const tn_param_slice *s = tn_params_find(params, name);
    const tn_node *other = tn_graph_find(g, name);
    if (s == NULL || (other != NULL && !other->is_param)) {
        return NULL;
    }
    return tn_param(g, params, name, (tn_shape){s->rows, s->cols},
                    (tn_init){.kind = TN_INIT_CONSTANT});
}

static tn_status add_inputs(tn_graph *g, const tn_exported_model *b, tn_error *err)
{
    for (uint32_t i = 0; i < b->n_inputs; i++) {
        const tn_exported_input *in = &b->input[i];
        const size_t slots = in->numeric ? 0 : tn_embed_bytes(in->slot, in->n);
        TN_TRY(tn_graph_reserve(g, 1, 1, slots + strlen(in->name) + INPUT_BYTES, err));
        if (in->numeric) {
            (void)tn_apply(g, &tn_op_numeric, in->name, NULL, 0,
                           &(tn_numeric_attr){in->cols, in->first, b->schema->n_numeric});
        } else if (in->max_len > 0) {
            (void)tn_embed_sequence(g, in->name, in->slot, in->n, in->max_len);
        } else {
            (void)tn_embed(g, in->name, in->slot, in->n);
        }
    }
    return TN_OK;
}

/* A node of one column; NULL: there is none of that name. */
static const tn_node *find_column(const tn_graph *g, const char *name)
{
    const tn_node *n = tn_graph_find(g, name);
    return n != NULL && !n->is_param && n->shape.cols == 1 ? n : NULL;
}

/* Finds the scores of all tasks; `names` gets those to keep. */
static tn_status find_tasks(tn_exported_graph *x, const tn_exported_model *b, const char **names,
                            uint32_t *n, tn_error *err)
{
    for (uint32_t k = 0; k < b->tasks->n; k++) {
        const tn_exported_task *t = &b->task[k];
        x->score[k] = find_column(x->g, t->score);
        x->given[k] = t->given != NULL ? find_column(x->g, t->given) : NULL;
        if (x->score[k] == NULL || (x->given[k] == NULL) != (t->given == NULL)) {
            return tn_fail(err, TN_E_CKPT, "'model.json': task '%s' is not a node of one column",
                           b->tasks->task[k].name);
        }
        names[(*n)++] = t->score;
        if (t->given != NULL) {
            names[(*n)++] = t->given;
        }
    }
    return TN_OK;
}

static tn_status build(tn_exported_graph *x, const tn_exported_model *b, tn_error *err)
{
    const tn_json_lookup lookup = {.input = no_input, .param = find_param, .arg = b->params};
    TN_TRY(add_inputs(x->g, b, err));
    TN_TRY(tn_graph_from_json(x->g, b->nodes, &lookup, "model.json", err));
    tn_node *logit = tn_graph_find(x->g, b->logit);
    tn_node *pctr = tn_graph_find(x->g, b->pctr);
    if (logit == NULL || pctr == NULL || logit->is_param || pctr->is_param ||
        logit->shape.cols != 1 || pctr->shape.cols != 1) {
        return tn_fail(err, TN_E_CKPT, "'model.json': logit or pctr is not a node of one column");
    }
    x->logit = logit;
    x->pctr = pctr;
    const char *kept[1 + 2 * TN_TASKS_MAX] = {pctr->name};
    uint32_t n_kept = 1;
    TN_TRY(find_tasks(x, b, kept, &n_kept, err));
    const tn_wanted wanted = {.logit = logit, .fetch = kept, .n_fetch = n_kept};
    return tn_graph_finish(x->g, &wanted, err);
}

tn_status tn_exported_graph_new(tn_exported_graph *out, const tn_exported_model *b,
                                uint32_t max_rows, bool shares, tn_error *err)
{
    tn_exported_graph x = {0};
    const tn_graph_opts opts = {
        .max_rows = max_rows, .products = TN_PRODUCTS_ALONE, .shares = shares};
    TN_TRY(tn_graph_open(&x.g, &opts, err));
    tn_status status = build(&x, b, err);
    if (status != TN_OK) {
        tn_graph_free(x.g);
        return status;
    }
    *out = x;
    return TN_OK;
}

/* ---- which folder ---- */

static bool is_export(const char *dir, const char *name, char path[TN_PATH_SIZE])
{
    char json[TN_PATH_SIZE];
    return name[0] != '\0' && tn_path_join(dir, name, path, NULL) == TN_OK &&
           tn_path_join(path, "EXPORT.json", json, NULL) == TN_OK && tn_path_exists(json);
}

tn_status tn_export_find(const char *dir, char out[TN_PATH_SIZE], tn_error *err)
{
    char path[TN_PATH_SIZE];
    char one[TN_PATH_SIZE];
    tn_text text = {0};
    uint32_t n = 0;
    uint32_t found = 0;
    (void)snprintf(out, TN_PATH_SIZE, "%s", dir);
    if (is_export(dir, ".", path) || !tn_path_is_dir(dir)) {
        return TN_OK; /* whoever opens the folder reports what is missing */
    }
    if (tn_path_join(dir, "LATEST", path, NULL) == TN_OK &&
        tn_file_read_all(path, TN_EXPORT_INDEX_BYTES_MAX, &text, NULL) == TN_OK && text.size > 0) {
        text.data[strcspn(text.data, " \n")] = '\0';
        found = is_export(dir, text.data, one);
    }
    tn_text_clear(&text);
    tn_status status = found == 0 ? tn_dir_list(dir, &text, &n, err) : TN_OK;
    const char *name = tn_text_str(&text);
    for (uint32_t i = 0; i < n && status == TN_OK; i++, name += strlen(name) + 1) {
        if (is_export(dir, name, path)) {
            memcpy(one, path, sizeof one);
            found++;
        }
    }
    if (status == TN_OK && found > 1) {
        status = tn_fail(err, TN_E_CKPT,
                         "'%s' holds %u exports, and no LATEST says which\nhint: "
                         "name one, as '%s'",
                         dir, found, one);
    } else if (status == TN_OK && found == 1) {
        memcpy(out, one, sizeof one);
    }
    tn_text_done(&text);
    return status;
}

/* ---- all of it ---- */

static tn_status read_all(opening *o)
{
    tn_exported_model *b = o->b;
    char path[TN_PATH_SIZE];
    tn_model_json model = {0};
    TN_TRY(read_index(o));
    TN_TRY(read_json(o, "model.json", MODEL_BYTES_MAX, path));
    TN_TRY(tn_document_read(&tn_model_document, &model, &o->text, b->arena, path, o->err));
    if (strcmp(b->model_id, model.model_id) != 0) {
        return tn_fail(o->err, TN_E_CKPT, "'%s' is of model %s, not %s", path, model.model_id,
                       b->model_id);
    }
    TN_TRY(tn_exported_model_read(b, &model, o->opts, path, o->err));
    TN_TRY(read_weights(o, model.weights));
    const char *dict = model.dictionary;
    if (dict == NULL) {
        return tn_fail(o->err, TN_E_CKPT, "'%s' was exported without a dictionary dict.tnd",
                       o->dir);
    }
    dict = o->opts->dict != NULL ? o->opts->dict : dict;
    TN_TRY(in_dir(o, dict, path));
    TN_TRY(tn_dict_stack_open(&b->dict, o->dir, dict, o->opts->verify, o->err));
    TN_TRY(read_dict(b, path, o->err));
    tn_exported_graph once;
    TN_TRY(tn_exported_graph_new(&once, b, 1, false, o->err));
    tn_graph_free(once.g);
    return TN_OK;
}

tn_status tn_exported_model_open(tn_exported_model **out, const char *dir,
                                 const tn_exported_model_opts *opts, tn_error *err)
{
    *out = NULL;
    tn_exported_model *b = NULL;
    TN_TRY(TN_ALLOC(b, 1, "an export", err));
    opening o = {.b = b, .dir = dir, .opts = opts, .err = err};
    tn_status status = tn_arena_open(&b->arena, 1 << 12, "an export", err);
    status = status == TN_OK ? tn_params_open(&b->params, err) : status;
    status = status == TN_OK ? read_all(&o) : status;
    tn_text_done(&o.text);
    tn_diag_done(&b->diag);
    if (status != TN_OK) {
        tn_exported_model_close(b);
        return status;
    }
    *out = b;
    return TN_OK;
}

void tn_exported_model_close(tn_exported_model *b)
{
    if (b != NULL) {
        tn_dict_stack_close(&b->dict);
        tn_params_free(b->params);
        tn_arena_free(b->arena);
        tn_free(b);
    }
}
