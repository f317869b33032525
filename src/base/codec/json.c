/* json.c - reads JSON: one descent, every byte looked at once; then values by name.
 *
 * Duplicate members are found by sorting when an object closes. The accessors report a value that
 * is missing or of another kind as no value.
 */
#include "base/codec/json.h"

#include "base/codec/utf8.h"
#include "base/core/alloc.h"
#include "base/core/number.h"

#include <stdlib.h>
#include <string.h>

enum {
    DEPTH_MAX = 32,
    VALUES_MAX = 1 << 22, /* bound of a tree: each value takes 72 bytes and its text */
    FEW_MEMBERS = 16,
};

typedef struct parser {
    const char *text;
    size_t size;
    size_t at;
    uint32_t depth;
    uint32_t n_values;
    tn_arena *arena;
    const char *what;
    tn_error *err;
} parser;

static tn_status parse_value(parser *p, tn_json *out) TN_MUST_USE;

static tn_status fault(const parser *p, const char *problem)
{
    return tn_fail(p->err, TN_E_CKPT, "bad JSON: %s at byte %zu of '%s'", problem, p->at, p->what);
}

static bool at_end(const parser *p)
{
    return p->at == p->size;
}

/* Returns the byte at the cursor; 0, which JSON nowhere allows, at the end. */
static char peek(const parser *p)
{
    return (char)(at_end(p) ? 0 : p->text[p->at]);
}

static void skip_blanks(parser *p)
{
    while (peek(p) == ' ' || peek(p) == '\n' || peek(p) == '\r' || peek(p) == '\t') {
        p->at++;
    }
}

static bool eat(parser *p, char c)
{
    bool there = peek(p) == c && !at_end(p);
    p->at += there;
    return there;
}

static bool eat_word(parser *p, const char *word)
{
    size_t size = strlen(word);
    bool there = size <= p->size - p->at && memcmp(p->text + p->at, word, size) == 0;
    p->at += there ? size : 0;
    return there;
}

/* Reads four hex digits at the cursor. Returns false, and moves nothing, for anything else. */
static bool eat_hex4(parser *p, uint32_t *out)
{
    uint64_t value = 0;
    if (p->size - p->at < 4 || tn_read_hex(p->text + p->at, 4, &value) != TN_NUM_OK) {
        return false;
    }
    p->at += 4;
    *out = (uint32_t)value;
    return true;
}

/* Reads the digits that follow "\u", and the second half of a surrogate pair. */
static tn_status parse_code_point(parser *p, char **out)
{
    uint32_t c = 0;
    uint32_t low = 0;
    if (!eat_hex4(p, &c)) {
        return fault(p, "expected four hex digits");
    }
    if (c >= 0xd800 && c <= 0xdfff) {
        if (c >= 0xdc00 || !eat_word(p, "\\u") || !eat_hex4(p, &low) || low < 0xdc00 ||
            low > 0xdfff) {
            return fault(p, "lone surrogate");
        }
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    }
    if (c == 0) {
        return fault(p, "NUL in a string");
    }
    *out = tn_utf8_put(*out, c);
    return TN_OK;
}

/* Reads what follows a backslash. */
static tn_status parse_escape(parser *p, char **out)
{
    static const char letters[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    if (eat(p, 'u')) {
        return parse_code_point(p, out);
    }
    char c = peek(p);
    const char *letter = c != 0 ? strchr(letters, c) : NULL;
    if (letter == NULL) {
        return fault(p, "unknown escape");
    }
    *(*out)++ = meant[letter - letters];
    p->at++;
    return TN_OK;
}

/* Returns the bytes up to the closing quote, escapes and all; SIZE_MAX when there is none. */
static size_t raw_string_size(const parser *p)
{
    for (size_t i = p->at; i < p->size; i++) {
        if (p->text[i] == '"') {
            return i - p->at;
        }
        i += p->text[i] == '\\';
    }
    return SIZE_MAX;
}

static tn_status parse_string(parser *p, const char **out)
{
    if (!eat(p, '"')) {
        return fault(p, "expected a string");
    }
    size_t raw_size = raw_string_size(p);
    if (raw_size == SIZE_MAX) {
        return fault(p, "string without end");
    }
    char *decoded = tn_arena_alloc(p->arena, raw_size + 1, 1, 1);
    char *end = decoded;
    while (!eat(p, '"')) {
        size_t size = tn_utf8_size(p->text + p->at, p->size - p->at);
        if (eat(p, '\\')) {
            TN_TRY(parse_escape(p, &end));
        } else if (size == 0) {
            return fault(p, "invalid UTF-8");
        } else if ((unsigned char)peek(p) < ' ') {
            return fault(p, "control character in a string");
        } else {
            memcpy(end, p->text + p->at, size);
            end += size;
            p->at += size;
        }
    }
    TN_ASSERT((size_t)(end - decoded) <= raw_size);
    *out = decoded;
    return TN_OK;
}

static bool eat_digits(parser *p)
{
    size_t begin = p->at;
    while (peek(p) >= '0' && peek(p) <= '9') {
        p->at++;
    }
    return p->at > begin;
}

static tn_status parse_number(parser *p, tn_json *out)
{
    size_t begin = p->at;
    (void)eat(p, '-');
    if (!eat(p, '0') && !eat_digits(p)) {
        return fault(p, p->at == begin ? "expected a value" : "malformed number");
    }
    bool whole = !eat(p, '.') || eat_digits(p);
    if (eat(p, 'e') || eat(p, 'E')) {
        (void)(eat(p, '-') || eat(p, '+'));
        whole = eat_digits(p) && whole;
    }
    if (!whole) {
        return fault(p, "malformed number");
    }
    size_t size = p->at - begin;
    if (tn_read_f64(p->text + begin, size, &out->number) != TN_NUM_OK) {
        return fault(p, "number too large");
    }
    char *copy = tn_arena_alloc(p->arena, size + 1, 1, 1);
    memcpy(copy, p->text + begin, size);
    out->string = copy;
    out->kind = TN_JSON_NUMBER;
    return TN_OK;
}

static int by_key(const void *a, const void *b)
{
    const tn_json *const *x = a;
    const tn_json *const *y = b;
    return strcmp((*x)->key, (*y)->key);
}

static tn_status refuse_duplicates(const parser *p, const tn_json *object)
{
    const tn_json *few[FEW_MEMBERS];
    const tn_json **sorted = few;
    if (object->n > FEW_MEMBERS) {
        sorted = tn_try_alloc(object->n, sizeof(const tn_json *), "members of JSON", p->err);
        if (sorted == NULL) {
            return TN_E_MEMORY;
        }
    }
    uint32_t n = 0;
    for (const tn_json *m = object->first; m != NULL; m = m->next) {
        sorted[n++] = m;
    }
    TN_ASSERT(n == object->n);
    qsort(sorted, n, sizeof(const tn_json *), by_key);
    tn_status status = TN_OK;
    for (uint32_t i = 1; i < n && status == TN_OK; i++) {
        if (by_key(&sorted[i - 1], &sorted[i]) == 0) {
            status = tn_fail(p->err, TN_E_CKPT, "bad JSON: duplicate member '%.200s' of '%s'",
                             sorted[i]->key, p->what);
        }
    }
    if (sorted != few) {
        tn_free(sorted);
    }
    return status;
}

/* Reads one item or member and appends it at *tail. */
static tn_status parse_item(parser *p, tn_json *parent, tn_json ***tail)
{
    if (++p->n_values > VALUES_MAX) {
        return tn_fail(p->err, TN_E_LIMIT, "too large: '%s' has more than %d values", p->what,
                       VALUES_MAX);
    }
    tn_json *item = TN_NEW(p->arena, tn_json);
    skip_blanks(p);
    if (parent->kind == TN_JSON_OBJECT) {
        TN_TRY(parse_string(p, &item->key));
        skip_blanks(p);
        if (!eat(p, ':')) {
            return fault(p, "expected a ':'");
        }
    }
    TN_TRY(parse_value(p, item));
    parent->n++;
    **tail = item;
    *tail = &item->next;
    return TN_OK;
}

/* Reads items up to `closing`; the opening bracket is read already. */
static tn_status parse_items(parser *p, tn_json *out, char closing)
{
    tn_json **tail = &out->first;
    skip_blanks(p);
    if (eat(p, closing)) {
        return TN_OK;
    }
    do {
        TN_TRY(parse_item(p, out, &tail));
        skip_blanks(p);
    } while (eat(p, ','));
    if (!eat(p, closing)) {
        return fault(p, closing == '}' ? "expected a ',' or '}'" : "expected a ',' or ']'");
    }
    return closing == '}' ? refuse_duplicates(p, out) : TN_OK;
}

static tn_status parse_container(parser *p, tn_json *out)
{
    if (++p->depth > DEPTH_MAX) {
        return fault(p, "nested more than 32 deep");
    }
    bool object = p->text[p->at++] == '{';
    out->kind = object ? TN_JSON_OBJECT : TN_JSON_LIST;
    TN_TRY(parse_items(p, out, object ? '}' : ']'));
    p->depth--;
    return TN_OK;
}

static tn_status parse_value(parser *p, tn_json *out)
{
    skip_blanks(p);
    out->begin = p->at;
    tn_status status = TN_OK;
    if (peek(p) == '{' || peek(p) == '[') {
        status = parse_container(p, out);
    } else if (peek(p) == '"') {
        out->kind = TN_JSON_STRING;
        status = parse_string(p, &out->string);
    } else if (eat_word(p, "true")) {
        out->kind = TN_JSON_BOOL;
        out->boolean = true;
    } else if (eat_word(p, "false")) {
        out->kind = TN_JSON_BOOL;
    } else if (!eat_word(p, "null")) {
        status = parse_number(p, out);
    }
    TN_ASSERT(out->begin <= p->at && p->at <= p->size);
    out->end = p->at;
    return status;
}

/* Reserves memory for the tree: every value but the first follows a bracket or a comma, and a
 * copied text is never longer than its source. */
static tn_status reserve(const parser *p)
{
    size_t values = 1;
    for (size_t i = 0; i < p->size && values <= VALUES_MAX; i++) {
        char c = p->text[i];
        values += c == ',' || c == '[' || c == '{';
    }
    size_t each = sizeof(tn_json) + _Alignof(tn_json) + 2; /* two texts end with NUL */
    return tn_arena_reserve(p->arena, values * each + p->size, p->what, p->err);
}

tn_status tn_json_parse(const tn_json **out, const char *text, size_t size, tn_arena *arena,
                        const char *what, tn_error *err)
{
    parser p = {.text = text, .size = size, .arena = arena, .what = what, .err = err};
    TN_TRY(reserve(&p));
    tn_json *root = TN_NEW(arena, tn_json);
    TN_TRY(parse_value(&p, root));
    skip_blanks(&p);
    if (!at_end(&p)) {
        return fault(&p, "something behind the value");
    }
    TN_ASSERT(p.depth == 0 && p.n_values <= VALUES_MAX);
    *out = root;
    return TN_OK;
}

/* ---- values by name ---- */

const tn_json *tn_json_get(const tn_json *object, const char *key)
{
    if (object == NULL || object->kind != TN_JSON_OBJECT) {
        return NULL;
    }
    for (const tn_json *member = object->first; member != NULL; member = member->next) {
        if (strcmp(member->key, key) == 0) {
            return member;
        }
    }
    return NULL;
}

/* Converts a number such as 1e3 or 2.0 that is a whole one after all. */
static bool whole_u64(double number, uint64_t *out)
{
    if (!(number >= 0 && number <= 0x1p53) || number != (double)(uint64_t)number) {
        return false;
    }
    *out = (uint64_t)number;
    return true;
}

bool tn_json_as_u64(const tn_json *value, uint64_t *out)
{
    if (value == NULL || (value->kind != TN_JSON_NUMBER && value->kind != TN_JSON_STRING)) {
        return false;
    }
    return tn_read_u64(value->string, strlen(value->string), out) == TN_NUM_OK ||
           (value->kind == TN_JSON_NUMBER && strpbrk(value->string, ".eE") != NULL &&
            whole_u64(value->number, out));
}

bool tn_json_as_f64(const tn_json *value, double *out)
{
    if (value == NULL || value->kind != TN_JSON_NUMBER) {
        return false;
    }
    *out = value->number;
    return true;
}

const char *tn_json_as_str(const tn_json *value)
{
    return value != NULL && value->kind == TN_JSON_STRING ? value->string : NULL;
}

const tn_json *tn_json_item(const tn_json *list, uint32_t i)
{
    const tn_json *at = list != NULL && list->kind == TN_JSON_LIST ? list->first : NULL;
    for (; i > 0 && at != NULL; i--) {
        at = at->next;
    }
    return at;
}
