/* diag.c - writes messages with their source line, and finds near names. */
#include "config/diag.h"

#include "config/absent.h"
#include "config/tree.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Limits of what the user sees: SHOWN_MAX bytes of a long line, BEFORE_MAX of them before the
 * fault. */
enum { SHOWN_MAX = 160, BEFORE_MAX = 80, WORD_MAX = 63, LIST_MAX = 300 };

void tn_diag_done(tn_diag *d)
{
    tn_text_done(&d->text);
    *d = (tn_diag){0};
}

static bool continues_character(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

static bool ends_word(char c)
{
    return (unsigned char)c <= ' ' || strchr(",:[]{}\"'=#", c) != NULL;
}

/* Returns the bytes of the word or quoted text that begins at `at`: the caret underlines them. */
static size_t word_size(const char *at)
{
    size_t size = 0;
    if (at[0] == '"' || at[0] == '\'') {
        const char *end = strchr(at + 1, at[0]);
        return end != NULL ? (size_t)(end - at) + 1 : 1;
    }
    while (at[size] != '\0' && !ends_word(at[size])) {
        size++;
    }
    return size > 0 ? size : 1;
}

/* Appends text from elsewhere that goes to a terminal: control characters become blanks; tabs stay,
 * so that the caret below is in its column. */
static void add_clean(tn_text *out, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        bool control = ((unsigned char)bytes[i] < ' ' && bytes[i] != '\t') || bytes[i] == 0x7F;
        tn_text_add(out, control ? " " : &bytes[i], 1);
    }
}

static void add_line_and_caret(tn_text *out, const char *line, size_t col)
{
    size_t size = strlen(line);
    size_t fault = col > 0 ? col - 1 : 0;
    if (fault > size) {
        fault = size;
    }
    size_t begin = fault > BEFORE_MAX ? fault - BEFORE_MAX : 0;
    while (begin < fault && continues_character(line[begin])) {
        begin++;
    }
    size_t shown = size - begin < SHOWN_MAX ? size - begin : SHOWN_MAX;
    while (shown > 0 && begin + shown < size && continues_character(line[begin + shown])) {
        shown--;
    }
    add_clean(out, line + begin, shown);
    tn_text_addc(out, '\n');
    for (size_t i = begin; i < fault; i++) {
        if (!continues_character(line[i])) {
            tn_text_addc(out, line[i] == '\t' ? '\t' : ' ');
        }
    }
    tn_text_addc(out, '^');
    size_t end = fault + (fault < size ? word_size(line + fault) : 1);
    for (size_t i = fault + 1; i < end && i < begin + shown; i++) {
        if (!continues_character(line[i])) {
            tn_text_addc(out, '~');
        }
    }
    tn_text_addc(out, '\n');
}

static void add_place(tn_text *out, const tn_origin *at)
{
    if (at == NULL || at->source == NULL) {
        return;
    }
    add_clean(out, at->source, strlen(at->source));
    if (at->line > 0) {
        tn_text_addf(out, ":%u:%u", at->line, at->col);
    }
    tn_text_adds(out, ": ");
}

/* Returns whether `text` contains these lines, from the beginning of one. */
static bool stands_in(const char *text, const char *lines)
{
    const char *at = strstr(text, lines);
    while (at != NULL && at > text && at[-1] != '\n') {
        at = strstr(at + 1, lines);
    }
    return at != NULL;
}

/* Adds an error, unless the same one is there already: what many slots inherit is one fault. */
void tn_diag_error(tn_diag *d, const tn_origin *at, const char *fmt, ...)
{
    tn_text text = {0};
    char words[1000];
    va_list args;
    va_start(args, fmt);
    int size = vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    TN_ASSERT(size >= 0);
    add_place(&text, at);
    tn_text_adds(&text, "error: ");
    add_clean(&text, words, strlen(words));
    tn_text_addc(&text, '\n');
    if (at != NULL && at->text != NULL) {
        add_line_and_caret(&text, at->text, at->col);
    }
    d->repeated = stands_in(tn_text_str(&d->text), tn_text_str(&text));
    d->n_errors += !d->repeated;
    if (!d->repeated && d->n_errors <= TN_DIAG_MAX) {
        tn_text_add(&d->text, tn_text_str(&text), text.size);
    }
    tn_text_done(&text);
}

void tn_diag_hint(tn_diag *d, const char *fmt, ...)
{
    if (d->repeated || d->n_errors > TN_DIAG_MAX) {
        return;
    }
    char words[500];
    va_list args;
    va_start(args, fmt);
    int size = vsnprintf(words, sizeof words, fmt, args);
    va_end(args);
    TN_ASSERT(size >= 0);
    tn_text_adds(&d->text, "hint: ");
    add_clean(&d->text, words, strlen(words));
    tn_text_addc(&d->text, '\n');
}

tn_status tn_diag_check(const tn_diag *d, tn_error *err)
{
    if (d->n_errors == 0) {
        return TN_OK;
    }
    return tn_fail(err, TN_E_CONFIG, "%u error%s in the configuration%s", d->n_errors,
                   d->n_errors == 1 ? "" : "s",
                   d->n_errors > TN_DIAG_MAX ? ", not all of them shown" : "");
}

static char lower(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Computes optimal string alignment: three rows of the table, rolling. */
static uint32_t word_distance(const char *a, const char *b)
{
    size_t n = strlen(b);
    if (n > WORD_MAX || strlen(a) > WORD_MAX) {
        return UINT32_MAX;
    }
    uint32_t rows[3][WORD_MAX + 1] = {{0}};
    for (uint32_t j = 0; j <= n; j++) {
        rows[0][j] = j;
    }
    uint32_t i = 0;
    for (; a[i] != '\0'; i++) {
        const uint32_t *above = rows[i % 3];
        const uint32_t *top = rows[(i + 2) % 3];
        uint32_t *row = rows[(i + 1) % 3];
        row[0] = i + 1;
        for (size_t j = 1; j <= n; j++) {
            bool same = lower(a[i]) == lower(b[j - 1]);
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + !same);
            bool swap = i > 0 && j > 1 && lower(a[i]) == lower(b[j - 2]) &&
                        lower(a[i - 1]) == lower(b[j - 1]);
            if (swap) {
                row[j] = least(row[j], top[j - 2] + 1);
            }
        }
    }
    return rows[i % 3][n];
}

const char *tn_nearest(const char *word, const char *const *names, uint32_t n)
{
    const char *nearest = NULL;
    uint32_t best = UINT32_MAX;
    size_t size = strlen(word);
    for (uint32_t k = 0; k < n; k++) {
        /* At most half of a short word may be wrong, and a third of a long one. */
        uint32_t allowed = size < 4 ? 1 : size < 9 ? 2 : 3;
        uint32_t distance = word_distance(word, names[k]);
        bool other = distance < strlen(names[k]);
        if (other && distance <= allowed && distance < best) {
            best = distance;
            nearest = names[k];
        }
    }
    return nearest;
}

void tn_diag_unknown(tn_diag *d, const tn_origin *at, const char *what, const char *word,
                     const char *const *names, uint32_t n)
{
    if (tn_is_absent(word)) {
        tn_diag_error(d, at, TN_ABSENT_FORM, word);
        return;
    }
    const bool colon = strchr(word, ':') != NULL; /* "name:value" is one word */
    const char *nearest = colon ? NULL : tn_nearest(word, names, n);
    if (nearest != NULL) {
        tn_diag_error(d, at, "unknown %s '%s' (did you mean '%s'?)", what, word, nearest);
        return;
    }
    tn_diag_error(d, at, "unknown %s '%s'", what, word);
    if (colon) {
        tn_diag_hint(d, "a blank is missing behind ':'");
        return;
    }
    if (strchr(word, ',') != NULL) {
        tn_diag_hint(d, "a list is written [%s]", word);
        return;
    }
    tn_text list = {.size_max = LIST_MAX};
    for (uint32_t i = 0; i < n; i++) {
        tn_text_addf(&list, "%s%s", i > 0 ? " " : "", names[i]);
    }
    if (n > 0 && !list.failed) {
        tn_diag_hint(d, "there %s: %s", n == 1 ? "is only" : "are", tn_text_str(&list));
    }
    tn_text_done(&list);
}
