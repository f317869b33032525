/* data_infer.c - tnet-data infer: a configuration that reads some files, from a sample of them.
 *
 * Every column is read as texts, of which data_infer_look.h says what they are; then a few
 * rules, those of docs/data.md, make a slot of it, or a line that says why it is none. What comes
 * out reads the same rows before anybody sees it.
 */
#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/log.h"
#include "base/core/number.h"
#include "base/file/file.h"
#include "base/file/output_file.h"
#include "cli/signals.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"
#include "config/yaml.h"
#include "extra/inspect/data_infer_look.h"
#include "io/format/format.h"
#include "io/read/bad_record_limit.h"
#include "io/rows/rows.h"
#include "io/schema/schema.h"
#include "train/config/run.h"
#include "train/config/run_loss.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    FEW = 1000,           /* whole numbers of at most so many values are keys, others are numbers */
    ROWS_OF_EACH = 20,    /* more such values are keys, too, if each comes in so many rows */
    HELD_ROWS_MIN = 1000, /* a tenth of so many rows is enough to judge a model */
    UNIQUE_ROWS_MIN = 20, /* with fewer rows an id of rows cannot be recognized */
    LIST_SHARE = 10       /* one value in so many has a bar: a list */
};

typedef struct infer_flags {
    const char *to;
    bool force;
    uint32_t rows;
    uint32_t threads;
} infer_flags;

static const tn_field infer_fields[] = {
    TN_FIELD_STR(infer_flags, to, "-", "file that is written; '-': standard output"),
    TN_FLAG_BOOL(infer_flags, force, "replace that file where it is there already"),
    TN_FIELD_U32(infer_flags, rows, "50000", 1, TN_DISTINCT_EXACT_MAX, "rows",
                 "look at the first ones, as many as this"),
    TN_FIELD_U32W(infer_flags, threads, "all", 1, 1024, "threads", tn_thread_words,
                  "threads that parse"),
    TN_FIELD_END,
};

typedef struct inferring {
    tn_data_input *in;
    const tn_discovery *found;
    const infer_flags *flags;
    tn_looking *looking;
    uint32_t n;
    uint32_t rows;
    uint32_t read; /* rows of what was written */
    uint64_t bad;
    char *fault;            /* the first bad record, where some may be; NULL: none was met */
    tn_column_look *look;   /* n, and where there are no columns that of the labels */
    uint32_t label;         /* the column; n: none */
    const tn_format *known; /* the format whose columns these are; NULL: none */
    const char *known_id;   /* its record id */
    bool bits;              /* the labels are clicks as they are */
    bool nulls;             /* data.null got words */
    bool no_nulls;          /* the readers did not take these words for missing values */
    tn_text text;
} inferring;

static const char *name_of(const inferring *j, uint32_t i)
{
    return j->found->column[i].name;
}

static uint32_t column_called(const inferring *j, const char *name)
{
    uint32_t i = 0;
    while (i < j->n && strcmp(name_of(j, i), name) != 0) {
        i++;
    }
    return i;
}

static const tn_tree *given(const inferring *j, const char *key)
{
    return tn_tree_get(tn_tree_get(j->in->root, "data"), key);
}

static bool is_delimited(const inferring *j)
{
    const char *format = j->found->format;
    return strcmp(format, "csv") == 0 || strcmp(format, "tsv") == 0;
}

/* ---- looking ---- */

/* Returns the label of a line of libsvm and its kin: the text before a blank, ':' or '|'. */
static void look_at_label(inferring *j, tn_bytes line)
{
    size_t size = 0;
    while (size < line.size && !tn_is_blank(line.data[size]) && line.data[size] != ':' &&
           line.data[size] != '|') {
        size++;
    }
    if (size > 0) {
        tn_look_at(j->looking, &j->look[0], j->rows, line.data, size);
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
        if (j->n == 0) {
            look_at_label(j, block->raw[r]);
            continue;
        }
        const uint32_t end = tn_rows_end_of(rows, r);
        for (uint32_t i = rows->row[r].first; i < end; i++) {
            const tn_token token = rows->token[i];
            if (token.size != TN_TOKEN_NONE) {
                tn_look_at(j->looking, &j->look[rows->entry[i].slot], j->rows,
                           rows->text + token.at, token.size);
            }
        }
    }
    return TN_OK;
}

static tn_status count_block(void *ctx, const tn_row_scan_block *block, tn_error *err)
{
    inferring *j = ctx;
    (void)err;
    j->read += block->rows->n;
    return j->read >= j->flags->rows ? TN_END : TN_OK;
}

/* Bad records end a look, unless data.bad_records_max allows some. */
static tn_status pass_over(void *ctx, const char *text, tn_error *err)
{
    inferring *j = ctx;
    if (given(j, "bad_records_max") == NULL) {
        return tn_fail(err, TN_E_DATA, "%s\nhint: 'bad_records_max=1%%' passes over such records",
                       text);
    }
    if (j->bad++ == 0) {
        j->fault = tn_tree_text(j->in->setup->arena, text, strlen(text));
    }
    return TN_OK;
}

static tn_status scan(inferring *j, const tn_schema *schema,
                      tn_status (*block)(void *, const tn_row_scan_block *, tn_error *),
                      tn_error *err)
{
    const tn_row_scan_visitor visitor = {.ctx = j, .block = block, .fault = pass_over};
    const tn_row_scan_in pass = {
        .schema = schema, .paths = &j->in->paths, .keep = TN_ROWS_SIGNS, .team = j->in->team};
    tn_row_scan_counts counts;
    j->bad = 0;
    tn_status status = tn_row_scan_run(&pass, &visitor, &counts, err);
    return status == TN_END ? TN_OK : status;
}

/* Formats without columns have a label in front of each line, but crb. */
static bool has_line_labels(const inferring *j)
{
    const tn_format *format = tn_format_find(j->found->format);
    return j->n == 0 && format != NULL && !format->binary && format->preset == NULL;
}

static tn_status look(inferring *j, tn_error *err)
{
    j->n = j->found->n;
    j->label = j->n;
    TN_ASSERT(j->n == 0 || j->in->from.schema->n_slots == j->n);
    TN_TRY(TN_ALLOC(j->look, j->n + 1, "what columns look like", err));
    if (j->n == 0 && (!has_line_labels(j) || !tn_tree_is_null(given(j, "label")))) {
        return TN_OK;
    }
    TN_TRY(tn_looking_new(&j->looking, j->in, !j->no_nulls, err));
    TN_TRY(scan(j, j->in->from.schema, look_at_block, err));
    for (uint32_t i = 0; i <= j->n; i++) {
        tn_look_end(&j->look[i]);
    }
    if (j->rows == 0) {
        return tn_fail(err, TN_E_DATA, "'%s' has no rows%s%s%s", j->found->path,
                       j->found->named ? " behind its header" : "", j->fault != NULL ? ": " : "",
                       j->fault != NULL ? j->fault : "");
    }
    return TN_OK;
}

/* ---- the label ---- */

static bool is_binary(const tn_column_look *c)
{
    return tn_look_classes(c) == 2 && c->filled == c->values;
}

/* Columns that may be labels, by their name and without. */
static void list_candidates(const inferring *j, bool by_name, tn_text *out)
{
    for (uint32_t i = 0; i < j->n; i++) {
        if (is_binary(&j->look[i]) && (!by_name || tn_discovery_is_label(name_of(j, i)))) {
            tn_text_addf(out, "%s'%s'", out->size > 0 ? ", " : "", name_of(j, i));
        }
    }
}

static tn_status no_such_label(const inferring *j, const char *name, tn_error *err)
{
    enum { LISTED_MAX = 20 };
    const tn_discovery *found = j->found;
    tn_text list = {0};
    for (uint32_t i = 0; i < j->n && i < LISTED_MAX; i++) {
        tn_text_addf(&list, "%s%s", i > 0 ? ", " : "", name_of(j, i));
    }
    const char *aside = NULL;
    for (uint32_t i = j->n; i < j->n + found->n_unread; i++) {
        aside = strcmp(name_of(j, i), name) == 0 ? found->column[i].unread : aside;
    }
    tn_status status =
        aside != NULL
            ? tn_fail(err, TN_E_DATA, "column '%s', which 'label' names, %s", name, aside)
            : tn_fail(err, TN_E_DATA,
                      "there is no column '%s', which 'label' names\nhint: the columns are "
                      "%s%s%s",
                      name, tn_text_str(&list), j->n > LISTED_MAX ? ", .." : "",
                      is_delimited(j) && !found->named
                          ? "; the first line is taken for data: 'header=true' takes names from it"
                          : "");
    tn_text_done(&list);
    return status;
}

static tn_status ask_for_label(const inferring *j, bool by_name, tn_error *err)
{
    tn_text list = {0};
    list_candidates(j, by_name, &list);
    tn_status status = tn_fail(
        err, TN_E_DATA,
        "%s\nhint: 'label=NAME' names it, 'label=none' says that there is none; columns of two "
        "values: %s",
        by_name ? "more than one column may be the label"
                : "no column of two values is called label, click, clicked, is_click, target or y",
        list.size > 0 ? tn_text_str(&list) : "none");
    tn_text_done(&list);
    return status;
}

/* The column that is called like a label: of two values, if there is one. */
static tn_status guess_label(inferring *j, tn_error *err)
{
    uint32_t binary = 0;
    uint32_t named = 0;
    uint32_t any = j->n;
    for (uint32_t i = 0; i < j->n; i++) {
        if (tn_discovery_is_label(name_of(j, i))) {
            const bool two = is_binary(&j->look[i]);
            j->label = two ? i : j->label;
            binary += two;
            any = i;
            named++;
        }
    }
    if (binary == 0 && named == 1) {
        j->label = any;
        return TN_OK;
    }
    return binary == 1 ? TN_OK : ask_for_label(j, binary > 1, err);
}

/* Returns whether labels are clicks as they are, or numbers for a loss of numbers. */
static bool are_labels(const inferring *j, const tn_column_look *c)
{
    bool one = false;
    bool zero = false;
    for (uint32_t i = 0; i < c->n_words && i < TN_LOOK_WORDS; i++) {
        one = one || c->word[i].number == 1;
        zero = zero || c->word[i].number == 0 || c->word[i].number == -1;
    }
    const bool two = tn_look_classes(c) == 2 && !isnan(c->word[0].number);
    return c->labels == c->values &&
           (!two || (one && zero) || tn_loss_target(j->in->root) != TN_TARGET_CLICK);
}

/* Whether a model can learn from the labels; fills j->bits. */
static tn_status judge_label(inferring *j, bool asked, tn_error *err)
{
    const tn_column_look *c = &j->look[j->label];
    const char *name = j->n > 0 ? name_of(j, j->label) : "label";
    const uint32_t classes = tn_look_classes(c);
    j->bits = are_labels(j, c);
    if (c->values == 0) {
        return tn_fail(err, TN_E_DATA, "column '%s', the label, has no values in the first %u rows",
                       name, j->rows);
    }
    if (classes == 1 && (!asked || !j->bits)) {
        return tn_fail(err, TN_E_DATA,
                       "all labels of the first %u rows ('%s') are %s, and nothing can be learned "
                       "from one class\nhint: a file of mixed rows, another column by "
                       "'label=NAME', or 'label=%s' for this one all the same",
                       j->rows, name, c->word[0].text, name);
    }
    if (classes == 1) {
        tn_log(TN_LOG_WARN, "all labels of the first %u rows ('%s') are %s", j->rows, name,
               c->word[0].text);
    }
    if (classes > 2 && !j->bits && c->number < c->pieces) {
        return tn_fail(err, TN_E_DATA,
                       "column '%s', the label, has more than two values, and not all are "
                       "numbers\nhint: 'label={column: %s, values: {%s: 1, %s: 0}}' says what each "
                       "of them means",
                       name, name, c->word[0].text, c->word[1].text);
    }
    return TN_OK;
}

static tn_status find_label(inferring *j, tn_error *err)
{
    const tn_tree *label = given(j, "label");
    if (tn_tree_is_null(label)) {
        TN_TRY(guess_label(j, err));
        return judge_label(j, false, err);
    }
    const tn_tree *column = label->kind == TN_TREE_MAP ? tn_tree_get(label, "column") : label;
    const char *name = column != NULL && column->kind == TN_TREE_SCALAR ? column->text : "label";
    if (column == label && !label->quoted && strcmp(name, "none") == 0) {
        return TN_OK;
    }
    j->label = column_called(j, name);
    if (j->label == j->n) {
        return no_such_label(j, name, err);
    }
    return label->kind == TN_TREE_MAP ? TN_OK : judge_label(j, true, err);
}

static bool is_yes(const char *text)
{
    static const char *const words[] = {"yes", "y",       "t",     "true", "positive",
                                        "pos", "clicked", "click", "on"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* values: {..} of labels of two values: yes is 1, or the rarer one. */
static void write_values(inferring *j, const tn_column_look *c)
{
    uint64_t n_first = 0;
    uint32_t other = 0;
    for (uint32_t i = 0; i < c->n_words; i++) {
        const bool same = tn_look_same(c, 0, i);
        n_first += same ? c->word[i].n : 0;
        other = !same && other == 0 ? i : other;
    }
    const uint64_t n_other = c->values - n_first;
    const char *a = c->word[0].text;
    const char *b = c->word[other].text;
    const bool words = is_yes(a) != is_yes(b);
    const bool first =
        words ? is_yes(a) : n_first < n_other || (n_first == n_other && strcmp(a, b) > 0);
    tn_text_adds(&j->text, "values: {");
    for (uint32_t k = 0; k < 2 * c->n_words; k++) { /* items that are 1 come before the others */
        const uint32_t i = k % c->n_words;
        const bool one = k < c->n_words;
        if ((tn_look_same(c, 0, i) == first) == one) {
            tn_tree_print_scalar(&j->text, c->word[i].text);
            tn_text_addf(&j->text, ": %d%s", one, k + 1 < 2 * c->n_words ? ", " : "");
        }
    }
    const size_t size = j->text.size; /* a comma after the last one is no fault, but odd */
    j->text.size = size > 2 && j->text.data[size - 2] == ',' ? size - 2 : size;
    tn_text_addf(&j->text, "}}  # %s is 1\n", words ? first ? a : b : "the rarer one");
}

/* Labels of many numbers: clicks are those above the mean. */
static void write_threshold(inferring *j, const tn_column_look *c)
{
    const char *name = j->label < j->n ? name_of(j, j->label) : "~";
    const char *loss = tn_loss_for(TN_TARGET_NUMBER);
    const double mean = c->sum / (double)c->pieces;
    const double bound = c->whole == c->pieces ? floor(mean) : mean;
    char number[TN_NUMBER_TEXT_MAX];
    (void)tn_write_f32(number, (float)bound);
    tn_text_addf(&j->text,
                 "threshold: %s}  # of %.6g to %.6g: what is above is a click\n"
                 "  # label: %s  # .. and with the section 'loss: %s' the numbers are learned\n",
                 number, c->least, c->largest, name, loss);
    tn_log(TN_LOG_INFO,
           "labels are numbers from %.6g to %.6g: those above %s are clicks in what is written; "
           "'loss=%s' learns the numbers",
           c->least, c->largest, number, loss);
}

static void write_label(inferring *j)
{
    const tn_tree *label = given(j, "label");
    const tn_column_look *c = &j->look[j->label];
    const bool rule = c->values > 0 && !j->bits && (label == NULL || label->kind != TN_TREE_MAP);
    if (j->label == j->n && !rule && tn_tree_is_null(label)) {
        return;
    }
    tn_text_adds(&j->text, "  label: ");
    if (!rule && !tn_tree_is_null(label)) {
        tn_tree_print_flow(&j->text, label);
        tn_text_addc(&j->text, '\n');
        return;
    }
    if (rule) {
        tn_text_addc(&j->text, '{');
    }
    if (j->label < j->n) {
        tn_text_adds(&j->text, rule ? "column: " : "");
        tn_tree_print_scalar(&j->text, name_of(j, j->label));
        tn_text_adds(&j->text, rule ? ", " : "\n");
    }
    if (rule && tn_look_classes(c) == 2) {
        write_values(j, c);
    } else if (rule) {
        write_threshold(j, c);
    }
}

/* ---- columns that a format knows ---- */

static bool takes(const tn_slot_spec *spec, const tn_column_look *c)
{
    return c->pieces == (spec->transform.kind >= TN_TRANSFORM_HOUR ? c->hour
                         : spec->type == TN_SIGN_HEX               ? c->hex
                                                                   : c->whole);
}

/* Whether the columns are those of a preset's slots, its label and its record id, and hold what it
 * reads: by name, or, where there is no header, by their places. */
static bool is_of(const inferring *j, const tn_dataset *preset, const char *id)
{
    const tn_schema *schema = preset->schema;
    bool *used = TN_NEW_ARRAY(j->in->setup->arena, bool, j->n + 1);
    const bool named = j->found->named;
    if (!named && (j->n != schema->n_specs + 1 || j->label > 0 || id != NULL)) {
        return false;
    }
    for (uint32_t s = 0; s < schema->n_specs; s++) {
        const uint32_t i = named ? column_called(j, schema->spec[s].column) : s + 1;
        if (i == j->n || i == j->label || !takes(&schema->spec[s], &j->look[i])) {
            return false;
        }
        used[i] = true;
    }
    for (uint32_t i = 0; i < j->n; i++) {
        if (!used[i] && i != j->label && strcasecmp(name_of(j, i), "id") != 0) {
            return false;
        }
    }
    return true;
}

/* Criteo's and Avazu's: formats that name their columns. */
static tn_status find_known(inferring *j, tn_error *err)
{
    tn_setup *s = j->in->setup;
    const uint32_t label = j->label;
    if (!j->found->named && tn_tree_is_null(given(j, "label"))) {
        j->label = are_labels(j, &j->look[0]) ? 0 : j->n;
    }
    for (uint32_t i = 0; tn_all_formats[i] != NULL && is_delimited(j) && j->known == NULL; i++) {
        const tn_tree *tree = tn_data_preset(s, tn_all_formats[i]);
        if (tree == NULL) {
            continue;
        }
        tn_dataset *preset = TN_NEW(s->arena, tn_dataset);
        TN_TRY(tn_dataset_bind(preset, tree, TN_DATASET_AS_READ, TN_TARGET_CLICK, &s->binder, err));
        const char *id = preset->data.record_id;
        if (is_of(j, preset, id)) {
            j->known = tn_all_formats[i];
            j->known_id = id;
        }
    }
    j->label = j->known != NULL ? j->label : label;
    return TN_OK;
}

/* ---- slots ---- */

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
static bool is_record_id(const inferring *j, const tn_column_look *c)
{
    return j->rows >= UNIQUE_ROWS_MIN && c->filled == j->rows && c->values == j->rows &&
           tn_look_different(c) == j->rows && (c->whole == c->pieces || c->number < c->pieces);
}

/* Why column i is no slot; NULL: it is one. */
static const char *left_out(const inferring *j, uint32_t i)
{
    const tn_column_look *c = &j->look[i];
    const tn_tree *weight = given(j, "weight");
    const char *times = tn_look_times(c, name_of(j, i));
    if (i == j->label ||
        (weight != NULL && weight->text != NULL && strcmp(weight->text, name_of(j, i)) == 0)) {
        return "";
    }
    return c->filled == 0                                      ? "has no values"
           : tn_look_different(c) == 1 && c->filled == j->rows ? "has one value in all rows"
           : times != NULL && times != tn_look_hours           ? times
           : times == NULL && is_record_id(j, c)               ? "has another value in every row"
                                                               : NULL;
}

/* Whole numbers in a list are keys however many there are: to count something takes one. */
static const char *type_of(const inferring *j, uint32_t i, bool several)
{
    const tn_column_look *c = &j->look[i];
    const bool real = strcmp(j->found->column[i].type, "float") == 0;
    const uint64_t n = tn_look_different(c);
    if (c->whole == c->pieces && !real && c->pieces > 0 &&
        (several || n <= FEW || n * ROWS_OF_EACH <= c->filled ||
         tn_look_ends_in_id(name_of(j, i))) &&
        (c->negative == 0 || c->natural + c->negative == c->pieces)) {
        return c->negative > 0 ? "int" : "id";
    }
    if (real || (c->number + c->infinite == c->pieces && c->rounded == 0)) {
        return "float";
    }
    return c->hex == c->pieces ? "hex" : "str";
}

/* Keys that come again: the hour and the weekday. */
static void write_hours(inferring *j, uint32_t i)
{
    char weekday[80];
    (void)snprintf(weekday, sizeof weekday, "%s_weekday", name_of(j, i));
    tn_text_adds(&j->text, "  - {");
    tn_discovery_name(j->found, i, "", &j->text);
    tn_text_addf(&j->text, ", type: int, transform: hour}  # %s\n", tn_look_hours);
    if (column_called(j, weekday) == j->n) {
        tn_text_adds(&j->text, "  - {");
        tn_discovery_name(j->found, i, "_weekday", &j->text);
        tn_text_adds(&j->text, ", type: int, transform: weekday}\n");
    }
}

static void write_slot(inferring *j, uint32_t i)
{
    const tn_column_look *c = &j->look[i];
    const tn_discovery *found = j->found;
    const bool bars = is_delimited(j) && (found->delimiter == NULL || found->delimiter[0] != '|');
    const bool list = bars && c->listed * LIST_SHARE >= c->filled && c->listed > 0;
    const bool several = list || c->values > c->filled;
    const char *type = type_of(j, i, several);
    if (list != (c->listed > 0) && strcmp(type, "str") != 0) {
        type = "str"; /* bars that are no list */
    }
    const bool buckets = strcmp(type, "float") == 0;
    tn_text_adds(&j->text, "  - {");
    tn_discovery_name(found, i, "", &j->text);
    tn_text_addf(&j->text, ", type: %s%s%s}  # ", type, list ? ", list: \"|\"" : "",
                 buckets && c->infinite > 0 ? ", non_finite: absent" : "");
    tn_text_addf(&j->text, "%llu different", (unsigned long long)tn_look_different(c));
    if (c->filled < j->rows) {
        tn_text_addf(&j->text, ", %.1f%% filled", 100 * (double)c->filled / j->rows);
    }
    const bool names = buckets && c->whole == c->pieces;
    const bool rounded = c->rounded > 0 && c->number == c->pieces && c->whole < c->pieces;
    tn_text_addf(&j->text, "%s%s%s%s\n", several ? ", several values" : "",
                 buckets ? "; in buckets of equal share" : "",
                 names ? "; if its numbers are names: type: id" : "",
                 rounded
                     ? "; no ids: those are whole numbers below 2^64, and 9.06e+17 has lost digits"
                     : "");
}

static void write_left_out(inferring *j, uint32_t i, const char *why)
{
    static const char unread[] = "  #   (as unix seconds, or as 2026-11-29T23:15:07, it would have "
                                 "an hour and a weekday for 'transform')\n";
    const tn_column_look *c = &j->look[i];
    const bool times = why == tn_look_times(c, name_of(j, i));
    tn_text_adds(&j->text, "  # left out: ");
    add_comment_name(j, i);
    tn_text_addf(&j->text, times ? " holds %s, which later rows do not repeat\n" : " %s\n", why);
    if (times && c->readable == c->pieces) {
        tn_text_adds(&j->text, "  #   {");
        tn_discovery_name(j->found, i, "", &j->text);
        tn_text_adds(&j->text, ", type: int, transform: hour}, or weekday, makes keys that come "
                               "again\n");
    } else if (times && strstr(tn_text_str(&j->text), unread) == NULL) {
        tn_text_adds(&j->text, unread);
    }
}

/* ---- the text ---- */

static void write_train(inferring *j)
{
    const tn_strs *train = &j->in->paths;
    tn_text_adds(&j->text, train->n > 1 ? "  train: [" : "  train: ");
    for (uint32_t i = 0; i < train->n; i++) {
        tn_text_adds(&j->text, i > 0 ? ", " : "");
        tn_tree_print_scalar(&j->text, train->item[i]);
    }
    tn_text_adds(&j->text, train->n > 1 ? "]\n" : "\n");
    if (j->rows >= HELD_ROWS_MIN && given(j, "valid") == NULL && !tn_strs_has(train, "-")) {
        tn_text_adds(&j->text,
                     "  valid: {share: 10%}  # not learned: the model is judged by them\n");
    }
}

/* data.null: what is given, or nothing, and words of columns that are none. */
static void write_null(inferring *j)
{
    const tn_tree *null = given(j, "null");
    uint32_t words = 0;
    for (uint32_t i = 0; i < j->n; i++) {
        const char *why = left_out(j, i);
        words |= why == NULL || i == j->label ? j->look[i].unread_gaps : 0;
    }
    j->nulls = words != 0;
    if (words == 0 && null == NULL) {
        return;
    }
    tn_arena *arena = j->in->setup->arena;
    const tn_origin origin = {0};
    tn_tree *list = tn_tree_new(arena, TN_TREE_LIST, origin);
    if (null == NULL || null->kind == TN_TREE_SCALAR) {
        tn_tree_append(list, tn_tree_scalar(arena, null != NULL ? null->text : "", origin));
    }
    for (const tn_tree *t = null != NULL ? null->first : NULL; t != NULL; t = t->next) {
        tn_tree_append(list, tn_tree_copy(arena, t));
    }
    for (uint32_t i = 0; i < TN_MISSING_WORDS; i++) {
        if ((words >> i & 1) != 0) {
            tn_tree_append(list, tn_tree_scalar(arena, tn_missing_words[i], origin));
        }
    }
    tn_text_adds(&j->text, "  null: ");
    tn_tree_print_flow(&j->text, list);
    tn_text_adds(&j->text, words != 0 ? "  # no values, in any column\n" : "\n");
}

/* A format of known columns, and how this file's lines differ from its own. */
static void write_known_format(inferring *j)
{
    const tn_discovery *f = j->found;
    const bool criteo = strcmp(j->known->name, "criteo") == 0; /* tabs, and no header */
    const char *usual = strcmp(f->format, "csv") == 0 ? "," : "\t";
    const char *mark = f->delimiter != NULL ? f->delimiter : usual;
    tn_text_addf(&j->text, "data:\n  format: %s  # its columns, so its slots\n", j->known->name);
    if (given(j, "delimiter") == NULL && strcmp(mark, criteo ? "\t" : ",") != 0) {
        tn_text_adds(&j->text, "  delimiter: ");
        tn_tree_print_scalar(&j->text, mark);
        tn_text_addc(&j->text, '\n');
    }
    tn_text_adds(&j->text, f->named && criteo ? "  header: true\n  quote: line\n" : "");
    tn_text_adds(&j->text, f->trim ? "  trim: true\n" : "");
}

static void write_found_format(inferring *j)
{
    tn_text found = {0};
    tn_discovery_config(j->found, &found);
    const char *slots = strstr(tn_text_str(&found), "slots:\n");
    tn_text_add(&j->text, tn_text_str(&found),
                slots != NULL ? (size_t)(slots - tn_text_str(&found)) : found.size);
    tn_text_done(&found);
}

/* data.format and what was given on the command line, but train, label and record_id. */
static void write_data(inferring *j)
{
    if (j->known != NULL) {
        write_known_format(j);
    } else {
        write_found_format(j);
    }
    const tn_tree *data = tn_tree_get(j->in->root, "data");
    for (const tn_tree *t = data != NULL ? data->first : NULL; t != NULL; t = t->next) {
        static const char *const own[] = {"format", "train",   "label", "header",
                                          "trim",   "columns", "null"};
        const tn_strs known = {sizeof own / sizeof own[0], own};
        if (!tn_strs_has(&known, t->key)) {
            tn_text_addf(&j->text, "  %s: ", t->key);
            tn_tree_print_flow(&j->text, t);
            tn_text_addc(&j->text, '\n');
        }
    }
    write_train(j);
    write_null(j);
}

static void write_record_id(inferring *j)
{
    if (given(j, "record_id") != NULL) {
        return;
    }
    for (uint32_t i = 0; i < j->n; i++) {
        const char *why = left_out(j, i);
        if (why != NULL && strcmp(why, "has another value in every row") == 0 &&
            (j->known == NULL || strcasecmp(name_of(j, i), "id") == 0)) {
            tn_text_adds(&j->text, "  record_id: ");
            tn_tree_print_scalar(&j->text, name_of(j, i));
            tn_text_adds(&j->text, "  # has another value in every row\n");
            return;
        }
    }
    if (j->known_id != NULL && column_called(j, j->known_id) == j->n) {
        tn_text_adds(&j->text, "  record_id: ~\n");
    }
}

static void write_columns(inferring *j)
{
    const tn_discovery *found = j->found;
    tn_text_adds(&j->text, "slots:\n");
    for (uint32_t i = 0; i < j->n; i++) {
        const char *why = left_out(j, i);
        if (why != NULL && *why != '\0') {
            write_left_out(j, i, why);
        } else if (why == NULL && tn_look_times(&j->look[i], name_of(j, i)) == tn_look_hours) {
            write_hours(j, i);
        } else if (why == NULL) {
            write_slot(j, i);
        }
    }
    for (uint32_t i = j->n; i < j->n + found->n_unread; i++) {
        tn_text_addf(&j->text, "  # left out: column %u ", found->column[i].place + 1);
        if (name_of(j, i)[0] != '\0') {
            add_comment_name(j, i);
            tn_text_addc(&j->text, ' ');
        }
        tn_text_addf(&j->text, "%s\n", found->column[i].unread);
    }
}

/* The slots that the format has of its own, or that training would find. */
static void write_found(inferring *j)
{
    tn_text text = {0};
    tn_dataset_config(&j->in->from, NULL, NULL, &text);
    const char *slots = strstr(tn_text_str(&text), "slots:\n");
    tn_text_adds(&j->text, slots != NULL ? slots : "");
    tn_text_done(&text);
}

/* A folder of runs for these data, so that configurations of other data have others. */
static void write_run(inferring *j)
{
    const char *path = j->in->paths.item[0];
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    char run[NAME_MAX + 1];
    (void)snprintf(run, sizeof run, "%.*s", (int)strcspn(name, "."), name);
    if (run[0] != '\0' && strpbrk(run, "*?[{") == NULL) {
        tn_text_adds(&j->text, "run: {name: ");
        tn_tree_print_scalar(&j->text, run);
        tn_text_adds(&j->text, "}  # training leaves all in this folder of runs\n");
    }
}

static void write_all(inferring *j)
{
    const tn_tree *loss = tn_tree_get(j->in->root, "loss");
    if (j->n > 0) {
        tn_text_addf(&j->text,
                     "# Inferred from the first %u rows of the data by tnet-data infer; look it "
                     "over.\n",
                     j->rows);
    }
    if (j->n > 0 && j->known == NULL) {
        tn_text_addf(
            &j->text,
            "# Whole numbers of at most %d values, of one value for %d rows, or of a name "
            "that ends in\n# id, are keys; other numbers are cut into buckets; all else is "
            "words.\n",
            FEW, ROWS_OF_EACH);
    }
    write_data(j);
    if (j->known == NULL || j->found->named) {
        write_label(j);
    }
    write_record_id(j);
    if (j->n == 0) {
        write_found(j);
    } else if (j->known == NULL) {
        write_columns(j);
    }
    if (loss != NULL) {
        tn_text_adds(&j->text, "loss: ");
        tn_tree_print_flow(&j->text, loss);
        tn_text_addc(&j->text, '\n');
    }
    write_run(j);
}

/* Reads the first rows with what was written, as `check` would. */
static tn_status read_back(inferring *j, tn_error *err)
{
    tn_setup *s = j->in->setup;
    const tn_yaml_in in = {
        .text = j->text.data, .size = j->text.size, .source = "what was inferred"};
    const tn_tree *tree = tn_yaml_read(s->arena, &s->diag, &in);
    TN_TRY(tn_diag_check(&s->diag, err));
    const tn_format *format = tn_format_find(tn_tree_at(tree, "data.format")->text);
    const tn_tree *preset = format != NULL ? tn_data_preset(s, format) : NULL;
    tree = preset != NULL ? tn_tree_merge(s->arena, preset, tree) : tree;
    tn_dataset *own = TN_NEW(s->arena, tn_dataset);
    TN_TRY(tn_dataset_bind(own, tree, TN_DATASET_AS_READ, tn_loss_target(tree), &s->binder, err));
    tn_format_check_slots(&s->binder, own->data.format, &own->slots);
    TN_TRY(tn_diag_check(&s->diag, err));
    TN_TRY(scan(j, own->schema, count_block, err));
    tn_bad_record_limit limit;
    TN_TRY(tn_bad_record_limit_read(own->data.bad_records_max, &limit, err));
    return tn_bad_record_limit_end(&limit, j->read + j->bad, j->bad, err);
}

static tn_status infer(inferring *j, tn_error *err)
{
    const tn_discovery *found = j->found;
    if (is_delimited(j) && found->n + found->n_unread == 1) {
        return tn_fail(err, TN_E_DATA,
                       "the lines of '%s' are one column\nhint: 'delimiter=X' says what "
                       "separates fields",
                       found->path);
    }
    TN_TRY(look(j, err));
    if (j->n > 0) {
        if (j->found->named) {
            TN_TRY(find_label(j, err));
        }
        TN_TRY(find_known(j, err));
        if (j->known == NULL && !j->found->named) {
            TN_TRY(find_label(j, err));
        }
    } else if (j->look[0].values > 0) {
        TN_TRY(judge_label(j, false, err));
    }
    write_all(j);
    TN_TRY(tn_text_check(&j->text, "a configuration", err));
    const char *slots = strstr(j->text.data, "\nslots:\n");
    if (j->known == NULL && (slots == NULL || strstr(slots, "\n  - {") == NULL)) {
        return tn_fail(err, TN_E_DATA, "no column of '%s' is worth a slot", found->path);
    }
    return read_back(j, err);
}

static void done(inferring *j)
{
    for (uint32_t i = 0; j->look != NULL && i <= j->n; i++) {
        tn_distinct_done(&j->look[i].distinct);
    }
    tn_free(j->look);
    tn_looking_free(j->looking);
    tn_text_done(&j->text);
}

static tn_status infer_files(tn_data_input *in, const void *flags, tn_error *err)
{
    inferring j = {.in = in, .found = in->found, .flags = flags};
    const tn_output_with with = {
        .inputs = &in->setup->inputs, .tell = true, .announce = tn_signals_remove};
    TN_TRY(tn_output_check(j.flags->to, &in->setup->inputs, err));
    TN_TRY(tn_data_keep(j.flags->to, j.flags->force, err));
    tn_status status = infer(&j, err);
    if (status == TN_E_DATA && j.nulls) { /* they are in quotes, where they are words as any */
        done(&j);
        j = (inferring){.in = in, .found = in->found, .flags = flags, .no_nulls = true};
        status = infer(&j, err);
    }
    if (status == TN_OK) {
        status = tn_output_put(j.flags->to, j.text.data, j.text.size, &with, err);
    }
    done(&j);
    return status;
}

static tn_status infer_work(tn_setup *s, const tn_options *options, const void *flags,
                            tn_error *err)
{
    const infer_flags *f = flags;
    const tn_data_ask ask = {.flags = TN_DATASET_AS_READ,
                             .threads = f->threads,
                             .complete = tn_discover_all,
                             .files = true};
    return tn_data_use(s, options, ask, infer_files, f, err);
}

extern const tn_data_tool tn_data_tool_infer;
const tn_data_tool tn_data_tool_infer = {
    .program = {.name = "tnet-data infer",
                .summary = "write a configuration that reads and learns some files",
                .words = "FILE .. [key=value ..]",
                .flags = infer_fields,
                .config = tn_run_fields,
                .keys = "those of 'data', and 'loss'; 'tnet-data check --help-all' lists them",
                .words_min = 1,
                .words_max = 100000,
                .example = "tnet-data infer clicks.csv --to clicks.yaml",
                .notes = "Looks at the header and the first rows. The label is the one column of "
                         "two values that\n"
                         "is called label, click, clicked, is_click, target or y; 'label=NAME' "
                         "names another.\n"
                         "What is written reads these rows before it is printed.\n"
                         "'format=csv' and other options of `data` say what the data do not."},
    .flags_size = sizeof(infer_flags),
    .work = infer_work,
};
