/* data_sample.c - tnet-data sample: some of the rows. */
#include "config/field.h"
#include "extra/inspect/discovered_input.h"
#include "extra/inspect/row_sample.h"
#include "io/read/row_scan.h"
#include "train/config/run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    tn_sample_in job = {
        .from = &in->from,
        .paths = &in->paths,
        .rows = flags->rows,
        .share = flags->share,
        .seed = flags->seed,
        .team = in->team,
    };
    const char *format = in->from.data.format;
    uint64_t taken = 0;
    tn_row_scan_counts counts;
    if (flags->rest != NULL && strcmp(flags->rest, flags->to) == 0) {
        return tn_fail(err, TN_E_USAGE, "'--to' and '--rest' are one file");
    }
    TN_TRY(
        tn_data_sink(flags->to, format, &in->setup->inputs, flags->compression, &job.sample, err));
    tn_status status = flags->rest == NULL ? TN_OK
                                           : tn_data_sink(flags->rest, format, &in->setup->inputs,
                                                          flags->compression, &job.rest, err);
    status = status == TN_OK ? tn_sample_rows(&job, &taken, &counts, err) : status;
    if (status != TN_OK) {
        tn_sink_abandon(job.sample);
    }
    status = status == TN_OK ? tn_sink_commit(job.sample, err) : status;
    if (status != TN_OK) {
        tn_sink_abandon(job.rest);
        return status;
    }
    TN_TRY(job.rest != NULL ? tn_sink_commit(job.rest, err) : TN_OK);
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
    return tn_data_use(s, options,
                       (tn_data_ask){.from = f->from,
                                     .flags = TN_DATASET_AS_READ,
                                     .threads = f->threads,
                                     .complete = tn_discover_missing},
                       sample_into, f, err);
}

extern const tn_data_tool tn_data_tool_sample;
const tn_data_tool tn_data_tool_sample = {
    TN_DATA_READER(sample, "[CONFIG] [key=value ..] --rows N | --share P",
                   "copy some of the rows, byte for byte", NULL)};
