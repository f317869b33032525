/* fieldbind.c - fills a struct from a tree by its option table. */
#include "base/core/arena.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/fieldtree.h"
#include "config/tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH_MAX_BYTES = 200 };

static void bind(const tn_binder *b, const tn_field *const tables[2], const tn_tree *map,
                 void *const opts[2]);

static const char *path_of(const tn_binder *b, const char *key)
{
    char path[PATH_MAX_BYTES];
    const char *section = b->path != NULL ? b->path : "";
    (void)snprintf(path, sizeof path, "%s%s%s", section, *section != '\0' ? "." : "", key);
    return tn_tree_text(b->arena, path, strlen(path));
}

/* The binder of the section below `key`, which is written at `tree` (NULL: nowhere). */
static tn_binder section_of(const tn_binder *b, const char *key, const tn_tree *tree)
{
    tn_binder inner = *b;
    inner.path = path_of(b, key);
    inner.at = tree != NULL && tree->at.line > 0 ? &tree->at : b->at;
    inner.optional = false;
    return inner;
}

/* What "not set" is in memory, by kind. */
static const uint32_t unset_u32 = TN_UNSET_U32;
static const uint64_t unset_u64 = TN_UNSET_U64;
static const double unset_f64 = (double)NAN;
static const struct {
    const void *value; /* NULL: zeros */
    size_t size;
} unset[] = {
    [TN_KIND_BOOL] = {NULL, sizeof(bool)},
    [TN_KIND_U32] = {&unset_u32, sizeof unset_u32},
    [TN_KIND_U64] = {&unset_u64, sizeof unset_u64},
    [TN_KIND_F64] = {&unset_f64, sizeof unset_f64},
    [TN_KIND_DURATION] = {&unset_f64, sizeof unset_f64},
    [TN_KIND_SIZE] = {&unset_u64, sizeof unset_u64},
    [TN_KIND_STR] = {NULL, sizeof(char *)},
    [TN_KIND_CHOICE] = {&unset_u32, sizeof unset_u32},
    [TN_KIND_STRS] = {NULL, sizeof(tn_strs)},
    [TN_KIND_F64S] = {NULL, sizeof(tn_f64s)},
    [TN_KIND_TABLES] = {NULL, sizeof(tn_tables)},
    [TN_KIND_VARIANT] = {NULL, sizeof(tn_variant)},
    [TN_KIND_TREE] = {NULL, sizeof(tn_tree *)},
};

static void set_unset(const tn_field *f, void *at)
{
    TN_ASSERT((size_t)f->kind < sizeof unset / sizeof *unset && unset[f->kind].size > 0);
    if (unset[f->kind].value != NULL) {
        memcpy(at, unset[f->kind].value, unset[f->kind].size);
    } else {
        memset(at, 0, unset[f->kind].size);
    }
}

static bool must_be(const tn_binder *b, const tn_field *f, const tn_tree *t, const char *what)
{
    tn_diag_error(b->diag, &t->at, "'%s' must be %s", f->key, what);
    return false;
}

/* The items of a list; a single value is a list of one. */
static const tn_tree *items_of(const tn_tree *t, uint32_t *n)
{
    bool list = t->kind == TN_TREE_LIST;
    *n = list ? tn_tree_count(t) : 1;
    return list ? t->first : t;
}

static bool read_list(const tn_binder *b, const tn_field *f, const tn_tree *t, void *at)
{
    if (t->kind == TN_TREE_MAP) {
        return must_be(b, f, t, "a list");
    }
    tn_field one = *f;
    one.kind = f->kind == TN_KIND_STRS ? TN_KIND_STR : TN_KIND_F64;
    uint32_t n = 0;
    const tn_tree *item = items_of(t, &n);
    const char **strs = TN_NEW_ARRAY(b->arena, const char *, n);
    double *f64s = TN_NEW_ARRAY(b->arena, double, n);
    for (uint32_t i = 0; i < n; i++, item = item->next) {
        void *out = f->kind == TN_KIND_STRS ? (void *)&strs[i] : (void *)&f64s[i];
        if (!tn_read_scalar(b, &one, item, out)) {
            return false;
        }
    }
    if (f->kind == TN_KIND_STRS) {
        memcpy(at, &(tn_strs){n, strs}, sizeof(tn_strs));
    } else {
        memcpy(at, &(tn_f64s){n, f64s}, sizeof(tn_f64s));
    }
    return true;
}

static bool read_table(const tn_binder *b, const tn_field *f, const tn_tree *t, void *at)
{
    if (t->kind != TN_TREE_MAP) {
        return must_be(b, f, t, "a map");
    }
    tn_binder inner = section_of(b, f->key, t);
    bind(&inner, (const tn_field *const[2]){f->table, NULL}, t, (void *const[2]){at, NULL});
    return true;
}

static bool read_tables(const tn_binder *b, const tn_field *f, const tn_tree *t, void *at)
{
    if (t->kind != TN_TREE_LIST) {
        return must_be(b, f, t, "a list");
    }
    uint32_t n = tn_tree_count(t);
    char *structs = tn_arena_alloc(b->arena, n, f->size, _Alignof(max_align_t));
    const tn_tree **trees = TN_NEW_ARRAY(b->arena, const tn_tree *, n);
    const tn_tree *item = t->first;
    for (uint32_t i = 0; i < n; i++, item = item->next) {
        trees[i] = tn_field_unfold(b->arena, f, item);
        /* A wrong item is reported; its struct holds defaults, but nothing is missing twice. */
        const tn_tree *map = trees[i]->kind == TN_TREE_MAP ? trees[i] : NULL;
        tn_binder inner = section_of(b, f->key, item);
        inner.optional = map == NULL;
        if (map == NULL) {
            tn_diag_error(b->diag, &item->at, "an item of '%s' must be a map", f->key);
        }
        bind(&inner, (const tn_field *const[2]){f->table, NULL}, map,
             (void *const[2]){structs + i * f->size, NULL});
    }
    memcpy(at, &(tn_tables){n, structs, trees}, sizeof(tn_tables));
    return true;
}

static bool report_no_choice(const tn_binder *b, const tn_field *f, const tn_tree *t)
{
    const tn_tree *type = tn_tree_get(t, "type");
    if (tn_tree_is_null(type) || type->kind != TN_TREE_SCALAR) {
        tn_diag_error(b->diag, type != NULL ? &type->at : &t->at, "'%s' must say its type", f->key);
        return false;
    }
    uint32_t n = 0;
    while (f->choices[n] != NULL) {
        n++;
    }
    const char **names = TN_NEW_ARRAY(b->arena, const char *, n);
    for (uint32_t i = 0; i < n; i++) {
        names[i] = f->choices[i]->name;
    }
    tn_diag_unknown(b->diag, &type->at, f->key, type->text, names, n);
    return false;
}

static bool read_variant(const tn_binder *b, const tn_field *f, const tn_tree *t, void *at)
{
    if (t->kind != TN_TREE_MAP) {
        return must_be(b, f, t, "a name, or a map with a 'type'");
    }
    const tn_choice *choice = tn_field_choice(b->arena, f, t);
    if (choice == NULL) {
        return report_no_choice(b, f, t);
    }
    tn_variant v = {.choice = choice, .tree = t};
    if (choice->fields != NULL) {
        v.opts = tn_arena_alloc(b->arena, 1, choice->size, _Alignof(max_align_t));
    }
    if (f->table != NULL) {
        v.shared = tn_arena_alloc(b->arena, 1, f->size, _Alignof(max_align_t));
    }
    tn_binder inner = section_of(b, f->key, t);
    /* The key of the choice itself is nobody's option. */
    static const tn_field none = {.kind = TN_KIND_END};
    bind(&inner,
         (const tn_field *const[2]){choice->fields != NULL ? choice->fields : &none,
                                    f->table != NULL ? f->table : &none},
         t, (void *const[2]){v.opts, v.shared});
    memcpy(at, &v, sizeof v);
    return true;
}

static bool read_tree(const tn_binder *b, const tn_field *f, const tn_tree *t, void *at)
{
    (void)b;
    (void)f;
    const tn_tree **member = at;
    *member = t;
    return true;
}

typedef bool read_kind(const tn_binder *b, const tn_field *f, const tn_tree *t, void *out);

static read_kind *const kinds[] = {
    [TN_KIND_BOOL] = tn_read_scalar,  [TN_KIND_U32] = tn_read_scalar,
    [TN_KIND_U64] = tn_read_scalar,   [TN_KIND_F64] = tn_read_scalar,
    [TN_KIND_STR] = tn_read_scalar,   [TN_KIND_DURATION] = tn_read_scalar,
    [TN_KIND_SIZE] = tn_read_scalar,  [TN_KIND_CHOICE] = tn_read_scalar,
    [TN_KIND_STRS] = read_list,       [TN_KIND_F64S] = read_list,
    [TN_KIND_TABLE] = read_table,     [TN_KIND_TABLES] = read_tables,
    [TN_KIND_VARIANT] = read_variant, [TN_KIND_TREE] = read_tree,
};

static void report_missing(const tn_binder *b, const tn_field *f)
{
    if (!b->optional) {
        tn_diag_error(b->diag, b->at, "required key '%s' is missing", path_of(b, f->key));
    }
}

/* A table that is not there: every option of it at its default, without complaints. */
static void bind_absent(const tn_binder *b, const tn_field *f, void *at)
{
    tn_binder inner = section_of(b, f->key, NULL);
    inner.optional = true;
    bind(&inner, (const tn_field *const[2]){f->table, NULL}, NULL, (void *const[2]){at, NULL});
}

/* Whether a value that was read is the default. */
static bool is_default(const tn_binder *b, const tn_field *f, const void *at)
{
    unsigned char value[sizeof(uint64_t)];
    const tn_tree *fallback = tn_field_value(b->arena, f, NULL);
    if (tn_tree_is_null(fallback) || f->kind == TN_KIND_TREE) {
        return false; /* the default is that it is not given */
    }
    TN_ASSERT(f->kind <= TN_KIND_SIZE);
    bool good = kinds[f->kind](b, f, fallback, value);
    TN_ASSERT(good);
    return memcmp(value, at, unset[f->kind].size) == 0;
}

/* Values of later versions: better refused than ignored. */
static bool is_taken(const tn_binder *b, const tn_field *f, const tn_tree *given, const void *at)
{
    if (f->later == NULL || tn_tree_is_null(given)) {
        return true;
    }
    const char *const *word = f->later;
    while (*word != NULL && strcmp(*word, given->text) != 0) {
        word++;
    }
    if (f->kind == TN_KIND_CHOICE ? *word == NULL : is_default(b, f, at)) {
        return true;
    }
    tn_diag_error(b->diag, &given->at, "'%s': %s: not in this build yet", path_of(b, f->key),
                  f->kind == TN_KIND_TREE ? f->help : given->text);
    return false;
}

static void bind_one(const tn_binder *b, const tn_field *f, const tn_tree *given, void *at)
{
    TN_ASSERT((size_t)f->kind < sizeof kinds / sizeof *kinds && kinds[f->kind] != NULL);
    const tn_tree *value = tn_field_value(b->arena, f, given);
    if (value == NULL) {
        report_missing(b, f);
    }
    if (f->kind == TN_KIND_TABLE && tn_tree_is_null(value)) {
        bind_absent(b, f, at);
        return;
    }
    if (f->kind != TN_KIND_TABLE) {
        set_unset(f, at);
    }
    if (tn_tree_is_null(value) || (kinds[f->kind](b, f, value, at) && is_taken(b, f, given, at))) {
        return;
    }
    value = tn_field_value(b->arena, f, NULL);
    if (f->kind == TN_KIND_TABLE) {
        bind_absent(b, f, at);
    } else if (!tn_tree_is_null(value)) {
        bool good = kinds[f->kind](b, f, value, at);
        TN_ASSERT(good); /* else the table's own default is wrong */
    }
}

/* Where a key is known, if not where it was written. */
typedef struct places {
    const char *key;
    tn_text text; /* "'train.batch' or 'eval.batch'" */
    uint32_t n;
} places;

enum { PLACES_MAX = 3, SECTIONS_DEEP = 3 };

static void add_place(places *out, const char *path)
{
    if (out->n == PLACES_MAX || strstr(tn_text_str(&out->text), path) != NULL) {
        return; /* of another choice of the same rule */
    }
    tn_text_addf(&out->text, "%s%s'%s'", out->n > 0 ? " or " : "",
                 strchr(path, '.') == NULL ? "the section " : "", path);
    out->n++;
}

static void find_places(const tn_binder *b, const tn_field *fields, uint32_t deep, places *out)
{
    for (const tn_field *f = fields; f != NULL && f->kind != TN_KIND_END; f++) {
        if (strcmp(f->key, out->key) == 0) {
            add_place(out, path_of(b, f->key));
        }
        if (deep == 0 || (f->kind != TN_KIND_TABLE && f->kind != TN_KIND_VARIANT)) {
            continue;
        }
        const tn_binder inner = section_of(b, f->key, NULL);
        find_places(&inner, f->table, deep - 1, out);
        for (uint32_t i = 0; f->kind == TN_KIND_VARIANT && f->choices[i] != NULL; i++) {
            find_places(&inner, f->choices[i]->fields, deep - 1, out);
        }
    }
}

/* Options of sections below this one first, then those of any; else what may stand here. */
static void report_stranger(const tn_binder *b, const tn_field *const tables[2],
                            const tn_tree *item, const char *const *keys, uint32_t n)
{
    places found = {.key = item->key};
    const tn_binder whole = {.arena = b->arena};
    if (tn_nearest(item->key, keys, n) == NULL) {
        find_places(b, tables[0], SECTIONS_DEEP, &found);
        find_places(b, tables[1], SECTIONS_DEEP, &found);
        if (found.n == 0) {
            find_places(&whole, b->all, SECTIONS_DEEP, &found);
        }
    }
    if (found.n > 0) {
        tn_diag_error(b->diag, &item->key_at, "unknown key '%s' (did you mean %s?)", item->key,
                      tn_text_str(&found.text));
    } else {
        tn_diag_unknown(b->diag, &item->key_at, "key", item->key, keys, n);
    }
    tn_text_done(&found.text);
}

static void report_unknown(const tn_binder *b, const tn_field *const tables[2], const tn_tree *map)
{
    bool variant = tables[1] != NULL;
    for (const tn_tree *item = map->first; item != NULL; item = item->next) {
        if (tn_field_find(tables[0], item->key) != NULL ||
            tn_field_find(tables[1], item->key) != NULL ||
            (variant && strcmp(item->key, "type") == 0)) {
            continue;
        }
        uint32_t n = 0;
        const char *const *keys = tn_field_keys(b->arena, tables[0], tables[1], variant, &n);
        report_stranger(b, tables, item, keys, n);
    }
}

static void bind_known(const tn_binder *b, const tn_field *fields, const tn_tree *map, void *opts)
{
    for (const tn_field *f = fields; f != NULL && f->kind != TN_KIND_END; f++) {
        bind_one(b, f, tn_tree_get(map, f->key), (char *)opts + f->offset);
    }
}

/* Binds a map that up to two tables read together. */
static void bind(const tn_binder *b, const tn_field *const tables[2], const tn_tree *map,
                 void *const opts[2])
{
    if (map != NULL) {
        report_unknown(b, tables, map);
    }
    bind_known(b, tables[0], map, opts[0]);
    bind_known(b, tables[1], map, opts[1]);
}

void tn_fields_bind(const tn_binder *b, const tn_field *fields, const tn_tree *map, void *opts)
{
    tn_fields_bind_some(b, fields, map, opts);
    if (map != NULL && map->kind == TN_TREE_MAP) {
        report_unknown(b, (const tn_field *const[2]){fields, NULL}, map);
    }
}

void tn_fields_bind_some(const tn_binder *b, const tn_field *fields, const tn_tree *map, void *opts)
{
    const tn_field whole = {.kind = TN_KIND_TABLE, .key = "configuration", .table = fields};
    map = tn_field_unfold(b->arena, &whole, map);
    if (map != NULL && map->kind != TN_TREE_MAP) {
        tn_diag_error(b->diag, &map->at, "%s must be a map", b->path != NULL ? b->path : "this");
        map = NULL;
    }
    tn_binder inner = *b;
    inner.at = map != NULL && inner.at == NULL ? &map->at : inner.at;
    inner.all = inner.all != NULL ? inner.all : fields;
    bind_known(&inner, fields, map, opts);
}
