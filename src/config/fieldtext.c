/* fieldtext.c - option tables as help, documentation, words to complete, and a JSON schema.
 *
 * The schema is for editors, whose YAML readers guess types: where a user may write a text, what
 * such a reader takes for a number or a truth value is allowed too. The program itself checks more
 * strictly.
 */
#include "config/fieldtext.h"

#include "base/codec/json.h"
#include "base/core/number.h"
#include "config/field.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_BYTES = 256, HELP_COLUMN = 40, SEEN_MAX = 32 };

/* Visits rows in the order of the tables; `path` is the way to the row. */
typedef struct walker walker;
struct walker {
    tn_text *out;
    void (*row)(walker *w, const tn_field *f);
    bool choices; /* also the options of each choice of a variant */
    char path[PATH_BYTES];
    const tn_choice *const *seen[SEEN_MAX]; /* Markdown: choices that have their tables already */
    uint32_t n_seen;
};

static void walk(walker *w, const tn_field *fields);

static size_t step_into(walker *w, const char *step)
{
    size_t before = strlen(w->path);
    int size =
        snprintf(w->path + before, sizeof w->path - before, "%s%s", before > 0 ? "." : "", step);
    TN_ASSERT(size >= 0 && (size_t)size < sizeof w->path - before);
    return before;
}

static void walk_below(walker *w, const tn_field *f)
{
    if (f->kind == TN_KIND_TABLES) {
        size_t before = step_into(w, "NAME");
        walk(w, f->table);
        w->path[before] = '\0';
        return;
    }
    walk(w, f->table);
    if (f->kind == TN_KIND_VARIANT && w->choices) {
        for (const tn_choice *const *c = f->choices; *c != NULL; c++) {
            walk(w, (*c)->fields);
        }
    }
}

static void walk(walker *w, const tn_field *fields)
{
    for (const tn_field *f = fields; f != NULL && f->kind != TN_KIND_END; f++) {
        size_t before = step_into(w, f->key);
        w->row(w, f);
        walk_below(w, f);
        w->path[before] = '\0';
    }
}

static void add_words(tn_text *out, const char *const *words, const char *quote)
{
    for (; *words != NULL; words++) {
        tn_text_addf(out, " %s%s%s", quote, *words, quote);
    }
}

static bool is_later(const tn_field *f, const char *word)
{
    const char *const *later = f->later;
    while (later != NULL && *later != NULL && strcmp(*later, word) != 0) {
        later++;
    }
    return later != NULL && *later != NULL;
}

/* The words of a choice that this build takes. */
static void add_taken(tn_text *out, const tn_field *f, const char *quote)
{
    for (const char *const *word = f->words; *word != NULL; word++) {
        if (!is_later(f, *word)) {
            tn_text_addf(out, " %s%s%s", quote, *word, quote);
        }
    }
}

static void add_choices(tn_text *out, const tn_field *f, const char *quote)
{
    for (const tn_choice *const *c = f->choices; *c != NULL; c++) {
        tn_text_addf(out, " %s%s%s", quote, (*c)->name, quote);
    }
}

/* "count", "one of `a` `b`", "duration": what a user may write. */
static void add_type(tn_text *out, const tn_field *f, const char *quote)
{
    static const char *const types[] = {
        [TN_KIND_BOOL] = "true or false", [TN_KIND_U32] = "count",
        [TN_KIND_U64] = "count",          [TN_KIND_F64] = "number",
        [TN_KIND_DURATION] = "duration",  [TN_KIND_SIZE] = "size",
        [TN_KIND_STR] = "text",           [TN_KIND_CHOICE] = "one of",
        [TN_KIND_STRS] = "texts",         [TN_KIND_F64S] = "numbers",
        [TN_KIND_TABLE] = "section",      [TN_KIND_TABLES] = "list",
        [TN_KIND_VARIANT] = "one of",     [TN_KIND_TREE] = "value",
    };
    TN_ASSERT((size_t)f->kind < sizeof types / sizeof *types && types[f->kind] != NULL);
    tn_text_adds(out, types[f->kind]);
    if (f->kind == TN_KIND_VARIANT) {
        add_choices(out, f, quote);
    } else if (f->kind == TN_KIND_CHOICE) {
        add_taken(out, f, quote);
    } else if (f->words != NULL) {
        tn_text_adds(out, " or");
        add_words(out, f->words, quote);
    }
}

/* "; not yet `wait` `rollback`", "; only the default yet", or nothing. */
static void add_later(tn_text *out, const tn_field *f, const char *quote)
{
    if (f->later == NULL) {
        return;
    }
    tn_text_adds(out, f->later[0] != NULL ? "; not in this build yet:" : "; only the default yet");
    add_words(out, f->later, quote);
}

static void add_number(tn_text *out, double number)
{
    if (fabs(number) < 1e7 && number == floor(number)) {
        tn_text_addf(out, "%.0f", number);
    } else {
        char text[TN_NUMBER_TEXT_MAX];
        tn_text_add(out, text, tn_write_f64(text, number));
    }
}

/* "1 .. 1024 threads", or nothing. */
static void add_range(tn_text *out, const tn_field *f)
{
    if (f->max > f->min) {
        add_number(out, f->min);
        tn_text_adds(out, " .. ");
        add_number(out, f->max);
        tn_text_addf(out, "%s%s", f->unit[0] != '\0' ? " " : "", f->unit);
    }
}

static void help_row(walker *w, const tn_field *f)
{
    if (f->kind == TN_KIND_TABLE) {
        if (strchr(w->path, '.') == NULL) {
            tn_text_addf(w->out, "\n%s: %s\n", f->key, f->help);
        }
        return;
    }
    size_t before = w->out->size;
    tn_text_addf(w->out, "  %s", w->path);
    do {
        tn_text_addc(w->out, ' ');
    } while (w->out->size - before < HELP_COLUMN && !w->out->failed);
    tn_text_addf(w->out, "%s; ", f->help);
    add_type(w->out, f, "");
    add_later(w->out, f, "");
    if (f->fallback == NULL) {
        tn_text_adds(w->out, "; required\n");
    } else {
        tn_text_addf(w->out, "; default %s\n", f->fallback);
    }
}

void tn_fields_help(tn_text *out, const tn_field *fields)
{
    walker w = {.out = out, .row = help_row};
    walk(&w, fields);
}

static void path_row(walker *w, const tn_field *f)
{
    bool item = strstr(w->path, ".NAME.") != NULL;
    if (f->kind != TN_KIND_TABLE && !item) {
        tn_text_addf(w->out, "%s\n", w->path);
    }
}

void tn_fields_paths(tn_text *out, const tn_field *fields)
{
    walker w = {.out = out, .row = path_row, .choices = true};
    walk(&w, fields);
}

/* A cell of a Markdown table holds no bar of its own. */
static void add_cell(tn_text *out, const char *text)
{
    for (; *text != '\0'; text++) {
        tn_text_adds(out, *text == '|' ? "\\" : "");
        tn_text_addc(out, *text);
    }
}

static void markdown_row(walker *w, const tn_field *f)
{
    if (f->kind == TN_KIND_TABLE) {
        return;
    }
    tn_text_addf(w->out, "| `%s` | ", w->path);
    add_type(w->out, f, "`");
    add_later(w->out, f, "`");
    tn_text_adds(w->out, " | ");
    if (f->fallback == NULL) {
        tn_text_adds(w->out, "required");
    } else {
        tn_text_addc(w->out, '`');
        add_cell(w->out, f->fallback);
        tn_text_addc(w->out, '`');
    }
    tn_text_adds(w->out, " | ");
    add_range(w->out, f);
    tn_text_adds(w->out, " | ");
    add_cell(w->out, f->help);
    tn_text_adds(w->out, " |\n");
}

static void markdown_table(tn_text *out, const tn_field *fields, const char *path)
{
    tn_text_adds(out, "| option | type | default | range | meaning |\n"
                      "|---|---|---|---|---|\n");
    walker w = {.out = out, .row = markdown_row};
    (void)snprintf(w.path, sizeof w.path, "%s", path);
    walk(&w, fields);
}

static bool is_new(walker *w, const tn_choice *const *choices)
{
    for (uint32_t i = 0; i < w->n_seen; i++) {
        if (w->seen[i] == choices) {
            return false;
        }
    }
    TN_ASSERT(w->n_seen < SEEN_MAX);
    w->seen[w->n_seen++] = choices;
    return true;
}

/* A table for each choice of each variant, where it is met first. */
static void markdown_choices(walker *w, const tn_field *f)
{
    if (f->kind != TN_KIND_VARIANT || !is_new(w, f->choices)) {
        return;
    }
    for (const tn_choice *const *c = f->choices; *c != NULL; c++) {
        const char *help = (*c)->help != NULL ? (*c)->help : "";
        tn_text_addf(w->out, "\n### `%s: {type: %s}`\n\n%s\n", w->path, (*c)->name, help);
        if ((*c)->fields != NULL && (*c)->fields->kind != TN_KIND_END) {
            tn_text_addc(w->out, '\n');
            markdown_table(w->out, (*c)->fields, w->path);
        }
        walk(w, (*c)->fields); /* a schedule inside an optimizer */
    }
}

void tn_fields_markdown(tn_text *out, const tn_field *fields)
{
    walker w = {.out = out, .row = markdown_choices};
    for (const tn_field *f = fields; f->kind != TN_KIND_END; f++) {
        tn_text_addf(out, "\n## `%s`\n\n%s\n\n", f->key, f->help);
        const tn_field one[] = {*f, TN_FIELD_END};
        markdown_table(out, one, "");
        walk(&w, one);
    }
}

/* ---- the JSON schema ---- */

static void schema_table(tn_text *out, const tn_field *fields, const tn_field *more,
                         const char *type);
static void schema_value(tn_text *out, const char *key, const tn_field *f);

static void schema_type(tn_text *out, const char *type)
{
    tn_json_open(out, '{');
    tn_json_str(out, "type", type);
    tn_json_close(out, '}');
}

static void schema_pattern(tn_text *out, const char *pattern)
{
    tn_json_open(out, '{');
    tn_json_str(out, "type", "string");
    tn_json_str(out, "pattern", pattern);
    tn_json_close(out, '}');
}

static void schema_number(tn_text *out, const tn_field *f, const char *type)
{
    tn_json_open(out, '{');
    tn_json_str(out, "type", type);
    tn_json_f64(out, "minimum", f->min);
    tn_json_f64(out, "maximum", f->max);
    tn_json_close(out, '}');
}

static void schema_words(tn_text *out, const char *const *words)
{
    tn_json_open(out, '{');
    tn_json_open_key(out, "enum", '[');
    for (; words != NULL && *words != NULL; words++) {
        tn_json_str(out, NULL, *words);
        bool yes = strcmp(*words, "true") == 0;
        if (yes || strcmp(*words, "false") == 0) {
            tn_json_bool(out, NULL, yes);
        }
    }
    tn_json_close(out, ']');
    tn_json_close(out, '}');
}

/* Any single value: what an editor takes for a number is a text to us. */
static void schema_scalar(tn_text *out)
{
    tn_json_open(out, '{');
    tn_json_open_key(out, "type", '[');
    tn_json_str(out, NULL, "string");
    tn_json_str(out, NULL, "number");
    tn_json_str(out, NULL, "boolean");
    tn_json_close(out, ']');
    tn_json_close(out, '}');
}

static void schema_bool(tn_text *out, const tn_field *f)
{
    (void)f;
    schema_type(out, "boolean");
    schema_pattern(out, "^(yes|no|on|off)$");
}

static void schema_count(tn_text *out, const tn_field *f)
{
    schema_number(out, f, "integer");
    schema_pattern(out, "^[0-9.]+[kMG]$");
}

static void schema_f64(tn_text *out, const tn_field *f)
{
    schema_number(out, f, "number");
    schema_pattern(out, "^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$");
}

static void schema_duration(tn_text *out, const tn_field *f)
{
    (void)f;
    schema_pattern(out, "^([0-9.]+(us|ms|s|m|min|h|d))+$");
}

static void schema_size(tn_text *out, const tn_field *f)
{
    (void)f;
    schema_pattern(out, "^[0-9.]+(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$");
}

static void schema_str(tn_text *out, const tn_field *f)
{
    (void)f;
    schema_scalar(out);
}

static void open_list(tn_text *out)
{
    tn_json_open(out, '{');
    tn_json_str(out, "type", "array");
}

static void schema_strs(tn_text *out, const tn_field *f)
{
    (void)f;
    schema_scalar(out);
    open_list(out);
    tn_json_open_key(out, "items", '{');
    tn_json_open_key(out, "anyOf", '[');
    schema_scalar(out);
    tn_json_close(out, ']');
    tn_json_close(out, '}');
    tn_json_close(out, '}');
}

static void schema_f64s(tn_text *out, const tn_field *f)
{
    schema_f64(out, f);
    open_list(out);
    tn_json_open_key(out, "items", '{');
    tn_json_open_key(out, "anyOf", '[');
    schema_f64(out, f);
    tn_json_close(out, ']');
    tn_json_close(out, '}');
    tn_json_close(out, '}');
}

static void schema_section(tn_text *out, const tn_field *f)
{
    schema_table(out, f->table, NULL, NULL);
    schema_scalar(out);
}

static void schema_tables(tn_text *out, const tn_field *f)
{
    open_list(out);
    tn_json_open_key(out, "items", '{');
    tn_json_open_key(out, "anyOf", '[');
    schema_section(out, f);
    tn_json_close(out, ']');
    tn_json_close(out, '}');
    tn_json_close(out, '}');
    schema_type(out, "object"); /* items by their names, on top of a list further down */
}

static void schema_variant(tn_text *out, const tn_field *f)
{
    for (const tn_choice *const *c = f->choices; *c != NULL; c++) {
        const char *const name[] = {(*c)->name, NULL};
        schema_words(out, name);
        schema_table(out, (*c)->fields, f->table, (*c)->name);
    }
}

static void schema_tree(tn_text *out, const tn_field *f)
{
    (void)f;
    schema_scalar(out);
    schema_type(out, "object");
    schema_type(out, "array");
}

typedef void schema_kind(tn_text *out, const tn_field *f);

/* Appends the ways in which the value of a kind may be written. */
static schema_kind *const kinds[] = {
    [TN_KIND_BOOL] = schema_bool,         [TN_KIND_U32] = schema_count,
    [TN_KIND_U64] = schema_count,         [TN_KIND_F64] = schema_f64,
    [TN_KIND_DURATION] = schema_duration, [TN_KIND_SIZE] = schema_size,
    [TN_KIND_STR] = schema_str,           [TN_KIND_CHOICE] = NULL,
    [TN_KIND_STRS] = schema_strs,         [TN_KIND_F64S] = schema_f64s,
    [TN_KIND_TABLE] = schema_section,     [TN_KIND_TABLES] = schema_tables,
    [TN_KIND_VARIANT] = schema_variant,   [TN_KIND_TREE] = schema_tree,
};

static void schema_value(tn_text *out, const char *key, const tn_field *f)
{
    TN_ASSERT((size_t)f->kind < sizeof kinds / sizeof *kinds);
    tn_json_open_key(out, key, '{');
    tn_json_str(out, "description", f->help);
    if (f->fallback != NULL && strcmp(f->fallback, "~") != 0) {
        tn_json_str(out, "default", f->fallback);
    }
    tn_json_open_key(out, "anyOf", '[');
    if (kinds[f->kind] != NULL) {
        kinds[f->kind](out, f);
    }
    if (f->words != NULL) {
        schema_words(out, f->words);
    }
    schema_type(out, "null");
    tn_json_close(out, ']');
    tn_json_close(out, '}');
}

static void schema_rows(tn_text *out, const tn_field *fields)
{
    for (const tn_field *f = fields; f != NULL && f->kind != TN_KIND_END; f++) {
        schema_value(out, f->key, f);
    }
}

/* The members of a map; `type`: the name of the choice whose options they are, or NULL. */
static void schema_table(tn_text *out, const tn_field *fields, const tn_field *more,
                         const char *type)
{
    tn_json_open(out, '{');
    tn_json_str(out, "type", "object");
    tn_json_open_key(out, "properties", '{');
    if (type != NULL) {
        tn_json_open_key(out, "type", '{');
        tn_json_str(out, "const", type);
        tn_json_close(out, '}');
    }
    schema_rows(out, more);
    schema_rows(out, fields);
    tn_json_close(out, '}');
    tn_json_bool(out, "additionalProperties", false);
    tn_json_close(out, '}');
}

void tn_fields_schema(tn_text *out, const tn_field *fields, const char *title)
{
    static const tn_field include = {
        .kind = TN_KIND_STRS, .key = "include", .unit = "", .help = "files that are read first"};
    tn_json_open(out, '{');
    tn_json_str(out, "$schema", "http://json-schema.org/draft-07/schema#");
    tn_json_str(out, "title", title);
    tn_json_str(out, "type", "object");
    tn_json_open_key(out, "properties", '{');
    schema_value(out, include.key, &include);
    schema_rows(out, fields);
    tn_json_close(out, '}');
    tn_json_bool(out, "additionalProperties", false);
    tn_json_close(out, '}');
    tn_text_addc(out, '\n');
}
