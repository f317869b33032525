/* config.c - reads the layers of a configuration and merges them.
 *
 * Which presets apply is itself an option that any layer may set. So the layers are merged twice:
 * first without presets, to learn their names, then on top of the presets. Only the second merge
 * reports faults.
 */
#include "train/config/config.h"

#include "base/core/arena.h"
#include "base/core/log.h"
#include "base/core/text.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/fieldtree.h"
#include "config/yaml.h"
#include "train/config/retired.h"
#include "train/config/sequences.h"
#include "train/config/slot_ranges.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A file on the way from the first one to the one that is being read. */
typedef struct visit {
    const struct visit *outer;
    const char *path;
    const char *text;    /* in place of the file's; NULL: it is read */
    char real[PATH_MAX]; /* the same under whatever name it was included */
    uint32_t depth;
} visit;

static tn_tree *load(const tn_binder *b, const tn_field *fields, const visit *v);

/* Relative to the folder of the including file. */
static const char *included_path(tn_arena *arena, const char *from, const char *path)
{
    const char *slash = strrchr(from, '/');
    if (path[0] == '/' || slash == NULL) {
        return path;
    }
    char joined[PATH_MAX];
    int size = snprintf(joined, sizeof joined, "%.*s%s", (int)(slash - from) + 1, from, path);
    TN_ASSERT(size >= 0);
    return tn_tree_text(arena, joined, strlen(joined));
}

static bool is_cycle(const visit *v)
{
    for (const visit *outer = v->outer; outer != NULL; outer = outer->outer) {
        if (strcmp(outer->real, v->real) == 0) {
            return true;
        }
    }
    return false;
}

/* Keeps the path itself when the file is not there: reading it will say so. */
static void resolve(visit *v)
{
    if (realpath(v->path, v->real) == NULL) {
        (void)snprintf(v->real, sizeof v->real, "%s", v->path);
    }
}

static tn_tree *load_included(const tn_binder *b, const tn_field *fields, const visit *outer,
                              const tn_tree *name)
{
    if (name->kind != TN_TREE_SCALAR) {
        tn_diag_error(b->diag, &name->at, "'include' must be a file or a list of files");
        return NULL;
    }
    visit v = {.outer = outer,
               .path = included_path(b->arena, outer->path, name->text),
               .depth = outer->depth + 1};
    resolve(&v);
    if (is_cycle(&v)) {
        tn_diag_error(b->diag, &name->at, "'%s' includes itself", v.path);
        return NULL;
    }
    if (v.depth > TN_INCLUDE_DEPTH_MAX) {
        tn_diag_error(b->diag, &name->at, "files included more than %d deep",
                      (int)TN_INCLUDE_DEPTH_MAX);
        return NULL;
    }
    tn_tree *tree = load(b, fields, &v);
    if (tree == NULL) {
        tn_diag_hint(b->diag, "included in line %u of '%s'", name->at.line, outer->path);
    }
    return tree;
}

/* All included files, later ones on top of earlier ones; an empty map when there are none. */
static tn_tree *load_includes(const tn_binder *b, const tn_field *fields, const visit *v,
                              const tn_tree *tree)
{
    tn_tree *merged = tn_tree_new(b->arena, TN_TREE_MAP, tree->at);
    const tn_tree *include = tn_tree_get(tree, "include");
    if (tn_tree_is_null(include)) {
        return merged;
    }
    bool list = include->kind == TN_TREE_LIST;
    const tn_tree *name = list ? include->first : include;
    while (name != NULL && merged != NULL) {
        tn_tree *one = load_included(b, fields, v, name);
        merged = one != NULL ? tn_fields_merge(b, fields, merged, one) : NULL;
        name = list ? name->next : NULL;
    }
    return merged;
}

static tn_tree *without_include(tn_arena *arena, const tn_tree *tree)
{
    tn_tree *rest = tn_tree_new(arena, TN_TREE_MAP, tree->at);
    for (const tn_tree *item = tree->first; item != NULL; item = item->next) {
        if (strcmp(item->key, "include") != 0) {
            tn_tree_append(rest, tn_tree_copy(arena, item));
        }
    }
    return rest;
}

/* The file with what it includes below it, later ones on top; NULL: reported. */
static tn_tree *load(const tn_binder *b, const tn_field *fields, const visit *v)
{
    TN_ASSERT(v->depth <= TN_INCLUDE_DEPTH_MAX);
    bool piped = strcmp(v->path, "-") == 0; /* includes are relative to the working directory */
    const tn_yaml_in given = {.text = v->text,
                              .size = v->text != NULL ? strlen(v->text) : 0,
                              .source = v->path,
                              .lines = true};
    tn_tree *tree = v->text != NULL
                        ? tn_yaml_read(b->arena, b->diag, &given)
                        : tn_yaml_read_file(b->arena, b->diag, piped ? "/dev/stdin" : v->path);
    if (tree == NULL) {
        return NULL;
    }
    if (tree->kind == TN_TREE_NULL) {
        tree = tn_tree_new(b->arena, TN_TREE_MAP, tree->at);
    }
    if (tree->kind != TN_TREE_MAP) {
        tn_diag_error(b->diag, &tree->at, "a configuration must be a map of sections");
        tn_diag_hint(b->diag, "as 'data: {format: csv, train: clicks.csv}' and 'model: lr' are; "
                              "docs/data.md and configs/ have whole ones");
        return NULL;
    }
    const tn_tree *below = load_includes(b, fields, v, tree);
    if (below == NULL) {
        return NULL;
    }
    tree = tn_slot_ranges_expand(b->arena, b->diag, without_include(b->arena, tree));
    return tn_fields_merge(b, fields, below, tree);
}

/* Bytes up to the next '.' outside braces: "I{1..13}" is one step. */
static size_t step_size(const char *path)
{
    size_t size = 0;
    for (bool braces = false; path[size] != '\0' && (braces || path[size] != '.'); size++) {
        braces = path[size] == '{' || (braces && path[size] != '}');
    }
    return size;
}

/* Wraps `value` into maps, one for each step of `path`. `at`: where the path begins. */
static tn_tree *nest(const tn_binder *b, const char *path, tn_origin at, tn_tree *value)
{
    tn_tree *map = tn_tree_new(b->arena, TN_TREE_MAP, at);
    size_t size = step_size(path);
    if (size == 0) {
        tn_diag_error(b->diag, &at, "a name is missing in '%s'", path);
        return NULL;
    }
    tn_tree *inner = value;
    if (path[size] == '.') {
        tn_origin next = at;
        next.col += (uint32_t)size + 1;
        inner = nest(b, path + size + 1, next, value);
    }
    if (inner != NULL) {
        inner->key_at = at;
        tn_tree_put(b->arena, map, tn_tree_text(b->arena, path, size), inner);
    }
    return inner != NULL ? map : NULL;
}

static bool is_too_deep(const char *path)
{
    uint32_t steps = 1;
    for (; *path != '\0'; path++) {
        steps += *path == '.';
    }
    return steps > TN_YAML_DEPTH_MAX;
}

/* Returns a tree that assigns to `path` the text after the '=' of `shown`. */
static tn_tree *assign(const tn_binder *b, const char *path, const char *source, const char *shown,
                       uint32_t col)
{
    const char *equals = strchr(shown, '=');
    TN_ASSERT(equals != NULL);
    const tn_yaml_in in = {.text = equals + 1,
                           .size = strlen(equals + 1),
                           .source = source,
                           .shown = shown,
                           .col = (uint32_t)(equals - shown) + 2};
    tn_origin at = {.source = source, .col = col, .text = shown};
    /* A mark is a text: to YAML "-" is a list of nothing, "," a fault and ' ' nothing. */
    bool is_byte = in.size == 1 && strchr("-,|: \t", in.text[0]) != NULL;
    tn_tree *value =
        is_byte ? tn_tree_scalar(b->arena, in.text, at) : tn_yaml_read(b->arena, b->diag, &in);
    if (is_too_deep(path)) {
        tn_diag_error(b->diag, &at, "a name of more than %d steps", (int)TN_YAML_DEPTH_MAX);
        return NULL;
    }
    tn_tree *tree = value != NULL ? nest(b, path, at, value) : NULL;
    return tree != NULL ? tn_slot_ranges_expand(b->arena, b->diag, tree) : NULL;
}

/* {a: {b: value}} from "a.b=value"; NULL: reported. */
static tn_tree *read_override(const tn_binder *b, const char *assignment)
{
    const char *shown = tn_tree_text(b->arena, assignment, strlen(assignment));
    const char *equals = strchr(shown, '=');
    if (equals == NULL) {
        tn_origin at = {.source = "command line", .col = 1, .text = shown};
        tn_diag_error(b->diag, &at, "'%s' is not of the form section.key=value", shown);
        return NULL;
    }
    const char *path = tn_tree_text(b->arena, shown, (size_t)(equals - shown));
    const bool cron = strcmp(path, "day") == 0 || strcmp(path, "hour") == 0;
    path = cron ? "data.days" : path; /* paths with dates, as cron writes them each day, or hour */
    return assign(b, path, "command line", shown, 1);
}

static const char prefix[] = "TNET_";
enum { PREFIX_SIZE = sizeof prefix - 1 };

/* TNET_TRAIN__MAX_STEPS as train.max_steps. */
static char *path_of_variable(tn_arena *arena, const char *name, size_t size)
{
    TN_ASSERT(size > PREFIX_SIZE);
    char *path = TN_NEW_ARRAY(arena, char, size + 1);
    size_t n = 0;
    for (size_t i = PREFIX_SIZE; i < size; i++) {
        bool step = name[i] == '_' && i + 1 < size && name[i + 1] == '_';
        bool capital = name[i] >= 'A' && name[i] <= 'Z';
        path[n++] = (char)(step ? '.' : capital ? name[i] - 'A' + 'a' : name[i]);
        i += step;
    }
    return path;
}

/* Whether a variable of the environment is meant for the configuration: TNET_A__B, or TNET_A where
 * `a` is a section. Others that begin with TNET_ belong to other parts of the program. */
static bool is_config_variable(const tn_field *fields, const char *variable)
{
    size_t size = strcspn(variable, "=");
    if (size <= PREFIX_SIZE || variable[size] != '=' ||
        strncmp(variable, prefix, PREFIX_SIZE) != 0) {
        return false;
    }
    char name[64];
    if (memmem(variable, size, "__", 2) != NULL) {
        return true;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)size - PREFIX_SIZE, variable + PREFIX_SIZE);
    for (char *c = name; *c != '\0'; c++) {
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c - 'A' + 'a' : *c);
    }
    return tn_field_find(fields, name) != NULL;
}

/* {a: {b: value}} from "TNET_A__B=value"; NULL: reported. */
static tn_tree *read_variable(const tn_binder *b, const char *variable)
{
    size_t size = strcspn(variable, "=");
    const char *shown = tn_tree_text(b->arena, variable, strlen(variable));
    const char *source = tn_tree_text(b->arena, variable, size);
    return assign(b, path_of_variable(b->arena, variable, size), source, shown, PREFIX_SIZE + 1);
}

enum { ENVIRONMENT, COMMAND_LINE, N_OVERS };

typedef struct layers {
    const tn_config_in *in;
    tn_binder b;
    const tn_tree *file;          /* with its includes */
    const tn_tree *over[N_OVERS]; /* NULL: nothing */
    bool failed;
} layers;

/* Warns of TNET_TRAIN_EPOCHS, with one underscore where two belong, which would be ignored as a
 * variable of somebody else, if it is the name of an option, or nearly. */
static void warn_of_variable(const layers *l, const char *variable)
{
    const size_t size = strcspn(variable, "=");
    const char *name = tn_tree_text(l->b.arena, variable, size);
    const char *section =
        path_of_variable(l->b.arena, name, PREFIX_SIZE + strcspn(name + PREFIX_SIZE, "_"));
    tn_text paths = {0};
    tn_text close = {0};
    uint32_t n = 0;
    if (tn_field_find(l->in->fields, section) != NULL) {
        tn_fields_paths(&paths, l->in->fields);
    }
    const char **known = TN_NEW_ARRAY(l->b.arena, const char *, paths.size + 1);
    for (const char *at = tn_text_str(&paths); *at != '\0'; at += strcspn(at, "\n") + 1) {
        tn_text_clear(&close);
        tn_text_adds(&close, prefix);
        for (const char *c = at; *c != '\n'; c++) {
            const bool letter = *c >= 'a' && *c <= 'z';
            tn_text_addc(&close, (char)(letter ? *c - 'a' + 'A' : *c));
        }
        known[n++] = tn_tree_text(l->b.arena, tn_text_str(&close), close.size);
    }
    const char *nearest = tn_nearest(name, known, n);
    tn_text_clear(&close);
    for (const char *c = nearest; c != NULL && *c != '\0'; c++) {
        tn_text_add(&close, *c == '.' ? "__" : c, *c == '.' ? 2 : 1);
    }
    if (nearest != NULL) {
        tn_log(TN_LOG_WARN, "'%s' of the environment is no option (did you mean '%s'?)", name,
               tn_text_str(&close));
    }
    tn_text_done(&close);
    tn_text_done(&paths);
}

static int by_text(const void *a, const void *b)
{
    const char *const *left = a;
    const char *const *right = b;
    return strcmp(*left, *right);
}

static void add_over(layers *l, const tn_tree **layer, const tn_tree *over)
{
    if (over == NULL) {
        l->failed = true;
        return;
    }
    TN_ASSERT(layer == &l->over[ENVIRONMENT] || layer == &l->over[COMMAND_LINE]);
    *layer = tn_fields_join(&l->b, l->in->fields, *layer, over);
}

/* Variables in the order of their names: TNET_SLOTS before TNET_SLOTS__C1__DIM. */
static void read_overs(layers *l)
{
    const tn_config_in *in = l->in;
    uint32_t n = 0;
    while (in->env != NULL && in->env[n] != NULL) {
        n++;
    }
    const char **names = TN_NEW_ARRAY(l->b.arena, const char *, n);
    uint32_t n_names = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (is_config_variable(in->fields, in->env[i])) {
            names[n_names++] = in->env[i];
        } else if (strncmp(in->env[i], prefix, PREFIX_SIZE) == 0) {
            warn_of_variable(l, in->env[i]);
        }
    }
    qsort(names, n_names, sizeof *names, by_text);
    for (uint32_t i = 0; i < n_names; i++) {
        add_over(l, &l->over[ENVIRONMENT], read_variable(&l->b, names[i]));
    }
    for (uint32_t i = 0; i < in->n_overrides; i++) {
        add_over(l, &l->over[COMMAND_LINE], read_override(&l->b, in->overrides[i]));
    }
}

static const tn_tree *merge_overs(const layers *l, const tn_binder *b, const tn_tree *tree)
{
    for (uint32_t i = 0; i < N_OVERS; i++) {
        tree = l->over[i] != NULL ? tn_fields_merge(b, l->in->fields, tree, l->over[i]) : tree;
    }
    return tree;
}

static const tn_tree *spread(const layers *l, const tn_binder *b, const tn_tree *tree)
{
    const tn_presets *presets = l->in->presets;
    return presets != NULL && presets->spread != NULL ? presets->spread(b, tree) : tree;
}

/* The value of section.key, given or the default; shorthands are unfolded: "model.type" of {model:
 * deepfm} is deepfm. NULL: neither, or no single text. */
static const char *text_at(layers *l, const tn_tree *tree, const char *section, const char *key,
                           tn_origin *at)
{
    tn_arena *arena = l->b.arena;
    const tn_field *of = tn_field_find(l->in->fields, section);
    const tn_tree *value =
        of != NULL ? tn_field_value(arena, of, tn_tree_get(tree, section)) : NULL;
    const tn_field *row = of != NULL && of->table != NULL ? tn_field_find(of->table, key) : NULL;
    value = value != NULL ? tn_tree_get(value, key) : NULL;
    value = row != NULL ? tn_field_value(arena, row, value) : value;
    if (value == NULL || value->kind != TN_TREE_SCALAR) {
        return NULL;
    }
    *at = value->at;
    return value->text;
}

/* The YAML of a preset on top of `under`. */
static const tn_tree *add_preset(layers *l, const tn_tree *under, const char *source,
                                 const char *yaml)
{
    const char *name = tn_tree_text(l->b.arena, source, strlen(source));
    const tn_yaml_in in = {.text = yaml, .size = strlen(yaml), .source = name};
    const tn_tree *tree = tn_yaml_read(l->b.arena, l->b.diag, &in);
    TN_ASSERT(tree != NULL && tree->kind == TN_TREE_MAP); /* part of the program */
    tree = tn_slot_ranges_expand(l->b.arena, l->b.diag, tree);
    return tn_fields_merge(&l->b, l->in->fields, under, tree);
}

/* Returns the layers under the files: the preset of the format that `first`, the merged layers,
 * names, above it the model's own defaults, and the model's preset that `first` asks for. */
static const tn_tree *merge_presets(layers *l, const tn_tree *first)
{
    const tn_presets *presets = l->in->presets;
    const tn_tree *merged = tn_tree_new(l->b.arena, TN_TREE_MAP, (tn_origin){.source = "preset"});
    tn_origin at = {0};
    char source[200];
    const char *format = text_at(l, first, "data", "format", &at);
    const char *yaml = format != NULL && presets != NULL ? presets->format(format) : NULL;
    if (yaml != NULL) {
        (void)snprintf(source, sizeof source, "preset %s", format);
        merged = add_preset(l, merged, source, yaml);
    }
    const char *loss = text_at(l, first, "loss", "type", &at);
    yaml = loss != NULL && presets != NULL && presets->loss != NULL ? presets->loss(loss) : NULL;
    if (yaml != NULL) {
        (void)snprintf(source, sizeof source, TN_DEFAULT_OF "%s", loss);
        merged = add_preset(l, merged, source, yaml);
    }
    const char *model = text_at(l, first, "model", "type", &at);
    const char *preset = text_at(l, first, "model", "preset", &at);
    if (presets == NULL || model == NULL) {
        return merged;
    }
    yaml = presets->model(model, NULL);
    if (yaml != NULL) {
        (void)snprintf(source, sizeof source, TN_DEFAULT_OF "%s", model);
        merged = add_preset(l, merged, source, yaml);
    }
    if (preset == NULL) {
        return merged;
    }
    yaml = presets->model(model, preset);
    if (yaml == NULL) {
        tn_text there = {0};
        if (presets->list != NULL) {
            presets->list(model, &there);
        }
        tn_diag_error(l->b.diag, &at, "model '%s' has no preset '%s'%s%s", model, preset,
                      there.size > 0 ? "; there are " : "", tn_text_str(&there));
        tn_text_done(&there);
        return merged;
    }
    (void)snprintf(source, sizeof source, "preset %s of %s", preset, model);
    return add_preset(l, merged, source, yaml);
}

/* On top of those before; NULL: there is none. */
static void add_file(layers *l, const char *path, const char *text)
{
    if (path == NULL || l->file == NULL) {
        return;
    }
    visit v = {.path = tn_tree_text(l->b.arena, path, strlen(path)), .text = text};
    resolve(&v);
    const tn_tree *file = load(&l->b, l->in->fields, &v);
    if (file != NULL && l->in->top != NULL) { /* both files were written by this program */
        file = tn_retired_drop(l->b.arena, file);
    }
    l->file = file != NULL ? tn_fields_merge(&l->b, l->in->fields, l->file, file) : NULL;
}

const tn_tree *tn_config_load(const tn_config_in *in, tn_arena *arena, tn_diag *diag)
{
    layers l = {.in = in, .b = {.arena = arena, .diag = diag}};
    l.file = tn_tree_new(arena, TN_TREE_MAP, (tn_origin){0});
    add_file(&l, in->path, in->text);
    add_file(&l, in->top, NULL);
    read_overs(&l);
    if (l.file == NULL || l.failed) {
        return NULL;
    }
    tn_diag unheard = {0};
    const tn_binder quiet = {.arena = arena, .diag = &unheard};
    const tn_tree *first = spread(&l, &quiet, merge_overs(&l, &quiet, l.file));
    tn_diag_done(&unheard);

    const tn_tree *tree = merge_presets(&l, first);
    tree = tn_fields_merge(&l.b, in->fields, tree, l.file);
    tree = spread(&l, &l.b, merge_overs(&l, &l.b, tree));
    return tree != NULL ? tn_sequences_apply(tree, &l.b) : NULL;
}
