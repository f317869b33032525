/* export_index.h - EXPORT.json: the files of an export, as docs/formats.md section 6.5 has it. */
#pragma once

#include "base/codec/document.h"

enum { TN_EXPORT_INDEX_BYTES_MAX = 1 << 20, TN_EXPORT_FILES_MAX = 64 };

typedef struct tn_export_entry {
    const char *name; /* a plain one, also when it was read */
    uint64_t bytes;
    uint32_t crc;
} tn_export_entry;

typedef struct tn_export_index {
    char model_id[33];
    uint64_t step;
    const char *day; /* the checkpoint's; NULL: rows bear none */
    uint32_t n_files;
    const tn_export_entry *file; /* by name */
} tn_export_index;

extern const tn_document tn_export_index_document;
