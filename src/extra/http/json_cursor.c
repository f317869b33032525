/* json_cursor.c - steps over brackets, quotes, commas and colons; what values say is for others. */
#include "extra/http/json_cursor.h"

#include "base/core/number.h"

#include <string.h>

enum { NESTED_MAX = 64 };

tn_json_cursor tn_json_cursor_of(const char *text, size_t size)
{
    text = text != NULL ? text : "";
    return (tn_json_cursor){.begin = text, .at = text, .end = text + size};
}

static bool fail(tn_json_cursor *c, const char *fault)
{
    if (c->fault == NULL) {
        c->fault = fault;
    }
    return false;
}

static bool is_blank(char b)
{
    return b == ' ' || b == '\n' || b == '\t' || b == '\r';
}

char tn_json_cursor_peek(tn_json_cursor *c)
{
    while (c->at < c->end && is_blank(*c->at)) {
        c->at++;
    }
    return (char)(c->at < c->end && c->fault == NULL ? *c->at : 0);
}

bool tn_json_cursor_enter(tn_json_cursor *c, char bracket)
{
    if (tn_json_cursor_peek(c) != bracket) {
        return fail(c, bracket == '{' ? "expected '{'" : "expected '['");
    }
    c->at++;
    c->fresh = true;
    return true;
}

/* Passes over a comma before the next member or item, or over the bracket that ends them: false. */
static bool go_on(tn_json_cursor *c, char bracket)
{
    const char next = tn_json_cursor_peek(c);
    const bool fresh = c->fresh;
    c->fresh = false;
    if (next == bracket) {
        c->at++;
        return false;
    }
    if (fresh) {
        return next != 0 || fail(c, "the text ends within an object or a list");
    }
    if (next != ',') {
        return fail(c, bracket == '}' ? "expected ',' or '}'" : "expected ',' or ']'");
    }
    c->at++;
    return true;
}

/* Passes over a text, from its first quote to after its last. */
static bool pass_text(tn_json_cursor *c)
{
    const char *p = c->at + 1;
    while (p < c->end && *p != '"') {
        p += *p == '\\' && p + 1 < c->end ? 2 : 1;
    }
    if (p >= c->end) {
        c->at = c->end;
        return fail(c, "the text ends within quotes");
    }
    c->at = p + 1;
    return true;
}

bool tn_json_cursor_member(tn_json_cursor *c, tn_bytes *key)
{
    if (!go_on(c, '}')) {
        return false;
    }
    if (tn_json_cursor_peek(c) != '"') {
        return fail(c, "expected a key in quotes");
    }
    const char *from = c->at + 1;
    if (!pass_text(c)) {
        return false;
    }
    *key = (tn_bytes){from, (size_t)(c->at - 1 - from), false};
    if (tn_json_cursor_peek(c) != ':') {
        return fail(c, "expected ':' after a key");
    }
    c->at++;
    return true;
}

bool tn_json_cursor_item(tn_json_cursor *c)
{
    return go_on(c, ']');
}

/* Passes over a number or a word. */
static bool pass_word(tn_json_cursor *c)
{
    const char *from = c->at;
    while (c->at < c->end && strchr(",:]}[{\"", *c->at) == NULL && !is_blank(*c->at)) {
        c->at++;
    }
    return c->at > from || fail(c, "expected a value");
}

/* Passes over a bracket; `kinds` remembers which brackets are open, one bit each. */
static bool pass_bracket(tn_json_cursor *c, uint64_t *kinds, uint32_t *depth)
{
    const char b = *c->at;
    if (b == '{' || b == '[') {
        if (*depth == NESTED_MAX) {
            return fail(c, "nested deeper than 64");
        }
        *kinds = *kinds << 1 | (b == '{');
        ++*depth;
    } else {
        if (*depth == 0 || (*kinds & 1) != (b == '}')) {
            return fail(c, "a bracket that was not opened");
        }
        *kinds >>= 1;
        --*depth;
    }
    c->at++;
    return true;
}

static bool is_b64(const char *from, const char *to)
{
    return to - from == 5 && memcmp(from, "\"b64\"", 5) == 0;
}

/* Passes over one token of a value. */
static bool pass_token(tn_json_cursor *c, uint64_t *kinds, uint32_t *depth, bool *odd)
{
    const char *from = c->at;
    if (strchr("{}[]", *from) != NULL) {
        return pass_bracket(c, kinds, depth);
    }
    if (*from == ',' || *from == ':') {
        c->at++;
        return *depth > 0 || fail(c, "expected a value");
    }
    if (*from != '"') {
        return pass_word(c);
    }
    const bool passed = pass_text(c);
    *odd = *odd || is_b64(from, c->at);
    return passed;
}

bool tn_json_cursor_value(tn_json_cursor *c, tn_json_span *out)
{
    uint64_t kinds = 0;
    uint32_t depth = 0;
    bool odd = false;
    *out = (tn_json_span){0};
    if (tn_json_cursor_peek(c) == 0) {
        return fail(c, "expected a value");
    }
    const char *from = c->at;
    do {
        while (c->at < c->end && is_blank(*c->at)) {
            odd = odd || *c->at == '\n' || *c->at == '\r';
            c->at++;
        }
        if (c->at == c->end || *c->at == '\0') {
            return fail(c, "the text ends within an object or a list");
        }
        if (!pass_token(c, &kinds, &depth, &odd)) {
            return false;
        }
    } while (depth > 0);
    *out = (tn_json_span){from, (size_t)(c->at - from), odd};
    return true;
}

bool tn_json_cursor_scalar(tn_json_cursor *c, tn_json_span *out)
{
    for (char b = tn_json_cursor_peek(c); b == '[' || b == ']' || b == ',';
         b = tn_json_cursor_peek(c)) {
        c->at++;
    }
    return tn_json_cursor_peek(c) != 0 && tn_json_cursor_value(c, out);
}

bool tn_json_span_is(const tn_json_span *span, const char *text)
{
    const size_t size = strlen(text);
    return span->data != NULL && span->size == size + 2 && *span->data == '"' &&
           memcmp(span->data + 1, text, size) == 0;
}

bool tn_json_span_u64(const tn_json_span *span, uint64_t *out)
{
    return span->data != NULL && tn_read_u64(span->data, span->size, out) == TN_NUM_OK;
}

tn_status tn_json_cursor_check(tn_json_cursor *c, const char *what, tn_error *err)
{
    if (c->fault == NULL && tn_json_cursor_peek(c) != 0) {
        c->fault = "expected its end";
    }
    if (c->fault == NULL && c->at < c->end) {
        c->fault = "a NUL";
    }
    return c->fault == NULL ? TN_OK
                            : tn_fail(err, TN_E_DATA, "%s is no JSON: byte %zu: %s", what,
                                      (size_t)(c->at - c->begin) + 1, c->fault);
}

/* ---- values on one line ---- */

void tn_json_quote(tn_text *out, const char *data, size_t size)
{
    tn_text_addc(out, '"');
    for (size_t i = 0; i < size; i++) {
        const unsigned char b = (unsigned char)data[i];
        if (b == '"' || b == '\\') {
            tn_text_addc(out, '\\');
            tn_text_addc(out, (char)b);
        } else if (b < ' ') {
            tn_text_addf(out, "\\u%04x", b);
        } else {
            tn_text_addc(out, (char)b);
        }
    }
    tn_text_addc(out, '"');
}

/* The value of a digit of base 64, of either alphabet; -1: it is none. */
static int digit_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' || c == '-' ? 62 : c == '/' || c == '_' ? 63 : -1;
}

/* Appends the text that `size` digits encode, as a JSON text. */
static bool add_decoded(tn_text *out, const char *digit, size_t size)
{
    tn_text bytes = {0};
    uint32_t bits = 0;
    uint32_t n = 0;
    while (size > 0 && digit[size - 1] == '=') {
        size--;
    }
    bool good = size % 4 != 1;
    for (size_t i = 0; i < size && good; i++) {
        const int d = digit_of(digit[i]);
        good = d >= 0;
        bits = bits << 6 | (uint32_t)(d & 63);
        n += 6;
        if (n >= 8) {
            n -= 8;
            tn_text_addc(&bytes, (char)(bits >> n & 255));
        }
    }
    tn_json_quote(out, tn_text_str(&bytes), bytes.size);
    good = good && !bytes.failed;
    tn_text_done(&bytes);
    return good;
}

/* At '{': appends the text of {"b64": "TEXT"} and passes over it; false: it is another object. */
static bool add_b64(tn_json_cursor *c, tn_text *out, bool *good)
{
    tn_json_cursor look = *c;
    tn_bytes key;
    tn_json_span value;
    if (!tn_json_cursor_enter(&look, '{') || !tn_json_cursor_member(&look, &key) || key.size != 3 ||
        memcmp(key.data, "b64", 3) != 0 || tn_json_cursor_peek(&look) != '"' ||
        !tn_json_cursor_value(&look, &value) || tn_json_cursor_member(&look, &key) ||
        look.fault != NULL) {
        return false;
    }
    *good = add_decoded(out, value.data + 1, value.size - 2);
    *c = look;
    return true;
}

tn_status tn_json_flatten(const tn_json_span *span, tn_text *out, tn_error *err)
{
    if (!span->odd) {
        tn_text_add(out, span->data, span->size);
        return tn_text_check(out, "a row", err);
    }
    bool good = true;
    tn_json_cursor c = tn_json_cursor_of(span->data, span->size);
    while (c.at < c.end && good) {
        const char *from = c.at;
        if (*from == '"') {
            good = pass_text(&c);
            tn_text_add(out, from, (size_t)(c.at - from));
        } else if (*from != '{' || !add_b64(&c, out, &good)) {
            tn_text_addc(out, (char)(is_blank(*from) ? ' ' : *from));
            c.at++;
        }
    }
    return good ? tn_text_check(out, "a row", err)
                : tn_fail(err, TN_E_DATA, "'b64' holds a text that is no base 64");
}
