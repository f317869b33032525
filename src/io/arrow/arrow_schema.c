/* arrow_schema.c - reads the format strings of a schema: which column is of which type.
 *
 * https://arrow.apache.org/docs/format/CDataInterface.html lists them. What a type of an extension
 * is stored as is what is read of it.
 */
#include "io/arrow/arrow_abi.h"
#include "io/arrow/arrow_column.h"
#include "io/arrow/arrow_text.h"

#include "base/core/alloc.h"
#include "base/core/number.h"

#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 8, FIXED_MAX = 1 << 30, DECIMAL_BITS = 128 };

/* The types whose format is these characters and no more. */
typedef struct plain_type {
    const char *format;
    tn_arrow_kind kind;
    uint32_t width;
    uint32_t digits;
} plain_type;

static const plain_type plain_types[] = {
    {"n", TN_ARROW_NULL, 0, 0},        {"b", TN_ARROW_BOOL, 0, 0},
    {"c", TN_ARROW_INT8, 1, 0},        {"C", TN_ARROW_UINT8, 1, 0},
    {"s", TN_ARROW_INT16, 2, 0},       {"S", TN_ARROW_UINT16, 2, 0},
    {"i", TN_ARROW_INT32, 4, 0},       {"I", TN_ARROW_UINT32, 4, 0},
    {"l", TN_ARROW_INT64, 8, 0},       {"L", TN_ARROW_UINT64, 8, 0},
    {"e", TN_ARROW_HALF, 2, 0},        {"f", TN_ARROW_SINGLE, 4, 0},
    {"g", TN_ARROW_REAL, 8, 0},        {"z", TN_ARROW_TEXT, 4, 0},
    {"u", TN_ARROW_TEXT, 4, 0},        {"Z", TN_ARROW_LARGE_TEXT, 8, 0},
    {"U", TN_ARROW_LARGE_TEXT, 8, 0},  {"vz", TN_ARROW_TEXT_VIEW, 16, 0},
    {"vu", TN_ARROW_TEXT_VIEW, 16, 0}, {"tdD", TN_ARROW_DATE32, 4, 0},
    {"tdm", TN_ARROW_DATE64, 8, 0},    {"tts", TN_ARROW_TIME32, 4, 0},
    {"ttm", TN_ARROW_TIME32, 4, 3},    {"ttu", TN_ARROW_TIME64, 8, 6},
    {"ttn", TN_ARROW_TIME64, 8, 9},    {"+l", TN_ARROW_LIST, 4, 0},
    {"+L", TN_ARROW_LARGE_LIST, 8, 0}, {"+vl", TN_ARROW_LIST_VIEW, 4, 0},
    {"+r", TN_ARROW_RUNS, 0, 0},       {"+vL", TN_ARROW_LARGE_LIST_VIEW, 8, 0},
};

/* Names of the types that are not read, by how their formats begin. */
static const char *const unread[][2] = {
    {"+s", "structs"}, {"+m", "maps"}, {"+u", "unions"}, {"tD", "durations"}, {"ti", "intervals"},
};

/* A word of a schema for a message, on one line. */
typedef struct word {
    char text[60];
} word;

static word shown(const char *text)
{
    word w;
    (void)snprintf(w.text, sizeof w.text, "%s", text);
    tn_make_printable(w.text, "");
    return w;
}

/* Says which type a column has; the status is TN_E_DATA. */
static tn_status refuse_format(const char *format, char why[TN_ARROW_WHY_BYTES])
{
    const word name = shown(format);
    for (size_t i = 0; i < sizeof unread / sizeof *unread; i++) {
        if (strncmp(format, unread[i][0], strlen(unread[i][0])) == 0) {
            (void)snprintf(why, TN_ARROW_WHY_BYTES,
                           "holds %s (Arrow's format '%s'), which are not read\nhint: give its "
                           "parts as columns of their own, or leave the column out",
                           unread[i][1], name.text);
            return TN_E_DATA;
        }
    }
    (void)snprintf(why, TN_ARROW_WHY_BYTES, "has Arrow's format '%s', which is not known",
                   name.text);
    return TN_E_DATA;
}

static tn_status refuse_schema(char why[TN_ARROW_WHY_BYTES], const char *what)
{
    (void)snprintf(why, TN_ARROW_WHY_BYTES, "has a schema %s", what);
    return TN_E_DATA;
}

/* Takes a decimal integer off the front of a text; false: there is none of at most `max`. */
static bool take_number(const char **text, int32_t max, int32_t *out)
{
    int64_t value = 0;
    const char *at = *text + (**text == '-');
    const size_t n = strspn(at, "0123456789");
    if (n == 0 || n > 10 || tn_read_i64(at, n, &value) != TN_NUM_OK || value > max) {
        return false;
    }
    *out = (int32_t)(**text == '-' ? -value : value);
    *text = at + n;
    return true;
}

/* d:precision,scale or d:precision,scale,bits */
static bool read_decimal(tn_arrow_column *c, const char *format)
{
    int32_t precision = 0;
    int32_t bits = DECIMAL_BITS;
    const char *at = format + 2;
    bool good = take_number(&at, 76, &precision) && precision > 0 && *at == ',';
    at += good;
    good = good && take_number(&at, TN_ARROW_SCALE_MAX, &c->scale);
    if (good && *at == ',') {
        at++;
        good = take_number(&at, 256, &bits) &&
               (bits == 32 || bits == 64 || bits == 128 || bits == 256);
    }
    c->kind = TN_ARROW_DECIMAL;
    c->width = (uint32_t)bits / 8;
    return good && *at == '\0';
}

/* w:bytes, +w:items */
static bool read_fixed(tn_arrow_column *c, const char *at, tn_arrow_kind kind)
{
    int32_t n = 0;
    const bool good = take_number(&at, FIXED_MAX, &n) && n >= 0 && *at == '\0';
    c->kind = kind;
    c->width = (uint32_t)n;
    return good;
}

static bool is_two_digits(const char *text, int limit)
{
    return text[0] >= '0' && text[0] <= '9' && text[1] >= '0' && text[1] <= '9' &&
           (text[0] - '0') * 10 + text[1] - '0' < limit;
}

/* Reads UTC or an hour and minute; false: a zone by name, whose hours are not known here. */
static bool read_zone(const char *zone, int32_t *seconds)
{
    static const char *const utc[] = {"", "UTC", "Etc/UTC", "GMT", "Z"};
    for (size_t i = 0; i < sizeof utc / sizeof *utc; i++) {
        if (strcmp(zone, utc[i]) == 0) {
            return true;
        }
    }
    const size_t n = strlen(zone);
    const char *minute = zone + n - 2;
    const bool good = (zone[0] == '+' || zone[0] == '-') &&
                      ((n == 6 && zone[3] == ':') || n == 5) && is_two_digits(zone + 1, 24) &&
                      is_two_digits(minute, 60);
    if (good) {
        const int32_t minutes =
            ((zone[1] - '0') * 10 + zone[2] - '0') * 60 + (minute[0] - '0') * 10 + minute[1] - '0';
        *seconds = (zone[0] == '-' ? -minutes : minutes) * 60;
    }
    return good;
}

/* ts, unit, colon, zone */
static tn_status read_timestamp(tn_arrow_column *c, const char *format,
                                char why[TN_ARROW_WHY_BYTES])
{
    static const char units[] = "smun";
    const char *unit = format[2] != '\0' ? strchr(units, format[2]) : NULL;
    if (unit == NULL || format[3] != ':') {
        return refuse_format(format, why);
    }
    c->kind = TN_ARROW_TIMESTAMP;
    c->width = 8;
    c->digits = (uint32_t)(unit - units) * 3;
    if (!read_zone(format + 4, &c->zone_s)) {
        const word zone = shown(format + 4);
        (void)snprintf(why, TN_ARROW_WHY_BYTES,
                       "holds times of the zone '%s', whose hours are not known here\nhint: "
                       "cast it to a time without a zone, in which the hours are those that count",
                       zone.text);
        return TN_E_DATA;
    }
    return TN_OK;
}

/* Everything but what a type is made of. */
static tn_status read_format(tn_arrow_column *c, const char *format, char why[TN_ARROW_WHY_BYTES])
{
    for (size_t i = 0; i < sizeof plain_types / sizeof *plain_types; i++) {
        const plain_type *type = &plain_types[i];
        if (strcmp(type->format, format) == 0) {
            c->kind = type->kind;
            c->width = type->width;
            c->digits = type->digits;
            return TN_OK;
        }
    }
    if (strncmp(format, "ts", 2) == 0) {
        return read_timestamp(c, format, why);
    }
    const bool good =
        (strncmp(format, "d:", 2) == 0 && read_decimal(c, format)) ||
        (strncmp(format, "w:", 2) == 0 && read_fixed(c, format + 2, TN_ARROW_FIXED_TEXT)) ||
        (strncmp(format, "+w:", 3) == 0 && read_fixed(c, format + 3, TN_ARROW_FIXED_LIST));
    return good ? TN_OK : refuse_format(format, why);
}

/* ---- the tree ---- */

/* The place of a schema in the tree of a column. */
typedef struct place {
    uint32_t depth;
    bool in_list;
} place;

static tn_status read_column(tn_arrow_column **out, const struct ArrowSchema *schema, place at,
                             char why[TN_ARROW_WHY_BYTES]);

static bool is_list(tn_arrow_kind kind)
{
    return kind >= TN_ARROW_LIST && kind <= TN_ARROW_FIXED_LIST;
}

/* Codes of a dictionary are any whole numbers, ends of runs signed ones of 16 bits and more. */
static bool is_index(const tn_arrow_column *index, tn_arrow_kind of)
{
    return index->kind >= (of == TN_ARROW_RUNS ? TN_ARROW_INT16 : TN_ARROW_INT8) &&
           index->kind <= (of == TN_ARROW_RUNS ? TN_ARROW_INT64 : TN_ARROW_UINT64);
}

/* The format of a dictionary is that of its codes. */
static tn_status read_dictionary(tn_arrow_column *c, const struct ArrowSchema *schema, place at,
                                 char why[TN_ARROW_WHY_BYTES])
{
    c->kind = TN_ARROW_DICTIONARY;
    TN_TRY(TN_ALLOC(c->index, 1, "a column", NULL));
    TN_TRY(read_format(c->index, schema->format, why));
    if (!is_index(c->index, c->kind)) {
        return refuse_schema(why, "of a dictionary whose codes are no whole numbers");
    }
    return read_column(&c->of, schema->dictionary, at, why);
}

static tn_status read_runs(tn_arrow_column *c, const struct ArrowSchema *schema, place at,
                           char why[TN_ARROW_WHY_BYTES])
{
    if (schema->n_children != 2 || schema->children == NULL) {
        return refuse_schema(why, "of run-end encoding without ends and values");
    }
    TN_TRY(read_column(&c->index, schema->children[0], at, why));
    if (!is_index(c->index, c->kind)) {
        return refuse_schema(why, "of run-end encoding whose ends are no whole numbers");
    }
    return read_column(&c->of, schema->children[1], at, why);
}

static tn_status read_list(tn_arrow_column *c, const struct ArrowSchema *schema, place at,
                           char why[TN_ARROW_WHY_BYTES])
{
    if (at.in_list) {
        (void)snprintf(why, TN_ARROW_WHY_BYTES,
                       "holds lists of lists, which are not read\nhint: give a list of values");
        return TN_E_DATA;
    }
    if (schema->n_children != 1 || schema->children == NULL) {
        return refuse_schema(why, "of lists without a type of their items");
    }
    at.in_list = true;
    return read_column(&c->of, schema->children[0], at, why);
}

static tn_status read_type(tn_arrow_column *c, const struct ArrowSchema *schema, place at,
                           char why[TN_ARROW_WHY_BYTES])
{
    if (schema == NULL || schema->release == NULL || schema->format == NULL) {
        return refuse_schema(why, "without a format, or one that was released");
    }
    if (at.depth == 0) {
        return refuse_schema(why, "of more levels than are read");
    }
    at.depth--;
    if (schema->dictionary != NULL) {
        return read_dictionary(c, schema, at, why);
    }
    TN_TRY(read_format(c, schema->format, why));
    if (is_list(c->kind)) {
        return read_list(c, schema, at, why);
    }
    return c->kind == TN_ARROW_RUNS ? read_runs(c, schema, at, why) : TN_OK;
}

static tn_status read_column(tn_arrow_column **out, const struct ArrowSchema *schema, place at,
                             char why[TN_ARROW_WHY_BYTES])
{
    tn_status status = TN_ALLOC(*out, 1, "a column", NULL);
    status = status == TN_OK ? read_type(*out, schema, at, why) : status;
    if (status != TN_OK) {
        tn_arrow_column_free(*out);
        *out = NULL;
    }
    return status;
}

tn_status tn_arrow_column_read(tn_arrow_column **out, const struct ArrowSchema *schema,
                               char why[TN_ARROW_WHY_BYTES])
{
    return read_column(out, schema, (place){.depth = DEPTH_MAX}, why);
}

void tn_arrow_column_free(tn_arrow_column *column)
{
    if (column != NULL) {
        tn_arrow_column_free(column->index);
        tn_arrow_column_free(column->of);
        tn_free(column);
    }
}
