/* data_tool.h - what the tools of tnet-data share: input, threads, output.
 *
 * Words of the command line are options of a configuration. A bare key belongs to the section
 * `data`, and `to.` in front of one means the file that is written:
 *
 *     format=criteo  train=day_0.tsv  data.trim=true  slots.C1.type=str  to.format=csv
 */
#pragma once

#include "base/thread/team.h"
#include "cli/main.h"
#include "io/format/format.h"
#include "io/read/dataset.h"
#include "io/read/row_scan.h"
#include "io/write/write_sink.h"

#include <stdio.h>

/* One thing that tnet-data does: a constant tn_data_tool_NAME, whose row in data_tools.def is
 * TN_DATA_TOOL(NAME). */
typedef struct tn_data_tool {
    tn_program program; /* name: "tnet-data gen" */
    size_t flags_size;
    /* As in tn_main. Prints results, not failures; s->exit_code is 4 where data was found wanting.
     */
    tn_status (*work)(tn_setup *s, const tn_options *options, const void *flags, tn_error *err);
} tn_data_tool;

/* Members of tool `id` that reads data: its struct id_flags with the table id_fields, and id_work.
 */
#define TN_DATA_READER(id, words_, summary_, notes_)                                               \
    .program = {.name = "tnet-data " #id,                                                          \
                .summary = (summary_),                                                             \
                .words = (words_),                                                                 \
                .flags = id##_fields,                                                              \
                .config = tn_run_fields,                                                           \
                .words_max = 1,                                                                    \
                .notes = (notes_)},                                                                \
    .flags_size = sizeof(id##_flags), .work = id##_work

extern const char *const tn_thread_words[];      /* all */
extern const char *const tn_compression_words[]; /* names of compressions for output */

/* The input of a tool, and all that lives as long as it. */
typedef struct tn_data_input {
    tn_setup *setup;
    tn_dataset from;
    tn_strs paths;
    const tn_tree *to; /* the options `to.`, a map as the section `data`; NULL: none */
    tn_team *team;
    const tn_tree *root; /* as it is given */
    const void *found;   /* made by `complete` of the tool for its `use`; NULL: nothing was */
} tn_data_input;

/* How the input is to be read. */
typedef struct tn_data_ask {
    const char *from; /* NULL: data.train */
    uint32_t flags;   /* flags of tn_dataset_bind */
    uint32_t threads;
    bool files; /* words are files, no configuration */
    /* Completes *root, the configuration, by a look at the data; NULL: it stays as it is given. */
    tn_status (*complete)(tn_data_input *in, const tn_tree **root, tn_error *err);
} tn_data_ask;

/* Reads CONFIG and key=value, and gives `use` the input and the tool's flags; what outputs may not
 * replace is s->inputs then. */
tn_status tn_data_use(tn_setup *s, const tn_options *options, tn_data_ask ask,
                      tn_status (*use)(tn_data_input *in, const void *flags, tn_error *err),
                      const void *flags, tn_error *err) TN_MUST_USE;

tn_status tn_data_team(uint32_t threads, tn_team **out, tn_error *err) TN_MUST_USE;

/* Does tn_sink_open for records of a format; a signal leaves nothing of a file. */
tn_status tn_data_sink(const char *path, const char *format, const tn_inputs *inputs,
                       uint32_t compression, tn_sink **out, tn_error *err) TN_MUST_USE;
/* Returns the stream for the counts of a tool that writes to `path`: stdout, unless it writes
 * there. */
FILE *tn_data_counts_to(const char *path);
/* "rows 9, blank 0, bad 1, duplicate names 0", without the end of the line. */
void tn_data_print_counts(FILE *out, const tn_row_scan_counts *n);

/* Returns the defaults of a format: `data` with its name, and its slots; NULL: it has none, or has
 * a fault, which is reported. */
const tn_tree *tn_data_preset(tn_setup *s, const tn_format *format);

/* TN_E_USAGE where an output that is written for people to change would replace a file. */
tn_status tn_data_keep(const char *path, bool force, tn_error *err) TN_MUST_USE;
