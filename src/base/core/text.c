/* text.c - a text that grows. Memory doubles, so appending is linear over all. */
#include "base/core/text.h"

#include "base/core/alloc.h"
#include "base/core/number.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_CAPACITY = 256, DECIMAL_MAX = 20 };

static size_t size_max_of(const tn_text *t)
{
    return t->size_max != 0 ? t->size_max : TN_TEXT_MAX;
}

/* Moves the bytes to a block of at least `need` bytes; `most` is the largest it may ever be. */
static bool move_to_larger(tn_text *t, size_t need, size_t most)
{
    TN_ASSERT(t->capacity < need && need <= most); /* else the capacity never gets there */
    size_t capacity = t->capacity < FIRST_CAPACITY ? FIRST_CAPACITY : t->capacity;
    while (capacity < need) {
        capacity = capacity > most / 2 ? most : capacity * 2;
    }
    if (TN_GROW(t->data, t->size, capacity, "a text", NULL) != TN_OK) {
        t->failed = true;
        return false;
    }
    t->capacity = capacity;
    return true;
}

/* Makes room for `size` more bytes and a NUL. Returns false when there is none, now or before. */
static bool make_room(tn_text *t, size_t size)
{
    if (t->failed) {
        return false;
    }
    size_t max = size_max_of(t);
    if (t->size > max || size > max - t->size) {
        t->failed = true;
        t->over_max = true;
        return false;
    }
    TN_ASSERT(max < SIZE_MAX);
    size_t need = t->size + size + 1;
    return need <= t->capacity || move_to_larger(t, need, max + 1);
}

void tn_text_done(tn_text *t)
{
    tn_free(t->data);
    *t = (tn_text){.size_max = t->size_max};
}

void tn_text_clear(tn_text *t)
{
    t->size = 0;
    t->failed = false;
    t->over_max = false;
    if (t->data != NULL) {
        t->data[0] = 0;
    }
}

char *tn_text_grow(tn_text *t, size_t size)
{
    if (!make_room(t, size)) {
        return NULL;
    }
    char *at = t->data + t->size;
    t->size += size;
    t->data[t->size] = 0;
    return at;
}

void tn_text_add(tn_text *t, const void *bytes, size_t size)
{
    char *at = tn_text_grow(t, size);
    if (at != NULL && size > 0) {
        memcpy(at, bytes, size);
    }
}

void tn_text_adds(tn_text *t, const char *text)
{
    tn_text_add(t, text, strlen(text));
}

void tn_text_addc(tn_text *t, char c)
{
    char *at = tn_text_grow(t, 1);
    if (at != NULL) {
        *at = c;
    }
}

void tn_text_addf(tn_text *t, const char *fmt, ...)
{
    if (!make_room(t, strlen(fmt))) {
        return;
    }
    /* A host program's locale must not put commas into our numbers. */
    locale_t before = uselocale(tn_locale_c());
    size_t room = t->capacity - t->size;
    va_list args;
    va_start(args, fmt);
    int length = vsnprintf(t->data + t->size, room, fmt, args);
    va_end(args);
    TN_ASSERT(length >= 0);
    if ((size_t)length < room) {
        length = make_room(t, (size_t)length) ? length : 0; /* a ceiling may lie below the room */
    } else if (make_room(t, (size_t)length)) {
        va_start(args, fmt);
        (void)vsnprintf(t->data + t->size, (size_t)length + 1, fmt, args);
        va_end(args);
    } else {
        length = 0;
    }
    TN_ASSERT((size_t)length < t->capacity - t->size);
    t->size += (size_t)length;
    t->data[t->size] = 0;
    (void)uselocale(before);
}

void tn_text_add_u64(tn_text *t, uint64_t value)
{
    char digits[DECIMAL_MAX];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    tn_text_add(t, digits + at, sizeof digits - at);
}

tn_status tn_text_check(const tn_text *t, const char *what, tn_error *err)
{
    TN_ASSERT(t->size == 0 || t->data != NULL);
    TN_ASSERT(t->failed || !t->over_max);
    if (!t->failed) {
        return TN_OK;
    }
    if (t->over_max) {
        return tn_fail(err, TN_E_LIMIT, "too large: '%s' has more than %zu bytes", what,
                       size_max_of(t));
    }
    return tn_fail(err, TN_E_MEMORY, "out of memory: '%s' has more than %zu bytes", what, t->size);
}

const char *tn_text_str(const tn_text *t)
{
    return t->data != NULL ? t->data : "";
}
