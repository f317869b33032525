/* json.h - writing and reading JSON.
 *
 * Writer: members in the order written, no blanks, reals in the shortest form
 * that reads back equal, not-finite as null, invalid UTF-8 as U+FFFD. 64-bit
 * numbers are strings: ids as 16 hex digits, counts as decimal.
 *
 *     tn_json_open(t, '{');
 *     tn_json_str(t, "format", "tnet-model");       key NULL inside a list
 *     tn_json_close(t, '}');
 *
 * Commas are put by looking at the last byte of `t`.
 *
 * Reader: a tree in one arena. Refuses duplicate members, depth over 32, NUL, bad UTF-8, anything
 * after the value, lone surrogates, more than 4 M values. Hostile input is the normal case: every
 * accessor accepts NULL and a value of another kind.
 */
#pragma once

#include "base/core/arena.h"
#include "base/core/error.h"
#include "base/core/text.h"

#include <stdbool.h>
#include <stdint.h>

void tn_json_open(tn_text *t, char bracket); /* '{' or '[' */
void tn_json_open_key(tn_text *t, const char *key, char bracket);
void tn_json_close(tn_text *t, char bracket);                     /* '}' or ']' */
void tn_json_str(tn_text *t, const char *key, const char *value); /* value NULL: null */
/* A string of `size` bytes, NULs among them; and a number that is written already. */
void tn_json_bytes(tn_text *t, const char *key, const char *value, size_t size);
void tn_json_number(tn_text *t, const char *key, const char *text, size_t size);
void tn_json_f64(tn_text *t, const char *key, double value);
void tn_json_f32(tn_text *t, const char *key, float value);      /* shortest float text */
void tn_json_u64(tn_text *t, const char *key, uint64_t value);   /* a number */
void tn_json_count(tn_text *t, const char *key, uint64_t value); /* a decimal string */
void tn_json_hex64(tn_text *t, const char *key, uint64_t value); /* a string of 16 hex digits */
void tn_json_bool(tn_text *t, const char *key, bool value);
void tn_json_raw(tn_text *t, const char *key, const char *json);

/* Ends a document that was opened with '{': appends "crc32c":"xxxxxxxx"} and a newline. The crc
 * is that of all bytes of `t` before that member, its comma included when there is one: the file
 * without its last 21 bytes. */
void tn_json_close_with_crc(tn_text *t);

typedef enum tn_json_kind {
    TN_JSON_NULL,
    TN_JSON_BOOL,
    TN_JSON_NUMBER,
    TN_JSON_STRING,
    TN_JSON_LIST,
    TN_JSON_OBJECT,
} tn_json_kind;

typedef struct tn_json {
    tn_json_kind kind;
    bool boolean;
    uint32_t n; /* items of a list, members of an object */
    double number;
    const char *key;       /* in an object: this member's name */
    const char *string;    /* NUL-terminated; of a number: its text */
    size_t begin, end;     /* position of the value in the text, brackets included */
    struct tn_json *first; /* first item of a list or an object */
    struct tn_json *next;  /* sibling */
} tn_json;

/* `what` names the file in messages. The tree lives in `arena` and copies what it needs.
 * TN_E_CKPT: not JSON; TN_E_LIMIT: too many values; TN_E_MEMORY. */
tn_status tn_json_parse(const tn_json **out, const char *text, size_t size, tn_arena *arena,
                        const char *what, tn_error *err) TN_MUST_USE;

/* Checks the crc member that ends the text (see tn_json_close_with_crc). TN_E_CKPT. */
tn_status tn_json_check_crc(const char *text, size_t size, const char *what,
                            tn_error *err) TN_MUST_USE;

/* Returns the member `key`; NULL when there is none, or when `object` is not an object. */
const tn_json *tn_json_get(const tn_json *object, const char *key);

/* Return false when a value is missing, of another kind, negative, fractional or too large. */
bool tn_json_as_u64(const tn_json *value, uint64_t *out); /* a number or a decimal string */
bool tn_json_as_f64(const tn_json *value, double *out);
const char *tn_json_as_str(const tn_json *value); /* NULL when not a string */

/* Returns item i of a short list; NULL when there is none, or no list. */
const tn_json *tn_json_item(const tn_json *list, uint32_t i);
