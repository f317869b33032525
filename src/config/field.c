/* field.c - fills a struct from a tree by its option table, value by value.
 *
 * Each kind has a row in `kinds`: how its value is read and what "not set" looks like in memory.
 * Types are the option's, so `no`, `010` and `12:30:45` are what the option says they are.
 */
#include "config/field.h"

#include "base/core/arena.h"
#include "base/core/number.h"
#include "config/diag.h"
#include "config/fieldtree.h"
#include "config/tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { PATH_MAX_BYTES = 200 };

typedef struct scale {
    const char *unit;
    double factor;
} scale;

static const scale count_scales[] = {{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {NULL, 0}};
static const scale duration_scales[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1},     {"m", 60},
                                        {"min", 60},  {"h", 3600},  {"d", 86400}, {NULL, 0}};
static const scale size_scales[] = {
    {"B", 1},        {"kB", 1e3},     {"KB", 1e3},     {"MB", 1e6},
    {"GB", 1e9},     {"TB", 1e12},    {"KiB", 1024.0}, {"MiB", 1048576.0},
    {"GiB", 0x1p30}, {"TiB", 0x1p40}, {NULL, 0},
};

static bool in_range(const tn_binder *b, const tn_field *f, const tn_tree *at, double number)
{
    if (number >= f->min && number <= f->max) {
        return true;
    }
    char lo[TN_NUMBER_TEXT_MAX];
    char hi[TN_NUMBER_TEXT_MAX];
    const char *unit = f->unit != NULL ? f->unit : ""; /* a field made for one value has none */
    (void)tn_write_f64(lo, f->min);
    (void)tn_write_f64(hi, f->max);
    tn_diag_error(b->diag, &at->at, "'%s' is %s, not within %s .. %s%s%s", f->key, at->text, lo, hi,
                  unit[0] != '\0' ? " " : "", unit);
    return false;
}

static bool refuse(const tn_binder *b, const tn_field *f, const tn_tree *at, const char *what)
{
    tn_diag_error(b->diag, &at->at, "'%s' is not %s: '%s'", f->key, what, at->text);
    return false;
}

static bool scale_by(const scale *scales, const char *unit, size_t size, double *number)
{
    for (const scale *s = scales; s->unit != NULL; s++) {
        if (strlen(s->unit) == size && strncmp(s->unit, unit, size) == 0) {
            *number *= s->factor;
            return true;
        }
    }
    return false;
}

/* Measures "-1.5e3" in front of a unit. Returns its length, 0 when there is no number. An 'e'
 * belongs to the number only when digits follow. */
static size_t number_size(const char *text)
{
    size_t size = strspn(text, "+-");
    size += strspn(text + size, "0123456789.");
    if (text[size] == 'e' || text[size] == 'E') {
        size_t sign = strspn(text + size + 1, "+-");
        size_t digits = strspn(text + size + 1 + sign, "0123456789");
        size += digits > 0 ? 1 + sign + digits : 0;
    }
    return size;
}

static bool read_scaled(const char *text, const scale *scales, bool unit_needed, double *out)
{
    size_t size = number_size(text);
    double number = 0;
    if (tn_read_f64(text, size, &number) != TN_NUM_OK) {
        return false;
    }
    const char *unit = text + size;
    bool bare = unit[0] == '\0' && (!unit_needed || number == 0);
    if (!bare && !scale_by(scales, unit, strlen(unit), &number)) {
        return false;
    }
    *out = number;
    return true;
}

/* Reads a whole number, or a whole number of bytes with its unit. */
static bool read_whole(const tn_binder *b, const tn_field *f, const tn_tree *t, uint64_t *out)
{
    bool bytes = f->kind == TN_KIND_SIZE;
    if (!bytes && tn_read_u64(t->text, strlen(t->text), out) == TN_NUM_OK) {
        return in_range(b, f, t, (double)*out);
    }
    double number = 0;
    if (!read_scaled(t->text, bytes ? size_scales : count_scales, bytes, &number)) {
        (void)refuse(b, f, t, bytes ? "a size" : "a number");
        if (bytes) {
            tn_diag_hint(b->diag, "write a number with a unit, such as 64kB, 512MB or 12GiB");
        }
        return false;
    }
    if (number != floor(number)) {
        return refuse(b, f, t, bytes ? "a whole number of bytes" : "a whole number");
    }
    if (!in_range(b, f, t, number)) {
        return false;
    }
    TN_ASSERT(number >= 0 && number < 0x1p64);
    *out = (uint64_t)number;
    return true;
}

/* Reads a count. The low half of a word is its uint32_t. */
static bool read_count(const tn_binder *b, const tn_field *f, const tn_tree *t, void *out)
{
    uint32_t word = tn_word_find(f->words, t->text);
    uint64_t whole = TN_WORD_U64(word);
    if (word == UINT32_MAX && !read_whole(b, f, t, &whole)) {
        return false;
    }
    if (f->kind == TN_KIND_U32) {
        TN_ASSERT(f->min >= 0 && f->max <= UINT32_MAX);
        memcpy(out, &(uint32_t){(uint32_t)whole}, sizeof(uint32_t));
    } else {
        memcpy(out, &whole, sizeof whole);
    }
    return true;
}

static bool read_f64(const tn_binder *b, const tn_field *f, const tn_tree *t, void *out)
{
    uint32_t word = tn_word_find(f->words, t->text);
    TN_ASSERT(word == UINT32_MAX || word == 0);
    double number = (double)INFINITY;
    if (word == UINT32_MAX) {
        if (tn_read_f64(t->text, strlen(t->text), &number) != TN_NUM_OK) {
            return refuse(b, f, t, "a number");
        }
        if (!in_range(b, f, t, number)) {
            return false;
        }
    }
    memcpy(out, &number, sizeof number);
    return true;
}

/* Reads one or more numbers with units: 2h30m. */
static bool read_duration(const tn_binder *b, const tn_field *f, const tn_tree *t, void *out)
{
    double seconds = 0;
    const char *at = t->text;
    bool ok = *at != '\0';
    while (ok && *at != '\0') {
        size_t size = number_size(at);
        double number = 0;
        ok = tn_read_f64(at, size, &number) == TN_NUM_OK;
        at += size;
        size_t unit = strcspn(at, "0123456789.+-");
        bool bare = at == t->text + size && *at == '\0' && number == 0;
        ok = ok && (bare || scale_by(duration_scales, at, unit, &number));
        at += unit;
        seconds += number;
    }
    if (!ok) {
        (void)refuse(b, f, t, "a duration");
        tn_diag_hint(b->diag, "write a number with a unit, such as 500ms, 20s, 10min or 2h30m");
        return false;
    }
    if (!in_range(b, f, t, seconds)) {
        return false;
    }
    memcpy(out, &seconds, sizeof seconds);
    return true;
}

static bool read_bool(const tn_binder *b, const tn_field *f, const tn_tree *t, void *out)
{
    static const char *const yes[] = {"true", "yes", "on"};
    static const char *const no[] = {"false", "no", "off"};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        bool is_yes = strcasecmp(t->text, yes[i]) == 0;
        if (is_yes || strcasecmp(t->text, no[i]) == 0) {
            memcpy(out, &is_yes, sizeof is_yes);
            return true;
        }
    }
    return refuse(b, f, t, "true or false");
}

static bool read_choice(const tn_binder *b, const tn_field *f, const tn_tree *t, void *out)
{
    uint32_t index = tn_word_find(f->words, t->text);
    if (index == UINT32_MAX) {
        uint32_t n = 0;
        while (f->words[n] != NULL) {
            n++;
        }
        char what[80];
        (void)snprintf(what, sizeof what, "value of '%s':", f->key);
        tn_diag_unknown(b->diag, &t->at, what, t->text, f->words, n);
        return false;
    }
    memcpy(out, &index, sizeof index);
    return true;
}

static bool read_str(const tn_binder *b, const tn_field *f, const tn_tree *t, void *out)
{
    (void)b;
    (void)f;
    memcpy(out, &t->text, sizeof t->text);
    return true;
}

/* ---- values of several ---- */

static void report_unknown(const tn_binder *b, const tn_field *fields, const tn_field *more,
                           bool variant, const tn_tree *map);
static void bind_known(const tn_binder *b, const tn_field *fields, const tn_tree *map, void *opts);

static const char *path_of(const tn_binder *b, const char *key)
{
    char path[PATH_MAX_BYTES];
    const char *section = b->path != NULL ? b->path : "";
    (void)snprintf(path, sizeof path, "%s%s%s", section, *section != '\0' ? "." : "", key);
    return tn_tree_text(b->arena, path, strlen(path));
}

/* Returns the binder of the section below `key`, which is written at `tree` (NULL: nowhere). */
static tn_binder section_of(const tn_binder *b, const char *key, const tn_tree *tree)
{
    tn_binder inner = *b;
    inner.path = path_of(b, key);
    inner.at = tree != NULL && tree->at.line > 0 ? &tree->at : b->at;
    inner.optional = false;
    return inner;
}

static bool must_be(const tn_binder *b, const tn_field *f, const tn_tree *t, const char *what)
{
    tn_diag_error(b->diag, &t->at, "'%s' must be %s", f->key, what);
    return false;
}

/* Returns {share: 10%} as the text "share 10%", where the row takes such a map; NULL: it is
 * none. */
static const tn_tree *text_of_map(const tn_binder *b, const tn_field *f, const tn_tree *t)
{
    const tn_tree *only = t->first;
    if (f->kind != TN_KIND_STRS || f->first == NULL || tn_tree_count(t) != 1 ||
        only->kind != TN_TREE_SCALAR) {
        return NULL;
    }
    char text[PATH_MAX_BYTES];
    (void)snprintf(text, sizeof text, "%s %s", only->key, only->text);
    return tn_tree_scalar(b->arena, text, t->at);
}

static bool read_list(const tn_binder *b, const tn_field *f, const tn_tree *t, void *at)
{
    if (t->kind == TN_TREE_MAP) {
        const tn_tree *text = text_of_map(b, f, t);
        return text != NULL ? read_list(b, f, text, at) : must_be(b, f, t, "a list");
    }
    tn_field one = *f;
    one.kind = f->kind == TN_KIND_STRS ? TN_KIND_STR : TN_KIND_F64;
    bool list = t->kind == TN_TREE_LIST; /* a single value is a list of one */
    const tn_tree *item = list ? t->first : t;
    uint32_t n = list ? tn_tree_count(t) : 1;
    const char **strs = TN_NEW_ARRAY(b->arena, const char *, n);
    double *f64s = TN_NEW_ARRAY(b->arena, double, n);
    for (uint32_t i = 0; i < n; i++, item = item->next) {
        void *out = f->kind == TN_KIND_STRS ? (void *)&strs[i] : (void *)&f64s[i];
        if (!tn_read_scalar(b, &one, item, out)) {
            if (item->kind == TN_TREE_SCALAR && strpbrk(item->text, ", ") != NULL) {
                tn_diag_hint(b->diag, "a list is written [400, 200]");
            }
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
    report_unknown(&inner, f->table, NULL, false, t);
    bind_known(&inner, f->table, t, at);
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
        } else {
            report_unknown(&inner, f->table, NULL, false, map);
        }
        bind_known(&inner, f->table, map, structs + i * f->size);
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
    report_unknown(&inner, choice->fields, f->table, true, t);
    bind_known(&inner, choice->fields, t, v.opts);
    bind_known(&inner, f->table, t, v.shared);
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

/* Bytes of "not set" in memory. */
static const uint64_t ones = UINT64_MAX; /* TN_UNSET_U32, TN_UNSET_U64 */
static const double nan_f64 = (double)NAN;
static const tn_variant zeros = {0};

static const struct {
    read_kind *read;
    const void *unset;
    size_t size;
} kinds[] = {
    [TN_KIND_BOOL] = {read_bool, &zeros, sizeof(bool)},
    [TN_KIND_U32] = {read_count, &ones, sizeof(uint32_t)},
    [TN_KIND_U64] = {read_count, &ones, sizeof(uint64_t)},
    [TN_KIND_F64] = {read_f64, &nan_f64, sizeof(double)},
    [TN_KIND_DURATION] = {read_duration, &nan_f64, sizeof(double)},
    [TN_KIND_SIZE] = {read_count, &ones, sizeof(uint64_t)},
    [TN_KIND_STR] = {read_str, &zeros, sizeof(char *)},
    [TN_KIND_CHOICE] = {read_choice, &ones, sizeof(uint32_t)},
    [TN_KIND_STRS] = {read_list, &zeros, sizeof(tn_strs)},
    [TN_KIND_F64S] = {read_list, &zeros, sizeof(tn_f64s)},
    [TN_KIND_TABLE] = {read_table, &zeros, 0},
    [TN_KIND_TABLES] = {read_tables, &zeros, sizeof(tn_tables)},
    [TN_KIND_VARIANT] = {read_variant, &zeros, sizeof(tn_variant)},
    [TN_KIND_TREE] = {read_tree, &zeros, sizeof(tn_tree *)},
};

bool tn_read_scalar(const tn_binder *b, const tn_field *as, const tn_tree *scalar, void *out)
{
    TN_ASSERT(as->kind > TN_KIND_END && as->kind <= TN_KIND_CHOICE);
    if (scalar->kind != TN_TREE_SCALAR) {
        bool list = scalar->kind == TN_TREE_LIST;
        tn_diag_error(b->diag, &scalar->at, "'%s' must be a single value, not %s", as->key,
                      tn_tree_is_null(scalar) ? "empty"
                      : list                  ? "a list"
                                              : "a map");
        return false;
    }
    return kinds[as->kind].read(b, as, scalar, out);
}

static bool read_value(const tn_binder *b, const tn_field *f, const tn_tree *t, void *out)
{
    return f->kind <= TN_KIND_CHOICE ? tn_read_scalar(b, f, t, out)
                                     : kinds[f->kind].read(b, f, t, out);
}

/* Binds a table that is not there: every option of it at its default, without complaints. */
static void bind_absent(const tn_binder *b, const tn_field *f, void *at)
{
    tn_binder inner = section_of(b, f->key, NULL);
    inner.optional = true;
    bind_known(&inner, f->table, NULL, at);
}

size_t tn_fields_size(const tn_field *fields)
{
    while (fields->kind != TN_KIND_END) {
        fields++;
    }
    TN_ASSERT(fields->size > 0);
    return fields->size;
}

/* Returns where the value of an option goes; reserves the struct of a section that lies apart. */
static void *target_of(const tn_binder *b, const tn_field *f, void *at)
{
    if (f->kind != TN_KIND_TABLE || !f->apart) {
        return at;
    }
    void *section = tn_arena_alloc(b->arena, 1, tn_fields_size(f->table), _Alignof(max_align_t));
    memcpy(at, &section, sizeof section);
    return section;
}

static void bind_one(const tn_binder *b, const tn_field *f, const tn_tree *given, void *at)
{
    TN_ASSERT((size_t)f->kind < sizeof kinds / sizeof *kinds && kinds[f->kind].read != NULL);
    const tn_tree *value = tn_field_value(b->arena, f, given);
    if (value == NULL && !b->optional) {
        tn_diag_error(b->diag, b->at, "required key '%s' is missing", path_of(b, f->key));
        tn_diag_hint(b->diag, "%s: %s", f->key, f->help);
    }
    memcpy(at, kinds[f->kind].unset, kinds[f->kind].size);
    at = target_of(b, f, at);
    if (value == NULL || tn_tree_is_null(value) || read_value(b, f, value, at)) {
        return;
    }
    value = tn_field_value(b->arena, f, NULL);
    if (f->kind == TN_KIND_TABLE) {
        bind_absent(b, f, at);
    } else if (!tn_tree_is_null(value)) {
        bool good = read_value(b, f, value, at);
        TN_ASSERT(good); /* else the table's own default is wrong */
    }
}

/* The places that know a key which is unknown where it was written. */
typedef struct places {
    const char *key;
    const char *own; /* path where it was written */
    tn_text text;    /* "'train.batch' or 'eval.batch'" */
    uint32_t n;
    bool of_another; /* `own` is known to another choice of the same rule */
} places;

enum { PLACES_MAX = 3, SECTIONS_DEEP = 3 };

static void add_place(places *out, const char *path)
{
    if (strcmp(path, out->own) == 0) {
        out->of_another = true;
        return;
    }
    if (out->n == PLACES_MAX || strstr(tn_text_str(&out->text), path) != NULL) {
        return; /* named already, as a key of another choice of the same rule */
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

/* Returns the option whose help has the word, as of `separator`; NULL: there is none. */
static const tn_field *find_in_help(const tn_field *fields, const char *word)
{
    for (const tn_field *f = fields; f != NULL && f->kind != TN_KIND_END; f++) {
        if (strlen(word) >= 3 && f->help != NULL && strstr(f->help, word) != NULL) {
            return f;
        }
    }
    return NULL;
}

/* Suggests options of sections below this one first, then those of any; else the keys that this map
 * may have. */
static void report_stranger(const tn_binder *b, const tn_field *fields, const tn_field *more,
                            bool variant, const tn_tree *item)
{
    uint32_t n = 0;
    const char *const *keys = tn_field_keys(b->arena, fields, more, variant, &n);
    places found = {.key = item->key, .own = path_of(b, item->key)};
    const tn_binder whole = {.arena = b->arena};
    if (tn_nearest(item->key, keys, n) == NULL) {
        find_places(b, fields, SECTIONS_DEEP, &found);
        find_places(b, more, SECTIONS_DEEP, &found);
        if (found.n == 0) {
            find_places(&whole, b->all, SECTIONS_DEEP, &found);
        }
        const tn_field *alike = found.n == 0 ? find_in_help(fields, item->key) : NULL;
        if (alike != NULL) {
            add_place(&found, path_of(b, alike->key));
        }
    }
    if (found.n > 0 && !found.of_another) {
        tn_diag_error(b->diag, &item->key_at, "unknown key '%s' (did you mean %s?)", item->key,
                      tn_text_str(&found.text));
    } else {
        tn_diag_unknown(b->diag, &item->key_at, "key", item->key, keys, n);
    }
    tn_text_done(&found.text);
}

/* Reports the keys of a map that neither table has; a variant has a type, too. */
static void report_unknown(const tn_binder *b, const tn_field *fields, const tn_field *more,
                           bool variant, const tn_tree *map)
{
    for (const tn_tree *item = map->first; item != NULL; item = item->next) {
        bool known = tn_field_find(fields, item->key) != NULL ||
                     tn_field_find(more, item->key) != NULL ||
                     (variant && strcmp(item->key, "type") == 0);
        if (!known) {
            report_stranger(b, fields, more, variant, item);
        }
    }
}

static void bind_known(const tn_binder *b, const tn_field *fields, const tn_tree *map, void *opts)
{
    for (const tn_field *f = fields; f != NULL && f->kind != TN_KIND_END; f++) {
        bind_one(b, f, tn_tree_get(map, f->key), (char *)opts + f->offset);
    }
}

/* Returns the map that is written, or NULL. */
static const tn_tree *map_of(const tn_binder *b, const tn_field *fields, const tn_tree *map)
{
    const tn_field whole = {.kind = TN_KIND_TABLE, .key = "configuration", .table = fields};
    map = tn_field_unfold(b->arena, &whole, map);
    if (map != NULL && map->kind != TN_TREE_MAP) {
        tn_diag_error(b->diag, &map->at, "%s must be a map", b->path != NULL ? b->path : "this");
        map = NULL;
    }
    return map;
}

void tn_fields_bind(const tn_binder *b, const tn_field *fields, const tn_tree *map, void *opts)
{
    tn_fields_bind_some(b, fields, map, opts);
    if (map != NULL && map->kind == TN_TREE_MAP) {
        report_unknown(b, fields, NULL, false, map);
    }
}

void tn_fields_bind_some(const tn_binder *b, const tn_field *fields, const tn_tree *map, void *opts)
{
    map = map_of(b, fields, map);
    tn_binder inner = *b;
    inner.at = map != NULL && inner.at == NULL ? &map->at : inner.at;
    inner.all = inner.all != NULL ? inner.all : fields;
    bind_known(&inner, fields, map, opts);
}

void tn_fields_bind_over(const tn_binder *b, const tn_field *fields, const tn_tree *map, void *opts)
{
    map = map_of(b, fields, map);
    for (const tn_field *f = fields; map != NULL && f->kind != TN_KIND_END; f++) {
        const tn_tree *given = tn_tree_get(map, f->key);
        if (given != NULL) {
            bind_one(b, f, given, (char *)opts + f->offset);
        }
    }
    if (map != NULL) {
        report_unknown(b, fields, NULL, false, map);
    }
}
