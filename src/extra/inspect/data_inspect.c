/* data_inspect.c - tnet-data check: every fault of some files; tnet-data stat: what they hold. */
#include "base/codec/json.h"
#include "cli/exits.h"
#include "config/field.h"
#include "extra/inspect/discovered_input.h"
#include "extra/inspect/inspect_stat.h"
#include "io/read/row_scan.h"
#include "io/rows/rows.h"
#include "io/schema/schema.h"
#include "train/config/data_checks.h"
#include "train/config/run.h"

#include <stdio.h>

typedef struct check_flags {
    const char *from;
    uint64_t most;
    bool json;
    uint32_t threads;
} check_flags;

static const tn_field check_fields[] = {
    TN_FLAG_STR(check_flags, from, "PATH", "file, glob or folder; default: data.train"),
    TN_FIELD_U64(check_flags, most, "1000", 0, 1e15, "faults",
                 "print at most this many; all count"),
    TN_FLAG_BOOL(check_flags, json, "the counts as JSON"),
    TN_FIELD_U32W(check_flags, threads, "all", 1, 1024, "threads", tn_thread_words,
                  "threads that parse"),
    TN_FIELD_END,
};

typedef struct checking {
    const check_flags *flags;
    uint64_t printed;
    uint64_t rows, clicks, others; /* the last two: of label 1, and 0 */
} checking;

static tn_status count_labels(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    checking *c = ctx;
    (void)err;
    for (uint32_t i = 0; i < block->rows->n; i++) {
        const float label = block->rows->row[i].label;
        c->clicks += label == 1;
        c->others += label == 0;
    }
    c->rows += block->rows->n;
    return TN_OK;
}

/* Warns of faults that only all records together show. */
static void print_warnings(const checking *c, const tn_data_input *in)
{
    const tn_data_opts *data = &in->from.data;
    FILE *out = c->flags->json ? stderr : stdout;
    tn_text which = {0};
    if (!in->from.schema->label->none && c->rows > 1 &&
        (c->clicks == c->rows || c->others == c->rows)) {
        (void)fprintf(out, "warning: the data have no row with%s a click\n",
                      c->clicks > 0 ? "out" : "");
    }
    if (c->flags->from == NULL && tn_data_is_trained(data, NULL, &data->valid, &which)) {
        (void)fprintf(out, "warning: data.valid: %s\n", tn_text_str(&which));
    }
    tn_text_done(&which);
}

static tn_status print_fault(void *ctx, const char *text, tn_error *err)
{
    checking *c = ctx;
    (void)err;
    if (c->printed++ < c->flags->most) {
        (void)fprintf(c->flags->json ? stderr : stdout, "%s\n", text);
    }
    return TN_OK;
}

static void print_counts(const tn_row_scan_counts *n, bool json)
{
    if (!json) {
        tn_data_print_counts(stdout, n);
        (void)printf(", bytes %llu, sources %u\n", (unsigned long long)n->bytes, n->sources);
        return;
    }
    tn_text text = {0};
    tn_json_open(&text, '{');
    tn_json_count(&text, "rows", n->rows);
    tn_json_count(&text, "blank", n->blank);
    tn_json_count(&text, "bad", n->bad);
    tn_json_count(&text, "duplicate_key", n->duplicate_key);
    tn_json_count(&text, "bytes", n->bytes);
    tn_json_u64(&text, "sources", n->sources);
    tn_json_close(&text, '}');
    (void)printf("%s\n", tn_text_str(&text));
    tn_text_done(&text);
}

static tn_status check_files(tn_data_input *in, const void *flags, tn_error *err)
{
    checking c = {.flags = flags};
    const tn_row_scan_visitor visitor = {.ctx = &c, .block = count_labels, .fault = print_fault};
    tn_data_check_slots(&in->setup->binder, &in->from.data, &in->from.slots);
    TN_TRY(tn_diag_check(&in->setup->diag, err));
    const tn_row_scan_in pass = {.schema = in->from.schema, .paths = &in->paths, .team = in->team};
    tn_row_scan_counts counts;
    tn_status status = tn_row_scan_run(&pass, &visitor, &counts, err);
    if (counts.sources > 0) {
        print_counts(&counts, c.flags->json);
        print_warnings(&c, in);
    }
    in->setup->exit_code = counts.bad > 0 ? tn_exit_code(TN_E_DATA) : 0;
    return status;
}

static tn_status check_work(tn_setup *s, const tn_options *options, const void *flags,
                            tn_error *err)
{
    const check_flags *f = flags;
    return tn_data_use(
        s, options,
        (tn_data_ask){.from = f->from, .threads = f->threads, .complete = tn_discover_missing},
        check_files, f, err);
}

typedef struct stat_flags {
    const char *from;
    bool json;
    uint32_t top;
    const char *quantiles;
    uint32_t parts;
    uint32_t threads;
} stat_flags;

static const tn_field stat_fields[] = {
    TN_FLAG_STR(stat_flags, from, "PATH", "file, glob or folder; default: data.train"),
    TN_FLAG_BOOL(stat_flags, json, "the figures as JSON"),
    TN_FIELD_U32(stat_flags, top, "5", 0, TN_STAT_TOP_MAX, "values", "most frequent values shown"),
    TN_FLAG_STR(stat_flags, quantiles, "SLOT",
                "print bounds for 'transform: {quantiles: file}' of this slot instead"),
    TN_FIELD_U32(stat_flags, parts, "20", 2, 100000, "parts", "of equal size, for --quantiles"),
    TN_FIELD_U32W(stat_flags, threads, "all", 1, 1024, "threads", tn_thread_words,
                  "threads that parse and count"),
    TN_FIELD_END,
};

typedef struct counting {
    tn_stat *stat;
    tn_team *team;
} counting;

static tn_status count_block(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    counting *c = ctx;
    return tn_stat_add(c->stat, block->rows, c->team, err);
}

static tn_status print_stat(tn_stat *stat, const stat_flags *flags, tn_error *err)
{
    tn_text text = {0};
    tn_status status = TN_OK;
    if (flags->quantiles != NULL) {
        status = tn_stat_bounds(stat, flags->quantiles, flags->parts, &text, err);
    } else if (flags->json) {
        tn_stat_json(stat, flags->top, &text);
    } else {
        tn_stat_text(stat, flags->top, &text);
    }
    status = status == TN_OK ? tn_text_check(&text, "statistics", err) : status;
    if (status == TN_OK) {
        (void)fwrite(tn_text_str(&text), 1, text.size, stdout);
    }
    tn_text_done(&text);
    return status;
}

static tn_status stat_files(tn_data_input *in, const void *flags, tn_error *err)
{
    counting c = {.team = in->team};
    TN_TRY(tn_stat_new(&c.stat, in->from.schema, err));
    const tn_row_scan_visitor visitor = {.ctx = &c, .block = count_block};
    const tn_row_scan_in pass = {
        .schema = in->from.schema,
        .paths = &in->paths,
        .keep = TN_ROWS_SIGNS,
        .team = in->team,
    };
    tn_row_scan_counts counts;
    tn_status status = tn_row_scan_run(&pass, &visitor, &counts, err);
    status = status == TN_OK ? print_stat(c.stat, flags, err) : status;
    tn_stat_free(c.stat);
    return status;
}

static tn_status stat_work(tn_setup *s, const tn_options *options, const void *flags, tn_error *err)
{
    const stat_flags *f = flags;
    return tn_data_use(s, options,
                       (tn_data_ask){.from = f->from,
                                     .flags = TN_DATASET_AS_READ,
                                     .threads = f->threads,
                                     .complete = tn_discover_missing},
                       stat_files, f, err);
}

extern const tn_data_tool tn_data_tool_check;
const tn_data_tool tn_data_tool_check = {
    TN_DATA_READER(check, "[CONFIG] [key=value ..]",
                   "read every record and say what is wrong; exit code 4 when anything is", NULL)};

extern const tn_data_tool tn_data_tool_stat;
const tn_data_tool tn_data_tool_stat = {
    TN_DATA_READER(stat, "[CONFIG] [key=value ..]", "say what data holds, slot by slot", NULL)};
