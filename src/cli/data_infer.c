/* data_infer.c - tnet-data infer: a configuration that reads some files, from a sample of them.
 *
 * Every column is read as texts, which are counted by their look; then a few rules, those of
 * docs/data.md, make a slot of it, or a line that says why it is none. */
#include "base/core/alloc.h"
#include "base/core/number.h"
#include "base/file/output_file.h"
#include "cli/data_tool.h"
#include "cli/signals.h"
#include "config/field.h"
#include "config/tree.h"
#include "io/inspect/inspect_sketch.h"
#include "io/rows/rows.h"
#include "io/schema/schema.h"
#include "train/config/run.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { FEW = 1000, UNIQUE_ROWS_MIN = 20, LIST_SHARE = 10, VALUE_BYTES = 64 };

typedef struct infer_flags {
    const char *to;
    uint32_t rows;
    uint32_t threads;
} infer_flags;

static const tn_field infer_fields[] = {
    TN_FIELD_STR(infer_flags, to, "-", "file that is written; '-': standard output"),
    TN_FIELD_U32(infer_flags, rows, "50000", 1, TN_DISTINCT_EXACT_MAX, "rows",
                 "look at the first ones, as many as this"),
    TN_FIELD_U32W(infer_flags, threads, "all", 1, 1024, "threads", tn_thread_words,
                  "threads that parse"),
    TN_FIELD_END,
};

/* What the texts of a column look like. */
typedef struct column_look {
    uint64_t filled, values;                     /* rows with a value; values */
    uint64_t listed;                             /* values with a '|' */
    uint64_t pieces;                             /* values, those between '|' apart */
    uint64_t whole, negative, number, hex;       /* of the pieces */
    uint32_t last_row;                           /* that had a value, and 1 */
    char first[VALUE_BYTES], other[VALUE_BYTES]; /* the first value, and the first unlike it */
    uint64_t n_first;
    bool long_value; /* one of the first two was cut */
    tn_distinct *distinct;
} column_look;

typedef struct inferring {
    const tn_data_input *in;
    const infer_flags *flags;
    uint32_t n;
    uint32_t rows;
    column_look *look;
    const char *label; /* the column; NULL: none */
    bool has_id;
    tn_text text;
} inferring;

static void look_at_piece(column_look *c, const char *text, size_t size)
{
    const bool led = size > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
    uint64_t u;
    int64_t i;
    double x;
    const bool natural = !led && tn_read_u64(text, size, &u) == TN_NUM_OK;
    const bool negative =
        !natural && size > 0 && text[0] == '-' && tn_read_i64(text, size, &i) == TN_NUM_OK;
    c->pieces++;
    c->whole += natural || negative;
    c->negative += negative;
    c->number += natural || negative || (!led && tn_read_f64(text, size, &x) == TN_NUM_OK);
    c->hex += size == 8 && tn_read_hex(text, size, &u) == TN_NUM_OK;
}

static void look_at_value(column_look *c, const char *text, size_t size)
{
    const size_t kept = size < VALUE_BYTES - 1 ? size : VALUE_BYTES - 1;
    const bool is_first =
        c->values == 0 || (strncmp(c->first, text, kept) == 0 && c->first[kept] == '\0');
    c->long_value = c->long_value || kept < size;
    if (c->values++ == 0) {
        memcpy(c->first, text, kept);
    } else if (!is_first && c->other[0] == '\0') {
        memcpy(c->other, text, kept);
    }
    c->n_first += is_first;
    tn_distinct_add(c->distinct, tn_xxh64(text, size, 0));
    c->listed += size > 0 && memchr(text, '|', size) != NULL;
    for (const char *end = text + size; text <= end;) {
        const char *bar = text < end ? memchr(text, '|', (size_t)(end - text)) : NULL;
        bar = bar != NULL ? bar : end;
        look_at_piece(c, text, (size_t)(bar - text));
        text = bar + 1;
    }
}

static tn_status look_at_block(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    inferring *j = ctx;
    const tn_rows *rows = block->rows;
    (void)err;
    for (uint32_t r = 0; r < rows->n; r++) {
        if (j->rows == j->flags->rows) {
            return TN_END;
        }
        j->rows++;
        const uint32_t end = tn_rows_end_of(rows, r);
        for (uint32_t i = rows->row[r].first; i < end; i++) {
            column_look *c = &j->look[rows->entry[i].slot];
            if (rows->token[i].size != TN_TOKEN_NONE) {
                c->filled += c->last_row != j->rows;
                c->last_row = j->rows;
                look_at_value(c, rows->text + rows->token[i].at, rows->token[i].size);
            }
        }
    }
    return TN_OK;
}

static uint64_t different(const column_look *c)
{
    return tn_distinct_count(c->distinct, &(bool){false});
}

static const char *name_of(const inferring *j, uint32_t i)
{
    return j->in->found.column[i].name;
}

static bool is_binary(const column_look *c)
{
    return different(c) == 2 && c->filled == c->values && !c->long_value;
}

static bool named_as_label(const char *name)
{
    static const char *const names[] = {"label", "click", "clicked", "is_click", "target", "y"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Column i of those that may be labels, by their name and without. */
static void list_candidates(const inferring *j, bool by_name, tn_text *out)
{
    for (uint32_t i = 0; i < j->n; i++) {
        if (is_binary(&j->look[i]) && (!by_name || named_as_label(name_of(j, i)))) {
            tn_text_addf(out, "%s'%s'", out->size > 0 ? ", " : "", name_of(j, i));
        }
    }
}

static tn_status find_label(inferring *j, tn_error *err)
{
    const tn_tree *given = j->in->label;
    uint32_t n = 0;
    if (!tn_tree_is_null(given)) {
        const tn_tree *column = given->kind == TN_TREE_MAP ? tn_tree_get(given, "column") : given;
        j->label = column != NULL && column->kind == TN_TREE_SCALAR ? column->text : "label";
        return TN_OK;
    }
    for (uint32_t i = 0; i < j->n; i++) {
        if (is_binary(&j->look[i]) && named_as_label(name_of(j, i))) {
            j->label = name_of(j, i);
            n++;
        }
    }
    if (n == 1) {
        return TN_OK;
    }
    tn_text list = {0};
    list_candidates(j, n > 1, &list);
    tn_status status = tn_fail(
        err, TN_E_DATA,
        "%s\nhint: 'label=NAME' names it, 'label=none' says that there is none; columns of two "
        "values: %s",
        n > 1 ? "more than one column may be the label"
              : "no column of two values is called label, click, clicked, is_click, target or y",
        list.size > 0 ? tn_text_str(&list) : "none");
    tn_text_done(&list);
    return status;
}

/* Whether a label of this text needs no rule. */
static bool is_bit(const char *text)
{
    static const char *const bits[] = {"0", "1", "-1", "0.0", "1.0", "true", "false"};
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++) {
        if (strcasecmp(text, bits[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void write_label(inferring *j)
{
    const tn_tree *given = j->in->label;
    const column_look *c = NULL;
    for (uint32_t i = 0; i < j->n; i++) {
        c = strcmp(name_of(j, i), j->label) == 0 ? &j->look[i] : c;
    }
    tn_text_adds(&j->text, "  label: ");
    if ((given != NULL && given->kind == TN_TREE_MAP) || c == NULL || !is_binary(c) ||
        (is_bit(c->first) && is_bit(c->other))) {
        if (given != NULL) {
            tn_tree_print_flow(&j->text, given);
        } else {
            tn_tree_print_scalar(&j->text, j->label);
        }
        tn_text_addc(&j->text, '\n');
        return;
    }
    const uint64_t n_other = c->values - c->n_first;
    const bool first =
        c->n_first < n_other || (c->n_first == n_other && strcmp(c->first, c->other) > 0);
    tn_text_adds(&j->text, "{column: ");
    tn_tree_print_scalar(&j->text, j->label);
    tn_text_adds(&j->text, ", values: {");
    tn_tree_print_scalar(&j->text, first ? c->first : c->other);
    tn_text_adds(&j->text, ": 1, ");
    tn_tree_print_scalar(&j->text, first ? c->other : c->first);
    tn_text_adds(&j->text, ": 0}}  # the rarer one is 1\n");
}

/* A name in a comment, which ends with the line. */
static void add_comment_name(inferring *j, uint32_t i)
{
    tn_text_addc(&j->text, '\'');
    for (const char *c = name_of(j, i); *c != '\0'; c++) {
        tn_text_add(&j->text, (unsigned char)*c < ' ' ? "?" : c, 1);
    }
    tn_text_addc(&j->text, '\'');
}

/* Whole numbers or words, another one in every row. */
static bool is_record_id(const inferring *j, const column_look *c)
{
    return j->rows >= UNIQUE_ROWS_MIN && c->filled == j->rows && c->values == j->rows &&
           different(c) == j->rows && (c->whole == c->pieces || c->number < c->pieces);
}

/* Why column i is no slot; NULL: it is one. */
static const char *left_out(const inferring *j, uint32_t i)
{
    const column_look *c = &j->look[i];
    return strcmp(name_of(j, i), j->label) == 0        ? "" /* the label */
           : c->filled == 0                            ? "has no values"
           : different(c) == 1 && c->filled == j->rows ? "has one value in all rows"
           : is_record_id(j, c)                        ? "has another value in every row"
                                                       : NULL;
}

static bool ends_in_id(const char *name)
{
    const size_t size = strlen(name);
    return size >= 2 && strcasecmp(name + size - 2, "id") == 0;
}

/* Whole numbers in a list are keys however many there are: to count something takes one. */
static const char *type_of(const inferring *j, uint32_t i, bool several)
{
    const column_look *c = &j->look[i];
    const bool real = strcmp(j->in->found.column[i].type, "float") == 0;
    if (c->whole == c->pieces && !real &&
        (several || different(c) <= FEW || ends_in_id(name_of(j, i)))) {
        return c->negative > 0 ? "int" : "id";
    }
    return c->number == c->pieces || real ? "float" : c->hex == c->pieces ? "hex" : "str";
}

static void write_slot(inferring *j, uint32_t i, bool delimited)
{
    const column_look *c = &j->look[i];
    const bool list = delimited && c->listed * LIST_SHARE >= c->filled && c->listed > 0;
    const bool several = list || c->values > c->filled;
    const char *type = type_of(j, i, several);
    if (list != (c->listed > 0) && strcmp(type, "str") != 0) {
        type = "str"; /* bars that are no list */
    }
    tn_text_adds(&j->text, "  - {");
    tn_discovery_name(&j->in->found, i, &j->text);
    tn_text_addf(&j->text, ", type: %s%s}  # ", type, list ? ", list: \"|\"" : "");
    tn_text_addf(&j->text, "%llu different", (unsigned long long)different(c));
    if (c->filled < j->rows) {
        tn_text_addf(&j->text, ", %.1f%% filled", 100 * (double)c->filled / j->rows);
    }
    tn_text_adds(&j->text, several ? ", several values" : "");
    const bool buckets = strcmp(type, "float") == 0;
    const bool names = buckets && c->whole == c->pieces;
    tn_text_adds(&j->text, buckets ? "; in buckets of equal share" : "");
    tn_text_adds(&j->text, names ? "; if its numbers are names: type: id\n" : "\n");
}

static void write_train(inferring *j)
{
    const tn_strs *train = &j->in->paths;
    tn_text_adds(&j->text, train->n > 1 ? "  train: [" : "  train: ");
    for (uint32_t i = 0; i < train->n; i++) {
        tn_text_adds(&j->text, i > 0 ? ", " : "");
        tn_tree_print_scalar(&j->text, train->item[i]);
    }
    tn_text_adds(&j->text, train->n > 1 ? "]\n" : "\n");
}

/* data.format and what was given on the command line, but train, label and record_id. */
static void write_data(inferring *j, const tn_text *found)
{
    const char *slots = strstr(tn_text_str(found), "slots:\n");
    tn_text_add(&j->text, tn_text_str(found),
                slots != NULL ? (size_t)(slots - tn_text_str(found)) : found->size);
    for (const tn_tree *t = j->in->given != NULL ? j->in->given->first : NULL; t != NULL;
         t = t->next) {
        static const char *const own[] = {"format", "train", "label", "header", "trim", "columns"};
        const tn_strs known = {sizeof own / sizeof own[0], own};
        if (!tn_strs_has(&known, t->key)) {
            tn_text_addf(&j->text, "  %s: ", t->key);
            tn_tree_print_flow(&j->text, t);
            tn_text_addc(&j->text, '\n');
        }
    }
    write_train(j);
}

static void write_columns(inferring *j)
{
    const char *format = j->in->found.format;
    const bool delimited = strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0;
    const tn_tree *weight = tn_tree_get(j->in->given, "weight");
    write_label(j);
    for (uint32_t i = 0; i < j->n && tn_tree_get(j->in->given, "record_id") == NULL; i++) {
        const char *why = left_out(j, i);
        if (why != NULL && *why != '\0' && is_record_id(j, &j->look[i])) {
            tn_text_adds(&j->text, "  record_id: ");
            tn_tree_print_scalar(&j->text, name_of(j, i));
            tn_text_adds(&j->text, "  # has another value in every row\n");
            break;
        }
    }
    tn_text_adds(&j->text, "slots:\n");
    for (uint32_t i = 0; i < j->n; i++) {
        const char *why = left_out(j, i);
        if (weight != NULL && weight->text != NULL && strcmp(weight->text, name_of(j, i)) == 0) {
            continue;
        }
        if (why == NULL) {
            write_slot(j, i, delimited);
        } else if (*why != '\0') {
            tn_text_adds(&j->text, "  # left out: ");
            add_comment_name(j, i);
            tn_text_addf(&j->text, " %s\n", why);
        }
    }
}

/* The slots that the format has of its own, or that training would find. */
static void write_found(inferring *j)
{
    tn_text text = {0};
    if (!tn_tree_is_null(j->in->label)) {
        tn_text_adds(&j->text, "  label: ");
        tn_tree_print_flow(&j->text, j->in->label);
        tn_text_addc(&j->text, '\n');
    }
    tn_dataset_config(&j->in->from, NULL, NULL, &text);
    const char *slots = strstr(tn_text_str(&text), "slots:\n");
    tn_text_adds(&j->text, slots != NULL ? slots : "");
    tn_text_done(&text);
}

static tn_status look(inferring *j, tn_error *err)
{
    const tn_row_scan_visitor visitor = {.ctx = j, .block = look_at_block};
    const tn_row_scan_in pass = {.schema = j->in->from.schema,
                                 .paths = &j->in->paths,
                                 .keep = TN_ROWS_SIGNS,
                                 .team = j->in->team,
                                 .records = true};
    tn_row_scan_counts counts;
    j->n = j->in->found.n;
    TN_ASSERT(j->n == 0 || j->in->from.schema->n_slots == j->n);
    TN_TRY(TN_ALLOC(j->look, j->n + 1, "what columns look like", err));
    for (uint32_t i = 0; i < j->n; i++) {
        TN_TRY(TN_ALLOC(j->look[i].distinct, 1, "a count of different values", err));
    }
    tn_status status = j->n > 0 ? tn_row_scan_run(&pass, &visitor, &counts, err) : TN_OK;
    return status == TN_END ? TN_OK : status;
}

static tn_status infer(inferring *j, tn_error *err)
{
    tn_text found = {0};
    TN_TRY(look(j, err));
    if (j->n > 0) {
        TN_TRY(find_label(j, err));
        tn_text_addf(&j->text,
                     "# Inferred from the first %u rows of the data by tnet-data infer; look it "
                     "over.\n# Whole numbers of at most %d values, or of a name that ends in id, "
                     "are keys; other numbers\n# are cut into buckets; all else is words.\n",
                     j->rows, FEW);
    }
    tn_discovery_config(&j->in->found, &found);
    write_data(j, &found);
    tn_text_done(&found);
    if (j->n > 0) {
        write_columns(j);
    } else {
        write_found(j);
    }
    TN_TRY(tn_text_check(&j->text, "a configuration", err));
    const char *slots = strstr(j->text.data, "\nslots:\n");
    return slots != NULL && strstr(slots, "\n  - {") != NULL
               ? TN_OK
               : tn_fail(err, TN_E_DATA, "no column of '%s' is worth a slot", j->in->found.path);
}

static tn_status infer_files(tn_data_input *in, const void *flags, tn_error *err)
{
    inferring j = {.in = in, .flags = flags};
    const tn_output_with with = {.inputs = &in->setup->inputs, .announce = tn_signals_remove};
    tn_status status = infer(&j, err);
    if (status == TN_OK) {
        status = tn_output_put(j.flags->to, j.text.data, j.text.size, &with, err);
    }
    for (uint32_t i = 0; j.look != NULL && i < j.n; i++) {
        tn_distinct_done(j.look[i].distinct);
        tn_free(j.look[i].distinct);
    }
    tn_free(j.look);
    tn_text_done(&j.text);
    return status;
}

static tn_status infer_work(tn_setup *s, const tn_options *options, const void *flags,
                            tn_error *err)
{
    const infer_flags *f = flags;
    const tn_data_ask ask = {
        .flags = TN_DATASET_AS_READ, .threads = f->threads, .discover = true, .files = true};
    return tn_data_use(s, options, ask, infer_files, f, err);
}

const tn_data_tool tn_data_infer = {
    .program = {.name = "tnet-data infer",
                .summary = "write a configuration that reads and learns some files",
                .words = "FILE .. [key=value ..]",
                .flags = infer_fields,
                .config = tn_run_fields,
                .words_min = 1,
                .words_max = 100000,
                .example = "tnet-data infer clicks.csv --to clicks.yaml",
                .notes = "Looks at the header and the first rows. The label is the one column of "
                         "two values that\n"
                         "is called label, click, clicked, is_click, target or y; 'label=NAME' "
                         "names another.\n"
                         "'format=csv' and other options of `data` say what the data do not."},
    .flags_size = sizeof(infer_flags),
    .work = infer_work,
};
