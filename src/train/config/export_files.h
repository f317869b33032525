/* export_files.h - further files of an export, for programs other than libtnet, by the words of
 * export.graph.
 *
 *     graph.onnx      [native, onnx]
 *
 * To add one: a constant tn_export_file_NAME of a folder of src/extra, whose row in
 * export_files.def is TN_EXPORT_FILE(NAME). The list is known here, where words of a configuration
 * are judged; `make` is called by train/export/export.c.
 */
#pragma once

#include "base/core/error.h"

typedef struct tn_arena tn_arena;               /* base/core/arena.h */
typedef struct tn_calibration tn_calibration;   /* metrics/calibrator.h */
typedef struct tn_export_graph tn_export_graph; /* train/export/exportjson.h */
typedef struct tn_text tn_text;                 /* base/core/text.h */

/* The model that is exported; all of it lives longer than the call. */
typedef struct tn_export_model {
    const tn_export_graph *graph;
    const tn_calibration *calibration;
    const char *model_id;
    tn_arena *arena; /* arena of the export, for what `make` needs */
} tn_export_model;

typedef struct tn_export_file {
    const char *word; /* word in export.graph */
    const char *name; /* name of the file */
    /* Appends the file's bytes. They depend on the model alone. TN_E_LIMIT: it cannot hold them. */
    tn_status (*make)(const tn_export_model *model, tn_text *out, tn_error *err);
} tn_export_file;

extern const tn_export_file *const tn_all_export_files[]; /* NULL-terminated */
