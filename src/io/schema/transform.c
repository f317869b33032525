/* transform.c - numbers before they become inputs or keys. */
#include "io/schema/transform.h"

#include "base/core/arena.h"
#include "base/core/bytes.h"
#include "base/core/number.h"
#include "base/file/file.h"
#include "base/math/fmath.h"
#include "config/diag.h"
#include "config/field.h"
#include "config/tree.h"

#include <math.h>
#include <string.h>

#define SMALLEST_DEVIATION 1e-12
#define QUANTILES_BYTES_MAX ((size_t)64 << 20)

enum { PARTS_MAX = 100000 };

static const char quantiles[] = "quantiles";

static bool fault(const tn_binder *b, const tn_tree *at, const char *text)
{
    tn_diag_error(b->diag, &at->at, "%s", text);
    return false;
}

/* A list of `n` numbers; n 0: any count. */
static bool read_numbers(const tn_binder *b, const tn_tree *list, uint32_t n, tn_f64s *out)
{
    static const tn_field number = {.kind = TN_KIND_F64,
                                    .key = "transform",
                                    .min = -(double)INFINITY,
                                    .max = (double)INFINITY,
                                    .unit = ""};
    uint32_t count = tn_tree_count(list);
    if (list == NULL || list->kind != TN_TREE_LIST || count == 0 || (n != 0 && count != n)) {
        return fault(b, list,
                     n == 2 ? "expected a list of two numbers" : "expected a list of numbers");
    }
    double *item = TN_NEW_ARRAY(b->arena, double, count);
    uint32_t i = 0;
    for (const tn_tree *t = list->first; t != NULL; t = t->next) {
        if (t->kind != TN_TREE_SCALAR || !tn_read_scalar(b, &number, t, &item[i])) {
            return t->kind == TN_TREE_SCALAR ? false : fault(b, t, "expected a number");
        }
        i++;
    }
    *out = (tn_f64s){count, item};
    return true;
}

static bool take_bounds(tn_transform *out, const tn_f64s *list, const tn_tree *at,
                        const tn_binder *b)
{
    for (uint32_t i = 1; i < list->n; i++) {
        if (!(list->item[i - 1] < list->item[i])) {
            return fault(b, at, "bounds of buckets must ascend");
        }
    }
    out->n_bounds = list->n;
    out->bound = list->item;
    return true;
}

static bool read_buckets(tn_transform *out, const tn_tree *tree, const tn_binder *b)
{
    tn_f64s list;
    return read_numbers(b, tree, 0, &list) && take_bounds(out, &list, tree, b);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',';
}

/* Numbers between blanks, line ends or commas; false: something else is there. */
static bool scan_numbers(const tn_text *text, tn_arena *arena, tn_f64s *out)
{
    double *item = TN_NEW_ARRAY(arena, double, text->size / 2 + 1);
    uint32_t n = 0;
    size_t at = 0;
    while (at < text->size) {
        size_t end = at;
        while (end < text->size && !is_space(text->data[end])) {
            end++;
        }
        if (end > at && tn_read_f64(text->data + at, end - at, &item[n++]) != TN_NUM_OK) {
            return false;
        }
        at = end + 1;
    }
    *out = (tn_f64s){n, item};
    return n > 0;
}

uint32_t tn_transform_parts(const tn_tree *tree, bool is_bucketed)
{
    if (tn_tree_is_null(tree)) {
        return is_bucketed ? TN_TRANSFORM_PARTS : 0;
    }
    if (tree->kind == TN_TREE_SCALAR) {
        return strcmp(tree->text, quantiles) == 0 ? TN_TRANSFORM_PARTS : 0;
    }
    const tn_tree *n = tn_tree_get(tree, quantiles);
    uint64_t value = 0;
    return n != NULL && n->kind == TN_TREE_SCALAR &&
                   tn_read_u64(n->text, strlen(n->text), &value) == TN_NUM_OK && value >= 2 &&
                   value <= PARTS_MAX
               ? (uint32_t)value
               : 0;
}

static bool read_quantiles(tn_transform *out, const tn_tree *tree, const tn_binder *b)
{
    double number = 0;
    if (tree->kind != TN_TREE_SCALAR ||
        tn_read_f64(tree->text, strlen(tree->text), &number) == TN_NUM_OK) {
        return fault(b, tree, "expected 2 to 100000 parts, or the path of a file of bounds");
    }
    tn_text text = {0};
    tn_error err = {0};
    tn_f64s list = {0, NULL};
    bool good = tn_file_read_all(tree->text, QUANTILES_BYTES_MAX, &text, &err) == TN_OK &&
                tn_arena_reserve(b->arena, (text.size / 2 + 2) * sizeof(double),
                                 "bounds of buckets", &err) == TN_OK;
    if (!good) {
        tn_diag_error(b->diag, &tree->at, "%s", err.text);
    } else if (!scan_numbers(&text, b->arena, &list)) {
        good = fault(b, tree, "expected a file of numbers, one bound per line");
    } else {
        good = take_bounds(out, &list, tree, b);
    }
    tn_text_done(&text);
    return good;
}

static bool read_zscore(tn_transform *out, const tn_tree *tree, const tn_binder *b)
{
    static const tn_field freeze = {
        .kind = TN_KIND_U64, .key = "freeze_rows", .min = 0, .max = 1e18, .unit = "rows"};
    out->a = (double)NAN;
    out->freeze_rows = TN_ZSCORE_FREEZE_ROWS;
    if (tree == NULL || tn_tree_is_null(tree)) {
        return true;
    }
    if (tree->kind == TN_TREE_MAP) {
        const tn_tree *rows = tn_tree_get(tree, "freeze_rows");
        if (rows == NULL || tn_tree_count(tree) != 1) {
            return fault(b, tree, "expected [mean, deviation] or {freeze_rows: n}");
        }
        return tn_read_scalar(b, &freeze, rows, &out->freeze_rows);
    }
    tn_f64s pair;
    if (!read_numbers(b, tree, 2, &pair)) {
        return false;
    }
    if (!isfinite(pair.item[0]) || !(pair.item[1] >= 0) || isinf(pair.item[1])) {
        return fault(b, tree, "zscore needs a finite mean and a deviation of at least 0");
    }
    out->a = pair.item[0];
    out->b = pair.item[1];
    return true;
}

static bool read_minmax(tn_transform *out, const tn_tree *tree, const tn_binder *b)
{
    tn_f64s pair;
    if (!read_numbers(b, tree, 2, &pair)) {
        return false;
    }
    if (!(pair.item[0] < pair.item[1]) || isinf(pair.item[1] - pair.item[0])) {
        return fault(b, tree, "minmax needs a < b");
    }
    out->a = pair.item[0];
    out->b = pair.item[1];
    return true;
}

static bool read_plain(tn_transform *out, const tn_tree *more, const tn_binder *b)
{
    if (out->kind == TN_TRANSFORM_LN2_BUCKET) {
        uint8_t *small = TN_NEW_ARRAY(b->arena, uint8_t, TN_LN2_SMALL);
        for (uint32_t v = 3; v < TN_LN2_SMALL; v++) {
            double ln = tn_ln(v);
            small[v] = (uint8_t)(ln * ln);
        }
        out->small = small;
    }
    return tn_tree_is_null(more) || fault(b, more, "this transform takes no options");
}

enum { N_NAMES = 10 };

static const char *const names[N_NAMES] = {"identity",   "log",     "minmax",    "zscore",
                                           "ln2_bucket", "buckets", "quantiles", "hour",
                                           "weekday",    "weekend"};

/* In the order of the names. */
static const struct {
    tn_transform_kind kind;
    bool needs_numbers;
    bool (*read)(tn_transform *out, const tn_tree *more, const tn_binder *b);
} transforms[N_NAMES] = {
    {TN_TRANSFORM_IDENTITY, false, read_plain},   {TN_TRANSFORM_LOG, false, read_plain},
    {TN_TRANSFORM_MINMAX, true, read_minmax},     {TN_TRANSFORM_ZSCORE, false, read_zscore},
    {TN_TRANSFORM_LN2_BUCKET, false, read_plain}, {TN_TRANSFORM_BUCKETS, true, read_buckets},
    {TN_TRANSFORM_BUCKETS, true, read_quantiles}, {TN_TRANSFORM_HOUR, false, read_plain},
    {TN_TRANSFORM_WEEKDAY, false, read_plain},    {TN_TRANSFORM_WEEKEND, false, read_plain},
};

/* Reads `name` alone, or with the value after its colon. */
static bool read_named(tn_transform *out, const tn_tree *at, const char *name, const tn_tree *more,
                       const tn_binder *b)
{
    uint32_t i = 0;
    while (i < N_NAMES && strcmp(names[i], name) != 0) {
        i++;
    }
    if (i == N_NAMES) {
        const char *nearest = tn_nearest(name, names, N_NAMES);
        tn_diag_error(b->diag, &at->at, "unknown transform '%s'%s%s%s", name,
                      nearest != NULL ? " (did you mean '" : "", nearest != NULL ? nearest : "",
                      nearest != NULL ? "'?)" : "");
        return false;
    }
    if (transforms[i].needs_numbers && tn_tree_is_null(more)) {
        tn_diag_error(b->diag, &at->at, "transform '%s' needs numbers, as in {%s: ..}", name, name);
        return false;
    }
    out->kind = transforms[i].kind;
    return transforms[i].read(out, more, b);
}

bool tn_transform_read(tn_transform *out, const tn_tree *tree, const tn_binder *b)
{
    *out = (tn_transform){.kind = TN_TRANSFORM_IDENTITY};
    if (tn_tree_is_null(tree)) {
        return true;
    }
    if (tn_transform_parts(tree, false) > 0) {
        out->kind = TN_TRANSFORM_BUCKETS; /* the data will give the bounds */
        return true;
    }
    if (tree->kind == TN_TREE_SCALAR) {
        return read_named(out, tree, tree->text, NULL, b);
    }
    if (tree->kind != TN_TREE_MAP || tn_tree_count(tree) != 1) {
        return fault(b, tree, "expected one transform, as in log or {buckets: [18, 25]}");
    }
    return read_named(out, tree->first, tree->first->key, tree->first, b);
}

float tn_transform_value(const tn_transform *t, double v)
{
    switch (t->kind) {
    case TN_TRANSFORM_LOG:
        return (float)copysign(tn_log1p(fabs(v)), v);
    case TN_TRANSFORM_MINMAX: {
        double x = (v - t->a) / (t->b - t->a);
        return (float)(x < 0 ? 0 : x > 1 ? 1 : x);
    }
    case TN_TRANSFORM_ZSCORE:
        return (float)(isnan(t->a) ? v : (v - t->a) / fmax(t->b, SMALLEST_DEVIATION));
    case TN_TRANSFORM_IDENTITY:
    case TN_TRANSFORM_LN2_BUCKET:
    case TN_TRANSFORM_BUCKETS:
    case TN_TRANSFORM_HOUR:
    case TN_TRANSFORM_WEEKDAY:
    case TN_TRANSFORM_WEEKEND:
    default:
        return (float)v;
    }
}

/* Small whole numbers, nearly all there are, are read off a table. */
static uint64_t ln2_sign(const tn_transform *t, double v)
{
    if (v > 2) {
        if (v < TN_LN2_SMALL) {
            uint32_t whole = (uint32_t)v;
            if (whole == v) {
                return t->small[whole];
            }
        }
        double ln = tn_ln(v);
        return (uint64_t)(ln * ln);
    }
    double whole = v < INT32_MIN ? (double)INT32_MIN : trunc(v);
    return TN_LN2_OFFSET + (uint32_t)(int32_t)whole;
}

static uint64_t bucket_of(const tn_transform *t, double v)
{
    uint32_t from = 0;
    uint32_t n = t->n_bounds;
    while (n > 0) {
        uint32_t half = n / 2;
        bool above = t->bound[from + half] <= v;
        from = above ? from + half + 1 : from;
        n = above ? n - half - 1 : half;
    }
    return from;
}

double tn_transform_of_single(const tn_transform *t, float v)
{
    const double exact = (double)v;
    if (t->kind != TN_TRANSFORM_BUCKETS || exact == floor(exact)) {
        return exact; /* whole numbers are what they are */
    }
    const uint64_t next = bucket_of(t, exact);
    return next < t->n_bounds && (float)t->bound[next] == v ? t->bound[next] : exact;
}

/* ---- dates ---- */

#define YYMMDDHH_END 1e8
#define UNIX_FIRST 631152000.0 /* 1990-01-01; what is between is a mistake (114102100) */
#define UNIX_END 1e11          /* a time in 5138; milliseconds are above */

typedef struct date {
    uint32_t year, month, day, hour;
} date;

static bool is_date(const date *d)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    const bool leap = d->year % 4 == 0 && (d->year % 100 != 0 || d->year % 400 == 0);
    return d->month >= 1 && d->month <= 12 && d->day >= 1 && d->hour < 24 &&
           (d->day <= days[d->month - 1] || (leap && d->month == 2 && d->day == 29));
}

static date date_of(uint32_t yymmddhh)
{
    return (date){2000 + yymmddhh / 1000000, yymmddhh / 10000 % 100, yymmddhh / 100 % 100,
                  yymmddhh % 100};
}

bool tn_transform_takes(const tn_transform *t, double v)
{
    if (!tn_transform_is_date(t)) {
        return true;
    }
    if (!(v >= 0 && v < YYMMDDHH_END) || v != floor(v)) {
        return v >= UNIX_FIRST && v < UNIX_END;
    }
    const date d = date_of((uint32_t)v);
    return is_date(&d);
}

/* 0: Monday. By Sakamoto's table of the days before each month, of years that begin in March. */
static uint32_t weekday_of(const date *d)
{
    static const uint8_t before[] = {0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4};
    const uint32_t year = d->year + 400 - (d->month < 3); /* 400 years are whole weeks */
    return (year + year / 4 - year / 100 + year / 400 + before[d->month - 1] + d->day + 6) % 7;
}

/* Holds a weekday and an hour. */
static uint64_t date_sign(tn_transform_kind kind, uint32_t weekday, uint32_t hour)
{
    enum { SATURDAY = 5 };
    return kind == TN_TRANSFORM_HOUR      ? hour
           : kind == TN_TRANSFORM_WEEKDAY ? weekday
                                          : (uint64_t)(weekday >= SATURDAY);
}

static uint64_t number_sign(tn_transform_kind kind, double v)
{
    enum { HOUR = 3600, DAY = 24 * HOUR, THURSDAY = 3 /* 1970-01-01 */ };
    if (v < YYMMDDHH_END) {
        const date d = date_of((uint32_t)v);
        return kind == TN_TRANSFORM_HOUR ? d.hour : date_sign(kind, weekday_of(&d), d.hour);
    }
    const uint64_t seconds = (uint64_t)v;
    return date_sign(kind, (uint32_t)((seconds / DAY + THURSDAY) % 7),
                     (uint32_t)(seconds % DAY / HOUR));
}

/* Takes one of `marks`, unless that is "", and `n` digits off the text. */
static bool take_part(tn_bytes *text, const char *marks, uint32_t n, uint32_t *out)
{
    tn_bytes rest = *text;
    if (marks[0] != '\0' && (rest.size == 0 || strchr(marks, *rest.data) == NULL)) {
        return false;
    }
    (void)tn_get(&rest, marks[0] != '\0');
    const char *digit = tn_get(&rest, n);
    *out = 0;
    for (uint32_t i = 0; digit != NULL && i < n; i++) {
        if (digit[i] < '0' || digit[i] > '9') {
            return false;
        }
        *out = *out * 10 + (uint32_t)(digit[i] - '0');
    }
    if (digit != NULL) {
        *text = rest;
    }
    return digit != NULL;
}

/* Reads a time after its hour: :15 :15:07 :15:07.25, then nothing, Z, +02, +0200 or +02:00. */
static bool is_time_end(tn_bytes text)
{
    uint32_t part = 0;
    uint32_t more = 0;
    if (take_part(&text, ":", 2, &part)) {
        const bool seconds = take_part(&text, ":", 2, &more);
        for (uint32_t digit = 0; seconds && take_part(&text, ".,", 1, &digit);) {
            while (take_part(&text, "", 1, &digit)) {
            }
        }
        if (part > 59 || more > 60) { /* 60: a leap second */
            return false;
        }
    }
    if (text.size == 1 && (*text.data == 'Z' || *text.data == 'z')) {
        return true;
    }
    if (text.size > 0 && take_part(&text, "+-", 2, &part)) {
        return part < 24 && (text.size == 0 ||
                             ((take_part(&text, ":", 2, &more) || take_part(&text, "", 2, &more)) &&
                              more < 60 && text.size == 0));
    }
    return text.size == 0;
}

bool tn_transform_date(const tn_transform *t, const char *text, size_t size, uint64_t *out)
{
    double v = 0;
    if (tn_read_f64(text, size, &v) == TN_NUM_OK) {
        const bool good = tn_transform_takes(t, v);
        *out = good ? number_sign(t->kind, v) : 0;
        return good;
    }
    date d = {.hour = 0};
    tn_bytes rest = {text, size, false};
    if (!take_part(&rest, "", 4, &d.year) || !take_part(&rest, "-", 2, &d.month) ||
        !take_part(&rest, "-", 2, &d.day) ||
        (rest.size > 0 && (!take_part(&rest, "Tt ", 2, &d.hour) || !is_time_end(rest))) ||
        !is_date(&d)) {
        return false;
    }
    *out = date_sign(t->kind, weekday_of(&d), d.hour);
    return true;
}

uint64_t tn_transform_sign(const tn_transform *t, double v)
{
    TN_ASSERT(tn_transform_is_sign(t));
    switch (t->kind) {
    case TN_TRANSFORM_LN2_BUCKET:
        return ln2_sign(t, v);
    case TN_TRANSFORM_HOUR:
    case TN_TRANSFORM_WEEKDAY:
    case TN_TRANSFORM_WEEKEND:
        return number_sign(t->kind, v);
    case TN_TRANSFORM_BUCKETS:
    case TN_TRANSFORM_IDENTITY:
    case TN_TRANSFORM_LOG:
    case TN_TRANSFORM_MINMAX:
    case TN_TRANSFORM_ZSCORE:
    default:
        return bucket_of(t, v);
    }
}
