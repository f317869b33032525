/* field.c - one value of an option from its text.
 *
 * Each kind has a row in `kinds`: how its text is read and what "not set" looks
 * like in memory. Types are the option's, so `no`, `010` and `12:30:45` are what
 * the option says they are.
 */
#include "config/field.h"

#include "base/core/number.h"
#include "config/diag.h"
#include "config/tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { BOUND_MAX = 40 };

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

/* 4294967295 rather than 4.29497e+09. */
static const char *bound_text(double bound, char out[BOUND_MAX])
{
    if (fabs(bound) < 1e15 && bound == floor(bound)) {
        (void)snprintf(out, BOUND_MAX, "%.0f", bound);
    } else {
        size_t size = tn_write_f64(out, bound);
        out[size] = '\0';
    }
    return out;
}

static bool in_range(const tn_binder *b, const tn_field *f, const tn_tree *at, double number)
{
    if (number >= f->min && number <= f->max) {
        return true;
    }
    char lo[BOUND_MAX];
    char hi[BOUND_MAX];
    tn_diag_error(b->diag, &at->at, "'%s' is %s, not within %s .. %s%s%s", f->key, at->text,
                  bound_text(f->min, lo), bound_text(f->max, hi), f->unit[0] != '\0' ? " " : "",
                  f->unit);
    return false;
}

static bool refuse(const tn_binder *b, const tn_field *f, const tn_tree *at, const char *what)
{
    tn_diag_error(b->diag, &at->at, "'%s' is not %s: '%s'", f->key, what, at->text);
    return false;
}

const char *const tn_field_default_alone[] = {NULL};

/* Which of `f->words` the text is; UINT32_MAX: none. */
static uint32_t word_index(const tn_field *f, const char *text)
{
    for (uint32_t i = 0; f->words != NULL && f->words[i] != NULL; i++) {
        if (strcmp(f->words[i], text) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
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

/* "-1.5e3" in front of a unit. Returns its length, 0 when there is no number. An 'e' belongs to
 * the number only when digits follow. */
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

static bool read_whole(const tn_binder *b, const tn_field *f, const tn_tree *t, uint64_t *out)
{
    uint64_t whole = 0;
    if (tn_read_u64(t->text, strlen(t->text), &whole) == TN_NUM_OK) {
        *out = whole;
        return in_range(b, f, t, (double)whole);
    }
    double number = 0;
    if (!read_scaled(t->text, count_scales, false, &number)) {
        return refuse(b, f, t, "a number");
    }
    if (number != floor(number)) {
        return refuse(b, f, t, "a whole number");
    }
    if (!in_range(b, f, t, number)) {
        return false;
    }
    TN_ASSERT(number >= 0 && number < 0x1p64);
    *out = (uint64_t)number;
    return true;
}

static bool read_u32(const tn_binder *b, const tn_field *f, const tn_tree *t, void *out)
{
    TN_ASSERT(f->min >= 0 && f->max <= UINT32_MAX);
    uint32_t word = word_index(f, t->text);
    uint64_t whole = TN_WORD_U32(word);
    if (word == UINT32_MAX && !read_whole(b, f, t, &whole)) {
        return false;
    }
    uint32_t number = (uint32_t)whole;
    memcpy(out, &number, sizeof number);
    return true;
}

static bool read_u64(const tn_binder *b, const tn_field *f, const tn_tree *t, void *out)
{
    uint32_t word = word_index(f, t->text);
    uint64_t whole = TN_WORD_U64(word);
    if (word == UINT32_MAX && !read_whole(b, f, t, &whole)) {
        return false;
    }
    memcpy(out, &whole, sizeof whole);
    return true;
}

static bool read_f64(const tn_binder *b, const tn_field *f, const tn_tree *t, void *out)
{
    uint32_t word = word_index(f, t->text);
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

/* One or more numbers with units: 2h30m. */
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

static bool read_size(const tn_binder *b, const tn_field *f, const tn_tree *t, void *out)
{
    double bytes = 0;
    const uint32_t word = word_index(f, t->text);
    if (word != UINT32_MAX) {
        const uint64_t value = TN_WORD_U64(word);
        memcpy(out, &value, sizeof value);
        return true;
    }
    if (!read_scaled(t->text, size_scales, true, &bytes)) {
        (void)refuse(b, f, t, "a size");
        tn_diag_hint(b->diag, "write a number with a unit, such as 64kB, 512MB or 12GiB");
        return false;
    }
    if (bytes != floor(bytes)) {
        return refuse(b, f, t, "a whole number of bytes");
    }
    if (!in_range(b, f, t, bytes)) {
        return false;
    }
    TN_ASSERT(bytes >= 0 && bytes < 0x1p64);
    uint64_t whole = (uint64_t)bytes;
    memcpy(out, &whole, sizeof whole);
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
    uint32_t index = word_index(f, t->text);
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

typedef bool read_kind(const tn_binder *b, const tn_field *f, const tn_tree *t, void *out);

static read_kind *const kinds[] = {
    [TN_KIND_BOOL] = read_bool,         [TN_KIND_U32] = read_u32,       [TN_KIND_U64] = read_u64,
    [TN_KIND_F64] = read_f64,           [TN_KIND_STR] = read_str,       [TN_KIND_SIZE] = read_size,
    [TN_KIND_DURATION] = read_duration, [TN_KIND_CHOICE] = read_choice,
};

bool tn_read_scalar(const tn_binder *b, const tn_field *as, const tn_tree *scalar, void *out)
{
    TN_ASSERT((size_t)as->kind < sizeof kinds / sizeof *kinds && kinds[as->kind] != NULL);
    if (scalar->kind != TN_TREE_SCALAR) {
        bool list = scalar->kind == TN_TREE_LIST;
        tn_diag_error(b->diag, &scalar->at, "'%s' must be a single value, not %s", as->key,
                      tn_tree_is_null(scalar) ? "empty"
                      : list                  ? "a list"
                                              : "a map");
        return false;
    }
    return kinds[as->kind](b, as, scalar, out);
}
