/* model_json.c - the table of model.json. */
#include "serve/model_json.h"

#include "base/keys/record.h"
#include "config/field.h"
#include "io/schema/schema.h"
#include "serve/calibration_file.h"

enum { COLS_MAX = 1 << 20, INPUTS_MAX = 64, POSITIONS_MAX = 1024 };

static const tn_doc_row columns_rows[] = {
    /* ["user",0,16] */
    TN_DOC_STR(tn_model_columns, slot, "slot"),
    TN_DOC_U32(tn_model_columns, first, 0, COLS_MAX, "first"),
    TN_DOC_U32(tn_model_columns, cols, 1, COLS_MAX, "cols"),
    TN_DOC_END,
};

static const tn_doc_row input_rows[] = {
    TN_DOC_STR(tn_model_json_input, name, "name"),
    TN_DOC_U32(tn_model_json_input, cols, 1, COLS_MAX, "cols"),
    TN_DOC_U32(tn_model_json_input, first, 1, COLS_MAX, "first", TN_DOC_MAY_MISS),
    TN_DOC_MARK(tn_model_json_input, mean, "mean", "pool"),
    TN_DOC_STR(tn_model_json_input, segment, "segment", TN_DOC_MAY_MISS),
    TN_DOC_U32(tn_model_json_input, max_len, 1, POSITIONS_MAX, "positions", TN_DOC_MAY_MISS),
    TN_DOC_LIST(tn_model_json_input, n, from, const tn_model_columns *, '[', columns_rows,
                TN_SLOTS_MAX, "from", TN_DOC_FLAG(tn_model_json_input, embeds)),
    TN_DOC_END,
};

static bool is_click(const void *output)
{
    return ((const tn_model_output *)output)->target == TN_TARGET_CLICK;
}

static bool is_score(const void *output)
{
    return !is_click(output);
}

/* Only a probability can have a calibration. */
static const char *check_output(void *output)
{
    const tn_model_output *o = output;
    return o->calibrated && !is_click(o) ? "calibration" : NULL;
}

static const tn_doc_row output_rows[] = {
    TN_DOC_WORD(tn_model_output, target, tn_target, tn_target_words, "task"),
    TN_DOC_STR(tn_model_output, logit, "logit", TN_DOC_IF(is_click)),
    TN_DOC_STR(tn_model_output, score, "score", TN_DOC_IF(is_score)),
    TN_DOC_STR(tn_model_output, pctr, "pctr", TN_DOC_IF(is_click)),
    TN_DOC_OBJECT(tn_model_output, calibration, tn_calibration, '{', tn_calibration_map_rows,
                  "calibration", TN_DOC_FLAG(tn_model_output, calibrated)),
    TN_DOC_CHECK(check_output),
    TN_DOC_END,
};

const tn_field tn_task_source_fields[] = {
    TN_FIELD_TREE(tn_task_source, label, "~", "its label"),
    TN_FIELD_STR(tn_task_source, where, "~", "the task whose clicks count"),
    TN_FIELD_STR(tn_task_source, weight, "~", "the column of its factors"),
    TN_FIELD_END_OF(tn_task_source),
};

static const char *check_task(void *task)
{
    const tn_model_task *t = task;
    return t->calibrated && t->target != TN_TARGET_CLICK ? "calibration" : NULL;
}

static const tn_doc_row task_rows[] = {
    TN_DOC_STR(tn_model_task, name, "name"),
    TN_DOC_WORD(tn_model_task, target, tn_target, tn_target_words, "task"),
    TN_DOC_STR(tn_model_task, score, "score"),
    TN_DOC_STR(tn_model_task, given, "given", TN_DOC_MAY_MISS),
    TN_DOC_OBJECT(tn_model_task, calibration, tn_calibration, '{', tn_calibration_map_rows,
                  "calibration", TN_DOC_FLAG(tn_model_task, calibrated)),
    TN_DOC_RAW(tn_model_task, source, "source", TN_DOC_MAY_MISS),
    TN_DOC_CHECK(check_task),
    TN_DOC_END,
};

static const char *const init_words[] = {"constant",   "uniform",        "normal",
                                         "truncated",  "glorot_uniform", "xavier_normal",
                                         "he_uniform", "he_normal",      NULL};

static const tn_doc_row first_rows[] = {
    TN_DOC_STR(tn_model_first, group, "group"),
    TN_DOC_STR(tn_model_first, segment, "segment"),
    TN_DOC_WORD(tn_model_first, init.kind, tn_init_kind, init_words, "kind"),
    TN_DOC_F64(tn_model_first, init.a, "a"),
    TN_DOC_F64(tn_model_first, init.b, "b"),
    TN_DOC_END,
};

static const char *check_model(void *model)
{
    const tn_model_json *m = model;
    return m->n_first > 0 && !m->seeded ? "seed"
           : m->n_outputs != 1          ? "outputs"
           : m->n_tasks == 1            ? "tasks"
                                        : NULL;
}

#define INPUTS_ROW                                                                                 \
    TN_DOC_LIST(tn_model_json, n_inputs, input, const tn_model_json_input *, '{', input_rows,      \
                INPUTS_MAX, "inputs")

const tn_doc_row tn_model_inputs_row = INPUTS_ROW;

static const tn_doc_row model_rows[] = {
    TN_DOC_ID(tn_model_json, model_id, 1, "model_id"),
    TN_DOC_STR(tn_model_json, weights, "weights"),
    TN_DOC_STR(tn_model_json, dictionary, "dictionary", TN_DOC_OR_NULL),
    TN_DOC_RAW(tn_model_json, slots, "slots"),
    TN_DOC_RAW(tn_model_json, numeric, "numeric"),
    INPUTS_ROW,
    TN_DOC_RAW(tn_model_json, nodes, "nodes"),
    TN_DOC_ARRAY(tn_model_json, n_outputs, output, tn_model_output, '{', output_rows, 1, "outputs"),
    TN_DOC_LIST(tn_model_json, n_tasks, task, const tn_model_task *, '{', task_rows, TN_TASKS_MAX,
                "tasks", TN_DOC_MAY_MISS),
    TN_DOC_HEX(tn_model_json, seed, "seed", TN_DOC_FLAG(tn_model_json, seeded)),
    TN_DOC_LIST(tn_model_json, n_first, first, const tn_model_first *, '{', first_rows,
                (uint64_t)TN_GROUPS_MAX *TN_SEGMENTS_MAX, "init", TN_DOC_MAY_MISS),
    TN_DOC_CHECK(check_model),
    TN_DOC_RAW(tn_model_json, source, "source", TN_DOC_MAY_MISS),
    TN_DOC_END,
};

static uint32_t version_of(const void *model)
{
    return ((const tn_model_json *)model)->version;
}

const tn_document tn_model_document = {.format = "tnet-model",
                                       .is = "the model of an export",
                                       .newest = 5,
                                       .newer = TN_E_CKPT,
                                       .rows = model_rows,
                                       .version = version_of};
