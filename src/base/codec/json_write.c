/* json_write.c - writes JSON, and the crc that ends a document. */
#include "base/codec/json.h"
#include "base/codec/utf8.h"
#include "base/core/error.h"
#include "base/core/number.h"
#include "base/math/crc32c.h"

#include <math.h>
#include <string.h>

enum {
    CRC_DIGITS = 8,
    CRC_TAIL = 21, /* "crc32c":"xxxxxxxx"} and a newline */
};

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */

/* Puts a comma, unless this is the first item of a list, an object or a line. */
static void put_comma(tn_text *t)
{
    if (t->size == 0 || t->failed) {
        return;
    }
    unsigned char last = (unsigned char)t->data[t->size - 1];
    if (last > ' ' && last != '{' && last != '[' && last != ',' && last != ':') {
        tn_text_addc(t, ',');
    }
}

static void put_control(tn_text *t, char c)
{
    static const char names[] = "\b\f\n\r\t";
    static const char letters[] = "bfnrt";
    const char *name = c != 0 ? strchr(names, c) : NULL;
    if (name != NULL) {
        tn_text_addc(t, '\\');
        tn_text_addc(t, letters[name - names]);
    } else {
        tn_text_addf(t, "\\u%04x", (unsigned)(unsigned char)c);
    }
}

static void put_string(tn_text *t, const char *value, size_t left)
{
    tn_text_addc(t, '"');
    while (left > 0) {
        size_t size = tn_utf8_size(value, left);
        if (size == 0) {
            tn_text_adds(t, replacement);
            size = 1;
        } else if (*value == '"' || *value == '\\') {
            tn_text_addc(t, '\\');
            tn_text_addc(t, *value);
        } else if (size == 1 && (unsigned char)*value < ' ') {
            put_control(t, *value);
        } else {
            tn_text_add(t, value, size);
        }
        value += size;
        left -= size;
    }
    tn_text_addc(t, '"');
}

static void put_key(tn_text *t, const char *key)
{
    put_comma(t);
    if (key != NULL) {
        put_string(t, key, strlen(key));
        tn_text_addc(t, ':');
    }
}

void tn_json_open(tn_text *t, char bracket)
{
    tn_json_open_key(t, NULL, bracket);
}

void tn_json_open_key(tn_text *t, const char *key, char bracket)
{
    TN_ASSERT(bracket == '{' || bracket == '[');
    put_key(t, key);
    tn_text_addc(t, bracket);
}

void tn_json_close(tn_text *t, char bracket)
{
    TN_ASSERT(bracket == '}' || bracket == ']');
    TN_ASSERT(t->failed ||
              (t->size > 0 && t->data[t->size - 1] != ':')); /* no key without a value */
    tn_text_addc(t, bracket);
}

void tn_json_str(tn_text *t, const char *key, const char *value)
{
    if (value == NULL) {
        tn_json_raw(t, key, "null");
        return;
    }
    tn_json_bytes(t, key, value, strlen(value));
}

void tn_json_bytes(tn_text *t, const char *key, const char *value, size_t size)
{
    put_key(t, key);
    put_string(t, value, size);
}

void tn_json_number(tn_text *t, const char *key, const char *text, size_t size)
{
    put_key(t, key);
    tn_text_add(t, text, size);
}

void tn_json_f64(tn_text *t, const char *key, double value)
{
    char text[TN_NUMBER_TEXT_MAX];
    (void)tn_write_f64(text, value);
    tn_json_raw(t, key, isfinite(value) ? text : "null");
}

void tn_json_f32(tn_text *t, const char *key, float value)
{
    char text[TN_NUMBER_TEXT_MAX];
    (void)tn_write_f32(text, value);
    tn_json_raw(t, key, isfinite(value) ? text : "null");
}

void tn_json_u64(tn_text *t, const char *key, uint64_t value)
{
    put_key(t, key);
    tn_text_add_u64(t, value);
}

void tn_json_count(tn_text *t, const char *key, uint64_t value)
{
    put_key(t, key);
    tn_text_addc(t, '"');
    tn_text_add_u64(t, value);
    tn_text_addc(t, '"');
}

void tn_json_hex64(tn_text *t, const char *key, uint64_t value)
{
    put_key(t, key);
    tn_text_addf(t, "\"%016llx\"", (unsigned long long)value);
}

void tn_json_bool(tn_text *t, const char *key, bool value)
{
    tn_json_raw(t, key, value ? "true" : "false");
}

void tn_json_raw(tn_text *t, const char *key, const char *json)
{
    put_key(t, key);
    tn_text_adds(t, json);
}

void tn_json_close_with_crc(tn_text *t)
{
    put_comma(t);
    const size_t begin = t->size;
    tn_text_addf(t, "\"crc32c\":\"%08x\"}\n", tn_crc32c(0, t->data, t->size));
    TN_ASSERT(t->failed || t->size - begin == CRC_TAIL); /* as tn_json_check_crc expects */
}

tn_status tn_json_check_crc(const char *text, size_t size, const char *what, tn_error *err)
{
    static const char name[] = "\"crc32c\":\"";
    uint64_t stored = 0;
    const char *tail = size > CRC_TAIL ? text + size - CRC_TAIL : NULL;
    if (tail == NULL || memcmp(tail, name, sizeof name - 1) != 0 ||
        memcmp(text + size - 3, "\"}\n", 3) != 0 ||
        strspn(tail + sizeof name - 1, "0123456789abcdef") != CRC_DIGITS ||
        tn_read_hex(tail + sizeof name - 1, CRC_DIGITS, &stored) != TN_NUM_OK) {
        return tn_fail(err, TN_E_CKPT, "truncated: '%s' does not end with its crc32c", what);
    }
    uint32_t computed = tn_crc32c(0, text, size - CRC_TAIL);
    if (stored != computed) {
        return tn_fail(err, TN_E_CKPT, "damaged '%s' (crc %08x, computed %08x)", what,
                       (uint32_t)stored, computed);
    }
    return TN_OK;
}
