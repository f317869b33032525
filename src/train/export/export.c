/* export.c - writes the directory of an export: graph, rows, index, then its final name. */
#include "train/export/export.h"

#include "base/codec/json.h"
#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/core/number.h"
#include "base/file/output_file.h"
#include "base/file/safetensors.h"
#include "dict/dict.h"
#include "serve/calibration_file.h"
#include "serve/export_index.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/ckptdir.h"
#include "train/checkpoint/run_state.h"
#include "train/config/days.h"
#include "train/config/export_files.h"
#include "train/config/run.h"
#include "train/eval/calibrate.h"
#include "train/export/export_folder.h"
#include "train/export/exportjson.h"
#include "train/export/exportrows.h"
#include "train/group/ranks.h"
#include "train/step/watch.h"

#include <stdio.h>
#include <string.h>

/* ---- what is exported ---- */

enum { FILES_MAX = 8 };

typedef struct exporting {
    const tn_model_plan *plan;
    const tn_export_request *request;
    tn_worker *w;
    tn_ranks ranks; /* the others, which write their rows */
    bool is_alone;
    tn_export_parts parts;
    tn_export_files files; /* a request aside reads rows from them */
    tn_manifest manifest;  /* names the checkpoint */
    tn_exported *out;
    tn_export_folder dir;
    char base[TN_PATH_SIZE]; /* rows to judge export.values by; without paths: there are none */
    tn_calibration calibration[TN_TASKS_MAX]; /* by task */
    tn_valid_rows valid; /* to judge export.values by; without paths: there are none */
    tn_export_entry file[FILES_MAX];
    uint32_t n_files;
} exporting;

/* ---- files ---- */

static void add_file(exporting *x, const char *name, uint64_t bytes, uint32_t crc)
{
    TN_ASSERT(x->n_files < FILES_MAX);
    uint32_t k = x->n_files++;
    for (; k > 0 && strcmp(x->file[k - 1].name, name) > 0; k--) {
        x->file[k] = x->file[k - 1];
    }
    TN_ASSERT(k == 0 || strcmp(x->file[k - 1].name, name) < 0); /* each name once */
    x->file[k] = (tn_export_entry){name, bytes, crc};
    x->out->bytes += bytes;
}

static tn_status begin_file(const exporting *x, const char *name, tn_file **out, tn_error *err)
{
    char path[TN_PATH_SIZE];
    TN_TRY(tn_path_join(x->dir.tmp, name, path, err));
    return tn_file_create(out, path, err);
}

/* `status`: of what was written. */
static tn_status end_file(exporting *x, const char *name, tn_file *f, tn_status status,
                          tn_error *err)
{
    if (status != TN_OK) {
        tn_file_abandon(f);
        return status;
    }
    const uint64_t bytes = tn_file_size(f);
    const uint32_t crc = tn_file_crc(f);
    TN_TRY(tn_file_commit(f, err));
    add_file(x, name, bytes, crc);
    return TN_OK;
}

static tn_status write_text(exporting *x, const char *name, const tn_text *text, tn_error *err)
{
    tn_file *f = NULL;
    TN_TRY(tn_text_check(text, name, err));
    TN_TRY(begin_file(x, name, &f, err));
    return end_file(x, name, f, tn_file_write(f, text->data, text->size, err), err);
}

/* The parameters that the nodes name, each once. */
static uint32_t list_tensors(const tn_export_graph *g, tn_arena *arena, const tn_tensor **out)
{
    uint32_t most = 0;
    while (tn_graph_node(g->g, most) != NULL) {
        most++;
    }
    tn_tensor *tensor = TN_NEW_ARRAY(arena, tn_tensor, most + 1);
    uint32_t n = 0;
    for (const tn_json *node = g->node->first; node != NULL; node = node->next) {
        const tn_json *params = tn_json_get(node, "params");
        for (const tn_json *p = params != NULL ? params->first : NULL; p != NULL; p = p->next) {
            uint32_t k = 0;
            while (k < n && strcmp(tensor[k].name, p->string) != 0) {
                k++;
            }
            const tn_node *param = tn_graph_find(g->g, p->string);
            TN_ASSERT(param != NULL && param->is_param && param->val != NULL);
            TN_ASSERT(k <= most);
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
    tn_file *f = NULL;
    doc.n_tensors = list_tensors(g, x->request->binder->arena, &doc.tensor);
    TN_TRY(begin_file(x, name, &f, err));
    return end_file(x, name, f, tn_safetensors_write(f, &doc, err), err);
}

/* Writes the files for other programs that export.graph asks for. */
static tn_status write_files(exporting *x, const tn_export_graph *g, tn_error *err)
{
    const tn_export_model model = {g, x->calibration, x->out->model_id, x->request->binder->arena};
    TN_ASSERT(g->logit != NULL && g->pctr != NULL);
    for (const tn_export_file *const *f = tn_all_export_files; *f != NULL; f++) {
        if ((*f)->make == NULL || !tn_strs_has(&x->plan->run->export.graph, (*f)->word)) {
            continue;
        }
        tn_text bytes = {0};
        tn_status status = (*f)->make(&model, &bytes, err);
        status = status == TN_OK ? write_text(x, (*f)->name, &bytes, err) : status;
        tn_text_done(&bytes);
        TN_TRY(status);
    }
    return TN_OK;
}

static tn_status write_graph(exporting *x, tn_error *err)
{
    tn_export_graph g;
    TN_TRY(tn_export_graph_new(&g, x->plan, x->w->params, x->request->binder, err));
    tn_text json = {0};
    tn_status status = tn_export_model_json(&json, &g, x->out->model_id, x->calibration, err);
    status = status == TN_OK ? write_text(x, "model.json", &json, err) : status;
    tn_text_done(&json);
    if (status == TN_OK) {
        status = write_weights(x, &g, err);
    }
    if (status == TN_OK) {
        status = write_files(x, &g, err);
    }
    tn_export_graph_done(&g);
    return status;
}

/* Writes a file of the rows of the table. */
static tn_status write_table(exporting *x, const tn_export_rows *rows, const char *name,
                             tn_export_table_fn *put, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_export_done done = {0};
    TN_TRY(tn_path_join(x->dir.tmp, name, path, err));
    TN_TRY(put(rows, path, &done, err));
    add_file(x, name, done.bytes, done.crc);
    x->out->rows = done.rows;
    return TN_OK;
}

/* Writes a file for other programs of the dictionary that this export has. */
static tn_status write_of_rows(exporting *x, const tn_export_file *kind, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_dict *d = NULL;
    tn_file *f = NULL;
    const tn_export_opts *opts = &x->plan->run->export;
    TN_ASSERT(tn_strs_has(&opts->dict, "tnd"));
    TN_TRY(tn_path_join(x->dir.tmp, "dict.tnd", path, err));
    TN_TRY(tn_dict_open(&d, path, TN_VERIFY_NONE, err));
    tn_status status = begin_file(x, kind->name, &f, err);
    if (status == TN_OK) {
        status = end_file(x, kind->name, f, kind->of_rows(d, opts, f, err), err);
    }
    tn_dict_close(d);
    return status;
}

static tn_status write_rows(exporting *x, tn_error *err)
{
    const tn_run *run = x->plan->run;
    tn_export_files *files = x->request->aside ? &x->files : NULL;
    tn_export_rows rows = {.plan = x->plan,
                           .table = x->w->shard.table,
                           .team = x->w->team,
                           .day = x->w->loaded_day,
                           .model_id = x->out->model_id,
                           .values = (tn_dict_type)run->export.values,
                           .base = x->request->delta_from != NULL ? x->base : NULL,
                           .stop = x->request->stop,
                           .parts = x->is_alone ? NULL : &x->parts,
                           .files = files};
    if (tn_strs_has(&run->export.dict, "tnd")) {
        const uint64_t before = x->out->bytes;
        TN_TRY(write_table(x, &rows, "dict.tnd", tn_export_dict, err));
        x->out->loss.bytes = x->out->bytes - before;
    }
    for (const tn_export_file *const *f = tn_all_export_files; *f != NULL; f++) {
        if ((*f)->make == NULL && tn_strs_has(&run->export.dict, (*f)->word)) {
            TN_TRY((*f)->of_table != NULL ? write_table(x, &rows, (*f)->name, (*f)->of_table, err)
                                          : write_of_rows(x, *f, err));
        }
    }
    if (tn_export_loss_wanted(run, &x->valid)) {
        char path[TN_PATH_SIZE];
        tn_export_done done = {0};
        rows.values = TN_DICT_F32;
        rows.base = NULL;
        TN_TRY(tn_path_join(x->dir.tmp, TN_FLOAT32_DICT, path, err));
        TN_TRY(tn_export_dict(&rows, path, &done, err));
        x->out->loss.bytes_f32 = done.bytes;
    }
    return TN_OK;
}

/* Measures what the dictionary loses; nothing else of the folder is missing. Frees the floats. */
static tn_status judge_rows(exporting *x, tn_error *err)
{
    const tn_run *run = x->plan->run;
    char path[TN_PATH_SIZE];
    if (!tn_export_loss_wanted(run, &x->valid)) {
        return TN_OK;
    }
    TN_ASSERT(x->out->loss.bytes_f32 > 0 && x->n_files > 0);
    TN_TRY(tn_export_loss_measure(
        &x->out->loss, &(tn_export_loss_job){run, &x->valid, x->dir.tmp, x->request->stop}, err));
    TN_TRY(tn_export_loss_check(&x->out->loss, run, err));
    TN_TRY(tn_path_join(x->dir.tmp, TN_FLOAT32_DICT, path, err));
    return tn_remove_file(path, err);
}

static tn_status write_index(exporting *x, tn_error *err)
{
    TN_ASSERT(x->n_files > 0);
    char day[TN_DAY_TEXT];
    tn_export_index index = {.step = x->w->steps, .n_files = x->n_files, .file = x->file};
    tn_text text = {0};
    memcpy(index.model_id, x->out->model_id, sizeof index.model_id);
    if (x->w->loaded_day > 0) {
        tn_day_text(x->w->loaded_day, day);
        index.day = day;
    }
    tn_status status = tn_document_write(&tn_export_index_document, &index, &text, err);
    status = status == TN_OK ? write_text(x, "EXPORT.json", &text, err) : status;
    tn_text_done(&text);
    return status;
}

/* ---- all of it ---- */

/* The others have written their rows when this returns, whatever became of the graph: nobody writes
 * into a folder that is removed. */
static tn_status write_graph_together(exporting *x, tn_error *err)
{
    tn_error second = {0};
    const tn_ranks *r = &x->ranks;
    if (!x->is_alone) {
        TN_TRY(tn_export_parts_init(&x->parts, x->w, x->w->steps, x->dir.tmp,
                                    x->request->binder->arena, err));
    }
    TN_TRY(r->ops->export(r->self, x->dir.tmp, err));
    tn_status status = write_graph(x, err);
    tn_status others = r->ops->exported(r->self, status == TN_OK ? err : &second);
    return status != TN_OK ? status : others;
}

static tn_status fill(exporting *x, tn_error *err)
{
    TN_TRY(write_graph_together(x, err));
    TN_TRY(write_rows(x, err));
    TN_TRY(x->is_alone ? TN_OK : tn_export_parts_remove(&x->parts, err));
    TN_TRY(write_index(x, err));
    TN_TRY(judge_rows(x, err));
    TN_TRY(tn_export_folder_settle(&x->dir, &x->out->existed, err));
    memcpy(x->out->path, x->dir.path, sizeof x->out->path);
    return TN_OK;
}

/* Reads the calibration of the request, or the one that the run has left for this model, if the
 * export is to have one. */
static tn_status read_calibration(exporting *x, const char *checkpoint, tn_error *err)
{
    const tn_run *run = x->plan->run;
    tn_arena *arena = x->request->binder->arena;
    if (x->request->calibration != NULL) {
        const tn_calibrated_model model = {
            .id = x->out->model_id, .step = x->w->steps, .sampling = run->data.negative_sampling};
        tn_calibration_file file = {0};
        TN_TRY(tn_calibration_file_read_for(&file, x->request->calibration, &model, arena, err));
        return tn_calibrations_by_task(&file.maps, run->data.tasks, x->calibration, err);
    }
    const tn_calibrate_wanted wanted = {.method = (tn_calibrate_method)run->eval.calibrate,
                                        .checkpoint = checkpoint,
                                        .step = x->w->steps,
                                        .sampling = run->data.negative_sampling,
                                        .tasks = run->data.tasks};
    tn_text said = {0};
    tn_status status = tn_calibrate_find(&wanted, arena, x->calibration, &said, err);
    if (status == TN_OK && said.size > 0) {
        const bool used = tn_calibrates(x->calibration, run->data.tasks);
        const tn_log_level level = x->request->aside ? TN_LOG_DEBUG : TN_LOG_WARN;
        tn_log(used ? TN_LOG_INFO : level, "the export is %s", tn_text_str(&said));
    }
    tn_text_done(&said);
    return status;
}

/* Finds the rows that fewer bits are judged by. */
static tn_status find_valid(exporting *x, const char *checkpoint, tn_error *err)
{
    const tn_run *run = x->plan->run;
    tn_arena *arena = x->request->binder->arena;
    tn_error why = {0};
    if (run->export.values == TN_DICT_F32) {
        return TN_OK;
    }
    const tn_status status = tn_checkpoint_valid_rows(checkpoint, run, arena, &x->valid, &why);
    return status == TN_E_STOPPED ? tn_fail(err, status, "%s", why.text) : TN_OK;
}

/* Loads the checkpoint; for a request aside all but the rows. */
static tn_status load_checkpoint(exporting *x, char folder[TN_PATH_SIZE], tn_error *err)
{
    const tn_export_request *r = x->request;
    tn_saved which = {0};
    if (r->aside) {
        x->files = (tn_export_files){.folder = r->checkpoint, .manifest = &x->manifest};
        (void)snprintf(folder, TN_PATH_SIZE, "%s", r->checkpoint);
        TN_TRY(tn_checkpoint_load_dense(r->checkpoint, x->w, &which, err));
        TN_ASSERT(x->is_alone && which.deltas == 0);
        return tn_ckpt_read_manifest(r->checkpoint, r->binder->arena, &x->manifest, err);
    }
    TN_TRY(tn_checkpoint_load(r->checkpoint, x->w, &which, err));
    TN_TRY(tn_path_join(r->checkpoint, "MANIFEST", folder, err));
    if (!tn_path_exists(folder)) {
        return tn_path_join(r->checkpoint, which.name, folder, err);
    }
    (void)snprintf(folder, TN_PATH_SIZE, "%s", r->checkpoint);
    return TN_OK;
}

static tn_status write_export(exporting *x, tn_error *err)
{
    const tn_export_request *r = x->request;
    const char *to = r->to != NULL ? r->to : x->plan->run->export.to;
    char folder[TN_PATH_SIZE];
    TN_TRY(load_checkpoint(x, folder, err));
    TN_TRY(tn_ckpt_model_id(folder, x->out->model_id, err));
    TN_TRY(read_calibration(x, folder, err));
    TN_TRY(find_valid(x, folder, err));
    TN_TRY(x->ranks.ops->load(x->ranks.self, folder, err));
    x->out->step = x->w->steps;
    x->out->day = x->w->loaded_day;
    if (r->delta_from != NULL) {
        TN_TRY(tn_path_join(to, r->delta_from, x->base, err));
    }
    tn_status status = tn_export_folder_begin(&x->dir, to, x->out->model_id, err);
    if (status == TN_OK) {
        status = fill(x, err);
    }
    tn_export_folder_end(&x->dir, err);
    return status;
}

static tn_status export_together(exporting *x, tn_error *err)
{
    const tn_watch watch = {.told_elsewhere = x->request->told_elsewhere};
    const tn_ranks_opts opts = {.worker = x->w, .text = x->request->text};
    TN_TRY(tn_ranks_open(&x->ranks, &opts, err));
    tn_status status = x->ranks.ops->form(x->ranks.self, x->request->stop, err);
    if (status == TN_OK) {
        status = write_export(x, err);
    }
    tn_watch_told_elsewhere(&watch, x->ranks.ops->close(x->ranks.self, status, err->text));
    return status;
}

tn_status tn_export(const tn_model_plan *plan, const tn_export_request *request, tn_exported *out,
                    tn_error *err)
{
    tn_exported made = {.model_id = ""};
    tn_error why = {0};
    exporting x = {.plan = plan,
                   .request = request,
                   .out = &made,
                   .ranks = tn_ranks_alone,
                   .is_alone = plan->owners.n_peers == 1 || request->aside};
    double begin = tn_clock_s();
    /* the training graph too: a checkpoint is known by it */
    const tn_worker_opts opts = {
        .compares = true, .aside = request->aside, .threads = request->aside ? 1 : 0};
    tn_status status = tn_worker_new(&x.w, plan, &opts, request->binder, &why);
    if (status == TN_OK) {
        status = x.is_alone ? write_export(&x, &why) : export_together(&x, &why);
    }
    if (status != TN_OK && x.ranks.self == NULL && !request->aside) {
        tn_group_built()->decline(plan->run, status, why.text);
    }
    tn_export_files_done(&x.files);
    tn_worker_free(x.w);
    if (status != TN_OK) {
        return tn_fail(err, status, "%s", why.text);
    }
    made.seconds = tn_clock_s() - begin;
    *out = made;
    return TN_OK;
}

/* The line of a file that names an export. */
static int name_line(const char *model_id, char line[TN_MODEL_ID_TEXT + 1])
{
    TN_ASSERT(tn_export_is_id(model_id));
    return snprintf(line, TN_MODEL_ID_TEXT + 1, "%s\n", model_id);
}

bool tn_export_names(const char *folder, const char *name, const char *model_id)
{
    char path[TN_PATH_SIZE];
    char line[TN_MODEL_ID_TEXT + 1];
    tn_text there = {0};
    (void)name_line(model_id, line);
    const bool is = tn_path_join(folder, name, path, NULL) == TN_OK &&
                    tn_file_read_all(path, sizeof line, &there, NULL) == TN_OK &&
                    strcmp(tn_text_str(&there), line) == 0;
    tn_text_done(&there);
    return is;
}

tn_status tn_export_set_name(const char *folder, const char *name, const char *model_id,
                             tn_error *err)
{
    char path[TN_PATH_SIZE];
    char line[TN_MODEL_ID_TEXT + 1];
    const int size = name_line(model_id, line);
    TN_ASSERT(size == TN_MODEL_ID_TEXT && name[0] != '\0');
    TN_TRY(tn_path_join(folder, name, path, err));
    return tn_file_replace(path, line, (size_t)size, err);
}
