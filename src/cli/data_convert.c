/* data_convert.c - tnet-data convert: the same rows in another format; sample: some of the rows. */
#include "cli/data_tool.h"
#include "config/tree.h"
#include "io/read/row_scan.h"

#include "base/file/output_file.h"
#include "cli/signals.h"
#include "config/field.h"
#include "io/write/convert.h"
#include "io/write/writer.h"
#include "train/config/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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

typedef struct sample_flags {
    const char *from;
    const char *to, *rest;
    uint64_t rows;
    double share;
    uint64_t seed;
    uint32_t compression;
    uint32_t threads;
} sample_flags;

static const tn_field sample_fields[] = {
    TN_FLAG_STR(sample_flags, from, "PATH", "file, glob or folder; default: data.train"),
    TN_FIELD_STR(sample_flags, to, "-", "file that is written; '-': standard output"),
    TN_FLAG_STR(sample_flags, rest, "PATH", "also write all other rows, to this file"),
    TN_FIELD_U64(sample_flags, rows, "~", 1, 1e15, "rows", "take this many, all equally likely"),
    TN_FIELD_F64(sample_flags, share, "~", 0, 1, "", "take each row with this probability"),
    TN_FIELD_U64(sample_flags, seed, "1", 0, 9e15, "", "selects which ones"),
    TN_FIELD_CHOICE(sample_flags, compression, "auto", tn_compression_words,
                    "auto: by the name, .gz and .zz"),
    TN_FIELD_U32W(sample_flags, threads, "all", 1, 1024, "threads", tn_thread_words,
                  "threads that parse"),
    TN_FIELD_END,
};

static tn_status sample_into(tn_data_input *in, const void *asked, tn_error *err)
{
    const sample_flags *flags = asked;
    const tn_sample_in job = {
        .from = &in->from,
        .paths = &in->paths,
        .rows = flags->rows,
        .share = flags->share,
        .seed = flags->seed,
        .team = in->team,
    };
    const char *format = in->from.data.format;
    tn_sample_sinks sinks = {NULL, NULL};
    uint64_t taken = 0;
    tn_row_scan_counts counts;
    if (flags->rest != NULL && strcmp(flags->rest, flags->to) == 0) {
        return tn_fail(err, TN_E_USAGE, "'--to' and '--rest' are one file");
    }
    TN_TRY(tn_data_sink(flags->to, format, &in->setup->inputs, flags->compression, &sinks.sample,
                        err));
    tn_status status = flags->rest == NULL ? TN_OK
                                           : tn_data_sink(flags->rest, format, &in->setup->inputs,
                                                          flags->compression, &sinks.rest, err);
    status = status == TN_OK ? tn_sample_rows(&job, &sinks, &taken, &counts, err) : status;
    if (status != TN_OK) {
        tn_sink_abandon(sinks.sample);
    }
    status = status == TN_OK ? tn_sink_commit(sinks.sample, err) : status;
    if (status != TN_OK) {
        tn_sink_abandon(sinks.rest);
        return status;
    }
    TN_TRY(sinks.rest != NULL ? tn_sink_commit(sinks.rest, err) : TN_OK);
    (void)fprintf(tn_data_counts_to(flags->to), "rows %llu of %llu\n", (unsigned long long)taken,
                  (unsigned long long)counts.rows);
    return TN_OK;
}

static tn_status sample_work(tn_setup *s, const tn_options *options, const void *flags,
                             tn_error *err)
{
    const sample_flags *f = flags;
    if ((f->rows == TN_UNSET_U64) == (bool)isnan(f->share)) {
        return tn_fail(err, TN_E_USAGE, "give either '--rows N' or '--share P'");
    }
    return tn_data_use(
        s, options,
        (tn_data_ask){
            .from = f->from, .flags = TN_DATASET_AS_READ, .threads = f->threads, .discover = true},
        sample_into, f, err);
}

extern const tn_data_tool tn_data_tool_convert;
const tn_data_tool tn_data_tool_convert = {TN_DATA_READER(
    convert, "[CONFIG] [key=value ..] [to.key=value ..] --to PATH",
    "write the same rows in another format",
    "key=value says what is read, as in the section `data` of a configuration; to.key=value\n"
    "says what is written: to.format=csv to.delimiter=';'. Order, labels, weights, values and\n"
    "record ids are kept; what a format has no words for is an error.")};

extern const tn_data_tool tn_data_tool_sample;
const tn_data_tool tn_data_tool_sample = {
    TN_DATA_READER(sample, "[CONFIG] [key=value ..] --rows N | --share P",
                   "copy some of the rows, byte for byte", NULL)};
