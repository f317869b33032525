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
bool tn_json_as_u64(const tn_json *value, uint64_t *out);   /* a number or a decimal string */
bool tn_json_as_hex64(const tn_json *value, uint64_t *out); /* 16 hex digits */
bool tn_json_as_f64(const tn_json *value, double *out);
const char *tn_json_as_str(const tn_json *value); /* NULL when not a string */

/* Returns item i of a short list; NULL when there is none, or no list. */
const tn_json *tn_json_item(const tn_json *list, uint32_t i);

/* Reading the members of an object in a row and checking once:
 *
 *     tn_members r = {.arena = arena};
 *     out->step = tn_member_u64(&r, top, "step", UINT64_MAX);
 *     out->name = tn_member_str(&r, top, "name");
 *     if (r.wrong != NULL) ...                     the first member that is missing or wrong
 *
 * A wrong member yields 0, "" or an empty list, so that what follows is harmless; nothing may be
 * used as a size or an index before the check. Objects may be NULL or of another kind.
 */
typedef struct tn_members {
    tn_arena *arena;   /* for the lists that callers make; may be NULL */
    const char *wrong; /* lent by the callers' literals or by the tree */
} tn_members;

/* Records a check of the caller's own: the member is wrong unless it is good. */
void tn_member_expect(tn_members *r, bool good, const char *member);

uint64_t tn_member_u64(tn_members *r, const tn_json *object, const char *key, uint64_t max);
uint32_t tn_member_u32(tn_members *r, const tn_json *object, const char *key, uint32_t max);
uint64_t tn_member_hex(tn_members *r, const tn_json *object, const char *key); /* 16 digits */
uint32_t tn_member_crc(tn_members *r, const tn_json *object, const char *key); /* 8 digits */
double tn_member_f64(tn_members *r, const tn_json *object, const char *key);
bool tn_member_bool(tn_members *r, const tn_json *object, const char *key);
const char *tn_member_str(tn_members *r, const tn_json *object, const char *key);
const char *tn_member_sha(tn_members *r, const tn_json *object, const char *key); /* 64 digits */

/* Returns a list or an object of at most `max` items; never NULL. */
const tn_json *tn_member_list(tn_members *r, const tn_json *object, const char *key, uint32_t max);
const tn_json *tn_member_object(tn_members *r, const tn_json *object, const char *key,
                                uint32_t max);
