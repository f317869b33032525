/* fieldtext.c - option tables as help, documentation and words to complete; see fieldtext.h. */
#include "config/fieldtext.h"

#include "base/core/number.h"

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

static bool is_section(const tn_field *f)
{
    return f->kind == TN_KIND_TABLE;
}

static void help_row(walker *w, const tn_field *f)
{
    if (is_section(f)) {
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
    if (!is_section(f) && !item) {
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
    if (is_section(f)) {
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
