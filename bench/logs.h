/* logs.h - click logs out of nothing, in each format that bench_parse reads. */
#pragma once

#include "base/core/arena.h"
#include "base/core/text.h"
#include "io/read/dataset.h"
#include "io/schema/schema.h"

typedef struct tn_log {
    const char *name;
    const char *limit; /* of the target */
    void (*add_row)(tn_text *out, uint64_t row);
    void (*add_config)(tn_text *out);
} tn_log;

extern const tn_log tn_logs[]; /* up to one without a name */

/* A log in a file of its own in /tmp, and what describes it. */
typedef struct tn_log_file {
    char path[64];
    size_t bytes;
    tn_arena *arena;
    tn_dataset config;
    const tn_schema *schema; /* of config */
} tn_log_file;

tn_status tn_log_file_write(tn_log_file *f, const tn_log *log, uint64_t rows, tn_error *err);
void tn_log_file_done(const tn_log_file *f); /* removes it */
