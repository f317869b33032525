/* export.c - the directory of an export; see export.h. */
#include "train/export/export.h"

#include "base/codec/json.h"
#include "base/core/clock.h"
#include "base/file/safetensors.h"
#include "base/math/crc32c.h"
#include "base/math/sha256.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/ckptdir.h"
#include "train/export/exportdir.h"
#include "train/export/exportjson.h"
#include "train/export/exportparts.h"
#include "train/peers/leader.h"

#include <stdio.h>
#include <string.h>

enum { FILES_MAX = 8, ID_DIGITS = 32 };

typedef struct out_file {
    const char *name;
    uint64_t bytes;
    uint32_t crc;
} out_file;

typedef struct exporting {
    const tn_blueprint *plan;
    const tn_export_request *request;
    tn_worker *w;
    tn_lead *lead; /* of other processes, once there are any; NULL: alone */
    tn_export_parts parts;
    tn_exported *out;
    tn_exportdir dir;
    char base[TN_PATH_SIZE]; /* of a delta */
    out_file file[FILES_MAX];
    uint32_t n_files;
} exporting;

/* What a checkpoint holds and what it stands on, down to the full one. */
static tn_status add_lists(const char *folder, tn_arena *arena, tn_text *out, tn_error *err)
{
    char link[TN_PATH_SIZE];
    tn_manifest m = {0};
    (void)snprintf(link, sizeof link, "%s", folder);
    for (;;) {
        TN_TRY(tn_ckpt_read_manifest(link, arena, &m, err));
        tn_manifest_add_learned(out, &m);
        if (m.base == 0) {
            return tn_text_check(out, "the files of a checkpoint", err);
        }
        char delta[TN_PATH_SIZE];
        memcpy(delta, link, sizeof delta);
        TN_TRY(tn_ckptdir_beside(delta, m.base, link, err));
    }
}

/* Id of a checkpoint's model; `folder` holds its MANIFEST. */
static tn_status id_of_model(const char *folder, char out[33], tn_error *err)
{
    tn_arena *arena = tn_arena_new(1 << 16);
    tn_text files = {0};
    tn_status status = add_lists(folder, arena, &files, err);
    if (status == TN_OK) {
        uint8_t digest[32];
        char hex[65];
        tn_sha256 h;
        tn_sha256_init(&h);
        tn_sha256_add(&h, files.data, files.size);
        tn_sha256_end(&h, digest);
        tn_sha256_hex(digest, hex);
        memcpy(out, hex, ID_DIGITS);
        out[ID_DIGITS] = '\0';
    }
    tn_text_done(&files);
    tn_arena_free(arena);
    return status;
}

/* ---- files ---- */

static void add_file(exporting *x, const char *name, uint64_t bytes, uint32_t crc)
{
    TN_ASSERT(x->n_files < FILES_MAX);
    uint32_t k = x->n_files++;
    for (; k > 0 && strcmp(x->file[k - 1].name, name) > 0; k--) {
        x->file[k] = x->file[k - 1];
    }
    x->file[k] = (out_file){name, bytes, crc};
    x->out->bytes += bytes;
}

static tn_status write_text(exporting *x, const char *name, const tn_text *text, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_file *f = NULL;
    TN_TRY(tn_text_check(text, name, err));
    TN_TRY(tn_path_join(x->dir.tmp, name, path, err));
    TN_TRY(tn_file_create(&f, path, err));
    tn_status status = tn_file_write(f, text->data, text->size, err);
    if (status != TN_OK) {
        tn_file_abandon(f);
        return status;
    }
    TN_TRY(tn_file_commit(f, err));
    add_file(x, name, text->size, tn_crc32c(0, text->data, text->size));
    return TN_OK;
}

/* The parameters that the nodes name, each once. */
static uint32_t list_tensors(const tn_export_graph *g, tn_arena *arena, const tn_tensor **out)
{
    const tn_json *nodes = NULL;
    tn_error err = {0};
    tn_status status = tn_json_parse(&nodes, g->nodes, strlen(g->nodes), arena, "nodes", &err);
    TN_ASSERT(status == TN_OK); /* just written */
    uint32_t most = 0;
    while (tn_graph_node(g->g, most) != NULL) {
        most++;
    }
    tn_tensor *tensor = TN_NEW_ARRAY(arena, tn_tensor, most + 1);
    uint32_t n = 0;
    for (const tn_json *node = nodes->first; node != NULL; node = node->next) {
        const tn_json *params = tn_json_get(node, "params");
        for (const tn_json *p = params != NULL ? params->first : NULL; p != NULL; p = p->next) {
            uint32_t k = 0;
            while (k < n && strcmp(tensor[k].name, p->string) != 0) {
                k++;
            }
            const tn_node *param = tn_graph_find(g->g, p->string);
            TN_ASSERT(param != NULL && param->is_param && param->val != NULL);
            tensor[k] =
                (tn_tensor){.name = p->string,
                            .dtype = "F32",
                            .rank = 2,
                            .shape = {param->shape.rows, param->shape.cols},
                            .data = (const char *)param->val,
                            .size = (size_t)param->shape.rows * param->shape.cols * sizeof(float)};
            n = k == n ? n + 1 : n;
        }
    }
    *out = tensor;
    return n;
}

static tn_status write_weights(exporting *x, const tn_export_graph *g, tn_error *err)
{
    static const char name[] = "dense.safetensors";
    const tn_tensor_meta meta = {"tnet.model_id", x->out->model_id};
    tn_safetensors doc = {.n_meta = 1, .meta = &meta};
    doc.n_tensors = list_tensors(g, x->request->binder->arena, &doc.tensor);
    char path[TN_PATH_SIZE];
    tn_file *f = NULL;
    TN_TRY(tn_path_join(x->dir.tmp, name, path, err));
    TN_TRY(tn_file_create(&f, path, err));
    tn_status status = tn_safetensors_write(f, &doc, err);
    if (status != TN_OK) {
        tn_file_abandon(f);
        return status;
    }
    uint64_t bytes = tn_file_size(f);
    uint32_t crc = tn_file_crc(f);
    TN_TRY(tn_file_commit(f, err));
    add_file(x, name, bytes, crc);
    return TN_OK;
}

static tn_status write_graph(exporting *x, tn_error *err)
{
    tn_export_graph g;
    TN_TRY(tn_export_graph_new(&g, x->plan, x->w->params, x->request->binder, err));
    tn_text json = {0};
    tn_export_model_json(&json, x->plan, &g, x->out->model_id, x->request->binder);
    tn_status status = write_text(x, "model.json", &json, err);
    tn_text_done(&json);
    if (status == TN_OK) {
        status = write_weights(x, &g, err);
    }
    tn_export_graph_done(&g);
    return status;
}

static bool wants(const tn_strs *list, const char *word)
{
    for (uint32_t i = 0; i < list->n; i++) {
        if (strcmp(list->item[i], word) == 0) {
            return true;
        }
    }
    return false;
}

static tn_status write_rows(exporting *x, tn_error *err)
{
    const tn_export_rows rows = {.plan = x->plan,
                                 .table = x->w->shard.table,
                                 .team = x->w->team,
                                 .model_id = x->out->model_id,
                                 .base = x->request->delta_from != NULL ? x->base : NULL,
                                 .stop = x->request->stop,
                                 .parts = x->lead != NULL ? &x->parts : NULL};
    char path[TN_PATH_SIZE];
    tn_export_done done = {0};
    if (wants(&x->plan->run->export.dict, "tnd")) {
        TN_TRY(tn_path_join(x->dir.tmp, "dict.tnd", path, err));
        TN_TRY(tn_export_dict(&rows, path, &done, err));
        add_file(x, "dict.tnd", done.bytes, done.crc);
    }
    if (wants(&x->plan->run->export.dict, "tsv")) {
        TN_TRY(tn_path_join(x->dir.tmp, "dict.tsv", path, err));
        TN_TRY(tn_export_dump(&rows, path, &done, err));
        add_file(x, "dict.tsv", done.bytes, done.crc);
    }
    x->out->rows = done.rows;
    return TN_OK;
}

static tn_status write_index(exporting *x, tn_error *err)
{
    tn_text t = {0};
    tn_json_open(&t, '{');
    tn_json_str(&t, "format", "tnet-export");
    tn_json_raw(&t, "version", "[1,0]");
    tn_json_str(&t, "model_id", x->out->model_id);
    tn_json_u64(&t, "step", x->w->steps);
    tn_json_open_key(&t, "files", '[');
    for (uint32_t i = 0; i < x->n_files; i++) {
        char crc[16];
        (void)snprintf(crc, sizeof crc, "%08x", x->file[i].crc);
        tn_json_open(&t, '{');
        tn_json_str(&t, "name", x->file[i].name);
        tn_json_count(&t, "bytes", x->file[i].bytes);
        tn_json_str(&t, "crc32c", crc);
        tn_json_close(&t, '}');
    }
    tn_json_close(&t, ']');
    tn_json_close_with_crc(&t);
    tn_status status = write_text(x, "EXPORT.json", &t, err);
    tn_text_done(&t);
    return status;
}

/* ---- directory ---- */

/* The others have written their rows when this returns, whatever became of the graph: nobody writes
 * into a folder that is removed. */
static tn_status write_graph_together(exporting *x, tn_error *err)
{
    tn_error second = {0};
    if (x->lead == NULL) {
        return write_graph(x, err);
    }
    TN_TRY(tn_export_parts_init(&x->parts, x->w, x->w->steps, x->dir.tmp, x->request->binder->arena,
                                err));
    TN_TRY(tn_lead_export(x->lead, x->dir.tmp, err));
    tn_status status = write_graph(x, err);
    tn_status others = tn_lead_exported(x->lead, status == TN_OK ? err : &second);
    return status != TN_OK ? status : others;
}

static tn_status fill(exporting *x, tn_error *err)
{
    TN_TRY(write_graph_together(x, err));
    TN_TRY(write_rows(x, err));
    if (x->lead != NULL) {
        TN_TRY(tn_export_parts_remove(&x->parts, err));
    }
    TN_TRY(write_index(x, err));
    TN_TRY(tn_exportdir_settle(&x->dir, &x->out->existed, err));
    memcpy(x->out->path, x->dir.path, sizeof x->out->path);
    return TN_OK;
}

static tn_status write_export(exporting *x, tn_error *err)
{
    const tn_export_request *r = x->request;
    const char *to = r->to != NULL ? r->to : x->plan->run->export.to;
    tn_saved which = {0};
    char folder[TN_PATH_SIZE];
    TN_TRY(tn_checkpoint_load(r->checkpoint, x->w, &which, err));
    TN_TRY(tn_path_join(r->checkpoint, "MANIFEST", folder, err));
    if (tn_path_exists(folder)) {
        (void)snprintf(folder, sizeof folder, "%s", r->checkpoint);
    } else {
        TN_TRY(tn_path_join(r->checkpoint, which.name, folder, err));
    }
    TN_TRY(id_of_model(folder, x->out->model_id, err));
    if (x->lead != NULL) {
        TN_TRY(tn_lead_load(x->lead, folder, err));
    }
    x->out->step = x->w->steps;
    if (r->delta_from != NULL) {
        TN_TRY(tn_path_join(to, r->delta_from, x->base, err));
    }
    tn_status status = tn_exportdir_begin(&x->dir, to, x->out->model_id, err);
    if (status == TN_OK) {
        status = fill(x, err);
    }
    tn_exportdir_end(&x->dir, err);
    return status;
}

static tn_status export_together(exporting *x, tn_error *err)
{
    const tn_watch watch = {.told_elsewhere = x->request->told_elsewhere};
    TN_TRY(tn_lead_open(&x->lead, x->w, x->request->text, NULL, NULL, err));
    tn_status status = tn_lead_form(x->lead, x->request->stop, err);
    if (status == TN_OK) {
        status = write_export(x, err);
    }
    tn_watch_told_elsewhere(&watch, tn_lead_close(x->lead, status, err->text));
    return status;
}

tn_status tn_export(const tn_blueprint *plan, const tn_export_request *request, tn_exported *out,
                    tn_error *err)
{
    tn_exported made = {.model_id = ""};
    tn_error why = {0};
    exporting x = {.plan = plan, .request = request, .out = &made};
    double begin = tn_clock_s();
    /* the training graph too: a checkpoint is known by it */
    const tn_worker_opts opts = {.compares = true};
    tn_status status = tn_worker_new(&x.w, plan, &opts, request->binder, &why);
    if (status == TN_OK) {
        status = plan->owners.n_peers > 1 ? export_together(&x, &why) : write_export(&x, &why);
    }
    if (status != TN_OK && x.lead == NULL) {
        tn_peers_decline(plan->run, status, why.text);
    }
    tn_worker_free(x.w);
    if (status != TN_OK) {
        return tn_fail(err, status, "%s", why.text);
    }
    made.seconds = tn_clock_s() - begin;
    *out = made;
    return TN_OK;
}
