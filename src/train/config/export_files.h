/* export_files.h - further files of an export, for programs other than libtnet, by the words of
 * export.graph and export.dict.
 *
 *     graph.onnx      graph: [native, onnx]
 *     dict.resp       dict: [tnd, resp]
 *
 * To add one: a constant tn_export_file_NAME of a folder of src/extra, whose row in
 * export_files.def is TN_EXPORT_FILE(NAME). The list is known here, where words of a configuration
 * are judged; the files are written by train/export/export.c.
 */
#pragma once

#include "base/core/error.h"

typedef struct tn_arena tn_arena;               /* base/core/arena.h */
typedef struct tn_calibration tn_calibration;   /* metrics/calibrator.h */
typedef struct tn_dict tn_dict;                 /* dict/dict.h */
typedef struct tn_export_done tn_export_done;   /* train/export/exportrows.h */
typedef struct tn_export_graph tn_export_graph; /* train/export/exportjson.h */
typedef struct tn_export_opts tn_export_opts;   /* train/config/run.h */
typedef struct tn_export_rows tn_export_rows;   /* train/export/exportrows.h */
typedef struct tn_file tn_file;                 /* base/file/file.h */
typedef struct tn_text tn_text;                 /* base/core/text.h */

/* The model that is exported; all of it lives longer than the call. */
typedef struct tn_export_model {
    const tn_export_graph *graph;
    const tn_calibration *calibration; /* by task */
    const char *model_id;
    tn_arena *arena; /* arena of the export, for what `make` needs */
} tn_export_model;

typedef tn_status tn_export_table_fn(const tn_export_rows *r, const char *path, tn_export_done *out,
                                     tn_error *err);

typedef struct tn_export_file {
    const char *word; /* word in export.graph, without `make` in export.dict */
    const char *name; /* name of the file */
    /* One of these is not NULL. `make` appends the file's bytes, which depend on the model alone;
     * `of_rows` writes them, of the rows of dict.tnd, which is there; `of_table` makes the file at
     * `path` of the rows of the table. TN_E_LIMIT: the file cannot hold them. */
    tn_status (*make)(const tn_export_model *model, tn_text *out, tn_error *err);
    tn_status (*of_rows)(const tn_dict *d, const tn_export_opts *opts, tn_file *out, tn_error *err);
    tn_export_table_fn *of_table;
} tn_export_file;

extern const tn_export_file *const tn_all_export_files[]; /* NULL-terminated */
