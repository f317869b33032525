/* fieldtext.c - option tables as help, documentation, words to complete, a JSON schema, and the
 * resolved configuration as YAML.
 *
 * The schema is for editors, whose YAML readers guess types: where a user may write a text, what
 * such a reader takes for a number or a truth value is allowed too. The program is stricter.
 */
#include "config/field.h"

#include "base/codec/json.h"
#include "base/core/arena.h"
#include "base/core/number.h"
#include "config/fieldtree.h"
#include "config/tree.h"

#include <stdio.h>
#include <string.h>

enum {
    PATH_BYTES = 256,
    HELP_COLUMN = 40,
    SEEN_MAX = 32,
    COMMENT_COLUMN = 48,
    SOURCES_MAX = 4,
    ARENA_BYTES = 1 << 14,
};

/* ---- what may be written for a kind ---- */

#define ANY_OF(forms) "{\"anyOf\":[" forms "]}"
#define LIST_OF(forms) "{\"type\":\"array\",\"items\":" ANY_OF(forms) "}"
#define TYPE(name) "{\"type\":\"" name "\"}"
#define PATTERN(regex) "{\"type\":\"string\",\"pattern\":\"" regex "\"}"
/* Schema of a single value: what an editor takes for a number is a text to us. */
#define SCALAR "{\"type\":[\"string\",\"number\",\"boolean\"]}"
#define COUNT "^[0-9.]+[kMG]$"
#define REAL "^[-+]?[0-9.]+([eE][-+]?[0-9]+)?$"
#define DURATION "^([0-9.]+(us|ms|s|m|min|h|d))+$"
#define SIZE "^[0-9.]+(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)$"

static const struct {
    const char *words;  /* for people */
    const char *number; /* schema for editors: a number of this type within the row's range */
    const char *forms;  /* schema of the other forms in which it may be written */
} kinds[] = {
    [TN_KIND_BOOL] = {"true or false", NULL, TYPE("boolean") "," PATTERN("^(yes|no|on|off)$")},
    [TN_KIND_U32] = {"count", "integer", PATTERN(COUNT)},
    [TN_KIND_U64] = {"count", "integer", PATTERN(COUNT)},
    [TN_KIND_F64] = {"number", "number", PATTERN(REAL)},
    [TN_KIND_DURATION] = {"duration", NULL, PATTERN(DURATION)},
    [TN_KIND_SIZE] = {"size", NULL, PATTERN(SIZE)},
    [TN_KIND_STR] = {"text", NULL, SCALAR},
    [TN_KIND_CHOICE] = {"one of", NULL, NULL},
    [TN_KIND_STRS] = {"texts", NULL, SCALAR "," LIST_OF(SCALAR)},
    [TN_KIND_F64S] = {"numbers", "number", PATTERN(REAL)},
    [TN_KIND_TABLE] = {"section", NULL, NULL},
    [TN_KIND_TABLES] = {"list", NULL, NULL},
    [TN_KIND_VARIANT] = {"one of", NULL, NULL},
    [TN_KIND_TREE] = {"value", NULL, SCALAR "," TYPE("object") "," TYPE("array")},
};

/* ---- help, paths, Markdown ---- */

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

/* Appends a step to a path; returns where it began. */
static size_t step_into(char path[PATH_BYTES], const char *step)
{
    size_t before = strlen(path);
    int size = snprintf(path + before, PATH_BYTES - before, "%s%s", before > 0 ? "." : "", step);
    TN_ASSERT(size >= 0 && (size_t)size < PATH_BYTES - before);
    return before;
}

static void walk_below(walker *w, const tn_field *f)
{
    if (f->kind == TN_KIND_TABLES) {
        size_t before = step_into(w->path, "NAME");
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
        size_t before = step_into(w->path, f->key);
        w->row(w, f);
        walk_below(w, f);
        w->path[before] = '\0';
    }
}

/* Appends what a user may write: "count", "one of `a` `b`", "duration". */
static void add_type(tn_text *out, const tn_field *f, const char *quote)
{
    TN_ASSERT((size_t)f->kind < sizeof kinds / sizeof *kinds && kinds[f->kind].words != NULL);
    tn_text_adds(out, kinds[f->kind].words);
    for (uint32_t i = 0; f->kind == TN_KIND_VARIANT && f->choices[i] != NULL; i++) {
        tn_text_addf(out, " %s%s%s", quote, f->choices[i]->name, quote);
    }
    if (f->words != NULL) {
        tn_text_adds(out, f->kind == TN_KIND_CHOICE ? "" : " or");
    }
    for (uint32_t i = 0; f->words != NULL && f->words[i] != NULL; i++) {
        tn_text_addf(out, " %s%s%s", quote, f->words[i], quote);
    }
}

/* Appends "1 .. 1024 threads", or nothing. */
static void add_range(tn_text *out, const tn_field *f)
{
    if (f->max > f->min) {
        char lo[TN_NUMBER_TEXT_MAX];
        char hi[TN_NUMBER_TEXT_MAX];
        (void)tn_write_f64(lo, f->min);
        (void)tn_write_f64(hi, f->max);
        tn_text_addf(out, "%s .. %s%s%s", lo, hi, f->unit[0] != '\0' ? " " : "", f->unit);
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

/* Appends a cell of a Markdown table, which holds no bar of its own. */
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

/* Appends a table for each choice of each variant, where it is met first. */
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

static void schema_words(tn_text *out, const char *const *words)
{
    tn_json_open(out, '{');
    tn_json_open_key(out, "enum", '[');
    for (; *words != NULL; words++) {
        tn_json_str(out, NULL, *words);
        bool yes = strcmp(*words, "true") == 0;
        if (yes || strcmp(*words, "false") == 0) {
            tn_json_bool(out, NULL, yes);
        }
    }
    tn_json_close(out, ']');
    tn_json_close(out, '}');
}

/* Appends the ways in which a value may be written, one after the other. */
static void schema_forms(tn_text *out, const tn_field *f)
{
    TN_ASSERT((size_t)f->kind < sizeof kinds / sizeof *kinds);
    if (kinds[f->kind].number != NULL) {
        tn_json_open(out, '{');
        tn_json_str(out, "type", kinds[f->kind].number);
        tn_json_f64(out, "minimum", f->min);
        tn_json_f64(out, "maximum", f->max);
        tn_json_close(out, '}');
    }
    if (kinds[f->kind].forms != NULL) {
        tn_json_raw(out, NULL, kinds[f->kind].forms);
    }
    if (f->kind == TN_KIND_TABLE) {
        schema_table(out, f->table, NULL, NULL);
        tn_json_raw(out, NULL, SCALAR);
    }
    if (f->kind == TN_KIND_F64S || f->kind == TN_KIND_TABLES) {
        tn_field item = *f;
        item.kind = f->kind == TN_KIND_F64S ? TN_KIND_F64 : TN_KIND_TABLE;
        tn_json_raw(out, NULL, "{\"type\":\"array\",\"items\":{\"anyOf\":[");
        schema_forms(out, &item);
        tn_text_adds(out, "]}}");
    }
    if (f->kind == TN_KIND_TABLES) { /* items by their names, on top of a list further down */
        tn_json_raw(out, NULL, TYPE("object"));
    }
    for (uint32_t i = 0; f->kind == TN_KIND_VARIANT && f->choices[i] != NULL; i++) {
        const tn_choice *c = f->choices[i];
        schema_words(out, (const char *const[]){c->name, NULL});
        schema_table(out, c->fields, f->table, c->name);
    }
    if (f->words != NULL) {
        schema_words(out, f->words);
    }
}

static void schema_value(tn_text *out, const char *key, const tn_field *f)
{
    tn_json_open_key(out, key, '{');
    tn_json_str(out, "description", f->help);
    if (f->fallback != NULL && strcmp(f->fallback, "~") != 0) {
        tn_json_str(out, "default", f->fallback);
    }
    tn_json_open_key(out, "anyOf", '[');
    schema_forms(out, f);
    tn_json_raw(out, NULL, TYPE("null"));
    tn_json_close(out, ']');
    tn_json_close(out, '}');
}

static void schema_rows(tn_text *out, const tn_field *fields)
{
    for (const tn_field *f = fields; f != NULL && f->kind != TN_KIND_END; f++) {
        schema_value(out, f->key, f);
    }
}

/* Appends the members of a map; `type`: the name of the choice whose options they are, or NULL. */
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

/* ---- the resolved configuration ---- */

typedef struct printer {
    tn_text *out;
    tn_arena *arena;
    const tn_print_opts *opts;
    char path[PATH_BYTES];
    uint32_t indent;
    size_t line_start; /* start of the line being written, in out->size */
} printer;

static void print_rows(printer *p, const tn_field *fields, const tn_tree *map);

static void begin_line(printer *p)
{
    p->line_start = p->out->size;
    for (uint32_t i = 0; i < p->indent; i++) {
        tn_text_addc(p->out, ' ');
    }
}

/* The sources of the texts in a value, each once. */
typedef struct sources {
    const tn_origin *at[SOURCES_MAX];
    uint32_t n;
} sources;

static void collect(sources *s, const tn_tree *value)
{
    for (const tn_tree *item = value->first; item != NULL; item = item->next) {
        collect(s, item);
    }
    bool known = value->first != NULL || value->at.source == NULL || s->n == SOURCES_MAX;
    for (uint32_t i = 0; i < s->n && !known; i++) {
        known = strcmp(s->at[i]->source, value->at.source) == 0;
    }
    if (!known) {
        s->at[s->n++] = &value->at;
    }
}

/* Ends the line, with the sources of `value` unless it is a map that goes on below. */
static void end_line(printer *p, const tn_tree *value)
{
    if (!p->opts->sources || value == NULL) {
        tn_text_addc(p->out, '\n');
        return;
    }
    sources s = {0};
    collect(&s, value);
    while (p->out->size - p->line_start < COMMENT_COLUMN && !p->out->failed) {
        tn_text_addc(p->out, ' ');
    }
    for (uint32_t i = 0; i < s.n; i++) {
        tn_text_adds(p->out, i == 0 ? " # " : ", ");
        for (const char *c = s.at[i]->source; *c != '\0'; c++) {
            tn_text_add(p->out, (unsigned char)*c < ' ' ? "?" : c, 1);
        }
        if (s.at[i]->line > 0) {
            tn_text_addf(p->out, ":%u", s.at[i]->line);
        }
    }
    tn_text_addc(p->out, '\n');
}

static bool equals(const tn_tree *a, const tn_tree *b)
{
    if (a->kind != b->kind || (a->kind == TN_TREE_SCALAR && strcmp(a->text, b->text) != 0)) {
        return false;
    }
    const tn_tree *x = a->first;
    const tn_tree *y = b->first;
    for (; x != NULL && y != NULL; x = x->next, y = y->next) {
        bool same_key = x->key == NULL || strcmp(x->key, y->key) == 0;
        if (!same_key || !equals(x, y)) {
            return false;
        }
    }
    return x == NULL && y == NULL;
}

/* Returns an item of a list of tables: what is not default, in the order of the table. */
static tn_tree *item_of(const printer *p, const tn_field *table, const tn_tree *item)
{
    tn_tree *kept = tn_tree_new(p->arena, TN_TREE_MAP, item->at);
    for (const tn_field *f = table; f->kind != TN_KIND_END; f++) {
        const tn_tree *given = tn_tree_get(item, f->key);
        const tn_tree *fallback = tn_field_value(p->arena, f, NULL);
        bool is_default = tn_tree_is_null(given) || (fallback != NULL && equals(given, fallback));
        if (!is_default) {
            tn_tree_put(p->arena, kept, f->key, tn_tree_copy(p->arena, given));
        }
    }
    return kept;
}

static void print_items(printer *p, const tn_tree *list, const tn_field *table)
{
    p->indent += 2;
    for (const tn_tree *item = list->first; item != NULL; item = item->next) {
        const tn_field row = {.kind = TN_KIND_TABLES, .table = table};
        const tn_tree *map = table != NULL ? tn_field_unfold(p->arena, &row, item) : item;
        bool is_row = table != NULL && map->kind == TN_TREE_MAP;
        begin_line(p);
        tn_text_adds(p->out, "- ");
        tn_tree_print_flow(p->out, is_row ? item_of(p, table, map) : item);
        end_line(p, item);
    }
    p->indent -= 2;
}

/* Returns whether each item of a list, or member of a tree, gets a line of its own. */
static bool has_lines(const tn_field *f, const tn_tree *value)
{
    if (f->kind == TN_KIND_TABLES) {
        return value->kind == TN_TREE_LIST && value->first != NULL;
    }
    for (const tn_tree *item = value->first; item != NULL; item = item->next) {
        if (item->kind == TN_TREE_MAP) {
            return true;
        }
    }
    return false;
}

/* Prints a tree of maps: each of its members on a line of its own. */
static void print_members(printer *p, const tn_tree *map)
{
    p->indent += 2;
    for (const tn_tree *item = map->first; item != NULL; item = item->next) {
        begin_line(p);
        tn_tree_print_scalar(p->out, item->key);
        tn_text_adds(p->out, ": ");
        tn_tree_print_flow(p->out, item);
        end_line(p, item);
    }
    p->indent -= 2;
}

static void print_variant(printer *p, const tn_field *f, const tn_tree *map)
{
    const tn_choice *choice = tn_field_choice(p->arena, f, map);
    const tn_tree *type = tn_tree_get(map, "type");
    p->indent += 2;
    if (choice != NULL && type != NULL) {
        begin_line(p);
        tn_text_addf(p->out, "type: %s", choice->name);
        end_line(p, type);
    }
    print_rows(p, f->table, map);
    print_rows(p, choice != NULL ? choice->fields : NULL, map);
    p->indent -= 2;
}

static void print_value(printer *p, const tn_field *f, const tn_tree *value)
{
    begin_line(p);
    tn_text_addf(p->out, "%s:", f->key);
    bool map = value->kind == TN_TREE_MAP;
    if (map && f->kind == TN_KIND_TABLE) {
        end_line(p, NULL);
        p->indent += 2;
        print_rows(p, f->table, value);
        p->indent -= 2;
    } else if (map && f->kind == TN_KIND_VARIANT) {
        end_line(p, NULL);
        print_variant(p, f, value);
    } else if (map && has_lines(f, value)) {
        end_line(p, NULL);
        print_members(p, value);
    } else if (has_lines(f, value)) {
        end_line(p, NULL);
        print_items(p, value, f->kind == TN_KIND_TABLES ? f->table : NULL);
    } else {
        tn_text_addc(p->out, ' ');
        tn_tree_print_flow(p->out, value);
        end_line(p, value);
    }
}

static void print_rows(printer *p, const tn_field *fields, const tn_tree *map)
{
    for (const tn_field *f = fields; f != NULL && f->kind != TN_KIND_END; f++) {
        size_t section = step_into(p->path, f->key);
        const tn_tree *value = tn_field_value(p->arena, f, tn_tree_get(map, f->key));
        if (value != NULL && tn_word_find(p->opts->without, p->path) == UINT32_MAX) {
            print_value(p, f, value);
        }
        p->path[section] = '\0';
    }
}

void tn_fields_print(tn_text *out, const tn_field *fields, const tn_tree *tree,
                     const tn_print_opts *opts)
{
    printer p = {.out = out, .arena = tn_arena_new(ARENA_BYTES), .opts = opts};
    print_rows(&p, fields, tree);
    tn_arena_free(p.arena);
}

/* ---- one value of a struct ---- */

/* Appends a number in one form, however it was written. */
static void text_of_scalar(tn_text *out, const char *text)
{
    double number = 0;
    if (tn_read_f64(text, strlen(text), &number) == TN_NUM_OK) {
        char plain[TN_NUMBER_TEXT_MAX];
        tn_text_add(out, plain, tn_write_f64(plain, number));
    } else {
        tn_tree_print_scalar(out, text);
    }
}

/* Returns the member of a map whose key follows `last` in the alphabet (NULL: the first). */
static const tn_tree *next_member(const tn_tree *map, const tn_tree *last)
{
    const tn_tree *next = NULL;
    for (const tn_tree *t = map->first; t != NULL; t = t->next) {
        const bool behind = last == NULL || strcmp(t->key, last->key) > 0;
        if (behind && (next == NULL || strcmp(t->key, next->key) < 0)) {
            next = t;
        }
    }
    return next;
}

static void text_of_tree(tn_text *out, const tn_tree *tree)
{
    if (tn_tree_is_null(tree)) {
        tn_text_addc(out, '~');
        return;
    }
    if (tree->kind == TN_TREE_SCALAR) {
        text_of_scalar(out, tree->text);
        return;
    }
    const bool map = tree->kind == TN_TREE_MAP;
    const char *between = "";
    tn_text_addc(out, map ? '{' : '[');
    for (const tn_tree *t = map ? next_member(tree, NULL) : tree->first; t != NULL;
         t = map ? next_member(tree, t) : t->next) {
        tn_text_adds(out, between);
        if (map) {
            tn_tree_print_scalar(out, t->key);
            tn_text_adds(out, ": ");
        }
        text_of_tree(out, t);
        between = ", ";
    }
    tn_text_addc(out, map ? '}' : ']');
}

static void text_of_list(tn_text *out, const tn_field *f, const void *at)
{
    const bool texts = f->kind == TN_KIND_STRS;
    const tn_strs *strs = at;
    const tn_f64s *f64s = at;
    const uint32_t n = texts ? strs->n : f64s->n;
    tn_text_addc(out, '[');
    for (uint32_t i = 0; i < n; i++) {
        tn_text_adds(out, i > 0 ? ", " : "");
        if (texts) {
            tn_tree_print_scalar(out, strs->item[i]);
        } else {
            char number[TN_NUMBER_TEXT_MAX];
            tn_text_add(out, number, tn_write_f64(number, f64s->item[i]));
        }
    }
    tn_text_addc(out, ']');
}

static void text_of_u32(tn_text *out, const tn_field *f, uint32_t value)
{
    uint32_t n = 0;
    while (f->words != NULL && f->words[n] != NULL) {
        n++;
    }
    const uint32_t word = f->kind == TN_KIND_CHOICE ? value : TN_WORD_U32(value);
    if (value == TN_UNSET_U32) {
        tn_text_addc(out, '~');
    } else if (word < n) {
        tn_text_adds(out, f->words[word]);
    } else {
        tn_text_addf(out, "%u", value);
    }
}

void tn_field_value_text(tn_text *out, const tn_field *f, const void *opts)
{
    const void *at = (const char *)opts + f->offset;
    char number[TN_NUMBER_TEXT_MAX];
    switch (f->kind) {
    case TN_KIND_BOOL:
        tn_text_adds(out, *(const bool *)at ? "true" : "false");
        break;
    case TN_KIND_U32:
    case TN_KIND_CHOICE:
        text_of_u32(out, f, *(const uint32_t *)at);
        break;
    case TN_KIND_F64:
        tn_text_add(out, number, tn_write_f64(number, *(const double *)at));
        break;
    case TN_KIND_STR:
        if (*(const char *const *)at == NULL) {
            tn_text_addc(out, '~');
        } else {
            tn_tree_print_scalar(out, *(const char *const *)at);
        }
        break;
    case TN_KIND_STRS:
    case TN_KIND_F64S:
        text_of_list(out, f, at);
        break;
    case TN_KIND_TREE:
        text_of_tree(out, *(const tn_tree *const *)at);
        break;
    case TN_KIND_U64:
    case TN_KIND_DURATION:
    case TN_KIND_SIZE:
    case TN_KIND_TABLE:
    case TN_KIND_TABLES:
    case TN_KIND_VARIANT:
    case TN_KIND_END:
    default:
        TN_ASSERT(f->kind == TN_KIND_END); /* no option of a row is of another kind */
    }
}
