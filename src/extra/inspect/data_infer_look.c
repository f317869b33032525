/* data_infer_look.c - judges texts by giving them to the readers. */
#include "extra/inspect/data_infer_look.h"

#include "base/core/alloc.h"
#include "base/core/arena.h"
#include "base/core/number.h"
#include "config/yaml.h"
#include "io/rows/rows.h"
#include "io/schema/schema.h"
#include "train/config/run_loss.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A slot of each type, in this order. */
enum { AS_ID, AS_INT, AS_HEX, AS_FLOAT, AS_HOUR, N_TYPES };
static const char types[] = "label: label}\n"
                            "slots: [{name: id}, {name: int, type: int}, {name: hex, type: hex}, "
                            "{name: float, type: float}, {name: hour, type: int, transform: hour}]";
enum { IS_MISSING = 1 << N_TYPES, IS_INFINITE = 2 << N_TYPES, IS_LABEL = 4 << N_TYPES };

const char tn_look_hours[] = "hours as YYMMDDHH";

struct tn_looking {
    const tn_schema *schema;
    tn_rows *rows; /* a row that is begun and taken back for each text */
    bool nulls;    /* the format has data.null */
};

tn_status tn_looking_new(tn_looking **out, tn_data_input *in, bool nulls, tn_error *err)
{
    *out = NULL;
    tn_setup *s = in->setup;
    tn_text text = {0};
    const char *format = ((const tn_discovery *)in->found)->format;
    const bool words = tn_discovery_has_columns(format) && strcmp(format, "tfrecord") != 0;
    tn_text_addf(&text, "data: {format: %s, %s", words ? format : "tfrecord", types);
    const tn_yaml_in yaml = {.text = tn_text_str(&text), .size = text.size, .source = "types"};
    const tn_tree *tree = tn_yaml_read(s->arena, &s->diag, &yaml);
    tn_text_done(&text);
    TN_ASSERT(tree != NULL);
    tn_dataset *data = TN_NEW(s->arena, tn_dataset);
    TN_TRY(
        tn_dataset_bind(data, tree, TN_DATASET_AS_READ, tn_loss_target(in->root), &s->binder, err));
    tn_looking *l = tn_alloc(1, sizeof *l, "a look at columns");
    l->schema = data->schema;
    l->nulls = words && nulls;
    tn_status status = tn_rows_new(&l->rows, l->schema, 0, err);
    if (status != TN_OK) {
        tn_free(l);
        return status;
    }
    *out = l;
    return TN_OK;
}

void tn_looking_free(tn_looking *l)
{
    if (l != NULL) {
        tn_rows_free(l->rows);
        tn_free(l);
    }
}

/* Bits of the types that take a text, and IS_x. */
static uint32_t judge(tn_looking *l, const char *text, size_t size)
{
    tn_rows *rows = l->rows;
    uint32_t bits = 0;
    if (tn_rows_begin(rows, size + N_TYPES, NULL) != TN_OK) {
        return 0;
    }
    for (uint32_t i = 0; i < N_TYPES; i++) {
        const uint32_t before = rows->n_entries;
        const tn_fault fault = tn_rows_token(rows, &l->schema->spec[i], text, size, 1);
        if (fault == TN_FAULT_NONE) {
            bits |= rows->n_entries > before ? UINT32_C(1) << i : IS_MISSING;
        }
        bits |= fault == TN_FAULT_NOT_FINITE ? IS_INFINITE : 0;
    }
    bits |= tn_rows_label(rows, text, size) == TN_FAULT_NONE ? IS_LABEL : 0;
    tn_rows_rollback(rows);
    return bits;
}

/* ---- dates ---- */

/* `n` digits at `text`; -1: they are none. */
static int digits(const char *text, size_t n)
{
    uint64_t v = 0;
    return tn_read_u64(text, n, &v) == TN_NUM_OK ? (int)v : -1;
}

static bool is_day(int year, int month, int day)
{
    return year >= 1900 && year < 2100 && month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/* Recognizes 2026-11-07, 07/11/2026 and 11/07/2026, perhaps with a time after it. */
static bool is_written_day(const char *t, size_t size)
{
    enum { DAY = 10 };
    static const char marks[] = "-/.";
    if (size < DAY || (size > DAY && t[DAY] != ' ' && t[DAY] != 'T')) {
        return false;
    }
    for (size_t i = DAY; i < size; i++) {
        if (t[i] == '\0' || strchr("0123456789 T:.,+-ZUTCAPMapm", t[i]) == NULL) {
            return false;
        }
    }
    if (strchr(marks, t[4]) != NULL && t[4] == t[7]) {
        return is_day(digits(t, 4), digits(t + 5, 2), digits(t + 8, 2));
    }
    const int a = digits(t, 2);
    const int b = digits(t + 3, 2);
    return strchr(marks, t[2]) != NULL && t[2] == t[5] &&
           (is_day(digits(t + 6, 4), a, b) || is_day(digits(t + 6, 4), b, a));
}

/* Recognizes YYYYMMDD, with or without HH, MM and SS after it. */
static bool is_compact_day(const char *t, size_t size)
{
    static const int below[] = {24, 60, 60};
    if (size < 8 || size > 14 || size % 2 != 0 ||
        !is_day(digits(t, 4), digits(t + 4, 2), digits(t + 6, 2))) {
        return false;
    }
    for (size_t i = 8; i < size; i += 2) {
        const int part = digits(t + i, 2);
        if (part < 0 || part >= below[i / 2 - 4]) {
            return false;
        }
    }
    return true;
}

static bool ends_in(const char *name, const char *word)
{
    const size_t size = strlen(name);
    const size_t tail = strlen(word);
    return size >= tail && strcasecmp(name + size - tail, word) == 0;
}

bool tn_look_ends_in_id(const char *name)
{
    return ends_in(name, "id");
}

static bool named_as_time(const char *name)
{
    return strcasestr(name, "time") != NULL || strcasestr(name, "date") != NULL ||
           strcasestr(name, "stamp") != NULL || strcasestr(name, "hour") != NULL ||
           ends_in(name, "ts") || ends_in(name, "dt") || ends_in(name, "day") ||
           ends_in(name, "_at") || ends_in(name, "epoch");
}

/* Seconds since 1970 and parts of them, from 2000 to 2050: of a column that is called so, or that
 * rises as a log does. */
static const char *unix_times(const tn_column_look *c, bool named)
{
    static const double from = 946684800;
    static const double to = 2524608000;
    static const double ten_years = 315360000;
    static const char *const units[] = {"unix seconds", "unix milliseconds", "unix microseconds",
                                        "unix nanoseconds"};
    enum { RISING_MIN = 100 };
    const bool rises = c->values >= RISING_MIN && c->risen * 5 >= c->values * 4;
    double unit = 1;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (c->least >= from * unit && c->largest < to * unit &&
            (named || (rises && c->largest - c->least < ten_years * unit))) {
            return units[i];
        }
        unit *= 1000;
    }
    return NULL;
}

const char *tn_look_times(const tn_column_look *c, const char *name)
{
    enum { SURE_MIN = 3 }; /* different values: one or two numbers may be dates by chance */
    const bool named = named_as_time(name);
    const bool sure = named || tn_look_different(c) >= SURE_MIN;
    if (c->pieces == 0 || c->pieces != c->filled) {
        return NULL;
    }
    if (c->day == c->pieces) {
        return "dates";
    }
    if (tn_look_ends_in_id(name) || !sure) {
        return NULL;
    }
    return c->hour == c->pieces      ? tn_look_hours
           : c->compact == c->pieces ? "dates as YYYYMMDD"
           : c->number == c->pieces  ? unix_times(c, named)
                                     : NULL;
}

/* ---- values ---- */

static void add_number(tn_column_look *c, const char *text, size_t size)
{
    static const double exact = 1e15;
    double x = 0;
    if (tn_read_f64(text, size, &x) != TN_NUM_OK) { /* True */
        return;
    }
    c->rounded += fabs(x) >= exact && (fabs(x) >= 0x1p64 || memchr(text, 'e', size) != NULL ||
                                       memchr(text, 'E', size) != NULL);
    c->least = c->number == 1 ? x : fmin(c->least, x);
    c->largest = c->number == 1 ? x : fmax(c->largest, x);
    c->risen += c->number > 1 && x >= c->last;
    c->last = x;
    c->sum += x;
}

static void look_at_piece(tn_column_look *c, const char *text, size_t size, uint32_t bits)
{
    enum { HEX_DIGITS = 8 };
    /* zeros in front would be lost */
    const bool led = size > 1 && text[0] == '0' && text[1] >= '0' && text[1] <= '9';
    c->pieces++;
    c->hex += size == HEX_DIGITS && (bits >> AS_HEX & 1) != 0;
    c->hour += size == HEX_DIGITS && (bits >> AS_HOUR & 1) != 0;
    c->day += is_written_day(text, size);
    c->readable += (bits >> AS_HOUR & 1) != 0;
    c->compact += is_compact_day(text, size);
    if (led) {
        return;
    }
    c->natural += bits >> AS_ID & 1;
    c->whole += (bits >> AS_ID | bits >> AS_INT) & 1;
    c->negative += (bits >> AS_INT & ~(bits >> AS_ID)) & 1;
    c->infinite += (bits & IS_INFINITE) != 0 && (bits & IS_MISSING) == 0;
    if (((bits >> AS_ID | bits >> AS_INT | bits >> AS_FLOAT) & 1) != 0) {
        c->number++;
        add_number(c, text, size);
    }
}

static void keep_word(tn_column_look *c, const char *text, size_t size, uint64_t n)
{
    uint32_t i = 0;
    while (i < c->n_words && i < TN_LOOK_WORDS &&
           (strncmp(c->word[i].text, text, size) != 0 || c->word[i].text[size] != '\0')) {
        i++;
    }
    if (i < c->n_words && i < TN_LOOK_WORDS) {
        c->word[i].n += n;
    } else if (i == TN_LOOK_WORDS || size >= TN_LOOK_BYTES) {
        c->n_words = TN_LOOK_WORDS + 1;
    } else if (c->n_words == i) {
        tn_look_word *w = &c->word[c->n_words++];
        memcpy(w->text, text, size);
        w->n = n;
        if (tn_read_f64(text, size, &w->number) != TN_NUM_OK) {
            w->number = (double)NAN;
        }
    }
}

void tn_look_at(tn_looking *l, tn_column_look *c, uint32_t row, const char *text, size_t size)
{
    const uint32_t bits = judge(l, text, size);
    const uint32_t gap = l->nulls ? tn_missing_word(text, size) : TN_MISSING_WORDS;
    if (gap < TN_MISSING_WORDS || (bits & IS_MISSING) != 0) {
        c->gaps++;
        if (gap < TN_MISSING_WORDS) {
            c->gap[gap]++;
            c->unread_gaps |= (uint32_t)((bits & IS_MISSING) == 0) << gap;
        }
        return;
    }
    c->filled += c->last_row != row;
    c->last_row = row;
    c->values++;
    c->labels += (bits & IS_LABEL) != 0;
    keep_word(c, text, size, 1);
    tn_distinct_add(&c->distinct, tn_xxh64(text, size, 0));
    const char *bar = size > 0 ? memchr(text, '|', size) : NULL;
    if (bar == NULL) {
        look_at_piece(c, text, size, bits);
        return;
    }
    c->listed++;
    for (const char *end = text + size; text <= end; text = bar + 1) {
        bar = text < end ? memchr(text, '|', (size_t)(end - text)) : NULL;
        bar = bar != NULL ? bar : end;
        look_at_piece(c, text, (size_t)(bar - text), judge(l, text, (size_t)(bar - text)));
    }
}

void tn_look_end(tn_column_look *c)
{
    if (c->number + c->infinite == c->pieces || c->hex == c->pieces || c->day == c->pieces) {
        return; /* the readers, or data.null, leave the gaps out */
    }
    c->filled += c->gaps;
    c->values += c->gaps;
    c->pieces += c->gaps;
    c->unread_gaps = 0;
    for (uint32_t i = 0; i < TN_MISSING_WORDS; i++) {
        const char *word = tn_missing_words[i];
        if (c->gap[i] > 0) {
            keep_word(c, word, strlen(word), c->gap[i]);
            tn_distinct_add(&c->distinct, tn_xxh64(word, strlen(word), 0));
        }
    }
}

uint64_t tn_look_different(const tn_column_look *c)
{
    return tn_distinct_count(&c->distinct, &(bool){false});
}

bool tn_look_same(const tn_column_look *c, uint32_t i, uint32_t k)
{
    const tn_look_word *a = &c->word[i];
    const tn_look_word *b = &c->word[k];
    return isnan(a->number) || isnan(b->number) ? strcmp(a->text, b->text) == 0
                                                : a->number == b->number;
}

uint32_t tn_look_classes(const tn_column_look *c)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->n_words && i < TN_LOOK_WORDS; i++) {
        uint32_t k = 0;
        while (k < i && !tn_look_same(c, i, k)) {
            k++;
        }
        n += k == i;
    }
    return c->n_words > TN_LOOK_WORDS ? TN_LOOK_WORDS + 1 : n;
}
