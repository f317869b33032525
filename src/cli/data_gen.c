/* data_gen.c - tnet-data gen: synthetic clicks whose truth is known. */
#include "base/core/arena.h"
#include "base/core/clock.h"
#include "base/file/output_file.h"
#include "cli/data_tool.h"
#include "cli/signals.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/yaml.h"
#include "io/synth/generate_file.h"
#include "train/config/config.h"

#include <stdio.h>
#include <string.h>

typedef struct gen_flags {
    const char *to;
    const char *format;
    uint32_t compression;
    const char *config_to;
    const char *truth_to;
    uint32_t threads;
} gen_flags;

static const tn_field gen_fields[] = {
    TN_FLAG_STR(gen_flags, to, "PATH", "file that is written; '-': standard output"),
    TN_FLAG_STR(gen_flags, format, "NAME",
                "its format; default: criteo for that preset, tfrecord for movies, else libffm"),
    TN_FIELD_CHOICE(gen_flags, compression, "auto", tn_compression_words,
                    "auto: by the name, .gz and .zz"),
    TN_FLAG_STR(gen_flags, config_to, "PATH",
                "configuration that reads the file; default: PATH.yaml"),
    TN_FLAG_STR(gen_flags, truth_to, "PATH",
                "what was planted and what it is worth; default: PATH.truth.json"),
    TN_FIELD_U32W(gen_flags, threads, "all", 1, 1024, "threads", tn_thread_words,
                  "threads that make rows; the rows do not depend on them"),
    TN_FIELD_END,
};

/* One run of the tool. */
typedef struct making {
    const gen_flags *flags;
    const char *format;
    const tn_binder *binder;
    tn_team *team;
    tn_generator *g;
    tn_text config, truth, path;
    bool stream; /* the rows went to one */
    tn_gen_report report;
} making;

static tn_status read_options(const tn_options *options, making *m, tn_gen_opts *out, tn_error *err)
{
    const tn_config_in in = {
        .fields = tn_gen_fields,
        .overrides = options->overrides.item,
        .n_overrides = options->overrides.n,
    };
    const tn_tree *tree = tn_config_load(&in, m->binder->arena, m->binder->diag);
    if (tree != NULL) {
        tn_fields_bind(m->binder, tn_gen_fields, tree, out);
    }
    return tree != NULL ? tn_diag_check(m->binder->diag, err)
                        : tn_fail(err, TN_E_CONFIG, "the options could not be read");
}

/* The schema that writes: that of the configuration, and the column of the truth. */
static tn_status make_schema(making *m, const tn_schema **out, tn_error *err)
{
    tn_text text = {0};
    const char *slots = strstr(m->config.data, "\nmodel:");
    TN_ASSERT(slots != NULL);
    tn_text_add(&text, m->config.data, (size_t)(slots - m->config.data) + 1);
    if (m->g->opts.truth) {
        tn_text_adds(&text, "  - {name: truth, type: float, as: value}\n");
    }
    tn_status status = tn_text_check(&text, "a configuration", err);
    if (status == TN_OK) {
        const tn_yaml_in in = {.text = text.data, .size = text.size, .source = "generated data"};
        const tn_tree *tree = tn_yaml_read(m->binder->arena, m->binder->diag, &in);
        tn_dataset *data = TN_NEW(m->binder->arena, tn_dataset);
        status = tn_dataset_bind(data, tree, TN_DATASET_AS_READ, TN_TARGET_CLICK, m->binder, err);
        *out = data->schema;
    }
    tn_text_done(&text);
    return status;
}

static tn_status write_rows(making *m, tn_error *err)
{
    const tn_schema *schema = NULL;
    TN_TRY(make_schema(m, &schema, err));
    tn_sink *sink = NULL;
    TN_TRY(tn_data_sink(m->flags->to, NULL, m->flags->compression, &sink, err));
    m->stream = tn_sink_tmp(sink) == NULL;
    tn_status status = tn_gen_write(m->g, schema, sink, m->team, &m->report, err);
    if (status != TN_OK) {
        tn_sink_abandon(sink);
        return status;
    }
    return tn_sink_commit(sink, err);
}

/* `text` to the path asked for, or beside the data. */
static tn_status write_beside(making *m, const char *asked, const char *ending, const tn_text *text,
                              tn_error *err)
{
    if (asked == NULL && m->stream) {
        return TN_OK; /* there is no place beside a stream */
    }
    tn_text_clear(&m->path);
    tn_text_addf(&m->path, "%s%s", asked != NULL ? asked : m->flags->to,
                 asked != NULL ? "" : ending);
    TN_TRY(tn_text_check(&m->path, "a path", err));
    TN_TRY(tn_text_check(text, "a description of generated data", err));
    const tn_output_with with = {.announce = tn_signals_remove};
    return tn_output_put(m->path.data, text->data, text->size, &with, err);
}

static void print_report(const making *m, double seconds)
{
    const tn_gen_report *r = &m->report;
    FILE *out = tn_data_counts_to(m->flags->to);
    (void)fprintf(out, "rows %llu, %.1f MB, %.2f s, %.0f rows/s\n", (unsigned long long)r->rows,
                  (double)r->bytes / 1e6, seconds, (double)r->rows / seconds);
    (void)fprintf(out, "parameters that occur %llu, distinguishable %llu\n",
                  (unsigned long long)r->parameters, (unsigned long long)r->free_parameters);
    (void)fprintf(out, "oracle on %llu rows: clicks %llu, auc %.6f (expected %.6f), ",
                  (unsigned long long)r->oracle.rows, (unsigned long long)r->oracle.clicks,
                  r->oracle.auc, r->oracle.auc_expected);
    (void)fprintf(out, "logloss %.6f (expected %.6f)\n", r->oracle.logloss,
                  r->oracle.logloss_expected);
}

static tn_status make(making *m, const tn_options *options, tn_error *err)
{
    static const char *const formats[] = {"libffm", "criteo", "tfrecord"};
    if (m->flags->to == NULL) {
        return tn_fail(err, TN_E_USAGE, "nowhere to write to\nhint: '--to PATH' names the file");
    }
    tn_gen_opts opts = {0};
    TN_TRY(read_options(options, m, &opts, err));
    TN_TRY(tn_data_team(m->flags->threads, &m->team, err));
    double began = tn_clock_s();
    TN_TRY(tn_generator_new(&m->g, &opts, m->team, err));
    m->format = m->flags->format != NULL ? m->flags->format : formats[opts.preset];
    TN_TRY(tn_gen_config(m->g, m->format, m->flags->to, &m->config, err));
    TN_TRY(write_rows(m, err));
    tn_gen_truth_json(m->g, &m->report, &m->truth);
    TN_TRY(write_beside(m, m->flags->truth_to, ".truth.json", &m->truth, err));
    TN_TRY(write_beside(m, m->flags->config_to, ".yaml", &m->config, err));
    print_report(m, tn_clock_s() - began);
    return TN_OK;
}

static tn_status gen(tn_setup *s, const tn_options *options, const void *flags, tn_error *err)
{
    making m = {.flags = flags, .binder = &s->binder};
    tn_status status = make(&m, options, err);
    tn_generator_free(m.g);
    tn_team_close(m.team);
    tn_text_done(&m.config);
    tn_text_done(&m.truth);
    tn_text_done(&m.path);
    return status;
}

const tn_data_tool tn_data_gen = {
    .program =
        {
            .name = "tnet-data gen",
            .summary = "make synthetic clicks whose truth is known",
            .words = "--to PATH [key=value ..]",
            .flags = gen_fields,
            .config = tn_gen_fields,
            .words_min = 0,
            .words_max = 0,
            .notes = "Row i depends on the seed and on i alone: first_row=1000000 continues a file "
                     "of a\n"
                     "million rows with rows it does not have, as a test set.",
        },
    .flags_size = sizeof(gen_flags),
    .work = gen,
};
