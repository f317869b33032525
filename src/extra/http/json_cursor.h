/* json_cursor.h - walks a JSON body without making a tree of it: values stay bytes of the body.
 *
 *     {"signature_name": "x", "instances": [{"user": 7}, {"user": 8}]}
 *      member: key, then value or enter        item, value    item, value
 *
 *     tn_json_cursor c = tn_json_cursor_of(body, size);
 *     if (tn_json_cursor_enter(&c, '{')) {
 *         while (tn_json_cursor_member(&c, &key)) {
 *             (void)tn_json_cursor_value(&c, &value);      or enter, for what is within
 *         }
 *     }
 *     TN_TRY(tn_json_cursor_check(&c, "the body", err));
 *
 * The cursor sees to brackets, quotes, commas and colons. What a value says is for whoever reads
 * it: rows go to the JSON reader of training (extra/jsonl), which checks every byte of them. The
 * first fault is kept; after it every call returns false. Nothing is allocated or copied.
 */
#pragma once

#include "base/core/bytes.h"
#include "base/core/error.h"
#include "base/core/text.h"

typedef struct tn_json_cursor {
    const char *begin, *at, *end;
    const char *fault; /* a constant sentence; NULL: none so far */
    bool fresh;        /* a bracket was opened just now, so no comma comes */
} tn_json_cursor;

/* A value as it is written in the body, without blanks around it. */
typedef struct tn_json_span {
    const char *data; /* NULL: there is none */
    size_t size;
    bool odd; /* has line ends, or an object with bytes in base 64: tn_json_flatten */
} tn_json_span;

/* NULL is a text of size 0. */
tn_json_cursor tn_json_cursor_of(const char *text, size_t size);

/* The next byte that is no blank; 0: there is none. */
char tn_json_cursor_peek(tn_json_cursor *c);

/* Goes into an object ('{') or a list ('['), which must come next. */
bool tn_json_cursor_enter(tn_json_cursor *c, char bracket);
/* Goes to the value of the next member; `key` is the text between its quotes, as it is written.
 * False: the object has ended, and the cursor is after it. */
bool tn_json_cursor_member(tn_json_cursor *c, tn_bytes *key);
/* Goes to the next item of a list. False: the list has ended, and the cursor is after it. */
bool tn_json_cursor_item(tn_json_cursor *c);
/* Passes over a value of any kind, nested 64 deep at most. */
bool tn_json_cursor_value(tn_json_cursor *c, tn_json_span *out);
/* Passes over the next number, text or word, into and out of lists as they come. False: nothing
 * but brackets is left. */
bool tn_json_cursor_scalar(tn_json_cursor *c, tn_json_span *out);

/* Whether a value is this text, or false where it is none. */
bool tn_json_span_is(const tn_json_span *span, const char *text);
/* Reads a whole number that is not negative. */
bool tn_json_span_u64(const tn_json_span *span, uint64_t *out);

/* TN_E_DATA with the fault and its byte, also where something follows the outer value. */
tn_status tn_json_cursor_check(tn_json_cursor *c, const char *what, tn_error *err) TN_MUST_USE;

/* Appends a value on one line: line ends between values become blanks, and {"b64": "TEXT"} the text
 * that TEXT encodes. TN_E_DATA: that is no base 64. */
tn_status tn_json_flatten(const tn_json_span *span, tn_text *out, tn_error *err) TN_MUST_USE;

/* Appends bytes as a JSON text, quotes included. */
void tn_json_quote(tn_text *out, const char *data, size_t size);
