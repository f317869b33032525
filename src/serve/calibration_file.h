/* calibration_file.h - a calibration as JSON: in a file from tnet-eval to tnet-export, and in
 * model.json.
 *
 *     {"format":"tnet-calibration","version":[1,0],"model_id":"<32 hex>","step":12000,
 *      "negative_sampling":1,"data":["valid.tsv"],"rows":"5000000",
 *      "calibration":{"kind":"platt","a":0.93,"b":-0.1},"crc32c":"<8 hex>"}
 *      "calibration":{"kind":"platt","a":0.93,"b":-0.1,"c":-0.04}      where c is not 0
 *      "calibration":{"kind":"isotonic","z":[-4.1,-2.5],"p":[0.01,0.07]}
 *
 * The file is read whole, and nothing of it is believed before it was checked.
 */
#pragma once

#include "config/values.h"
#include "metrics/calibrator.h"

typedef struct tn_json tn_json; /* base/codec/json.h */
typedef struct tn_text tn_text; /* base/core/text.h */

typedef struct tn_calibration_file {
    char model_id[33]; /* id of the only model that it fits */
    uint64_t step;
    double sampling; /* data.negative_sampling, for which logits were corrected before */
    tn_strs data;    /* paths of the rows it was fitted on; not read back */
    uint64_t rows;
    tn_calibration map;
} tn_calibration_file;

/* Appends the file. */
void tn_calibration_file_json(tn_text *out, const tn_calibration_file *file);

/* Reads a file. Its knots live in `arena`. TN_E_DATA: missing, damaged, or of another version. */
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

/* Append the member "calibration" alone, and read its value, which takes as many bytes of the arena
 * as there are numbers in it, times sizeof(tn_knot) / 2. Return false: damaged. */
void tn_calibration_json(tn_text *out, const tn_calibration *map);
bool tn_calibration_of_json(const tn_json *value, tn_arena *arena, tn_calibration *out);
