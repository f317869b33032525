/* fieldschema.c - option tables as a JSON schema; see fieldtext.h.
 *
 * The schema is for editors, whose YAML readers guess types: where a user may
 * write a text, what such a reader takes for a number or a truth value is
 * allowed too. The program itself checks more strictly.
 */
#include "base/codec/json.h"
#include "config/fieldtext.h"

#include <string.h>

static void add_table(tn_text *out, const tn_field *fields, const tn_field *more, const char *type);
static void add_value(tn_text *out, const char *key, const tn_field *f);

static void add_type(tn_text *out, const char *type)
{
    tn_json_open(out, '{');
    tn_json_str(out, "type", type);
    tn_json_close(out, '}');
}

static void add_pattern(tn_text *out, const char *pattern)
{
    tn_json_open(out, '{');
    tn_json_str(out, "type", "string");
    tn_json_str(out, "pattern", pattern);
    tn_json_close(out, '}');
}

static void add_number(tn_text *out, const tn_field *f, const char *type)
{
    tn_json_open(out, '{');
    tn_json_str(out, "type", type);
    tn_json_f64(out, "minimum", f->min);
    tn_json_f64(out, "maximum", f->max);
    tn_json_close(out, '}');
}

static void add_words(tn_text *out, const char *const *words)
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
static void add_scalar(tn_text *out)
{
    tn_json_open(out, '{');
    tn_json_open_key(out, "type", '[');
    tn_json_str(out, NULL, "string");
    tn_json_str(out, NULL, "number");
    tn_json_str(out, NULL, "boolean");
    tn_json_close(out, ']');
    tn_json_close(out, '}');
}

static void add_bool(tn_text *out, const tn_field *f)
{
    (void)f;
    add_type(out, "boolean");
    add_pattern(out, "^(yes|no|on|off)$");
}

static void add_count(tn_text *out, const tn_field *f)
{
    add_number(out, f, "integer");
    add_pattern(out, "^[0-9.]+[kMG]$");
}

static void add_f64(tn_text *out, const tn_field *f)
{
    add_number(out, f, "number");
    add_pattern(out, "^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$");
}

static void add_duration(tn_text *out, const tn_field *f)
{
    (void)f;
    add_pattern(out, "^([0-9.]+(us|ms|s|m|min|h|d))+$");
}

static void add_size(tn_text *out, const tn_field *f)
{
    (void)f;
    add_pattern(out, "^[0-9.]+(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$");
}

static void add_str(tn_text *out, const tn_field *f)
{
    (void)f;
    add_scalar(out);
}

static void open_list(tn_text *out)
{
    tn_json_open(out, '{');
    tn_json_str(out, "type", "array");
}

static void add_strs(tn_text *out, const tn_field *f)
{
    (void)f;
    add_scalar(out);
    open_list(out);
    tn_json_open_key(out, "items", '{');
    tn_json_open_key(out, "anyOf", '[');
    add_scalar(out);
    tn_json_close(out, ']');
    tn_json_close(out, '}');
    tn_json_close(out, '}');
}

static void add_f64s(tn_text *out, const tn_field *f)
{
    add_f64(out, f);
    open_list(out);
    tn_json_open_key(out, "items", '{');
    tn_json_open_key(out, "anyOf", '[');
    add_f64(out, f);
    tn_json_close(out, ']');
    tn_json_close(out, '}');
    tn_json_close(out, '}');
}

static void add_section(tn_text *out, const tn_field *f)
{
    add_table(out, f->table, NULL, NULL);
    add_scalar(out);
}

static void add_tables(tn_text *out, const tn_field *f)
{
    open_list(out);
    tn_json_open_key(out, "items", '{');
    tn_json_open_key(out, "anyOf", '[');
    add_section(out, f);
    tn_json_close(out, ']');
    tn_json_close(out, '}');
    tn_json_close(out, '}');
    add_type(out, "object"); /* items by their names, on top of a list further down */
}

static void add_variant(tn_text *out, const tn_field *f)
{
    for (const tn_choice *const *c = f->choices; *c != NULL; c++) {
        const char *const name[] = {(*c)->name, NULL};
        add_words(out, name);
        add_table(out, (*c)->fields, f->table, (*c)->name);
    }
}

static void add_tree(tn_text *out, const tn_field *f)
{
    (void)f;
    add_scalar(out);
    add_type(out, "object");
    add_type(out, "array");
}

typedef void add_kind(tn_text *out, const tn_field *f);

/* Appends the ways in which the value of a kind may be written. */
static add_kind *const kinds[] = {
    [TN_KIND_BOOL] = add_bool,         [TN_KIND_U32] = add_count,
    [TN_KIND_U64] = add_count,         [TN_KIND_F64] = add_f64,
    [TN_KIND_DURATION] = add_duration, [TN_KIND_SIZE] = add_size,
    [TN_KIND_STR] = add_str,           [TN_KIND_CHOICE] = NULL,
    [TN_KIND_STRS] = add_strs,         [TN_KIND_F64S] = add_f64s,
    [TN_KIND_TABLE] = add_section,     [TN_KIND_TABLES] = add_tables,
    [TN_KIND_VARIANT] = add_variant,   [TN_KIND_TREE] = add_tree,
};

static void add_value(tn_text *out, const char *key, const tn_field *f)
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
        add_words(out, f->words);
    }
    add_type(out, "null");
    tn_json_close(out, ']');
    tn_json_close(out, '}');
}

static void add_rows(tn_text *out, const tn_field *fields)
{
    for (const tn_field *f = fields; f != NULL && f->kind != TN_KIND_END; f++) {
        add_value(out, f->key, f);
    }
}

/* The members of a map; `type`: the name of the choice whose options they are, or NULL. */
static void add_table(tn_text *out, const tn_field *fields, const tn_field *more, const char *type)
{
    tn_json_open(out, '{');
    tn_json_str(out, "type", "object");
    tn_json_open_key(out, "properties", '{');
    if (type != NULL) {
        tn_json_open_key(out, "type", '{');
        tn_json_str(out, "const", type);
        tn_json_close(out, '}');
    }
    add_rows(out, more);
    add_rows(out, fields);
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
    add_value(out, include.key, &include);
    add_rows(out, fields);
    tn_json_close(out, '}');
    tn_json_bool(out, "additionalProperties", false);
    tn_json_close(out, '}');
    tn_text_addc(out, '\n');
}
