/* calibration_file.h - a calibration as JSON: in a file from tnet-eval to tnet-export, and in
 * model.json.
 *
 *     {"format":"tnet-calibration","version":[1,0],"model_id":"<32 hex>","step":12000,
 *      "negative_sampling":1,"data":["valid.tsv"],"rows":"5000000",
 *      "calibration":{"kind":"platt","a":0.93,"b":-0.1},"crc32c":"<8 hex>"}
 *      "calibration":{"kind":"platt","a":0.93,"b":-0.1,"c":-0.04}      where c is not 0
 *      "calibration":{"kind":"isotonic","z":[-4.1,-2.5],"p":[0.01,0.07]}
 *
 * Of several tasks that member is the map of the first, if it has one, and another one follows:
 *
 *      "tasks":[{"name":"buy","calibration":{"kind":"platt","a":0.9,"b":-0.2}}]
 *
 * The file is read whole, and nothing of it is believed before it was checked.
 */
#pragma once

#include "base/codec/document.h"
#include "base/keys/tasks.h"
#include "config/values.h"
#include "metrics/calibrator.h"

/* The maps of a model, those of further tasks by name. */
typedef struct tn_task_calibration {
    const char *task;
    tn_calibration map;
} tn_task_calibration;

typedef struct tn_calibrations {
    bool has_first;
    tn_calibration first;
    uint32_t n;
    const tn_task_calibration *more;
} tn_calibrations;

/* From maps by task (kind NONE: it has none), of one label one map, and back. TN_E_DATA: there is
 * no task of that name. */
tn_calibrations tn_calibrations_of(const tn_calibration *map, const tn_tasks *tasks,
                                   tn_arena *arena);
tn_status tn_calibrations_by_task(const tn_calibrations *maps, const tn_tasks *tasks,
                                  tn_calibration *out, tn_error *err) TN_MUST_USE;

typedef struct tn_calibration_file {
    char model_id[33]; /* id of the only model that it fits */
    uint64_t step;
    double sampling; /* data.negative_sampling, for which logits were corrected before */
    tn_strs data;    /* paths of the rows it was fitted on */
    uint64_t rows;
    tn_calibrations maps;
} tn_calibration_file;

/* Describes a tn_calibration_file. */
extern const tn_document tn_calibration_document;

/* Describe a tn_calibration by its members, and a tn_calibrations. */
extern const tn_doc_row tn_calibration_map_rows[], tn_calibration_rows[];

/* Reads a file. Its knots and paths live in `arena`. TN_E_DATA: missing, damaged, or of another
 * version. */
tn_status tn_calibration_file_read(tn_calibration_file *out, const char *path, tn_arena *arena,
                                   tn_error *err) TN_MUST_USE;

/* The model whose scores a calibration is wanted for. */
typedef struct tn_calibrated_model {
    const char *id;
    uint64_t step;
    double sampling;
} tn_calibrated_model;

/* Does the same, and refuses a calibration of other scores by TN_E_DATA, since it would be wrong
 * without a word. */
tn_status tn_calibration_file_read_for(tn_calibration_file *out, const char *path,
                                       const tn_calibrated_model *model, tn_arena *arena,
                                       tn_error *err) TN_MUST_USE;
