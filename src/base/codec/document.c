/* document.c - walks a table to write a struct as JSON, and to read hostile JSON into one.
 *
 * Reading ends at the first member that is missing or wrong. The places that lead to a value are
 * linked along the calls, and become a path only then.
 */
#include "base/codec/document.h"

#include "base/core/number.h"

#include <math.h>
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEX_MAX = 16,
    PATH_BYTES = 160,
    CRC_DIGITS_AT = 11 /* from the end: xxxxxxxx"} and a newline */
};

const tn_doc_row tn_doc_str_items[1] = {{.kind = TN_DOC_KIND_STR, .size = sizeof(const char *)}};
const tn_doc_row tn_doc_u64_items[1] = {
    {.kind = TN_DOC_KIND_NUMBER, .size = sizeof(uint64_t), .max = UINT64_MAX}};

/* Returns a bool, or a number of 4 or 8 bytes, little-endian as all of TNet. */
static uint64_t number_at(const tn_doc_row *row, const char *at)
{
    uint64_t value = 0;
    TN_ASSERT(row->size <= sizeof value);
    memcpy(&value, at, row->size);
    return value;
}

static const char *text_at(const char *at)
{
    const char *value = NULL;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t count_at(const tn_doc_row *row, const char *s)
{
    uint32_t n = 0;
    memcpy(&n, s + row->n_at, sizeof n);
    return n;
}

/* Returns what an item of a list is: a value by the row of its own, or an object. */
static tn_doc_row item_of(const tn_doc_row *list)
{
    return list->bracket == ':'    ? list->rows[1]
           : list->bracket == '\0' ? list->rows[0]
                                   : (tn_doc_row){.kind = TN_DOC_KIND_OBJECT,
                                                  .bracket = list->bracket,
                                                  .rows = list->rows};
}

/* ---- writing ---- */

static bool is_set(const tn_doc_row *row, const char *s)
{
    const char *at = s + row->offset;
    bool any = row->kind == TN_DOC_KIND_LIST && count_at(row, s) > 0;
    if (row->kind == TN_DOC_KIND_OBJECT) {
        return is_set(row->rows, at);
    }
    for (size_t i = 0; i < row->size && !any && row->kind != TN_DOC_KIND_LIST; i++) {
        any = at[i] != 0;
    }
    return any;
}

static bool is_written(const tn_doc_row *row, const char *s)
{
    return row->when == TN_DOC_ALWAYS ||
           (row->when == TN_DOC_WHEN_FLAG ? *(const bool *)(s + row->flag)
            : row->has != NULL            ? row->has(s)
                                          : is_set(row, s));
}

static void put_value(tn_text *t, const char *key, const tn_doc_row *row, const char *s);

static void put_rows(tn_text *t, const tn_doc_row *rows, const char *s, bool tuple)
{
    for (const tn_doc_row *r = rows; r->kind != TN_DOC_KIND_END; r++) {
        const char *key = tuple ? NULL : r->key;
        if (r->kind == TN_DOC_KIND_PART) {
            const tn_doc_part *part = (const void *)(s + r->offset);
            put_rows(t, part->rows, part->of, tuple);
        } else if (r->kind != TN_DOC_KIND_CHECK && is_written(r, s)) {
            put_value(t, key, r, s);
        } else if (r->kind != TN_DOC_KIND_CHECK && r->when == TN_DOC_WHEN_NULL) {
            tn_json_str(t, key, NULL);
        }
    }
}

static void put_list(tn_text *t, const char *key, const tn_doc_row *row, const char *s)
{
    const bool map = row->bracket == ':';
    const uint32_t n = count_at(row, s);
    const char *item = row->in_place ? s + row->offset : text_at(s + row->offset);
    const tn_doc_row as = item_of(row);
    TN_ASSERT(n <= row->max && (n == 0 || item != NULL));
    tn_json_open_key(t, key, map ? '{' : '[');
    for (uint32_t i = 0; i < n; i++, item += row->item_size) {
        put_value(t, map ? text_at(item + row->rows[0].offset) : NULL, &as, item);
    }
    tn_json_close(t, map ? '}' : ']');
}

static void put_value(tn_text *t, const char *key, const tn_doc_row *row, const char *s)
{
    const char *at = s + row->offset;
    char hex[HEX_MAX + 1];
    double real = 0;
    switch (row->kind) {
    case TN_DOC_KIND_CONST:
        tn_json_str(t, key, row->words[0]);
        break;
    case TN_DOC_KIND_BOOL:
        tn_json_bool(t, key, number_at(row, at) != 0);
        break;
    case TN_DOC_KIND_NUMBER:
        tn_json_u64(t, key, number_at(row, at));
        break;
    case TN_DOC_KIND_COUNT:
        tn_json_count(t, key, number_at(row, at));
        break;
    case TN_DOC_KIND_HEX:
        (void)snprintf(hex, sizeof hex, "%0*llx", (int)(2 * row->size),
                       (unsigned long long)number_at(row, at));
        tn_json_str(t, key, hex);
        break;
    case TN_DOC_KIND_F64:
        memcpy(&real, at, sizeof real);
        tn_json_f64(t, key, real);
        break;
    case TN_DOC_KIND_STR:
        tn_json_str(t, key, text_at(at));
        break;
    case TN_DOC_KIND_ID:
        tn_json_str(t, key, at);
        break;
    case TN_DOC_KIND_WORD:
        tn_json_str(t, key, row->words[number_at(row, at)]);
        break;
    case TN_DOC_KIND_OBJECT:
        tn_json_open_key(t, key, row->bracket);
        put_rows(t, row->rows, at, row->bracket == '[');
        tn_json_close(t, row->bracket == '[' ? ']' : '}');
        break;
    case TN_DOC_KIND_RAW:
        tn_json_raw(t, key, text_at(at) != NULL ? text_at(at) : row->words[0]);
        break;
    case TN_DOC_KIND_LIST:
        put_list(t, key, row, s);
        break;
    case TN_DOC_KIND_END:
    case TN_DOC_KIND_CHECK:
    case TN_DOC_KIND_PART:
    default:
        TN_ASSERT(row->kind == TN_DOC_KIND_LIST); /* no member */
    }
}

void tn_doc_put_rows(tn_text *out, const tn_doc_row *rows, const void *s)
{
    put_rows(out, rows, s, false);
}

void tn_doc_put(tn_text *out, const tn_doc_row *row, const void *s)
{
    put_value(out, NULL, row, s);
}

tn_status tn_document_write(const tn_document *d, const void *s, tn_text *out, tn_error *err)
{
    TN_ASSERT(out->size == 0);
    tn_json_open(out, '{');
    tn_json_str(out, "format", d->format);
    tn_json_open_key(out, "version", '[');
    tn_json_u64(out, NULL, d->version != NULL ? d->version(s) : d->newest);
    tn_json_u64(out, NULL, 0);
    tn_json_close(out, ']');
    put_rows(out, d->rows, s, false);
    tn_json_close_with_crc(out);
    return tn_text_check(out, d->is, err);
}

uint32_t tn_document_crc(const tn_text *document)
{
    TN_ASSERT(document->size > CRC_DIGITS_AT);
    return (uint32_t)strtoul(document->data + document->size - CRC_DIGITS_AT, NULL, 16);
}

/* ---- reading ---- */

typedef struct reading {
    tn_arena *arena;
    const char *what;
    tn_error *err;
} reading;

/* A step of the way to a value: a member, or an item of a list. */
typedef struct place {
    const struct place *up;
    const char *key; /* NULL: item i */
    uint32_t i;
} place;

static void put_path(tn_text *out, const place *at)
{
    if (at->up != NULL) {
        put_path(out, at->up);
    }
    if (at->key == NULL) {
        tn_text_addf(out, "[%u]", at->i);
    } else {
        tn_text_addf(out, "%s%.64s", out->size > 0 ? "." : "", at->key);
    }
}

/* `at` NULL: the whole. */
static tn_status fault(const reading *r, const place *at, const char *how)
{
    if (at == NULL) {
        return tn_fail(r->err, TN_E_CKPT, "'%s' is no JSON object", r->what);
    }
    tn_text path = {0};
    put_path(&path, at);
    tn_status status = tn_fail(r->err, TN_E_CKPT, "'%s': member '%.*s' is %s", r->what, PATH_BYTES,
                               tn_text_str(&path), how);
    tn_text_done(&path);
    return status;
}

static bool is_hex(const char *text, size_t digits)
{
    return text != NULL && strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

static bool store(const tn_doc_row *row, char *at, bool good, uint64_t value)
{
    if (good) {
        TN_ASSERT(row->size == sizeof value || value >> (8 * row->size) == 0);
        memcpy(at, &value, row->size);
    }
    return good;
}

static bool get_number(const tn_doc_row *row, const tn_json *v, char *at)
{
    uint64_t value = 0;
    const bool is =
        (row->kind == TN_DOC_KIND_COUNT || v->kind == TN_JSON_NUMBER) && tn_json_as_u64(v, &value);
    return store(row, at, is && value >= row->min && value <= row->max, value);
}

static bool get_hex(const tn_doc_row *row, const tn_json *v, char *at)
{
    const char *text = tn_json_as_str(v);
    const bool good = is_hex(text, 2 * row->size);
    return store(row, at, good, good ? strtoull(text, NULL, 16) : 0);
}

static bool get_text(const tn_doc_row *row, const tn_json *v, char *at)
{
    const char *text = tn_json_as_str(v);
    const size_t digits = (size_t)row->max;
    if (row->kind == TN_DOC_KIND_ID) {
        const bool good = is_hex(text, digits) || (row->min == 0 && is_hex(text, 0));
        memcpy(at, good ? text : "", good ? strlen(text) + 1 : 1);
        return good;
    }
    memcpy(at, &text, sizeof text);
    return text != NULL && (digits == 0 || is_hex(text, digits));
}

static bool get_word(const tn_doc_row *row, const tn_json *v, char *at)
{
    const char *text = tn_json_as_str(v);
    uint64_t i = 0;
    while (text != NULL && row->words[i] != NULL && strcmp(row->words[i], text) != 0) {
        i++;
    }
    return store(row, at, text != NULL && row->words[i] != NULL, i);
}

static bool get_real(const tn_doc_row *row, const tn_json *v, char *at)
{
    double value = (double)NAN;
    const bool good = (v->kind == TN_JSON_NULL && row->max != 0) || tn_json_as_f64(v, &value);
    memcpy(at, &value, sizeof value);
    return good;
}

static tn_status get_value(const reading *r, const place *at, const tn_doc_row *row,
                           const tn_json *v, char *s);

/* `v` NULL: the member is missing. */
static tn_status get_member(const reading *r, const place *at, const tn_doc_row *row,
                            const tn_json *v, char *s)
{
    if (v == NULL && row->when != TN_DOC_WHEN_SET && row->when != TN_DOC_WHEN_FLAG) {
        return fault(r, at, "missing");
    }
    if (row->when == TN_DOC_WHEN_FLAG) {
        *(bool *)(s + row->flag) = v != NULL;
    }
    return v != NULL ? get_value(r, at, row, v, s) : TN_OK;
}

static tn_status get_rows(const reading *r, const place *up, const tn_doc_row *object,
                          const tn_json *from, char *s)
{
    const bool tuple = object->bracket == '[';
    const tn_json *item = from->first; /* the next item of a tuple */
    if (from->kind != (tuple ? TN_JSON_LIST : TN_JSON_OBJECT)) {
        return fault(r, up, "wrong");
    }
    for (const tn_doc_row *row = object->rows; row->kind != TN_DOC_KIND_END; row++) {
        if (row->kind == TN_DOC_KIND_CHECK) {
            const char *wrong = row->check(s);
            TN_TRY(wrong == NULL ? TN_OK : fault(r, &(place){up, wrong, 0}, "wrong"));
        } else if (row->kind == TN_DOC_KIND_PART) {
            const tn_doc_part *part = (const void *)(s + row->offset);
            const tn_doc_row rows = {.bracket = object->bracket, .rows = part->rows};
            TN_TRY(get_rows(r, up, &rows, from, part->of));
        } else if (row->when != TN_DOC_WHEN_HAS || row->has(s)) {
            const tn_json *v = tuple ? item : tn_json_get(from, row->key);
            TN_TRY(get_member(r, &(place){up, row->key, 0}, row, v, s));
            item = tuple && v != NULL ? v->next : NULL;
        }
    }
    return tuple && item != NULL ? fault(r, up, "wrong") : TN_OK;
}

static tn_status get_list(const reading *r, const place *up, const tn_doc_row *row,
                          const tn_json *v, char *s)
{
    const bool map = row->bracket == ':';
    const tn_doc_row as = item_of(row);
    if (v->kind != (map ? TN_JSON_OBJECT : TN_JSON_LIST) || v->n > row->max) {
        return fault(r, up, "wrong");
    }
    char *items = s + row->offset;
    if (row->beside) {
        memcpy(&items, s + row->offset, sizeof items);
        if (v->n != count_at(row, s)) {
            return fault(r, up, "wrong");
        }
    } else if (!row->in_place) {
        TN_TRY(tn_arena_reserve(r->arena, v->n * row->item_size + alignof(max_align_t), r->what,
                                r->err));
        items = tn_arena_alloc(r->arena, v->n, row->item_size, alignof(max_align_t));
        memcpy(s + row->offset, &items, sizeof items);
    }
    uint32_t i = 0;
    for (const tn_json *item = v->first; item != NULL; item = item->next, i++) {
        char *to = items + i * row->item_size;
        if (map) {
            memcpy(to + row->rows[0].offset, &item->key, sizeof item->key);
        }
        TN_TRY(get_value(r, &(place){up, map ? item->key : NULL, i}, &as, item, to));
    }
    TN_ASSERT(i == v->n);
    memcpy(s + row->n_at, &i, sizeof i);
    return TN_OK;
}

static tn_status get_value(const reading *r, const place *at, const tn_doc_row *row,
                           const tn_json *v, char *s)
{
    char *to = s + row->offset;
    bool good = true;
    if (v->kind == TN_JSON_NULL && row->when == TN_DOC_WHEN_NULL) {
        return TN_OK;
    }
    switch (row->kind) {
    case TN_DOC_KIND_BOOL:
        good = v->kind == TN_JSON_BOOL;
        *(bool *)to = v->boolean;
        break;
    case TN_DOC_KIND_NUMBER:
    case TN_DOC_KIND_COUNT:
        good = get_number(row, v, to);
        break;
    case TN_DOC_KIND_HEX:
        good = get_hex(row, v, to);
        break;
    case TN_DOC_KIND_F64:
        good = get_real(row, v, to);
        break;
    case TN_DOC_KIND_STR:
    case TN_DOC_KIND_ID:
        good = get_text(row, v, to);
        break;
    case TN_DOC_KIND_CONST:
        good = tn_json_as_str(v) != NULL && strcmp(v->string, row->words[0]) == 0;
        break;
    case TN_DOC_KIND_WORD:
        good = get_word(row, v, to);
        break;
    case TN_DOC_KIND_OBJECT:
        return get_rows(r, at, row, v, to);
    case TN_DOC_KIND_RAW:
        ((tn_doc_raw *)(void *)to)->json = v;
        break;
    case TN_DOC_KIND_LIST:
        return get_list(r, at, row, v, s);
    case TN_DOC_KIND_END:
    case TN_DOC_KIND_CHECK:
    case TN_DOC_KIND_PART:
    default:
        TN_ASSERT(row->kind == TN_DOC_KIND_LIST); /* no member */
    }
    return good ? TN_OK : fault(r, at, "wrong");
}

tn_status tn_doc_get_rows(const tn_doc_row *rows, const tn_json *object, void *s, tn_arena *arena,
                          const char *what, tn_error *err)
{
    const reading r = {arena, what, err};
    return get_rows(&r, NULL, &(tn_doc_row){.bracket = '{', .rows = rows}, object, s);
}

tn_status tn_document_read(const tn_document *d, void *out, const tn_text *text, tn_arena *arena,
                           const char *what, tn_error *err)
{
    const tn_json *top = NULL;
    uint64_t major = 0;
    TN_TRY(tn_json_check_crc(tn_text_str(text), text->size, what, err));
    TN_TRY(tn_json_parse(&top, tn_text_str(text), text->size, arena, what, err));
    const char *format = tn_json_as_str(tn_json_get(top, "format"));
    if (format == NULL || strcmp(format, d->format) != 0) {
        return tn_fail(err, TN_E_CKPT, "'%s' is not %s", what, d->is);
    }
    if (!tn_json_as_u64(tn_json_item(tn_json_get(top, "version"), 0), &major) || major == 0) {
        return tn_fail(err, TN_E_CKPT, "'%s': member 'version' is missing or wrong", what);
    }
    if (major > d->newest) {
        return tn_fail(err, d->newer != TN_OK ? d->newer : TN_E_LIMIT,
                       "'%s' was written by a newer version", what);
    }
    return tn_doc_get_rows(d->rows, top, out, arena, what, err);
}
