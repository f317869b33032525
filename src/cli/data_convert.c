/* data_convert.c - tnet-data convert: the same rows in another format. */
#include "base/file/output_file.h"
#include "cli/data_tool.h"
#include "cli/signals.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/read/row_scan.h"
#include "io/write/convert.h"
#include "io/write/writer.h"
#include "train/config/run.h"

#include <stdio.h>

typedef struct convert_flags {
    const char *from;
    const char *to;
    const char *config_to;
    bool signs;
    uint32_t threads;
} convert_flags;

static const tn_field convert_fields[] = {
    TN_FLAG_STR(convert_flags, from, "PATH", "file, glob or folder; default: data.train"),
    TN_FLAG_STR(convert_flags, to, "PATH", "file that is written; '-': standard output"),
    TN_FLAG_STR(convert_flags, config_to, "PATH", "also write the configuration that reads it"),
    TN_FLAG_BOOL(convert_flags, signs,
                 "write keys as numbers: words and hex digits become ids of the same keys"),
    TN_FIELD_U32W(convert_flags, threads, "all", 1, 1024, "threads", tn_thread_words,
                  "threads that parse and write"),
    TN_FIELD_END,
};

static tn_status write_config(const tn_convert_in *in, const tn_inputs *inputs,
                              const convert_flags *flags, const tn_text *columns, tn_error *err)
{
    const tn_output_with with = {.inputs = inputs, .tell = true, .announce = tn_signals_remove};
    tn_text text = {0};
    tn_dataset_config(in->to, flags->to, columns->size > 0 ? columns->data : NULL, &text);
    tn_status status = tn_text_check(&text, "a configuration", err);
    if (status == TN_OK) {
        status = tn_output_put(flags->config_to, text.data, text.size, &with, err);
    }
    tn_text_done(&text);
    return status;
}

static tn_status convert_into(const tn_convert_in *in, const tn_inputs *inputs,
                              const convert_flags *flags, tn_row_scan_counts *counts, tn_error *err)
{
    tn_sink *sink = NULL;
    tn_text columns = {0};
    TN_TRY(
        tn_data_sink(flags->to, in->to->data.format, inputs, in->to->data.compression, &sink, err));
    tn_status status = tn_convert(in, sink, &columns, counts, err);
    if (status == TN_OK) {
        status = tn_sink_commit(sink, err);
    } else {
        tn_sink_abandon(sink);
    }
    if (status == TN_OK && flags->config_to != NULL) {
        status = write_config(in, inputs, flags, &columns, err);
    }
    tn_text_done(&columns);
    return status;
}

static tn_status convert_files(tn_data_input *in, const void *asked, tn_error *err)
{
    const convert_flags *flags = asked;
    if (in->to == NULL) {
        return tn_fail(err, TN_E_USAGE, "no format to write\nhint: 'to.format=csv' names it");
    }
    if (flags->config_to != NULL) {
        TN_TRY(tn_output_check(flags->config_to, &in->setup->inputs, err));
    }
    tn_dataset to;
    TN_TRY(tn_dataset_bind_target(&to, &in->from, in->to, flags->signs ? TN_DATASET_SIGNS : 0,
                                  &in->setup->binder, err));
    const tn_convert_in job = {
        .from = &in->from,
        .to = &to,
        .paths = &in->paths,
        .flags = flags->signs ? TN_WRITE_SIGNS : 0,
        .team = in->team,
    };
    tn_row_scan_counts counts;
    TN_TRY(convert_into(&job, &in->setup->inputs, flags, &counts, err));
    FILE *out = tn_data_counts_to(flags->to);
    tn_data_print_counts(out, &counts);
    (void)fprintf(out, ", sources %u\n", counts.sources);
    return TN_OK;
}

static tn_status convert_work(tn_setup *s, const tn_options *options, const void *flags,
                              tn_error *err)
{
    const convert_flags *f = flags;
    if (f->to == NULL) {
        return tn_fail(err, TN_E_USAGE, "nowhere to write to\nhint: '--to PATH' names the file");
    }
    return tn_data_use(
        s, options,
        (tn_data_ask){.from = f->from, .flags = TN_DATASET_AS_READ, .threads = f->threads},
        convert_files, f, err);
}

extern const tn_data_tool tn_data_tool_convert;
const tn_data_tool tn_data_tool_convert = {TN_DATA_READER(
    convert, "[CONFIG] [key=value ..] [to.key=value ..] --to PATH",
    "write the same rows in another format",
    "key=value says what is read, as in the section `data` of a configuration; to.key=value\n"
    "says what is written: to.format=csv to.delimiter=';'. Order, labels, weights, values and\n"
    "record ids are kept; what a format has no words for is an error.")};
