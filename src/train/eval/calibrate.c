/* calibrate.c - collects scores, fits a calibration and writes its file. */
#include "train/eval/calibrate.h"

#include "base/core/alloc.h"
#include "config/tree.h"
#include "serve/calibration_file.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/ckptdir.h"
#include "train/checkpoint/run_state.h"
#include "train/config/data_checks.h"
#include "train/config/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

tn_status tn_calibrate_rows(const tn_run *run, const tn_strs *named, const char *checkpoint,
                            tn_arena *arena, tn_valid_rows *out, tn_error *err)
{
    const tn_data_opts *data = &run->data;
    tn_learned_days learned = {0};
    tn_text which = {0};
    tn_error why = {0};
    if (data->pattern.n > 0 && checkpoint != NULL) {
        tn_checkpoint_days_at(checkpoint, &learned);
    } else if (data->pattern.n > 0) {
        tn_checkpoint_days(run, &learned, NULL);
    }
    *out = (tn_valid_rows){.paths = *named};
    if (named->n == 0) {
        const tn_status found = tn_valid_rows_find(data, &learned, arena, out, &why);
        if (found != TN_OK && (data->pattern.n == 0 || data->next)) {
            return tn_fail(err, data->next ? found : TN_E_CONFIG,
                           "nothing to calibrate on: %s\nhint: '--data PATH' names rows that the "
                           "model was not trained on",
                           why.text);
        }
        out->paths = found == TN_OK ? out->paths : tn_days_all_paths(data, arena);
    }
    const bool trained = tn_data_is_trained(data, &learned, &out->paths, &which);
    const tn_status status =
        trained ? tn_fail(err, TN_E_USAGE,
                          "'--calibrate' needs rows that the model was not trained on, %s",
                          tn_text_str(&which))
                : TN_OK;
    tn_text_done(&which);
    return status;
}

static bool fits_task(const tn_calibrate_opts *opts, uint32_t k)
{
    return tn_tasks_count(opts->tasks) == 1 || opts->tasks->task[k].target == TN_TARGET_CLICK;
}

tn_status tn_calibrate_open(tn_calibrate **out, const tn_calibrate_opts *opts, tn_error *err)
{
    TN_ASSERT(opts->method != TN_CALIBRATE_NONE);
    *out = NULL;
    tn_calibrate *c = tn_alloc(1, sizeof *c, "a calibration");
    c->opts = *opts;
    c->n = tn_tasks_count(opts->tasks);
    c->arena = tn_arena_new(1 << 12);
    tn_status status = TN_OK;
    for (uint32_t k = 0; k < c->n && status == TN_OK; k++) {
        if (fits_task(opts, k)) {
            status = tn_calibrator_new(&c->of[k].calibrator, k == 0 ? opts->sampling : 1, err);
        }
    }
    if (status != TN_OK) {
        tn_calibrate_free(c);
        return status;
    }
    *out = c;
    return TN_OK;
}

void tn_calibrate_free(tn_calibrate *c)
{
    for (uint32_t k = 0; c != NULL && k < c->n; k++) {
        tn_calibrator_free(c->of[k].calibrator);
        tn_metrics_free(c->of[k].after);
    }
    if (c != NULL) {
        tn_arena_free(c->arena);
        tn_free(c);
    }
}

static void clear_task(tn_calibrate_rows_of *t)
{
    if (t->rows > 0) { /* else its bins are not even touched */
        tn_calibrator_clear(t->calibrator);
    }
    tn_metrics_free(t->after);
    *t = (tn_calibrate_rows_of){.calibrator = t->calibrator};
}

void tn_calibrate_clear(tn_calibrate *c)
{
    for (uint32_t k = 0; c != NULL && k < c->n; k++) {
        clear_task(&c->of[k]);
        c->map[k] = (tn_calibration){0};
    }
    if (c != NULL) {
        tn_arena_free(c->arena);
        c->arena = tn_arena_new(1 << 12);
        c->fitted = false;
    }
}

void tn_calibrate_name(tn_calibrate *c, const char *name)
{
    TN_ASSERT(strlen(name) < sizeof c->name);
    memcpy(c->name, name, strlen(name) + 1);
}

static void add_rows(tn_calibrate_rows_of *t, const tn_scores *scores)
{
    const tn_batch *batch = scores->batch;
    tn_calibrator_add(t->calibrator, &(tn_scored){.n = batch->rows,
                                                  .logit = scores->logit,
                                                  .label = batch->label,
                                                  .weight = batch->weight,
                                                  .unknown = scores->unknown});
    for (uint32_t i = 0; i < batch->rows; i++) {
        const bool counts = batch->weight == NULL || batch->weight[i] > 0;
        t->rows += counts ? 1 : 0;
        t->clicks += counts ? (double)batch->label[i] : 0;
    }
}

tn_status tn_calibrate_sink(void *calibrate, const tn_scores *scores, tn_error *err)
{
    tn_calibrate *c = calibrate;
    (void)err;
    for (uint32_t k = 0; k < c->n; k++) {
        tn_batch batch;
        tn_scores of;
        tn_scores_of_task(scores, k, &batch, &of);
        if (c->of[k].calibrator != NULL) {
            add_rows(&c->of[k], &of);
        }
    }
    return TN_OK;
}

static tn_status fit_task(tn_calibrate *c, uint32_t k, tn_error *err)
{
    tn_calibrate_rows_of *t = &c->of[k];
    const double others = (double)t->rows - t->clicks;
    if (t->clicks < c->opts.class_min || others < c->opts.class_min) {
        return tn_fail(err, TN_E_DATA,
                       "data.valid has %.0f rows with a click and %.0f without, fewer than %.0f of "
                       "one kind say more of chance than of the model",
                       t->clicks, others, c->opts.class_min);
    }
    TN_TRY(c->opts.method == TN_CALIBRATE_ISOTONIC
               ? tn_calibrator_isotonic(t->calibrator, c->arena, &c->map[k], err)
               : tn_calibrator_platt(t->calibrator, c->opts.method, &c->map[k], err));
    return tn_calibrator_metrics(t->calibrator, &c->map[k], &t->after, err);
}

tn_status tn_calibrate_fit(tn_calibrate *c, tn_error *err)
{
    uint32_t n = 0;
    tn_error first = {0};
    TN_ASSERT(c->n > 0 && c->n <= TN_TASKS_MAX);
    for (uint32_t k = 0; k < c->n && !c->fitted; k++) {
        tn_error why = {0};
        if (c->of[k].calibrator == NULL) {
            continue;
        }
        const tn_status status = fit_task(c, k, &why);
        if (status != TN_OK && (status != TN_E_DATA || c->n == 1)) {
            return tn_fail(err, status, "%s", why.text);
        }
        c->of[k].why = status != TN_OK ? tn_tree_text(c->arena, why.text, strlen(why.text)) : NULL;
        first = status != TN_OK && first.code == TN_OK ? why : first;
        n += status == TN_OK;
    }
    c->fitted = c->fitted || n > 0;
    return c->fitted ? TN_OK : tn_fail(err, TN_E_DATA, "%s", first.text);
}

void tn_calibrate_left(const tn_calibrate *c, tn_text *out)
{
    for (uint32_t k = 0; k < c->n; k++) {
        if (c->of[k].why != NULL) {
            tn_text_addf(out, "; '%s' is left as it is: %s", c->opts.tasks->task[k].name,
                         c->of[k].why);
        }
    }
}

tn_status tn_calibrate_commit(tn_calibrate *c, const char *checkpoint, uint64_t step, tn_error *err)
{
    const char *name = c->name;
    const tn_strs named = {1, &name};
    TN_TRY(tn_calibrate_fit(c, err));
    tn_calibration_file file = {.step = step,
                                .sampling = c->opts.sampling,
                                .data = c->opts.data != NULL ? *c->opts.data : named,
                                .rows = c->of[0].rows,
                                .maps = tn_calibrations_of(c->map, c->opts.tasks, c->arena)};
    TN_TRY(tn_ckpt_model_id(checkpoint, file.model_id, err));
    const tn_output_with with = {.inputs = c->opts.inputs, .stop = c->opts.stop};
    tn_text text = {0};
    tn_status status = tn_document_write(&tn_calibration_document, &file, &text, err);
    if (status == TN_OK) {
        status = tn_output_put(c->opts.path, text.data, text.size, &with, err);
    }
    tn_text_done(&text);
    return status;
}

/* ---- what a run has left ---- */

static void put_map(const tn_calibration *map, tn_text *out)
{
    if (map->kind == TN_CALIBRATION_PLATT) {
        tn_text_addf(out, "p = sigmoid(%.6g z %c %.6g", map->a, map->b < 0 ? '-' : '+',
                     fabs(map->b));
        if (map->c != 0) {
            tn_text_addf(out, " %c %.6g m), m slots of keys not met in training",
                         map->c < 0 ? '-' : '+', fabs(map->c));
        } else {
            tn_text_adds(out, ")");
        }
    } else {
        tn_text_addf(out, "p linear between %u knots", map->n);
    }
}

bool tn_calibrates(const tn_calibration *map, const tn_tasks *tasks)
{
    bool some = false;
    for (uint32_t k = 0; k < tn_tasks_count(tasks); k++) {
        some = some || map[k].kind != TN_CALIBRATION_NONE;
    }
    return some;
}

void tn_calibrate_put(const tn_calibration *map, const tn_tasks *tasks, tn_text *out)
{
    const uint32_t n = tn_tasks_count(tasks);
    TN_ASSERT(map != NULL && n <= TN_TASKS_MAX);
    bool some = false;
    for (uint32_t k = 0; k < n; k++) {
        if (map[k].kind != TN_CALIBRATION_NONE) {
            tn_text_adds(out, some ? "; " : "");
            tn_text_addf(out, "%s%s", n > 1 ? tasks->task[k].name : "", n > 1 ? ": " : "");
            put_map(&map[k], out);
            some = true;
        }
    }
}

/* "runs/a/calibration.json" of "runs/a/ckpt-3". */
static tn_status path_beside(const char *checkpoint, char out[TN_PATH_SIZE], tn_error *err)
{
    size_t size = strlen(checkpoint);
    while (size > 1 && checkpoint[size - 1] == '/') {
        size--;
    }
    while (size > 0 && checkpoint[size - 1] != '/') {
        size--;
    }
    while (size > 1 && checkpoint[size - 1] == '/') {
        size--;
    }
    char dir[TN_PATH_SIZE];
    (void)snprintf(dir, sizeof dir, "%.*s", (int)size, checkpoint);
    return tn_path_join(size > 0 ? dir : ".", TN_CALIBRATION_NAME, out, err);
}

/* TN_E_DATA: they are not what is wanted. */
static tn_status take_maps(const tn_calibrate_wanted *wanted, const tn_calibrations *maps,
                           const char *path, tn_calibration *out, tn_error *err)
{
    tn_calibration map[TN_TASKS_MAX];
    const uint32_t n = tn_tasks_count(wanted->tasks);
    TN_TRY(tn_calibrations_by_task(maps, wanted->tasks, map, err));
    for (uint32_t k = 0; k < n; k++) {
        if (map[k].kind != TN_CALIBRATION_NONE && !tn_calibration_is_of(&map[k], wanted->method)) {
            return tn_fail(err, TN_E_DATA, "'%s' is %s, eval.calibrate is %s", path,
                           tn_calibration_name(&map[k]), tn_calibrate_choices[wanted->method]);
        }
    }
    memcpy(out, map, n * sizeof *out);
    return TN_OK;
}

/* TN_E_DATA: it is not there, damaged, or not what is wanted. */
static tn_status read_wanted(const tn_calibrate_wanted *wanted, const char *path, tn_arena *arena,
                             tn_calibration *out, tn_error *err)
{
    char id[33];
    tn_calibration_file file = {0};
    TN_TRY(tn_ckpt_model_id(wanted->checkpoint, id, err));
    const tn_calibrated_model model = {
        .id = id, .step = wanted->step, .sampling = wanted->sampling};
    TN_TRY(tn_calibration_file_read_for(&file, path, &model, arena, err));
    return take_maps(wanted, &file.maps, path, out, err);
}

/* The map that a checkpoint was saved with, which is of its model, if it is what is wanted. */
static bool take_saved(const tn_calibrate_wanted *wanted, tn_arena *arena, tn_calibration *out)
{
    tn_manifest m = {0};
    tn_error why;
    if (tn_ckpt_read_manifest(wanted->checkpoint, arena, &m, &why) != TN_OK ||
        tn_run_sections_of(&m)->kept.export.calibration == NULL) {
        return false;
    }
    const tn_json *json = NULL;
    tn_calibrations maps = {0};
    const char *text = tn_run_sections_of(&m)->kept.export.calibration;
    const bool is_whole =
        tn_json_parse(&json, text, strlen(text), arena, "calibration", &why) == TN_OK &&
        tn_doc_get_rows(tn_calibration_rows, json, &maps, arena, "calibration", &why) == TN_OK;
    return is_whole && take_maps(wanted, &maps, "", out, &why) == TN_OK;
}

tn_status tn_calibrate_find(const tn_calibrate_wanted *wanted, tn_arena *arena, tn_calibration *out,
                            tn_text *said, tn_error *err)
{
    char path[TN_PATH_SIZE];
    tn_error why = {0};
    memset(out, 0, tn_tasks_count(wanted->tasks) * sizeof *out);
    if (wanted->method == TN_CALIBRATE_NONE) {
        return TN_OK;
    }
    const bool any = wanted->method == TN_CALIBRATE_AUTO;
    TN_TRY(path_beside(wanted->checkpoint, path, err));
    tn_status status = read_wanted(wanted, path, arena, out, &why);
    if (status == TN_E_DATA && take_saved(wanted, arena, out)) {
        tn_text_adds(said, "calibrated: ");
        tn_calibrate_put(out, wanted->tasks, said);
        return tn_text_check(said, "a sentence", err);
    }
    if (any && !tn_path_exists(path)) {
        return TN_OK;
    }
    if (status == TN_OK) {
        tn_text_addf(said, "calibrated by '%s': ", path);
        tn_calibrate_put(out, wanted->tasks, said);
    } else if (status == TN_E_DATA) {
        why.text[strcspn(why.text, "\n")] = '\0';
        tn_text_addf(said,
                     "not calibrated: %s; 'tnet-eval CONFIG --calibrate %s --calibration-out "
                     "%s' makes one for this model",
                     why.text, tn_calibrate_words[any ? TN_CALIBRATE_PLATT : wanted->method], path);
    } else {
        return tn_fail(err, status, "%s", why.text);
    }
    return tn_text_check(said, "a sentence", err);
}
