/* exported_model.c - opening an export: its files, weights, dictionary and graph. */
#include "serve/exported_model.h"

#include "base/core/alloc.h"
#include "base/core/number.h"
#include "base/file/safetensors.h"
#include "base/math/crc32c.h"
#include "io/schema/schema.h"
#include "nn/graph/embed.h"
#include "nn/graph/params.h"
#include "nn/op/ops.h"
#include "nn/passes/graphjson.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    INDEX_BYTES_MAX = 1 << 20,
    MODEL_BYTES_MAX = 64 << 20,
    TENSORS_MAX = 4096,
    ID_DIGITS = 32,
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

/* Reads and parses a JSON file with its crc member; its text is needed no longer. */
static tn_status read_json(opening *o, const char *name, size_t size_max, const tn_json **out,
                           char path[TN_PATH_SIZE])
{
    TN_TRY(in_dir(o, name, path));
    tn_text_clear(&o->text);
    if (!tn_path_exists(path)) {
        return tn_fail(o->err, TN_E_CKPT,
                       "no export in '%s': '%s' is missing\nhint: 'tnet-export CONFIG' makes one "
                       "and prints its folder",
                       o->dir, name);
    }
    TN_TRY(tn_file_read_all(path, size_max, &o->text, o->err));
    const char *text = tn_text_str(&o->text);
    TN_TRY(tn_json_check_crc(text, o->text.size, path, o->err));
    return tn_json_parse(out, text, o->text.size, o->b->arena, path, o->err);
}

/* Checks format, major version, and the model_id: the first one is taken, others must be equal. */
static tn_status check_head(const opening *o, const tn_json *doc, const char *format,
                            uint64_t newest, const char *path)
{
    const char *is = tn_json_as_str(tn_json_get(doc, "format"));
    const tn_json *version = tn_json_get(doc, "version");
    uint64_t major = 0;
    if (is == NULL || strcmp(is, format) != 0 || version == NULL || version->kind != TN_JSON_LIST ||
        !tn_json_as_u64(version->first, &major) || major == 0 || major > newest) {
        return tn_fail(o->err, TN_E_CKPT, "'%s' is no %s of version %s", path, format,
                       newest == 1 ? "1" : "1 to 3");
    }
    const char *id = tn_json_as_str(tn_json_get(doc, "model_id"));
    if (id == NULL || strlen(id) != ID_DIGITS) {
        return tn_fail(o->err, TN_E_CKPT, "'%s' has no model_id", path);
    }
    if (o->b->model_id[0] == '\0') {
        memcpy(o->b->model_id, id, ID_DIGITS + 1);
    } else if (strcmp(o->b->model_id, id) != 0) {
        return tn_fail(o->err, TN_E_CKPT, "'%s' is of model %s, not %s", path, id, o->b->model_id);
    }
    return TN_OK;
}

/* Compares a file with its entry in EXPORT.json. The dictionary has checksums of its own. */
static tn_status check_file(const opening *o, const tn_json *file)
{
    char path[TN_PATH_SIZE];
    const char *name = tn_json_as_str(tn_json_get(file, "name"));
    const char *crc = tn_json_as_str(tn_json_get(file, "crc32c"));
    uint64_t bytes = 0;
    uint64_t want = 0;
    TN_TRY(in_dir(o, name, path));
    if (!tn_json_as_u64(tn_json_get(file, "bytes"), &bytes) || crc == NULL || strlen(crc) != 8 ||
        tn_read_hex(crc, 8, &want) != TN_NUM_OK) {
        return tn_fail(o->err, TN_E_CKPT, "'%s': size or crc of '%s' is missing", o->dir, name);
    }
    if (!tn_path_exists(path)) {
        return tn_fail(o->err, TN_E_CKPT, "export '%s' is not whole: '%s' is missing", o->dir,
                       name);
    }
    tn_map map = {0};
    TN_TRY(tn_map_file(&map, path, o->err));
    tn_status status = TN_OK;
    bool small = strcmp(name, "model.json") == 0 || strcmp(name, "dense.safetensors") == 0;
    if (map.size != bytes) {
        status = tn_fail(o->err, TN_E_CKPT, "'%s' has %zu bytes, EXPORT.json says %llu", path,
                         map.size, (unsigned long long)bytes);
    } else if (small && tn_crc32c(0, map.data, map.size) != want) {
        status =
            tn_fail(o->err, TN_E_CKPT, "'%s' is damaged: its crc is not that of EXPORT.json", path);
    }
    tn_unmap(&map);
    return status;
}

static tn_status read_index(opening *o)
{
    char path[TN_PATH_SIZE];
    const tn_json *index = NULL;
    TN_TRY(read_json(o, "EXPORT.json", INDEX_BYTES_MAX, &index, path));
    TN_TRY(check_head(o, index, "tnet-export", 1, path));
    const tn_json *files = tn_json_get(index, "files");
    if (files == NULL || files->kind != TN_JSON_LIST ||
        !tn_json_as_u64(tn_json_get(index, "step"), &o->b->step)) {
        return tn_fail(o->err, TN_E_CKPT, "'%s' has no files or step", path);
    }
    for (const tn_json *f = files->first; f != NULL; f = f->next) {
        TN_TRY(check_file(o, f));
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
            (void)tn_apply(g, &tn_op_numeric, in->name, NULL, 0, &(tn_numeric_attr){in->cols});
        } else {
            (void)tn_embed(g, in->name, in->slot, in->n);
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
    const tn_wanted wanted = {.logit = logit, .fetch = &pctr->name, .n_fetch = 1};
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
        tn_file_read_all(path, INDEX_BYTES_MAX, &text, NULL) == TN_OK && text.size > 0) {
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
    const tn_json *model = NULL;
    TN_TRY(read_index(o));
    TN_TRY(read_json(o, "model.json", MODEL_BYTES_MAX, &model, path));
    TN_TRY(check_head(o, model, "tnet-model", 3, path));
    TN_TRY(tn_exported_model_read(b, model, o->opts, path, o->err));
    TN_TRY(read_weights(o, tn_json_as_str(tn_json_get(model, "weights"))));
    const char *dict = tn_json_as_str(tn_json_get(model, "dictionary"));
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
