/* data_gen.c - tnet-data gen: synthetic clicks whose truth is known. */
#include "base/core/arena.h"
#include "base/core/clock.h"
#include "base/file/file.h"
#include "base/file/output_file.h"
#include "cli/data_tool.h"
#include "cli/signals.h"
#include "cli/terminal.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/yaml.h"
#include "extra/synth/generate_file.h"
#include "io/schema/dataopts.h"
#include "io/schema/schema.h"
#include "train/config/config.h"
#include "train/config/days.h"

#include <stdio.h>
#include <string.h>

enum { FIRST_DAY_MOST = 2932896 }; /* 9999-12-31 */

typedef struct gen_flags {
    const char *to;
    const char *format;
    uint32_t compression;
    const char *config_to;
    const char *truth_to;
    const char *first_day;
    bool force;
    uint32_t threads;
} gen_flags;

static const tn_field gen_fields[] = {
    TN_FLAG_STR(gen_flags, to, "PATH",
                "file that is written, with {day:%Y%m%d} in it one a day, in folders that are "
                "made; '-': standard output"),
    TN_FLAG_STR(
        gen_flags, format, "NAME",
        "its format; default: criteo for that preset, tfrecord for movies, csv for histories, "
        "else libffm"),
    TN_FIELD_CHOICE(gen_flags, compression, "auto", tn_compression_words,
                    "auto: by the name, .gz and .zz"),
    TN_FLAG_STR(gen_flags, config_to, "PATH",
                "configuration that reads the file, or all days; default: PATH.yaml, of the "
                "first day's"),
    TN_FLAG_STR(gen_flags, truth_to, "PATH",
                "what was planted and what it is worth; default: PATH.truth.json, of each file"),
    TN_FLAG_STR(gen_flags, first_day, "DATE",
                "date of the day that begins with row 0, in {day:..}; default: 2026-11-01"),
    TN_FLAG_BOOL(gen_flags, force, "replace a PATH.yaml that is there and says other things"),
    TN_FIELD_U32W(gen_flags, threads, "all", 1, 1024, "threads", tn_thread_words,
                  "threads that make rows; the rows do not depend on them"),
    TN_FIELD_END,
};

/* One run of the tool. */
typedef struct making {
    const gen_flags *flags;
    const tn_binder *binder;
    tn_team *team;
    tn_generator *g;
    tn_text config, truth, path;
    bool days;      /* one file a day */
    uint32_t first; /* the day of row 0 */
    bool stream;    /* the rows went to standard output or a pipe */
    bool quiet;
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
    if (m->g->opts.buy > 0) {
        tn_text_adds(&text, "  - {name: buy, type: float, as: value}\n");
    }
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

/* `path`, or what a pattern becomes on a day. */
static const char *path_on(const making *m, const char *path, uint32_t day)
{
    const char *item[] = {path};
    const tn_strs pattern = {.n = 1, .item = item};
    return path != NULL && tn_days_is_pattern(path)
               ? tn_days_paths(&pattern, day, m->binder->arena).item[0]
               : path;
}

static tn_status write_rows(making *m, const tn_generator *g, const tn_schema *schema,
                            const char *path, tn_error *err)
{
    tn_sink *sink = NULL;
    TN_TRY(tn_data_sink(path, schema->data->format, NULL, m->flags->compression, &sink, err));
    m->stream = tn_sink_tmp(sink) == NULL;
    tn_status status = tn_gen_write(g, schema, sink, m->team, &m->report, err);
    if (status != TN_OK) {
        tn_sink_abandon(sink);
        return status;
    }
    return tn_sink_commit(sink, err);
}

/* The path asked for, or one beside the data. */
static tn_status name_beside(making *m, const char *asked, const char *data, const char *ending,
                             tn_error *err)
{
    tn_text_clear(&m->path);
    tn_text_addf(&m->path, "%s%s", asked != NULL ? asked : data, asked != NULL ? "" : ending);
    return tn_text_check(&m->path, "a path", err);
}

/* A configuration beside the data that is there may have been edited: it stays, unless it is the
 * same. */
static tn_status check_config(making *m, const char *data, tn_error *err)
{
    tn_text there = {0};
    if (m->flags->config_to != NULL || tn_output_is_stdout(m->flags->to)) {
        return TN_OK;
    }
    TN_TRY(name_beside(m, NULL, data, ".yaml", err));
    const bool same = tn_file_read_all(m->path.data, m->config.size + 1, &there, NULL) == TN_OK &&
                      there.size == m->config.size &&
                      memcmp(there.data, m->config.data, there.size) == 0;
    tn_text_done(&there);
    return tn_data_keep(m->path.data, m->flags->force || same, err);
}

static tn_status write_beside(making *m, const char *asked, const char *data, const char *ending,
                              const tn_text *text, tn_error *err)
{
    if (asked == NULL && m->stream) {
        return TN_OK; /* there is no place beside a stream */
    }
    TN_TRY(name_beside(m, asked, data, ending, err));
    TN_TRY(tn_text_check(text, "a description of generated data", err));
    const tn_output_with with = {.tell = true, .announce = tn_signals_remove};
    return tn_output_put(m->path.data, text->data, text->size, &with, err);
}

static void print_report(const making *m, const char *file, double seconds)
{
    const tn_gen_report *r = &m->report;
    FILE *out = tn_data_counts_to(m->flags->to);
    if (m->quiet) {
        return;
    }
    if (m->days) {
        (void)fprintf(out, "%s\n", file);
    }
    (void)fprintf(out, "rows %llu, %.1f MB, %.2f s, %.0f rows/s\n", (unsigned long long)r->rows,
                  (double)r->bytes / 1e6, seconds, (double)r->rows / seconds);
    (void)fprintf(out, "parameters that occur %llu, distinguishable %llu\n",
                  (unsigned long long)r->parameters, (unsigned long long)r->free_parameters);
    (void)fprintf(out, "oracle on %llu rows: clicks %llu, auc %.6f (expected %.6f), ",
                  (unsigned long long)r->oracle.rows, (unsigned long long)r->oracle.clicks,
                  r->oracle.auc, r->oracle.auc_expected);
    (void)fprintf(out, "logloss %.6f (expected %.6f)\n", r->oracle.logloss,
                  r->oracle.logloss_expected);
    if (m->g->opts.buy > 0) {
        (void)fprintf(out, "purchases %llu, auc %.6f (expected %.6f), ",
                      (unsigned long long)r->purchases.clicks, r->purchases.auc,
                      r->purchases.auc_expected);
        (void)fprintf(out, "of clicks %.4f, of all rows if clicked %.4f\n", m->g->purchases.rate,
                      m->g->purchases.rate_all);
    }
}

/* Makes the folder of a day's file; its name may be the day's. */
static tn_status make_folder(const making *m, const char *path, tn_error *err)
{
    char folder[TN_PATH_SIZE];
    if (!m->days || path == NULL) {
        return TN_OK;
    }
    TN_TRY(tn_path_parent(path, folder, err));
    return tn_dir_make(folder, err);
}

/* A file, of all rows or those of a day, and its truth. */
static tn_status write_file(making *m, const tn_generator *g, const tn_schema *schema, uint32_t day,
                            tn_error *err)
{
    const double began = tn_clock_s();
    const char *file = path_on(m, m->flags->to, day);
    const char *truth = path_on(m, m->flags->truth_to, day);
    TN_TRY(make_folder(m, file, err));
    TN_TRY(make_folder(m, truth, err));
    TN_TRY(write_rows(m, g, schema, file, err));
    tn_text_clear(&m->truth);
    tn_gen_truth_json(g, &m->report, &m->truth);
    TN_TRY(write_beside(m, truth, file, ".truth.json", &m->truth, err));
    print_report(m, file, tn_clock_s() - began);
    return TN_OK;
}

/* The rows of each day go to a file of its own. */
static tn_status write_days(making *m, const tn_schema *schema, tn_error *err)
{
    const tn_gen_opts *o = &m->g->opts;
    const uint64_t end = o->first_row + o->rows;
    for (uint64_t from = o->first_row; from < end;) {
        const uint64_t day = tn_gen_day(m->g, from);
        const uint64_t next = (day + 1) * o->day_rows;
        tn_generator of_day = *m->g; /* another range of the same world */
        of_day.opts.first_row = from;
        of_day.opts.rows = (next < end ? next : end) - from;
        TN_TRY(write_file(m, &of_day, schema, m->first + (uint32_t)day, err));
        from += of_day.opts.rows;
    }
    return TN_OK;
}

/* Finds the date of row 0 for a path with {day:..}, and words for data.days. */
static tn_status plan_days(making *m, char words[2 * TN_DAY_TEXT + 3], tn_error *err)
{
    const gen_flags *f = m->flags;
    const tn_gen_opts *o = &m->g->opts;
    const char *first = f->first_day != NULL ? f->first_day : "2026-11-01";
    m->days = tn_days_is_pattern(f->to);
    if (!m->days) {
        return f->first_day == NULL ? TN_OK
                                    : tn_fail(err, TN_E_USAGE,
                                              "'--first-day' changes nothing where '--to' has no "
                                              "{day:..}");
    }
    TN_TRY(tn_days_check_pattern(f->to, err));
    if (strstr(f->to, "{hour") != NULL) {
        return tn_fail(err, TN_E_USAGE, "'%s': rows are of days, not of hours", f->to);
    }
    if (f->truth_to != NULL) {
        TN_TRY(tn_days_check_pattern(f->truth_to, err));
    }
    if (o->day_rows == 0 || o->rows == 0) {
        return tn_fail(err, TN_E_USAGE,
                       "'%s' is one file a day, and here are %llu rows of no day\nhint: 'days=7' "
                       "or 'day_rows=1M'",
                       f->to, (unsigned long long)o->rows);
    }
    const uint64_t last = tn_gen_day(m->g, o->first_row + o->rows - 1);
    if (first[0] == 't' || !tn_day_read(first, &m->first) || m->first + last > FIRST_DAY_MOST) {
        return tn_fail(err, TN_E_USAGE,
                       "'--first-day %s' is not a date like 2026-11-01 with %llu "
                       "days from it on before the year 10000",
                       first, (unsigned long long)last + 1);
    }
    char from[TN_DAY_TEXT];
    char to[TN_DAY_TEXT];
    tn_day_text(m->first + (uint32_t)tn_gen_day(m->g, o->first_row), from);
    tn_day_text(m->first + (uint32_t)last, to);
    (void)snprintf(words, 2 * TN_DAY_TEXT + 3, "%s..%s", from, to);
    return TN_OK;
}

/* The line that moves, of the file that is written. */
static void show_rows(uint64_t done, uint64_t rows)
{
    char line[80];
    (void)snprintf(line, sizeof line, "%llu of %llu rows, %.0f %%", (unsigned long long)done,
                   (unsigned long long)rows, 100 * (double)done / (double)rows);
    tn_terminal_show(NULL, line, true);
}

static tn_status make(making *m, const tn_options *options, tn_error *err)
{
    static const char *const formats[] = {"libffm", "criteo", "tfrecord", "csv"};
    if (m->flags->to == NULL) {
        return tn_fail(err, TN_E_USAGE, "nowhere to write to\nhint: '--to PATH' names the file");
    }
    tn_gen_opts opts = {0};
    char days[2 * TN_DAY_TEXT + 3] = "";
    const tn_schema *schema = NULL;
    TN_TRY(read_options(options, m, &opts, err));
    TN_TRY(tn_data_team(m->flags->threads, &m->team, err));
    TN_TRY(tn_generator_new(&m->g, &opts, m->team, err));
    m->g->show = m->quiet || !tn_terminal_is_one() ? NULL : show_rows;
    TN_TRY(plan_days(m, days, err));
    const char *usual = opts.buy > 0 && opts.preset == TN_GEN_PLAIN ? "csv" : formats[opts.preset];
    const tn_gen_place at = {.format = m->flags->format != NULL ? m->flags->format : usual,
                             .path = m->flags->to,
                             .days = m->days ? days : NULL};
    TN_TRY(tn_gen_config(m->g, &at, &m->config, err));
    TN_TRY(make_schema(m, &schema, err));
    const uint32_t first = m->first + (uint32_t)(m->days ? tn_gen_day(m->g, opts.first_row) : 0);
    TN_TRY(check_config(m, path_on(m, m->flags->to, first), err));
    TN_TRY(m->days ? write_days(m, schema, err) : write_file(m, m->g, schema, 0, err));
    return write_beside(m, m->flags->config_to, path_on(m, m->flags->to, first), ".yaml",
                        &m->config, err);
}

static tn_status gen(tn_setup *s, const tn_options *options, const void *flags, tn_error *err)
{
    making m = {.flags = flags, .binder = &s->binder, .quiet = options->verbosity < 0};
    tn_status status = make(&m, options, err);
    tn_generator_free(m.g);
    tn_team_close(m.team);
    tn_text_done(&m.config);
    tn_text_done(&m.truth);
    tn_text_done(&m.path);
    return status;
}

extern const tn_data_tool tn_data_tool_gen;
const tn_data_tool tn_data_tool_gen = {
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
                     "million rows with rows it does not have, as a test set.\n"
                     "\n"
                     "'--to \"log/{day:%Y%m%d}.csv\" days=30 rows=30M drift=.1' writes a file a "
                     "day, of which\n"
                     "each has a tenth of its ids for the first time.",
        },
    .flags_size = sizeof(gen_flags),
    .work = gen,
};
